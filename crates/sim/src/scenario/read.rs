//! Reading the text of a scenario: the place of a mistake, and plain words for it.

use std::path::Path;

use serde::{Deserialize, Deserializer, de::Error};

use super::file::{BadScenario, Scenario};

impl Scenario {
    /// Reads the text of a scenario. `place` is the path of its file, or a name: it is in errors, and its
    /// last part, without an ending, is the name of a scenario that gives none.
    ///
    /// # Errors
    /// If the text is no TOML, has unknown keys, or asks for something that makes no sense.
    pub fn parse(place: &str, text: &str) -> Result<Scenario, BadScenario> {
        let mut scenario: Scenario = toml::from_str(text).map_err(|error| {
            let at = error.span().map(|span| position(text, span.start));
            let at = at.map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
            let what = plain(&error.message().replace('\n', " "));
            BadScenario(format!("{place}{at}: {what}"))
        })?;
        if scenario.name.is_empty() {
            let name = Path::new(place).file_stem().unwrap_or_default();
            scenario.name = name.to_string_lossy().into_owned();
        }
        match scenario.check().and_then(|()| scenario.check_held()) {
            Ok(()) => Ok(scenario),
            Err(what) => Err(BadScenario(format!("{place}: {what}"))),
        }
    }
}

/// Line and column of a byte, each counted from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (1 + before.matches('\n').count(), 1 + line.chars().count())
}

/// What is expected, in the words of the libraries that read it and in those of a file.
const EXPECTED: &[(&str, &str)] = &[
    (
        "struct variant Phase::Wait",
        "{ flag = \"…\", by = \"spin\", \"yield\" or \"park\" }",
    ),
    (
        "struct variant Phase::Timer",
        "{ name = \"…\", period = \"1 ms\" }",
    ),
    ("struct variant Phase::Await", "{ condition = \"…\" }"),
    (
        "struct variant Phase::Repeat",
        "{ times = 2, phases = […] }",
    ),
    ("i8", "a whole number from -20 to 19"),
    ("u8", "a whole number from 0 to 255"),
    ("u32", "a whole number, 0 or more"),
    ("u64", "a whole number, 0 or more"),
    ("usize", "a whole number, 0 or more"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a string", "text in quotes"),
    ("a sequence", "a list in brackets"),
    ("a map", "a table"),
];

/// A message without the names of types.
fn plain(message: &str) -> String {
    if message.contains("untagged enum Repeat") {
        return "repeat is a whole number, or \"forever\"".to_owned();
    }
    let told = EXPECTED.iter().find_map(|(word, words)| {
        let (found, expected) = message.rsplit_once(", expected ")?;
        (expected == *word).then(|| format!("{found}, expected {words}"))
    });
    let message = told.unwrap_or_else(|| message.to_owned());
    message
        .replace("invalid type: ", "wrong: ")
        .replace("invalid value: ", "wrong: ")
        .replace("unknown variant ", "there is no ")
        .replace("unknown field ", "there is no key ")
}

/// The CPUs of a thread: not none at all.
pub(super) fn cpus<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    let cpus = Vec::<u32>::deserialize(deserializer)?;
    if cpus.is_empty() {
        let what = "a thread needs a CPU: name one, or leave `cpus` out for all of them";
        return Err(D::Error::custom(what));
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a mistake is told with its file, line and column, and in words that a file has. Method: one of
    /// each sort; no type of Rust is named.
    #[test]
    fn mistakes_have_a_place_and_plain_words() {
        let head = "about = 'ä'\nmachine = 'vm-2'\npolicy = 'eevdf-6.18'\n[[thread]]\nname = 'a'\n";
        for (text, expected) in [
            (
                "phases = [{ wait = 'f' }]",
                "6:20: wrong: string \"f\", expected { flag = ",
            ),
            (
                "nice = 500",
                "6:8: wrong: integer `500`, expected a whole number from -20 to 19",
            ),
            (
                "priority = -1",
                "6:12: wrong: integer `-1`, expected a whole number from 0 to 255",
            ),
            (
                "cpus = ['x']",
                "6:9: wrong: string \"x\", expected a whole number, 0 or more",
            ),
            ("cpus = []", "6:8: a thread needs a CPU"),
            (
                "repeat = 'ever'",
                "6:10: repeat is a whole number, or \"forever\"",
            ),
            (
                "phases = [{ wurk = '1 ms' }]",
                "6:13: there is no `wurk`, expected one of `work`",
            ),
            ("colour = 'red'", "6:1: there is no key `colour`"),
            (
                "phases = [{ work = '1 day' }]",
                "6:11: `1 day` is not a length of time",
            ),
            ("phases = [", "6:11: unclosed array"),
        ] {
            let refused = Scenario::parse("my dir/w.toml", &format!("{head}{text}\n"));
            let said = refused.expect_err(text).to_string();
            assert!(said.starts_with("my dir/w.toml:"), "{said}");
            assert!(said.contains(expected), "{text}: {said}");
            assert!(!said.contains("::") && !said.contains("u8"), "{said}");
        }
    }

    /// Goal: a thread can name its program, and a scenario is named after its file. Method: a name, and none
    /// in its place.
    #[test]
    fn a_thread_has_a_program() {
        let read = |process: &str| {
            let text = format!(
                "about = 'x'\nmachine = 'vm-2'\npolicy = 'rtos'\n[[thread]]\nname = 'a'\n\
                 process = '{process}'\nphases = [{{ work = '1 ms' }}]\n"
            );
            Scenario::parse("my dir/w.toml", &text).map_err(|bad| bad.to_string())
        };
        let nameless = read(" ").unwrap_err();
        assert_eq!(
            nameless,
            "my dir/w.toml: thread \"a\": process: give it a name, or leave it out"
        );
        let named = read("game").unwrap();
        assert_eq!(named.name, "w");
        assert_eq!(named.threads[0].process.as_deref(), Some("game"));
    }
}
