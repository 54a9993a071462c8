//! Tables for a terminal: they fit its width by leaving out and wrapping the columns that are missed least.

use std::io::IsTerminal;

use comfy_table::{Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, presets};

use crate::config::problem::printable;

/// The width where neither the terminal nor `COLUMNS` gives one.
const DEFAULT_WIDTH: u16 = 80;

/// The narrowest terminal that is believed: pseudo-terminals without a size claim fewer columns.
const LEAST_WIDTH: u16 = 20;

/// The narrowest that a column of sentences is wrapped to.
const LEAST_PROSE: u16 = 20;

/// The columns that are left out first where a table is too wide, in this order.
const LEAST_WANTED: [&str; 14] = [
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
    "isl/osl",
];

/// The columns of sentences: they are wrapped, never left out.
const PROSE: [&str; 6] = ["job", "why", "why not", "name, or why not", "reason", "value"];

/// The columns whose words are coloured; they are never left out.
const STATES: [&str; 4] = ["state", "result", "verdict", "eval"];

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
        let stdout = std::io::stdout();
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let terminal = || {
            let width = Table::new().width().filter(|_| stdout.is_terminal());
            width.filter(|width| *width >= LEAST_WIDTH)
        };
        let width = columns.filter(|width| *width > 0).or_else(terminal);
        Self {
            width: width.unwrap_or(DEFAULT_WIDTH),
            colour: anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never,
        }
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
    for row in &rows {
        table.add_row(columns.shown.iter().map(|index| cell(head[*index], &row[*index])));
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

fn cell(name: &str, text: &str) -> Cell {
    let cell = Cell::new(text);
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    if is_number {
        return cell.set_alignment(CellAlignment::Right);
    }
    match colour(text).filter(|_| is_in(&STATES, name)) {
        Some(colour) => cell.fg(colour),
        None => cell,
    }
}

fn colour(state: &str) -> Option<Color> {
    match state {
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
        let least = |index: &usize| match is_in(&PROSE, head[*index]) {
            true => natural[*index].min(LEAST_PROSE),
            false => natural[*index],
        };
        let mut columns = Self {
            shown: (0..head.len()).collect(),
            left_out: Vec::new(),
            wraps: false,
            too_wide: false,
        };
        // The first two columns say what a row is of.
        for index in order(head, rows) {
            if total(columns.shown.iter().map(least)) <= u32::from(width) || columns.shown.len() <= 2 {
                break;
            }
            columns.shown.retain(|shown| *shown != index);
            columns.left_out.push(index);
        }
        columns.left_out.sort_unstable();
        columns.wraps = total(columns.shown.iter().map(|index| natural[*index])) > u32::from(width);
        columns.too_wide = total(columns.shown.iter().map(least)) > u32::from(width);
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

/// In which order columns are left out: those of one value for all rows, those that are least wanted, then from the
/// right; never the first and never sentences.
fn order(head: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let may_go = |index: &usize| !is_in(&PROSE, head[*index]) && !is_in(&STATES, head[*index]);
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
