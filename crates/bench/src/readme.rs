//! The short table for the front page: the same run as the document's, in a few columns.
//!
//! It stands between two comments, and the rest of the file stays.

use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::case::Case;
use crate::report::{Report, shown, title};
use crate::who::Who;
use console::{Failure, output};
use measure::markdown::{boot_flags, date, table};

const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";
const COLUMNS: [&str; 4] = ["work", "paceline", "best peer", "to best peer"];

/// A file with a place for the table.
pub(crate) struct Readme {
    file: PathBuf,
    text: String,
}

impl Readme {
    /// Reads the file, before the measurement.
    pub(crate) fn at(file: &Path) -> Result<Readme, Failure> {
        let shown = file.display();
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("--readme {shown}: {error}")))?;
        match place(&text) {
            Some(_) => Ok(Readme {
                file: file.to_owned(),
                text,
            }),
            None => Err(Failure::usage(format!(
                "--readme {shown}: there is no place for the table; give it the lines {BEGIN} and {END}"
            ))),
        }
    }

    pub(crate) fn write(&self, report: &Report) -> Result<(), Failure> {
        let Some(place) = place(&self.text) else {
            return Ok(());
        };
        let mut text = self.text.clone();
        text.replace_range(place, &brief(report));
        output::write_file(&self.file, text.as_bytes())
    }
}

/// The bytes between the two comments.
fn place(text: &str) -> Option<Range<usize>> {
    let begin = text.find(BEGIN)? + BEGIN.len();
    let end = begin + text[begin..].find(END)?;
    Some(begin..end)
}

fn brief(report: &Report) -> String {
    let mut out = String::from("\n");
    if report.quick {
        out.push_str("**Tiny sizes of `--quick`: this says nothing about speed.**\n\n");
    }
    if !report.noise.is_quiet() {
        out.push_str("**The machine was not quiet: these numbers are not to be believed.**\n\n");
    }
    let machine = &report.machine;
    let _ = writeln!(
        out,
        "{}, {}, boot flags {}, {} threads for every subject; medians, smaller is better:\n",
        date(),
        machine,
        boot_flags(machine),
        report.threads
    );
    let rows: Vec<[String; 4]> = report.cases.iter().filter_map(row).collect();
    table(&mut out, &COLUMNS, &rows);
    out
}

/// A case as a row of the short table; none if Paceline has no part in it.
fn row(case: &Case) -> Option<[String; 4]> {
    let ours = case
        .scores
        .iter()
        .find(|score| score.who == Who::Paceline)?;
    let best = case.best_peer();
    let none = || "–".to_owned();
    Some([
        format!("{}, {}", title(case), case.unit),
        shown(ours.spread.median),
        best.map_or_else(none, |(who, median)| {
            format!("{} ({})", shown(median), who.name())
        }),
        ours.ratio.map_or_else(none, |ratio| format!("{ratio:.2}")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the place is between the two comments, in their order. Method: a text that has it, and some that
    /// lack a part.
    #[test]
    fn the_place_is_between_the_lines() {
        let text = format!("a{BEGIN}\nold\n{END}b");
        assert_eq!(&text[place(&text).unwrap()], "\nold\n");
        for bad in [format!("{END}{BEGIN}"), BEGIN.into(), END.into()] {
            assert_eq!(place(&bad), None, "{bad}");
        }
    }

    /// Goal: a short row has our number, and the best peer's with its name. Method: two peers; no peer;
    /// without us.
    #[test]
    fn a_case_in_brief() {
        let case = |samples: &[(Who, f64)]| {
            let samples = samples.iter().map(|&(who, sample)| (who, vec![sample]));
            row(&Case::new("row", "big", "ns", samples))
        };
        let peers = case(&[(Who::Paceline, 5.0), (Who::Rayon, 20.0), (Who::Chili, 10.0)]);
        assert_eq!(
            peers.unwrap(),
            ["row big, ns", "5.00", "10.0 (chili)", "0.50"]
        );
        let alone = case(&[(Who::Paceline, 5.0), (Who::Serial, 20.0)]);
        assert_eq!(alone.unwrap(), ["row big, ns", "5.00", "–", "–"]);
        assert_eq!(case(&[(Who::Rayon, 20.0)]), None);
    }

    /// The cells of the first table with a header that begins like this.
    fn cells(text: &str, header: &str) -> Vec<Vec<String>> {
        let lines = text.lines().skip_while(|line| !line.starts_with(header));
        let lines = lines.take_while(|line| line.starts_with('|')).skip(2);
        let cells = |line: &str| {
            let line = line.trim_matches('|');
            line.split(" | ")
                .map(|cell| cell.trim().to_owned())
                .collect()
        };
        lines.map(cells).collect()
    }

    /// Goal: the front page agrees with the document. Method: read both; every number and ratio of the short
    /// table is in the document's table, and every work of the document is in the short table.
    #[test]
    fn the_front_page_agrees_with_the_document() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        let read = |file: &str| std::fs::read_to_string(format!("{root}{file}")).unwrap();
        let (readme, document) = (read("README.md"), read("docs/performance.md"));
        let brief = cells(&readme[place(&readme).unwrap()], "| work | paceline |");
        let all = cells(&document, "| work | subject |");
        let find = |work: &str, subject: &str| {
            let row = all.iter().find(|row| row[0] == work && row[1] == subject);
            row.unwrap_or_else(|| panic!("{work}, {subject} is not in the document"))
        };
        for row in &brief {
            let [work, ours, best, ratio] = row.as_slice() else {
                panic!("{row:?}");
            };
            let published = find(work, "paceline");
            assert_eq!(&published[2], ours, "{work}");
            let none_or = |cell: &str| if cell == "–" { "" } else { cell }.to_owned();
            assert_eq!(published[6], none_or(ratio), "{work}");
            if let Some((median, who)) = best.split_once(' ') {
                let who = who.trim_start_matches('(').trim_end_matches(')');
                assert_eq!(find(work, who)[2], median, "{work}");
            }
        }
        let works = |rows: &[Vec<String>]| {
            let mut works: Vec<String> = rows.iter().map(|row| row[0].clone()).collect();
            works.dedup();
            works
        };
        assert_eq!(works(&brief), works(&all));
        let date = date_of(&document);
        assert!(readme[place(&readme).unwrap()].contains(&date), "{date}");
    }

    /// The date in the document's table of the machine.
    fn date_of(document: &str) -> String {
        let line = document.lines().find(|line| line.starts_with("| date |"));
        let cell = line.and_then(|line| line.split('|').nth(2));
        cell.unwrap().trim().to_owned()
    }
}
