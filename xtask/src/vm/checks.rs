//! What had to happen in the machine, and whether it did: its lines that begin with `check`.

/// All of them, in order: a name, and `ok` or why not.
#[derive(Debug, Default)]
pub(super) struct Checks(Vec<(String, String)>);

impl Checks {
    /// Those among what a machine printed.
    pub(super) fn read(text: &str) -> Checks {
        let lines = text.lines().map(str::trim);
        let checks = lines.filter_map(|line| line.strip_prefix("check "));
        let parts = checks.map(|check| check.split_once(' ').unwrap_or((check, "FAILED")));
        Checks(
            parts
                .map(|(name, how)| (name.to_owned(), how.to_owned()))
                .collect(),
        )
    }

    /// Whether there were some, and all passed.
    pub(super) fn all_passed(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|(_, how)| how == "ok")
    }

    /// A sentence. `what` they are of: "loading and unloading".
    pub(super) fn sentence(&self, what: &str) -> String {
        let failed = self.0.iter().filter(|(_, how)| how != "ok");
        let failed: Vec<String> = failed.map(|(name, how)| format!("{name}: {how}")).collect();
        let count = self.0.len();
        if failed.is_empty() {
            format!("{count} checks of {what}, all passed.")
        } else {
            format!("{count} checks, of which failed: {}", failed.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no check is no success, and one that failed or says nothing is told with its reason. Method: all
    /// of these, with the line ends of a serial console.
    #[test]
    fn only_checks_that_passed_are_success() {
        let of = |text| Checks::read(text);
        assert!(!of("talk\n").all_passed());
        let fine = of("talk\r\ncheck load:a ok\r\n");
        assert!(fine.all_passed());
        assert_eq!(fine.sentence("loading"), "1 checks of loading, all passed.");
        let bad = of("check load:a ok\ncheck run FAILED: exit code 1: no\ncheck half\n");
        assert!(!bad.all_passed());
        let told = "3 checks, of which failed: run: FAILED: exit code 1: no; half: FAILED";
        assert_eq!(bad.sentence("loading"), told);
    }
}
