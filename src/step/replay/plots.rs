//! Histograms of latencies and lengths as SVG, written without a library: boxes, lines and texts. The same numbers give
//! the same text.

use std::fmt::Write;

use super::requests::Requests;
use super::statistics::{Statistics, Values};

/// The size of a panel and of what it draws in, in pixels.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 34.0;
/// The room of the title.
const HEAD: f64 = 34.0;
/// How many boxes a histogram has.
const BINS: usize = 40;
/// How many panels stand beside each other.
const COLUMNS: usize = 2;
/// The longest title, in characters.
const MAX_TITLE: usize = 120;

/// The pictures: ends of names, and texts.
pub(super) fn draw(requests: &Requests, title: &str) -> Vec<(&'static str, String)> {
    vec![
        ("latency.svg", picture(title, "seconds", &requests.latencies())),
        ("tokens.svg", picture(title, "tokens", &requests.lengths())),
    ]
}

/// A picture with a panel for each list that holds something.
fn picture(title: &str, unit: &str, lists: &[(&str, &[f64])]) -> String {
    let drawn: Vec<&(&str, &[f64])> = lists.iter().filter(|(_, values)| !values.is_empty()).collect();
    let rows = drawn.len().div_ceil(COLUMNS).max(1);
    let (width, height) = (float(COLUMNS) * WIDTH, HEAD + float(rows) * HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 \
         {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n"
    );
    let title: String = title.chars().take(MAX_TITLE).collect();
    text(&mut svg, (LEFT, 22.0), "start", &title);
    if drawn.is_empty() {
        text(&mut svg, (LEFT, HEAD + TOP), "start", "nothing was measured");
    }
    for (at, (name, values)) in drawn.into_iter().enumerate() {
        let place = (float(at % COLUMNS) * WIDTH, HEAD + float(at / COLUMNS) * HEIGHT);
        if let Some(statistics) = Statistics::of(values).values {
            panel(
                &mut svg,
                place,
                &format!("{name}, {unit} (n = {})", values.len()),
                values,
                &statistics,
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, (left, top): (f64, f64), name: &str, values: &[f64], statistics: &Values) {
    let (x, y) = (left + LEFT, top + TOP);
    let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let base = y + height;
    let (low, high) = range(values);
    let counts = histogram(values, low, high);
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    text(svg, (x, top + 14.0), "start", name);
    let step = width / float(BINS);
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let tall = height * float(*count) / float(most);
        shape(svg, "#4878a8", (x + float(at) * step, base - tall), (step - 1.0, tall));
    }
    shape(svg, "#444444", (x, base), (width, 1.0));
    for share in [0.0, 0.5, 1.0] {
        text(
            svg,
            (x + share * width, base + 16.0),
            "middle",
            &number(low + share * (high - low)),
        );
    }
    text(svg, (x - 6.0, y + 8.0), "end", &most.to_string());
    text(svg, (x - 6.0, base), "end", "0");
    for (percentile, value, lift) in [("p50", statistics.p50, 0.0), ("p95", statistics.p95, 11.0)] {
        let at = x + width * (value - low) / (high - low);
        shape(svg, "#c04040", (at, y), (1.0, height));
        text(
            svg,
            (at + 3.0, y + 8.0 + lift),
            "start",
            &format!("{percentile} {}", number(value)),
        );
    }
}

/// The ends of the axis: from 0, or from the lowest value where that is negative, to the highest.
fn range(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(0.0, f64::min);
    let high = values.iter().copied().fold(low, f64::max);
    (low, if high > low { high } else { low + 1.0 })
}

/// How many values lie in each of equal parts of the axis; the highest lies in the last.
fn histogram(values: &[f64], low: f64, high: f64) -> [usize; BINS] {
    let mut counts = [0; BINS];
    for value in values {
        let share = (value - low) / (high - low) * float(BINS);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of an axis, and casts saturate"
        )]
        let bin = (share as usize).min(BINS - 1);
        counts[bin] += 1;
    }
    counts
}

fn shape(svg: &mut String, fill: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let text = escaped(text);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

/// A text that is nothing but text to a reader of XML.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // XML knows no control characters, and these two are no characters at all.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// A number with about three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value == 0.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[allow(clippy::cast_precision_loss, reason = "no replay has 2^53 requests")]
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_value_lies_in_the_last_box_and_one_value_alone_is_drawn() {
        let counts = histogram(&[0.0, 1.0, 2.0, 4.0], 0.0, 4.0);
        assert_eq!((counts[0], counts[10], counts[20], counts[BINS - 1]), (1, 1, 1, 1));
        assert_eq!(range(&[0.0, 0.0]), (0.0, 1.0));
        assert_eq!(range(&[-2.0, -1.0]), (-2.0, -1.0));
        assert_eq!(range(&[3.0]), (0.0, 3.0));
    }

    #[test]
    fn a_picture_is_xml_whatever_it_is_called() {
        let svg = picture("</svg><script>&\"'\u{1b}", "seconds", &[("x", &[1.0])]);
        assert!(svg.contains("&lt;/svg&gt;&lt;script&gt;&amp;&quot;&apos;?"), "{svg}");
        assert_eq!(svg.matches("</svg>").count(), 1);
        assert!(picture("t", "tokens", &[("x", &[])]).contains("nothing was measured"));
    }
}
