//! What experiments found in the machine, run by run: tables and claims, under each scheduler.
//!
//! A line that begins with `findings` has a scheduler, an experiment, and what `paceline experiment NAME
//! --real --json` printed. A whole number in a row is a time in nanoseconds, and any other number has a
//! fraction.

use std::fmt::Write;

use serde_json::Value;

use super::checks::Checks;

/// What came out of one boot.
#[derive(Debug, Default)]
pub(super) struct Found {
    runs: Vec<FoundRun>,
    checks: Checks,
}

/// One run of an experiment under a scheduler.
#[derive(Debug)]
struct FoundRun {
    label: String,
    name: String,
    report: Value,
}

/// What the same experiment finds in the simulator.
#[derive(Debug)]
pub(super) struct Simulated(Value);

impl Simulated {
    /// Reads what `paceline experiment NAME --sim --json` printed.
    ///
    /// # Errors
    /// If it is no report.
    pub(super) fn read(text: &str) -> Result<Simulated, String> {
        read_report(text).map(Simulated)
    }

    /// What became of the claim of this id, in a cell.
    fn cell(&self, id: &Value) -> String {
        let Some(claim) = list(&self.0["claims"]).iter().find(|it| it["id"] == *id) else {
            return "–".to_owned();
        };
        let verdict = text(&claim["verdict"]);
        match claim["got"].as_f64() {
            Some(got) => format!(
                "{}: {verdict}, {}, claimed {} {}",
                text(id),
                short(got),
                text(&claim["claimed"]),
                text(&claim["unit"])
            ),
            None => format!("{}: {verdict}", text(id)),
        }
    }

    /// How many claims have which verdict.
    fn counts(&self) -> String {
        let claims = list(&self.0["claims"]);
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for verdict in claims.iter().map(|claim| text(&claim["verdict"])) {
            match counts.iter_mut().find(|(known, _)| *known == verdict) {
                Some((_, count)) => *count += 1,
                None => counts.push((verdict, 1)),
            }
        }
        let counts: Vec<String> = counts
            .iter()
            .map(|(verdict, count)| format!("{count} {verdict}"))
            .collect();
        format!(
            "Simulated on {}: {} claims, {}.",
            text(&self.0["machine"]),
            claims.len(),
            counts.join(", ")
        )
    }
}

impl Found {
    /// Reads what a machine printed.
    ///
    /// # Errors
    /// A line of findings that cannot be read.
    pub(super) fn read(text: &str) -> Result<Found, String> {
        let mut runs = Vec::new();
        for line in text.lines().map(str::trim) {
            let Some(rest) = line.strip_prefix("findings ") else {
                continue;
            };
            let mut words = rest.splitn(3, ' ');
            let mut next = || words.next().unwrap_or_default().to_owned();
            let (label, name, report) = (next(), next(), next());
            let report = read_report(&report)
                .map_err(|why| format!("vm: what {name} found under {label}: {why}"))?;
            runs.push(FoundRun {
                label,
                name,
                report,
            });
        }
        Ok(Found {
            runs,
            checks: Checks::read(text),
        })
    }

    /// Whether all that had to happen did, and something was found.
    pub(super) fn all_well(&self) -> bool {
        self.checks.all_passed() && !self.runs.is_empty()
    }

    /// The checks in a sentence.
    pub(super) fn checks(&self) -> String {
        self.checks.sentence("loading, running and unloading")
    }

    /// All of an experiment, in Markdown: claims beside what the simulator says, what was measured, notes.
    pub(super) fn tables(&self, name: &str, simulated: &Simulated) -> String {
        let mut by_label: Vec<ByLabel<'_>> = Vec::new();
        for run in self.runs.iter().filter(|run| run.name == name) {
            match by_label.iter_mut().find(|it| it.label == run.label) {
                Some(it) => it.reports.push(&run.report),
                None => by_label.push(ByLabel {
                    label: &run.label,
                    reports: vec![&run.report],
                }),
            }
        }
        let mut out = claims(&by_label, simulated);
        let _ = writeln!(out, "\n{}", simulated.counts());
        out + &measured(&by_label) + &notes(&by_label)
    }
}

