//! Scenarios, machines and policies by name, and suggestions where there is no such name.

use std::io::Read;
use std::path::Path;

use policy::{CATALOGUE, FAMILIES};
use sim::Machine;
use sim::scenario::Scenario;

/// The longest scenario file.
const BYTES_MAX: u64 = 16 << 20;
/// The largest machine `ideal-N`.
const IDEAL_MAX: usize = 256;

/// The scenario of this name, or in this file.
pub(super) fn scenario(given: &str) -> Result<Scenario, String> {
    if let Some(found) = Scenario::named(given) {
        return found.map_err(|error| error.to_string());
    }
    let path = Path::new(given);
    if !path.exists() && !looks_like_a_path(given) {
        let more = "or give a file";
        return Err(unknown("scenario", given, Scenario::library(), more));
    }
    read_scenario(path).map_err(|why| {
        if is_trace(path) {
            format!("{given}: this is a trace; what it recorded is run by --replay {given}")
        } else {
            why
        }
    })
}

/// Whether a file that is no scenario is a trace, as far as its first bytes say.
fn is_trace(path: &Path) -> bool {
    const FIRST: u64 = 1 << 20;
    let Ok(file) = std::fs::File::open(path) else {
        return false;
    };
    let found = trace::read::read(file.take(FIRST), "a file");
    found.is_ok_and(|found| !found.kernel.is_empty() || !found.marks.is_empty())
}

fn read_scenario(path: &Path) -> Result<Scenario, String> {
    let text = read(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_json = path.extension().is_some_and(|ending| ending == "json")
        || ["{", "/*", "//"]
            .iter()
            .any(|begin| text.trim_start().starts_with(begin));
    let read = if is_json {
        Scenario::from_rt_app(&name, &text)
    } else {
        Scenario::parse(&path.display().to_string(), &text)
    };
    read.map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| format!("{shown}: cannot be read: {error}");
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err(format!("{shown}: this is no file"));
    }
    if about.len() > BYTES_MAX {
        let what = format!("{shown}: has more than {BYTES_MAX} bytes; this is no scenario");
        return Err(what);
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|_| format!("{shown}: is no text; this is no scenario"))
}

/// The machine of this name, or in this file.
pub(in crate::commands) fn machine(given: &str) -> Result<Machine, String> {
    let ideal = given.strip_prefix("ideal-").map(str::parse::<usize>);
    match ideal {
        Some(Ok(cpus @ 1..=IDEAL_MAX)) => return Ok(Machine::ideal(cpus)),
        Some(_) => {
            return Err(format!(
                "{given}: give ideal-1 to ideal-{IDEAL_MAX}, by the number of CPUs"
            ));
        }
        None => {}
    }
    if Machine::library().any(|name| name == given) {
        return Machine::named(given).map_err(|error| error.to_string());
    }
    let path = Path::new(given);
    if !path.exists() && !looks_like_a_path(given) {
        let more = "ideal-N, or give a file";
        return Err(unknown("machine", given, Machine::library(), more));
    }
    Machine::load(path).map_err(|error| error.to_string())
}

/// The policy of this name.
pub(super) fn about_policy(given: &str) -> Result<&'static str, String> {
    policy::about(given).ok_or_else(|| {
        let families: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        let names = CATALOGUE.iter().map(|entry| entry.name);
        unknown("policy", given, names, &families.join(", "))
    })
}

fn looks_like_a_path(given: &str) -> bool {
    given.contains(['/', '\\']) || given.ends_with(".toml") || given.ends_with(".json")
}

/// Reports that there is no such thing, and lists the names there are, the most alike first.
pub(in crate::commands) fn unknown<'a>(
    what: &str,
    given: &str,
    names: impl Iterator<Item = &'a str>,
    more: &str,
) -> String {
    let mut names: Vec<&str> = names.collect();
    let likeness = |name: &str| strsim::jaro_winkler(given, name);
    names.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    let shown: String = given.chars().take(40).collect();
    format!(
        "no {what} is called {shown:?}; there are {}, {more}",
        names.join(", ")
    )
}

