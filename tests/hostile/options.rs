//! The command line of `cargo xtask hostile`.

use std::time::{Duration, SystemTime};

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::combination::{Combination, Kind, Policy};
use crate::misuse;
use crate::pace::Budget;
use crate::programs;

/// Programs written to break the job system, for as long as it is given.
///
///   cargo xtask hostile                        two minutes of everything
///   cargo xtask hostile --minutes 600          a night
///   cargo xtask hostile --jobs 1e9             until a billion jobs have been run
///   cargo xtask hostile --only liveness --workers 1 --policy passive
///
/// Three kinds of programs take their turns, each with all numbers of workers and all wait policies. A
/// table says at the end what was done; what is wrong is one line with the command that does it again.
///
/// Exit codes: 0 nothing is wrong; 1 something is; 2 bad usage.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "cargo xtask hostile",
    max_term_width = 100,
    verbatim_doc_comment
)]
pub(crate) struct Options {
    /// How long [default: 2]; each combination has a slice whatever it says
    #[arg(long, value_name = "N", value_parser = minutes, allow_negative_numbers = true)]
    minutes: Option<f64>,
    /// Until this many jobs have been run, such as 1e9
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "minutes")]
    jobs: Option<u64>,
    /// This many programs for each combination, and no more
    #[arg(long, value_name = "N", value_parser = count, conflicts_with_all = ["minutes", "jobs"])]
    programs: Option<u64>,
    /// These kinds and no others
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "KIND")]
    only: Vec<Kind>,
    /// Numbers of workers
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "LIST", default_value = "0,1,2,3,8,32",
          value_parser = workers)]
    pub(crate) workers: Vec<usize>,
    /// Wait policies: active, passive, adaptive, or a time
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "LIST",
          default_value = "active,passive,adaptive,20us")]
    pub(crate) policy: Vec<Policy>,
    /// What everything is drawn from [default: another one each time, shown]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Do the first slice of the seed again and again: to repeat what was found
    #[arg(long)]
    pub(crate) repeat: bool,
    /// Leave these ingredients out of the programs: to narrow down what breaks
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "LIST", value_parser = ingredients())]
    pub(crate) without: Vec<String>,
    /// These cases of misuse and no others
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "LIST", value_parser = cases(),
          hide_possible_values = true)]
    pub(crate) case: Vec<String>,
    /// Seconds without any progress that are a hang, whatever the threads do
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) patience: u64,
    /// Build with debug assertions (and fewer optimizations)
    #[arg(long)]
    debug_assertions: bool,
    /// One JSON object instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Do it in this process, and tell a supervisor what happens
    #[arg(long, hide = true)]
    pub(crate) inside: bool,
    /// Break something on purpose: the campaign must find it
    #[arg(long, hide = true, value_name = "DEFECT")]
    pub(crate) plant: Option<Plant>,
}

/// A defect for tests of the campaign itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Plant {
    /// A node of a program gives another result.
    Wrong,
    /// A job is counted that was never scheduled.
    Lost,
    /// A program waits for an event that no thread completes.
    Stuck,
    /// The process aborts.
    Crash,
    /// Memory is leaked.
    Growth,
}

impl Plant {
    /// The word for it on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Plant::Wrong => "wrong",
            Plant::Lost => "lost",
            Plant::Stuck => "stuck",
            Plant::Crash => "crash",
            Plant::Growth => "growth",
        }
    }
}

