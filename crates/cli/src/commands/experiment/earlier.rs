//! The parts of a page about the machine at hand, from the page that is there already.
//!
//! They need a quiet machine, and the simulated ones need none: a page whose simulated parts are made anew
//! (`--sim --doc`) keeps the others, and says from which run they are.

use super::claim::ClaimVerdict;
use super::lesson::ClaimResult;

/// A row of the claims, as it stands in a page.
pub(super) type ClaimRow = [String; 7];

/// What an earlier page has about the machine it was made on.
#[derive(Debug, Default, PartialEq)]
pub(super) struct EarlierParts {
    /// When and where: `2026-11-26: CPU, …`.
    pub(super) run: String,
    /// Tables with their titles, and pictures.
    pub(super) measured: String,
    pub(super) rows: Vec<ClaimRow>,
    pub(super) notes: Vec<String>,
}

/// How a page says from when these parts are.
pub(super) const KEPT: &str = "Parts about \"this machine\" are those of the run of ";

impl EarlierParts {
    /// Those of this page; nothing if it has none.
    pub(super) fn of(page: &str) -> Option<EarlierParts> {
        let mut parts = EarlierParts::default();
        let mut lines = page.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(run) = run_of(line) {
                parts.run = run;
            }
            let is_here = line.starts_with("This machine") || line.starts_with("![This machine");
            match line {
                _ if line.starts_with("| ") => parts.rows.extend(row(line)),
                _ if !is_here => {}
                _ if line.starts_with('!') => parts.measured += &format!("{line}\n\n"),
                _ if line.ends_with(':') => {
                    parts.measured += &format!("{line}\n");
                    while let Some(line) =
                        lines.next_if(|next| next.is_empty() || next.starts_with('|'))
                    {
                        parts.measured += &format!("{line}\n");
                    }
                }
                _ => parts.notes.push(line.to_owned()),
            }
        }
        (!parts.measured.is_empty()).then_some(parts)
    }

    /// What came of this claim. One about the machine does not depend on settings.
    pub(super) fn claim(&self, id: &str) -> Option<ClaimResult> {
        let is_it = |row: &&ClaimRow| row[0].split_once(": ").is_some_and(|(its, _)| its == id);
        let row = self.rows.iter().find(is_it)?;
        // What it depends on stands behind.
        let verdict = row[5].split("** on ").next().unwrap_or_default();
        let verdict = ClaimVerdict::named(verdict.trim_matches('*'))?;
        Some(ClaimResult {
            verdict,
            found: row[3].clone(),
            holds_in: None,
        })
    }
}

/// When and where the parts about the machine were run: of those that were kept, or of the whole page.
fn run_of(line: &str) -> Option<String> {
    let run = match line.split_once(KEPT) {
        // Its end is that of the line. Versions have dots of their own.
        Some((_, kept)) => kept.trim_end().trim_end_matches('.'),
        None => {
            let text = line.split_once("Run on ")?.1;
            text.split_once(", boot flags").map_or(text, |(run, _)| run)
        }
    };
    Some(run.to_owned())
}

/// A row of claims that is about the machine.
fn row(line: &str) -> Option<ClaimRow> {
    let cells = line
        .trim_matches('|')
        .split(" | ")
        .map(|cell| cell.trim().to_owned());
    let mut cells: Vec<String> = cells.collect();
    if !cells.get(1)?.contains("on this machine") {
        return None;
    }
    // Pages were without a number of settings once.
    if cells.len() == 6 {
        cells.insert(4, String::new());
    }
    cells.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# yield\n\nRun on 2026-11-26: a CPU, 2 CPUs, Linux 6.18.4-a, \
                        boot flags `quiet`; so.\n\n\
                        Elsewhere:\n\n| a |\n| --- |\n| 1 |\n\n\
                        This machine (a CPU): times:\n\n| b |\n| --- |\n| 2 |\n\n\
                        ![This machine: b](b.svg)\n\n| claim | said in | expected | found | verdict | how |\n\
                        | --- | --- | --- | --- | --- | --- |\n\
                        | 002-a: so | there | 1 | 1 | reproduced |  |\n\
                        | 002-b: so | there; on this machine | 1 | 2 ns | **contradicted** | counted |\n\n\
                        This machine during the run: quiet.\n";

    /// Goal: what is about the machine is found, and nothing else, also in a page that has kept it before.
    /// Method: a page of each kind.
    #[test]
    fn parts_about_the_machine_are_found() {
        let parts = EarlierParts::of(PAGE).expect("there are some");
        assert_eq!(parts.run, "2026-11-26: a CPU, 2 CPUs, Linux 6.18.4-a");
        let measured = "This machine (a CPU): times:\n\n| b |\n| --- |\n| 2 |\n\n\
                        ![This machine: b](b.svg)\n\n";
        assert_eq!(parts.measured, measured);
        assert_eq!(parts.notes, ["This machine during the run: quiet."]);
        assert_eq!(parts.rows.len(), 1);
        let claim = Some(ClaimResult {
            verdict: ClaimVerdict::Contradicted,
            found: "2 ns".to_owned(),
            holds_in: None,
        });
        assert_eq!(parts.claim("002-b"), claim);
        assert_eq!(parts.claim("002-a"), None);
        let kept = format!("{PAGE}Run on 2027-01-01: b. {KEPT}{}.\n", parts.run);
        assert_eq!(EarlierParts::of(&kept).expect("the same").run, parts.run);
        assert_eq!(EarlierParts::of("# nothing\n"), None);
    }
}
