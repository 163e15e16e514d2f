//! The built-in scenarios: the files of `crates/sim/scenarios/`, embedded, so that a name works anywhere.
//!
//! They lie in this crate, beside the machines they run on, so that a package of it has all the files it
//! embeds. Some have a program, of which this crate knows nothing but its text.

use super::file::{BadScenario, Scenario};

/// Each scenario's name and file.
const LIBRARY: &[(&str, &str)] = &[
    (
        "galaxy-s22-inversion",
        include_str!("../../scenarios/galaxy-s22-inversion.toml"),
    ),
    ("job-graph", include_str!("../../scenarios/job-graph.toml")),
    (
        "yield-poll",
        include_str!("../../scenarios/yield-poll.toml"),
    ),
    ("barrier", include_str!("../../scenarios/barrier.toml")),
    (
        "rtos-messages",
        include_str!("../../scenarios/rtos-messages.toml"),
    ),
    (
        "rtos-inversion",
        include_str!("../../scenarios/rtos-inversion.toml"),
    ),
    (
        "time-slices",
        include_str!("../../scenarios/time-slices.toml"),
    ),
    (
        "virtual-slice-example",
        include_str!("../../scenarios/virtual-slice-example.toml"),
    ),
    (
        "game-and-build",
        include_str!("../../scenarios/game-and-build.toml"),
    ),
    (
        "oversubscribed",
        include_str!("../../scenarios/oversubscribed.toml"),
    ),
];

impl Scenario {
    /// The names of the built-in scenarios.
    pub fn library() -> impl Iterator<Item = &'static str> {
        LIBRARY.iter().map(|(name, _)| *name)
    }

    /// The scenario of this name; `None` if no built-in one has this name.
    ///
    /// # Errors
    /// If its file is broken. A test makes sure that none is.
    ///
    /// ```
    /// use paceline_sim::scenario::Scenario;
    /// let scenario = Scenario::named("time-slices").expect("it comes along")?;
    /// assert_eq!(scenario.machine, "vm-2");
    /// # Ok::<(), paceline_sim::scenario::BadScenario>(())
    /// ```
    pub fn named(name: &str) -> Option<Result<Scenario, BadScenario>> {
        let (name, text) = LIBRARY.iter().find(|(known, _)| *known == name)?;
        Some(Scenario::parse(name, text))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Goal: every file of the folder is in the library, under its name, and can be read; no other name can.
    /// Method: list the folder.
    #[test]
    fn the_library_has_every_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let files = std::fs::read_dir(folder).unwrap();
        let files = files.map(|file| file.unwrap().file_name());
        let files = files.filter_map(|file| Some(file.to_str()?.strip_suffix(".toml")?.to_owned()));
        let names: BTreeSet<String> = Scenario::library().map(String::from).collect();
        assert_eq!(names, files.collect());
        for name in Scenario::library() {
            let scenario = Scenario::named(name).expect(name);
            let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.name, name);
        }
        assert!(Scenario::named("yeld-poll").is_none());
    }
}