impl Options {
    /// The kinds asked for, in their order.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let asked = |kind: &Kind| match (self.only.is_empty(), self.case.is_empty()) {
            (true, true) => true,
            (true, false) => *kind == Kind::Misuse,
            (false, _) => self.only.contains(kind),
        };
        Kind::ALL.into_iter().filter(asked).collect()
    }

    pub(crate) fn budget(&self) -> Budget {
        match (self.jobs, self.programs, self.minutes) {
            (Some(jobs), _, _) => Budget::Jobs(jobs),
            (_, Some(programs), _) => Budget::Programs(programs),
            (_, _, minutes) => Budget::Time(Duration::from_secs_f64(minutes.unwrap_or(2.0) * 60.0)),
        }
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }

    /// The seed, one of now if none was given.
    pub(crate) fn seed(&self) -> u64 {
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        // Short enough to be typed.
        let drawn = || now().map_or(1, |time| time.as_nanos() as u64 / 1_000 % 1_000_000_000);
        self.seed.unwrap_or_else(drawn)
    }

    /// The combinations that a kind goes through.
    pub(crate) fn combinations(&self, kind: Kind) -> Vec<Combination> {
        let mut all = Combination::all(&self.workers, &self.policy);
        all.retain(|combination| kind.takes(combination));
        all
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|_| "a number is wanted".to_owned())?;
    // A year.
    match minutes > 0.0 && minutes <= 525_600.0 {
        true => Ok(minutes),
        false => Err("more than 0 and at most 525600 minutes".into()),
    }
}

/// A whole number, also as `1e9`.
fn count(text: &str) -> Result<u64, String> {
    let wanted = || "a whole number from 1 to 1e18 is wanted, such as 250000 or 1e9".to_owned();
    let number = match text.parse::<u64>() {
        Ok(number) => number,
        Err(_) => {
            let number: f64 = text.parse().map_err(|_| wanted())?;
            let is_whole = number.fract() == 0.0 && (1.0..=1e18).contains(&number);
            is_whole.then_some(number as u64).ok_or_else(wanted)?
        }
    };
    let range = 1..=1_000_000_000_000_000_000;
    range.contains(&number).then_some(number).ok_or_else(wanted)
}

fn workers(text: &str) -> Result<usize, String> {
    let most = paceline::WORKERS_MAX;
    let number = text.trim().parse::<usize>().ok();
    let number = number.filter(|&number| number <= most);
    number.ok_or_else(|| format!("a number from 0 to {most} is wanted"))
}

fn ingredients() -> PossibleValuesParser {
    PossibleValuesParser::new(programs::ingredients())
}

fn cases() -> PossibleValuesParser {
    PossibleValuesParser::new(misuse::names())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn refused(words: &[&str]) -> String {
        let error = Options::try_parse_from([&["hostile"], words].concat()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    }

    /// Goal: the derive attributes fit together, and bad usage is exit code 2 with the word that is wrong.
    /// Method: one bad value for each option that has a rule.
    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
        assert!(refused(&["--only", "nonsense"]).contains("liveness"));
        assert!(refused(&["--minutes", "-1"]).contains("more than 0"));
        assert!(refused(&["--minutes", "1", "--jobs", "5"]).contains("cannot be used with"));
        assert!(refused(&["--workers", "1,4096"]).contains("1024"));
        assert!(refused(&["--policy", "sometimes"]).contains("use active"));
        assert!(refused(&["--without", "nonsense"]).contains("join"));
        assert!(refused(&["--case", "nonsense"]).contains("nonsense"));
    }

    /// Goal: numbers may be written as people write them. Method: two ways, and four that are none.
    #[test]
    fn counts_may_have_exponents() {
        assert_eq!(count("1e9"), Ok(1_000_000_000));
        assert_eq!(count("250000"), Ok(250_000));
        for bad in ["0", "1.5", "-3", "many"] {
            assert!(count(bad).unwrap_err().contains("1e9"), "{bad}");
        }
    }

    /// Goal: without options everything is done with all combinations; a case is misuse. Method: the defaults
    /// and one case.
    #[test]
    fn the_defaults_cover_everything() {
        let options = Options::parse_from(["hostile"]);
        assert_eq!(options.kinds(), Kind::ALL);
        assert_eq!(options.budget(), Budget::Time(Duration::from_secs(120)));
        assert_eq!(options.combinations(Kind::Programs).len(), 24);
        assert_eq!(options.combinations(Kind::Liveness).len(), 20);
        let one = Options::parse_from(["hostile", "--case", "foreign-id", "--jobs", "1e3"]);
        assert_eq!(one.kinds(), [Kind::Misuse]);
        assert_eq!(one.budget(), Budget::Jobs(1000));
    }
}
