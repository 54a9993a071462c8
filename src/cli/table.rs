//! Tables for a terminal: they fit its width by leaving out and wrapping the columns that are missed least.

use std::collections::HashSet;
use std::io::IsTerminal;

use comfy_table::{Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, presets};

use crate::config::problem::printable;

/// The width where neither the terminal nor `COLUMNS` gives one.
const DEFAULT_WIDTH: u16 = 80;

/// The narrowest terminal that is believed: pseudo-terminals without a size claim fewer columns.
const LEAST_WIDTH: u16 = 20;

/// The narrowest that a column of sentences is wrapped to.
const LEAST_PROSE: u16 = 20;

/// The same, where the table is too wide even so.
const LEAST_NARROW_PROSE: u16 = 12;

/// The columns that are left out first where a table is too wide, in this order.
const LEAST_WANTED: [&str; 14] = [
    "fingerprint",
    "concurrencies of its group",
    "precision",
    "framework",
    "spec",
    "runner",
    "config",
    "hardware",
    "samples",
    "std. error",
    "dpa",
    "ep",
    "commit",
    "runs on",
];

/// The columns that say what a row is of or how it came out: of several values they are never left out.
const KEYS: [&str; 6] = ["isl/osl", "task", "metric", "score", "tput_per_gpu", "tokens/s/gpu"];

/// The columns of sentences and paths: they are wrapped, never left out.
const PROSE: [&str; 10] = [
    "job",
    "why",
    "why not",
    "why it is withheld",
    "name, or why not",
    "reason",
    "value",
    "what",
    "file",
    "threshold",
];

/// What says why, and tells no row from another.
const REASONS: [&str; 5] = [
    "why",
    "why not",
    "why it is withheld",
    "reason",
    "concurrencies of its group",
];

/// The columns whose words are coloured; they are never left out.
const STATES: [&str; 4] = ["state", "result", "verdict", "eval"];

/// What stands for a value that is not there.
const NONE: &str = "-";

/// How a table is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    /// Columns of text.
    pub(super) width: u16,
    /// Whether states are coloured.
    pub(super) colour: bool,
}

impl Screen {
    /// Standard output: `COLUMNS`, else the terminal's width; colours as `NO_COLOR`, `CLICOLOR` and the terminal allow.
    pub(super) fn of_stdout() -> Self {
        Self {
            width: Self::width_of_stdout().unwrap_or(DEFAULT_WIDTH),
            colour: anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never,
        }
    }

    /// The width that `COLUMNS` names, else the terminal's; `None` where neither is known.
    pub(super) fn width_of_stdout() -> Option<u16> {
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let terminal = || {
            let width = Table::new().width().filter(|_| std::io::stdout().is_terminal());
            width.filter(|width| *width >= LEAST_WIDTH)
        };
        columns.filter(|width| *width > 0).or_else(terminal)
    }
}

/// A table without borders, its numbers to the right, no wider than the screen.
///
/// Text from inputs is made printable: no control character reaches a terminal. What is left out is named below the
/// table; of a column that holds one value in all rows that value stands there.
pub(super) fn table(head: &[&str], rows: &[Vec<String>], screen: Screen) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|text| printable(text).to_string()).collect())
        .collect();
    let columns = Columns::fitting(head, &rows, screen.width);
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_width(screen.width);
    table.set_header(columns.shown.iter().map(|index| Cell::new(head[*index].to_uppercase())));
    let of_numbers: Vec<bool> = (0..head.len()).map(|index| is_of_numbers(&rows, index)).collect();
    for row in &rows {
        let shown = columns.shown.iter();
        table.add_row(shown.map(|index| cell(head[*index], &row[*index], of_numbers[*index])));
    }
    table.set_content_arrangement(match columns.wraps {
        true => ContentArrangement::Dynamic,
        false => ContentArrangement::Disabled,
    });
    for (place, index) in columns.shown.iter().enumerate() {
        if let Some(column) = table.column_mut(place).filter(|_| columns.keeps(head[*index])) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.style_text_only();
    match screen.colour {
        true => table.enforce_styling(),
        false => table.force_no_tty(),
    };
    let mut text: String = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    text.push_str(&columns.notes(head, &rows, screen.width));
    text
}

/// Whether a column holds whole numbers, with `-` for those that are not there.
fn is_of_numbers(rows: &[Vec<String>], index: usize) -> bool {
    let mut cells = rows.iter().map(|row| row[index].as_str());
    cells.clone().any(is_number) && cells.all(|text| is_number(text) || matches!(text, "" | NONE))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
}

fn cell(name: &str, text: &str, of_numbers: bool) -> Cell {
    let cell = Cell::new(text);
    if is_number(text) || (of_numbers && text == NONE) {
        return cell.set_alignment(CellAlignment::Right);
    }
    match colour(text).filter(|_| is_in(&STATES, name)) {
        Some(colour) => cell.fg(colour),
        None => cell,
    }
}