/// Everything of one kind: the heads of columns, and a row for each.
pub(super) struct List {
    pub(super) what: &'static str,
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The scenarios of the library.
pub(super) fn scenarios() -> List {
    let row = |name: &str| {
        let scenario = Scenario::named(name).expect("it is in the library");
        let scenario = scenario.expect("a test reads every file");
        vec![
            scenario.name,
            scenario.about,
            scenario.machine,
            scenario.policy,
        ]
    };
    List {
        what: "scenarios",
        columns: vec!["name", "about", "machine", "policy"],
        rows: Scenario::library().map(row).collect(),
    }
}

/// The machines of the library.
pub(super) fn machines() -> List {
    let row = |name: &str| {
        let machine = Machine::named(name).expect("a test reads every file");
        vec![
            machine.name.clone(),
            machine.about.clone(),
            machine.cpus.len().to_string(),
            assumed(&machine),
        ]
    };
    let ideal = vec![
        "ideal-N".into(),
        "N equal CPUs, and nothing but work takes time".into(),
        "N".into(),
        "no values".into(),
    ];
    List {
        what: "machines",
        columns: vec!["name", "about", "cpus", "assumed"],
        rows: Machine::library().map(row).chain([ideal]).collect(),
    }
}

/// The policies.
pub(super) fn policies() -> List {
    let single = CATALOGUE.iter().map(|entry| (entry.name, entry.about));
    let families = FAMILIES.iter().map(|family| (family.name, family.about));
    let all = single.chain(families);
    List {
        what: "policies",
        columns: vec!["name", "about"],
        rows: all
            .map(|(name, about)| vec![name.to_owned(), about.to_owned()])
            .collect(),
    }
}

/// The share of a machine's values that are assumed, not documented or measured.
pub(super) fn assumed(machine: &Machine) -> String {
    match machine.facts.len() {
        0 => "no values".to_owned(),
        all => format!("{} of {all} values", machine.assumed().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: everything that a scenario of the library names exists, and fits. Method: all of them.
    #[test]
    fn every_scenario_has_its_machine_and_its_policy() {
        for name in Scenario::library() {
            let scenario = scenario(name).unwrap_or_else(|error| panic!("{error}"));
            let machine = machine(&scenario.machine).unwrap_or_else(|error| panic!("{error}"));
            about_policy(&scenario.policy).unwrap_or_else(|error| panic!("{error}"));
            let highest = scenario.highest_cpu().unwrap_or(0);
            assert!((highest as usize) < machine.cpus.len(), "{name}");
        }
        assert_eq!(scenarios().rows.len(), Scenario::library().count());
        assert_eq!(machines().rows.len(), Machine::library().count() + 1);
    }

    /// Goal: after a mistyped name the probably intended one comes first. Method: one mistake of each kind.
    #[test]
    fn the_closest_name_comes_first() {
        let first = |text: String| {
            let (_, names) = text.split_once("there are ").unwrap();
            names.split(',').next().unwrap().to_owned()
        };
        assert_eq!(first(scenario("yeld-pol").unwrap_err()), "yield-poll");
        assert_eq!(first(machine("ryzen-5800").unwrap_err()), "ryzen-5800x");
        assert_eq!(first(about_policy("eevdf-6.5").unwrap_err()), "eevdf-6.6");
        assert!(machine("ideal-0").unwrap_err().contains("ideal-256"));
        assert!(about_policy("pct-0").unwrap_err().contains("pct-N"));
    }

    /// Goal: a policy with a number in its name is told from others, and can be found in the list. Method:
    /// one of each family.
    #[test]
    fn a_policy_with_a_number_says_what_it_is() {
        let listed: Vec<String> = policies().rows.concat();
        for family in FAMILIES {
            let name = family.name.replace('N', "7");
            assert_eq!(about_policy(&name), Ok(family.about));
            assert!(listed.iter().any(|name| name == family.name));
        }
    }
}