/// The runs under one scheduler.
struct ByLabel<'a> {
    label: &'a str,
    reports: Vec<&'a Value>,
}

fn read_report(text: &str) -> Result<Value, String> {
    let report: Value =
        serde_json::from_str(text).map_err(|error| format!("it is no report: {error}"))?;
    for key in ["tables", "rows", "claims", "notes"] {
        if !report[key].is_array() {
            return Err(format!("it is no report: it has no {key}"));
        }
    }
    Ok(report)
}

/// A row for each claim, a column for each scheduler.
fn claims(by_label: &[ByLabel<'_>], simulated: &Simulated) -> String {
    let mut all: Vec<&Value> = Vec::new();
    for claim in by_label
        .iter()
        .flat_map(|it| &it.reports)
        .flat_map(|it| list(&it["claims"]))
    {
        if all.iter().all(|known| known["id"] != claim["id"]) {
            all.push(claim);
        }
    }
    let labels: Vec<&str> = by_label.iter().map(|it| it.label).collect();
    let mut out = line([&["claim", "simulated"], &labels[..]].concat());
    out += &line(vec!["---"; labels.len() + 2]);
    for claim in all {
        let mut what = format!("{}: {}", text(&claim["id"]), text(&claim["text"]));
        if !text(&claim["unit"]).is_empty() {
            let _ = write!(what, " ({})", text(&claim["unit"]));
        }
        let mut cells = vec![what, simulated.cell(&claim["simulated_as"])];
        cells.extend(by_label.iter().map(|it| judged(it, &claim["id"])));
        out += &line(cells);
    }
    out
}

/// In how many runs under a scheduler a claim holds, and what was found.
fn judged(by_label: &ByLabel<'_>, id: &Value) -> String {
    let claims = by_label
        .reports
        .iter()
        .flat_map(|it| list(&it["claims"]))
        .filter(|it| it["id"] == *id && it["got"].is_number());
    let mut claims: Vec<&Value> = claims.collect();
    let got = |claim: &Value| claim["got"].as_f64().unwrap_or(f64::NAN);
    claims.sort_by(|a, b| got(a).total_cmp(&got(b)));
    let Some(middle) = claims.get(claims.len() / 2) else {
        return "not judged".to_owned();
    };
    let holds = claims.iter().filter(|it| it["holds"] == true).count();
    format!(
        "holds in {holds} of {}: {}, claimed {}",
        claims.len(),
        spread(claims.iter().map(|claim| got(claim)).collect()),
        text(&middle["claimed"])
    )
}

/// The tables that the runs have, each with the rows of all schedulers.
fn measured(by_label: &[ByLabel<'_>]) -> String {
    let Some(first) = by_label.first().and_then(|it| it.reports.first()) else {
        return String::new();
    };
    let mut out = String::new();
    for (place, table) in list(&first["tables"]).iter().enumerate() {
        let columns: Vec<&str> = list(&table["columns"]).iter().map(text).collect();
        let rows: Vec<(&str, Vec<Vec<&Value>>)> = by_label
            .iter()
            .flat_map(|it| {
                rows_of(it, place, &columns)
                    .into_iter()
                    .map(|row| (it.label, row))
            })
            .collect();
        let is_time = |column: usize| {
            let mut cells = rows.iter().flat_map(|(_, row)| &row[column]);
            cells.any(|cell| cell.is_u64())
        };
        let mut head = vec!["scheduler".to_owned()];
        head.extend(columns.iter().enumerate().map(|(column, name)| {
            let unit = if is_time(column) { ", ms" } else { "" };
            format!("{name}{unit}")
        }));
        let _ = write!(out, "\n{}:\n\n", text(&table["title"]));
        let ruler = vec!["---"; head.len()];
        out += &line(head);
        out += &line(ruler);
        for (label, row) in &rows {
            let mut cells = vec![(*label).to_owned()];
            cells.extend(row.iter().map(|cell| all_runs(cell)));
            out += &line(cells);
        }
    }
    out
}

/// The rows of a scheduler's table at this place: for each column, the cells of all runs.
fn rows_of<'a>(by_label: &ByLabel<'a>, place: usize, columns: &[&str]) -> Vec<Vec<Vec<&'a Value>>> {
    let mut rows: Vec<Vec<Vec<&Value>>> = Vec::new();
    for report in &by_label.reports {
        let title = &report["tables"][place]["title"];
        let of = list(&report["rows"])
            .iter()
            .filter(|row| row["table"] == *title);
        for (number, row) in of.enumerate() {
            if rows.len() <= number {
                rows.push(vec![Vec::new(); columns.len()]);
            }
            for (cells, column) in rows[number].iter_mut().zip(columns) {
                cells.push(&row[column]);
            }
        }
    }
    rows
}