fn colour(state: &str) -> Option<Color> {
    match state.to_ascii_lowercase().as_str() {
        "done" | "passed" | "pass" | "success" => Some(Color::Green),
        "failed" | "gate failed" | "fail" | "failure" => Some(Color::Red),
        "missing" | "cancelled" | "skipped" => Some(Color::Yellow),
        _ => None,
    }
}

fn is_in(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The columns of a table that are shown, by their index.
struct Columns {
    shown: Vec<usize>,
    left_out: Vec<usize>,
    wraps: bool,
    /// Whether even the columns that are not sentences must be wrapped.
    too_wide: bool,
}

impl Columns {
    fn fitting(head: &[&str], rows: &[Vec<String>], width: u16) -> Self {
        let natural = natural_widths(head, rows);
        let least = |prose: u16| {
            let natural = &natural;
            move |index: &usize| match is_in(&PROSE, head[*index]) {
                true => natural[*index].min(prose),
                false => natural[*index],
            }
        };
        let distinct = Distinct::of(head, rows);
        let mut columns = Self {
            shown: (0..head.len()).collect(),
            left_out: Vec::new(),
            wraps: false,
            too_wide: false,
        };
        // The first two columns say what a row is of.
        for index in order(head, rows) {
            if total(columns.shown.iter().map(least(LEAST_PROSE))) <= u32::from(width) || columns.shown.len() <= 2 {
                break;
            }
            if !distinct.stays_without(index, &columns.shown) {
                continue;
            }
            columns.shown.retain(|shown| *shown != index);
            columns.left_out.push(index);
        }
        columns.left_out.sort_unstable();
        columns.wraps = total(columns.shown.iter().map(|index| natural[*index])) > u32::from(width);
        columns.too_wide = total(columns.shown.iter().map(least(LEAST_NARROW_PROSE))) > u32::from(width);
        columns
    }

    /// Whether a column has the width of its content.
    fn keeps(&self, name: &str) -> bool {
        self.wraps && !self.too_wide && !is_in(&PROSE, name)
    }

    fn notes(&self, head: &[&str], rows: &[Vec<String>], width: u16) -> String {
        let (same, varied): (Vec<usize>, Vec<usize>) = self
            .left_out
            .iter()
            .partition(|index| one_value(rows, **index).is_some());
        let same = same.iter().filter_map(|index| {
            let value = one_value(rows, *index).filter(|value| !value.is_empty())?;
            Some(format!("{} {value}", head[*index]))
        });
        let varied = varied.iter().map(|index| head[*index].to_owned());
        filled(" in every row: ", same, width) + &filled(" not shown, see --json: ", varied, width)
    }
}

/// What tells the rows apart.
struct Distinct<'a> {
    rows: &'a [Vec<String>],
    /// The columns that can: neither measurements, nor states, nor reasons.
    telling: Vec<usize>,
}

impl<'a> Distinct<'a> {
    fn of(head: &[&str], rows: &'a [Vec<String>]) -> Self {
        let is_measured = |index: usize| {
            let number = |text: &str| text.contains('.') && text.parse::<f64>().is_ok();
            let measured = |text: &str| text == NONE || text.contains(['→', '±']) || number(text);
            rows.iter().all(|row| measured(&row[index]))
        };
        let telling = |index: &usize| {
            let name = head[*index];
            !is_in(&STATES, name) && !is_in(&REASONS, name) && !is_measured(*index)
        };
        Self {
            rows,
            telling: (0..head.len()).filter(telling).collect(),
        }
    }

    /// Whether rows that differ in the shown columns still do without one of them.
    fn stays_without(&self, index: usize, shown: &[usize]) -> bool {
        self.count(|column| shown.contains(&column)) == self.count(|column| shown.contains(&column) && column != index)
    }

    fn count(&self, is_counted: impl Fn(usize) -> bool) -> usize {
        let columns: Vec<usize> = self
            .telling
            .iter()
            .copied()
            .filter(|index| is_counted(*index))
            .collect();
        let told = |row: &'a Vec<String>| columns.iter().map(|index| row[*index].as_str()).collect::<Vec<_>>();
        self.rows.iter().map(told).collect::<HashSet<_>>().len()
    }
}

/// In which order columns are left out: those of one value for all rows, those that are least wanted, then from the
/// right; never the first, never sentences, and keys only of one value.
fn order(head: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let may_go = |index: &usize| {
        let name = head[*index];
        let is_needed = is_in(&KEYS, name) && one_value(rows, *index).is_none();
        !is_in(&PROSE, name) && !is_in(&STATES, name) && !is_needed
    };
    let rank = |index: &usize| {
        LEAST_WANTED
            .iter()
            .position(|name| name.eq_ignore_ascii_case(head[*index]))
    };
    let mut order: Vec<usize> = (1..head.len()).filter(may_go).collect();
    order.sort_by_key(|index| {
        let varies = one_value(rows, *index).is_none();
        (varies, rank(index).unwrap_or(LEAST_WANTED.len()), head.len() - index)
    });
    order
}

