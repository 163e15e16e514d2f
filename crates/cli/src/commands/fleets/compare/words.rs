//! What was compared, in words and as a table of the terminal.

use comfy_table::{CellAlignment, Table};
use console::output;
use event::Nanos;
use fleet::{Change, ChangeOf, Direction, LEAST_TRACES};

use super::Compared;
use crate::commands::accounts::{plural, short, wrapped};

/// How many rows that grew, and that shrank, a person is told of; the files have all of them.
const TOLD: usize = 15;
/// How much of a name the table has room for.
const LABEL_MAX: usize = 40;

impl Compared<'_> {
    /// All of it for a terminal.
    pub(super) fn text(&self) -> String {
        let columns = output::columns();
        let mut lines = wrapped(&self.sides(), "", columns);
        lines.extend(wrapped(&self.how_much(), "", columns));
        let told = |direction| self.changes.with(direction).take(TOLD);
        let told: Vec<&Change> = told(Direction::Grew)
            .chain(told(Direction::Shrank))
            .collect();
        for (name, rows) in grouped(&told) {
            lines.push(String::new());
            lines.extend(wrapped(&name, "", columns));
            lines.push(table(&rows).to_string());
        }
        lines.push(String::new());
        for sentence in self.besides(told.len()) {
            lines.extend(wrapped(&sentence, "", columns));
        }
        lines.join("\n")
    }

    /// What A and B are.
    pub(super) fn sides(&self) -> String {
        let side = |at: usize| {
            format!(
                "{} ({})",
                self.sides[at].name(),
                plural(self.changes.traces[at], "trace")
            )
        };
        let device = self.device.map(|device| format!("; of device {device}"));
        format!(
            "A: {}; B: {}{}",
            side(0),
            side(1),
            device.unwrap_or_default()
        )
    }

    /// How much grew.
    pub(super) fn how_much(&self) -> String {
        let [grew, shrank, same] =
            [Direction::Grew, Direction::Shrank, Direction::Same].map(|one| self.count(one));
        match grew + shrank + same {
            0 => format!(
                "Too few traces: no wait is in {LEAST_TRACES} traces of A and {LEAST_TRACES} of B, so \
                 nothing has an interval."
            ),
            all => format!(
                "Of {all} waits, causes and inversions {grew} grew beyond chance, and {shrank} shrank."
            ),
        }
    }

    /// What is not in the table with so many rows.
    pub(super) fn besides(&self, told: usize) -> Vec<String> {
        let mut last = Vec::new();
        let changed = self.count(Direction::Grew) + self.count(Direction::Shrank);
        if changed > told {
            last.push(format!("{} more of them: see --json.", changed - told));
        }
        let few = self.count(Direction::Few);
        if few > 0 {
            last.push(format!(
                "{few} more: no interval, as fewer than {LEAST_TRACES} traces of A or of B have such waits."
            ));
        }
        last.push(self.method());
        last
    }
}

/// A row for each change.
fn table(told: &[&Change]) -> Table {
    let mut table = output::table();
    table.set_header(["on average", "A", "B", "change", "95 %", ""]);
    for row in told {
        table.add_row([
            output::cut(&label(row), LABEL_MAX),
            mean(row, 0),
            mean(row, 1),
            change(row),
            interval(row),
            row.direction.word().to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// What a row is about.
pub(super) fn label(row: &Change) -> String {
    let who = row.who.as_ref().map(|who| format!(": {who}"));
    let kind = row.kind.as_deref().unwrap_or_default().replace('_', " ");
    match row.of {
        ChangeOf::Wait => "length".to_owned(),
        ChangeOf::Cause => format!("{kind}{}", who.unwrap_or_default()),
        ChangeOf::Inversion => format!("inversion, {kind}{}", who.unwrap_or_default()),
    }
}

/// The rows of one group of waits together, with its sentence: groups in the order of their first rows.
pub(super) fn grouped<'a>(rows: &[&'a Change]) -> Vec<(String, Vec<&'a Change>)> {
    let mut groups: Vec<(String, Vec<&Change>)> = Vec::new();
    for row in rows {
        let name = of_group(row);
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, of_group)) => of_group.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    groups
}

/// Of which waits, and how many there are.
fn of_group(row: &Change) -> String {
    let side = |at: usize| {
        format!(
            "{} in {}",
            plural(row.waits[at] as usize, "wait"),
            plural(row.traces[at], "trace")
        )
    };
    let process = row.process.as_ref().map(|process| format!(" of {process}"));
    let process = process.unwrap_or_default();
    format!(
        "`{}`{process}: A has {}, B has {}.",
        row.wait_group,
        side(0),
        side(1)
    )
}

/// The mean of a side.
pub(super) fn mean(row: &Change, side: usize) -> String {
    let mean = row.mean_ns[side];
    mean.map_or("–".to_owned(), |ns| short(Nanos(ns.round() as u64)))
}

/// The change of the mean.
pub(super) fn change(row: &Change) -> String {
    row.change_ns().map_or("–".to_owned(), signed)
}

/// How many times as much there is in B.
pub(super) fn growth(row: &Change) -> String {
    row.growth()
        .map_or("–".to_owned(), |times| format!("×{times:.2}"))
}

/// The interval of the change.
pub(super) fn interval(row: &Change) -> String {
    match row.interval_ns {
        Some([low, high]) => format!("{} … {}", signed(low), signed(high)),
        None => "–".to_owned(),
    }
}

/// A difference with its sign.
fn signed(ns: f64) -> String {
    let length = short(Nanos(ns.abs().round() as u64));
    match ns.round() {
        0.0 => length,
        below if below < 0.0 => format!("-{length}"),
        _ => format!("+{length}"),
    }
}