/// A cell in all runs: times in milliseconds.
fn all_runs(cells: &[&Value]) -> String {
    let mut words: Vec<&str> = cells.iter().filter_map(|cell| cell.as_str()).collect();
    words.dedup();
    if !words.is_empty() {
        return words.join(" / ");
    }
    let numbers = cells.iter().filter_map(|cell| match cell.as_u64() {
        Some(nanos) => Some(nanos as f64 / 1e6),
        None => cell.as_f64(),
    });
    spread(numbers.collect())
}

/// Other facts, each with the schedulers under which it was told, if not under all; not how quiet the
/// machine was, in which time is the number of instructions.
fn notes(by_label: &[ByLabel<'_>]) -> String {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for it in by_label {
        for note in it
            .reports
            .iter()
            .flat_map(|report| list(&report["notes"]))
            .map(text)
        {
            if note.starts_with("This machine during the run") {
                continue;
            }
            match all.iter_mut().find(|(known, _)| *known == note) {
                Some((_, labels)) if labels.contains(&it.label) => {}
                Some((_, labels)) => labels.push(it.label),
                None => all.push((note, vec![it.label])),
            }
        }
    }
    let mut out = String::new();
    for (note, labels) in all {
        let labels = if labels.len() == by_label.len() && labels.len() > 1 {
            String::new()
        } else {
            format!("{}: ", labels.join(", "))
        };
        let _ = write!(out, "\n- {labels}{note}");
    }
    out + "\n"
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A line of a table.
fn line(cells: Vec<impl AsRef<str>>) -> String {
    let cells = cells.iter().map(|cell| cell.as_ref().replace('|', "\\|"));
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// The middle, and the least and the largest if they are not the same.
fn spread(mut numbers: Vec<f64>) -> String {
    numbers.sort_unstable_by(f64::total_cmp);
    let (Some(&least), Some(&most)) = (numbers.first(), numbers.last()) else {
        return "–".to_owned();
    };
    let [least, middle, most] = [least, numbers[numbers.len() / 2], most].map(short);
    if least == most {
        return middle;
    }
    format!("{middle} ({least}–{most})")
}

/// A number with three digits that say something.
fn short(number: f64) -> String {
    let places = match number.abs() {
        size if size == 0.0 || size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{number:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a machine printed of two schedulers: `cargo xtask vm --experiment priority-inversion --quick
    /// --cpus 2 --phases 1 --verbose`, of which only the keys that are read were kept.
    const PRINTED: &str = include_str!("two-schedulers.log");

    /// What is looked at of `paceline experiment priority-inversion --sim --json`.
    fn simulated() -> Simulated {
        let text = r#"{"machine": "a-phone", "tables": [], "rows": [], "notes": [], "claims": [
            {"id": "000-h", "verdict": "reproduced", "got": 0.0791, "claimed": "less than 1.07",
             "unit": "ms"},
            {"id": "000-g", "verdict": "not reproducible by scheduling alone", "got": null}]}"#;
        Simulated::read(text).unwrap()
    }

    /// Goal: what a real machine printed becomes the tables. Method: its output; cells of claims and of both
    /// tables, times among them.
    #[test]
    fn a_printed_run_becomes_tables() {
        let found = Found::read(PRINTED).unwrap();
        assert!(found.all_well());
        let text = found.tables("priority-inversion", &simulated());
        for part in [
            "| claim | simulated | eevdf | rustland-333 |\n| --- | --- | --- | --- |\n",
            "shorter frames (ms, p50 of a frame) | 000-h: reproduced, 0.079, claimed less than 1.07 ms | \
             holds in 0 of 1: 55.6, claimed less than 52.21 | holds in 0 of 1: 56.5, claimed less than \
             43.66 |",
            "could have had (ms of inversions by a busy wait) | – | holds in 1 of 1: 25.4, claimed more \
             than 18.2 | holds in 0 of 1: 0, ",
            "\nSimulated on a-phone: 2 claims, 1 reproduced, 1 not reproducible by scheduling alone.\n",
            "| scheduler | while waiting | p50, ms | p99, ms | longest, ms | missed | CPU a frame, ms |",
            "\n| eevdf | busy wait (active) | 52.2 | 60.8 | 60.8 | 20 | 39.5 | 25.2 |\n",
            "\n| rustland-333 | park (passive) | 18 | 120 | 33 | 285 |\n",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(
            !text.contains("during the run"),
            "time there is counted: {text}"
        );
    }

    /// Goal: runs of one scheduler are one column, with the middle and both ends, and a claim says in how
    /// many of them it holds. Method: one line three times, with other numbers.
    #[test]
    fn runs_are_put_together() {
        let line = |p50: u64, got: f64| {
            format!(
                r#"findings a x {{"tables":[{{"title":"T","columns":["how","p50","n","m"]}}],"notes":["N."],
                "rows":[{{"table":"T","how":"one","p50":{p50}000000,"n":null,"m":2.0}}],
                "claims":[{{"id":"1","text":"so","got":{got},"claimed":"less than 9","unit":"ms",
                "holds":{}}}]}}"#,
                got < 9.0
            )
            .replace("\n", "")
                + "\r\n"
        };
        let text = [line(7, 8.5), line(3, 10.0), line(5, 4.0)].concat() + "check x:a ok\n";
        let text = Found::read(&text).unwrap().tables("x", &simulated());
        for part in [
            "| 1: so (ms) | – | holds in 2 of 3: 8.5 (4–10), claimed less than 9 |",
            "| scheduler | how | p50, ms | n | m |",
            "| a | one | 5 (3–7) | – | 2 |",
            "\n- a: N.\n",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }

    /// Goal: output that is cut or mixed up is an error that names the run, and no numbers. Method: half a
    /// line, a line without a report, one of another kind, and talk alone.
    #[test]
    fn broken_output_is_refused() {
        for line in [
            "findings eevdf yield {\"tables\": [",
            "findings eevdf yield",
            "findings eevdf yield {\"tables\": [], \"rows\": [], \"claims\": []}",
            "findings eevdf yield 7",
        ] {
            let why = Found::read(line).unwrap_err();
            let names = why.contains("yield found under eevdf") && !why.contains('\n');
            assert!(names, "{line}: {why}");
        }
        assert!(!Found::read("talk\ncheck load ok\n").unwrap().all_well());
        let none = Found::read("check x:a FAILED: exit code 2: no\n").unwrap();
        assert!(none.checks().contains("exit code 2: no"));
        assert!(!none.tables("x", &simulated()).contains("scheduler"));
    }

    /// Goal: a claim that was judged in no run is not one that does not hold. Method: one under one of two
    /// schedulers only.
    #[test]
    fn what_was_not_judged_is_told_so() {
        let report = |claims: &str| {
            format!("{{\"tables\":[],\"rows\":[],\"notes\":[],\"claims\":[{claims}]}}\n")
        };
        let claim = r#"{"id":"1","text":"so","got":1.5,"claimed":"2","unit":"","holds":false}"#;
        let text = format!("findings a x {}findings b x {}", report(claim), report(""));
        let text = Found::read(&text).unwrap().tables("x", &simulated());
        assert!(
            text.contains("| holds in 0 of 1: 1.5, claimed 2 | not judged |"),
            "{text}"
        );
    }
}