/// The value of a column that has the same in all of several rows.
fn one_value(rows: &[Vec<String>], index: usize) -> Option<&str> {
    let (first, rest) = rows.split_first()?;
    let same = !rest.is_empty() && rest.iter().all(|row| row[index] == first[index]);
    same.then(|| first[index].as_str())
}

fn natural_widths(head: &[&str], rows: &[Vec<String>]) -> Vec<u16> {
    let mut table = Table::new();
    table.set_header(head);
    table.add_rows(rows);
    table.column_max_content_widths()
}

/// The width of a table with these columns: each has a space on both sides.
fn total(widths: impl Iterator<Item = u16>) -> u32 {
    widths.map(|width| u32::from(width) + 2).sum()
}

/// A list after its introduction, in lines of at most a width; nothing for an empty list.
fn filled(introduction: &str, items: impl Iterator<Item = String>, width: u16) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        return String::new();
    }
    let mut lines = vec![introduction.to_owned()];
    for (index, item) in items.iter().enumerate() {
        let item = if index + 1 < items.len() {
            format!("{item}, ")
        } else {
            item.clone()
        };
        let full = lines
            .last()
            .is_some_and(|line| line.len() + item.trim_end().len() > usize::from(width));
        if full && index > 0 {
            lines.push("   ".to_owned());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&item);
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(head: &[&str], rows: &[&[&str]], width: u16, colour: bool) -> String {
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(|&text| text.to_owned()).collect())
            .collect();
        table(head, &rows, Screen { width, colour })
    }

    #[test]
    fn a_column_that_tells_rows_apart_stays() {
        let head = ["experiment", "config", "runner", "conc", "eval", "rule", "why"];
        let why = "the highest concurrency of its group, and a sentence that goes on for long";
        let rows: [&[&str]; 3] = [
            &[
                "model_1k1k_tp8_conc4",
                "model-fp8-b200-vllm",
                "b200-one",
                "4",
                "yes",
                "middle-and-last",
                why,
            ],
            &[
                "model_1k1k_tp8_conc4",
                "model-fp8-h200-vllm",
                "b200-one",
                "4",
                "yes",
                "middle-and-last",
                why,
            ],
            &[
                "model_1k1k_tp8_conc4",
                "model-fp8-h200-vllm",
                "b200-two",
                "4",
                "yes",
                "middle-and-last",
                why,
            ],
        ];
        let text = drawn(&head, &rows, 80, false);
        let first = text.lines().next().unwrap_or_default();
        assert!(first.contains("CONFIG") && first.contains("RUNNER"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        // Where a column tells no more than the others do, it may go.
        let text = drawn(&head, &rows[1..], 80, false);
        assert!(!text.lines().next().unwrap_or_default().contains("CONFIG"), "{text}");
        assert!(text.contains("config model-fp8-h200-vllm"), "{text}");
    }

    #[test]
    fn lengths_stay_where_measurements_differ_too() {
        let head = ["model", "isl/osl", "conc", "tput_per_gpu", "median_ttft", "p90_ttft"];
        let rows: [&[&str]; 2] = [
            &[
                "m",
                "1024/1024",
                "4",
                "100.0 → 90.0 (-10.0 %)",
                "0.1 → 0.2 (+100.0 %)",
                "0.1 → 0.2 (+100.0 %)",
            ],
            &[
                "m",
                "8192/1024",
                "64",
                "100.0 → 91.0 (-9.0 %)",
                "0.1 → 0.3 (+200.0 %)",
                "-",
            ],
        ];
        let text = drawn(&head, &rows, 60, false);
        let first = text.lines().next().unwrap_or_default();
        assert!(first.contains("ISL/OSL") && first.contains("TPUT_PER_GPU"), "{text}");
        assert!(
            !first.contains("P90_TTFT") && text.contains("not shown, see --json: median_ttft, p90_ttft"),
            "{text}"
        );
    }

    #[test]
    fn numbers_and_their_lack_stand_to_the_right_and_failures_are_red() {
        let text = drawn(&["name", "samples"], &[&["a", "1,200"], &["b", "-"]], 80, false);
        let ends: Vec<usize> = text.lines().skip(1).map(|line| line.chars().count()).collect();
        assert_eq!(ends[0], ends[1], "{text}");
        let text = drawn(&["name", "verdict"], &[&["a", "FAIL"], &["b", "pass"]], 80, true);
        let colours: Vec<bool> = text.lines().skip(1).map(|line| line.contains('\u{1b}')).collect();
        assert_eq!(colours, [true, true], "{text:?}");
    }
}
