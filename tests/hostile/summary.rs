//! The summary at the end: one table, a row for each kind, or the same as JSON.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::combination::Kind;
use crate::fault::{Fault, What};
use crate::line::Tally;
use crate::options::Options;

/// The results of one kind.
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) tally: Tally,
}

/// The whole campaign.
pub(crate) struct Campaign {
    pub(crate) seed: u64,
    pub(crate) rows: Vec<Row>,
    pub(crate) faults: Vec<Fault>,
}

impl Campaign {
    fn count(&self, kind: Kind, what: What) -> usize {
        let is_it = |fault: &&Fault| fault.what == what && fault.place.kind == kind;
        self.faults.iter().filter(is_it).count()
    }

    /// For people.
    pub(crate) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "kind",
            "combinations",
            "programs",
            "jobs",
            "failed as expected",
            "wrong",
            "lost",
            "stuck",
            "crashed",
            "resident: most of the first tenth, at the end",
        ]);
        for Row { kind, tally } in &self.rows {
            let count = |what| self.count(*kind, what).to_string();
            let memory = match self.count(*kind, What::Growth) {
                0 => tally.memory.to_string(),
                _ => format!("{}: GROWS", tally.memory),
            };
            table.add_row([
                kind.name().to_owned(),
                tally.combinations.to_string(),
                grouped(tally.programs),
                grouped(tally.jobs),
                grouped(tally.expected_failures),
                count(What::Wrong),
                count(What::Lost),
                count(What::Stuck),
                count(What::Crashed),
                memory,
            ]);
        }
        for column in table.column_iter_mut().skip(1).take(8) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.trim_fmt()
    }

    /// For programs.
    pub(crate) fn json(&self, options: &Options) -> String {
        let row = |Row { kind, tally }: &Row| JsonRow {
            kind: *kind,
            tally: *tally,
            wrong: self.count(*kind, What::Wrong),
            lost: self.count(*kind, What::Lost),
            stuck: self.count(*kind, What::Stuck),
            crashed: self.count(*kind, What::Crashed),
            is_flat: self.count(*kind, What::Growth) == 0,
        };
        let fault = |fault: &Fault| JsonFault {
            fault: fault.clone(),
            command: fault.command(options),
        };
        let json = Json {
            seed: self.seed,
            passed: self.faults.is_empty(),
            kinds: self.rows.iter().map(row).collect(),
            faults: self.faults.iter().map(fault).collect(),
        };
        serde_json::to_string_pretty(&json).expect("plain data")
    }
}

#[derive(Serialize)]
struct Json {
    seed: u64,
    passed: bool,
    kinds: Vec<JsonRow>,
    faults: Vec<JsonFault>,
}

#[derive(Serialize)]
struct JsonRow {
    kind: Kind,
    #[serde(flatten)]
    tally: Tally,
    wrong: usize,
    lost: usize,
    stuck: usize,
    crashed: usize,
    is_flat: bool,
}

#[derive(Serialize)]
struct JsonFault {
    #[serde(flatten)]
    fault: Fault,
    command: String,
}

/// A number with gaps, as people read large ones.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::fault::Place;

    fn campaign() -> Campaign {
        let place = Place {
            kind: Kind::Liveness,
            workers: 1,
            policy: "active".into(),
            seed: 9,
            case: None,
        };
        let tally = Tally {
            programs: 1_234_567,
            ..Tally::default()
        };
        Campaign {
            seed: 9,
            rows: vec![
                Row {
                    kind: Kind::Programs,
                    tally,
                },
                Row {
                    kind: Kind::Liveness,
                    tally,
                },
            ],
            faults: vec![Fault::new(What::Lost, &place, "a job")],
        }
    }

    /// Goal: the table has a row for each kind, with its findings. Method: one lost job.
    #[test]
    fn the_table_counts_faults_by_kind() {
        let table = campaign().table();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        let words = |line: &str| -> Vec<String> {
            line.split("  ")
                .map(|word| word.trim().to_owned())
                .filter(|word| !word.is_empty())
                .collect()
        };
        let row = |line: &str| words(&line.replace('\u{202f}', " "));
        assert_eq!(
            row(lines[1]),
            words("programs  0  1 234 567  0  0  0  0  0  0  –")
        );
        assert_eq!(
            row(lines[2]),
            words("liveness  0  1 234 567  0  0  0  1  0  0  –")
        );
    }

    /// Goal: `--json` says the same, with the command for each fault. Method: it is read again.
    #[test]
    fn the_same_as_json() {
        let options = Options::parse_from(["hostile"]);
        let json: serde_json::Value =
            serde_json::from_str(&campaign().json(&options)).expect("it is JSON");
        assert_eq!(json["passed"], false);
        assert_eq!(json["kinds"][1]["kind"], "liveness");
        assert_eq!(json["kinds"][1]["lost"], 1);
        assert_eq!(json["kinds"][0]["programs"], 1_234_567);
        assert_eq!(json["faults"][0]["what"], "lost");
        assert_eq!(json["faults"][0]["place"]["seed"], 9);
        let command = json["faults"][0]["command"].as_str().expect("text");
        assert!(command.contains("--only liveness --workers 1 --policy active --seed 9 --repeat"));
    }
}
