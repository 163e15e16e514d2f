//! What a data set has in the end, for people and as JSON.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use console::{Failure, output};
use fleet::{DataSet, Failed, Worked};
use serde::Serialize;

use super::failure;
use crate::commands::accounts::plural;

/// How many failures are told; the table has all of them.
const TOLD: usize = 5;

/// The object of `--json`.
#[derive(Serialize)]
pub(super) struct DataSetReport {
    out: PathBuf,
    /// In all tables.
    rows: u64,
    tables: BTreeMap<&'static str, u64>,
    /// How many units there were before this run.
    before: usize,
    /// How many this run has added.
    added: usize,
    /// How many have an error, the earlier ones included.
    failed: usize,
    failures: Vec<Failed>,
    /// Folders and files that could not be looked at.
    unseen: Vec<String>,
}

impl DataSetReport {
    pub(super) fn of(
        out: &Path,
        set: &DataSet,
        worked: &Worked,
        unseen: Vec<String>,
    ) -> Result<DataSetReport, Failure> {
        let tables = set.kind().tables().iter();
        let tables = tables.map(|&table| Ok((table.word(), set.rows(table).map_err(failure)?)));
        let tables: BTreeMap<_, _> = tables.collect::<Result<_, Failure>>()?;
        let mut failures = set.failures().map_err(failure)?;
        let failed = failures.len();
        failures.truncate(TOLD);
        Ok(DataSetReport {
            out: out.to_owned(),
            rows: tables.values().sum(),
            tables,
            before: set.len() - worked.done.units,
            added: worked.done.units,
            failed,
            failures,
            unseen,
        })
    }

    /// Prints it. It is a failure if all units failed: then what was given is not what was meant.
    pub(super) fn print(&self, json: bool, what: &str) -> Result<(), Failure> {
        if json {
            output::print_json(self)?;
        } else {
            output::print(self.text(what))?;
        }
        let units = self.before + self.added;
        match self.failures.first() {
            Some(first) if self.failed == units => Err(Failure::failed(format!(
                "none of {} could be used; the first: {}",
                plural(units, what),
                first.error
            ))),
            _ => Ok(()),
        }
    }

    fn text(&self, what: &str) -> String {
        let mut lines = vec![format!(
            "{}: {}, of them {} from before",
            self.out.display(),
            plural(self.before + self.added, what),
            self.before
        )];
        let mut table = output::table();
        for (name, rows) in &self.tables {
            let files = self.out.join(name).join("*.parquet");
            table.add_row([
                (*name).to_owned(),
                plural(*rows as usize, "row"),
                files.display().to_string(),
            ]);
        }
        lines.push(table.to_string());
        if self.failed > 0 {
            lines.push(format!("{} failed:", plural(self.failed, what)));
            for failed in &self.failures {
                lines.push(format!(
                    "  {}\n    again with: {}",
                    failed.error, failed.again
                ));
            }
        }
        if self.failed > self.failures.len() {
            lines.push("  … and more: rows with an `error`".to_owned());
        }
        lines.extend(
            self.unseen
                .iter()
                .map(|why| format!("not looked at: {why}")),
        );
        lines.join("\n")
    }
}
