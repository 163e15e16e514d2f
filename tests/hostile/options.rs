//! The command line of `cargo xtask hostile`.

use std::time::{Duration, SystemTime};

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

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
/// Three kinds of programs take their turns, each with all numbers of workers and all wait policies. A table
/// at the end shows the work done; each fault is one line with the command that repeats it.
///
/// Exit codes: 0 nothing is wrong; 1 something is; 2 bad usage.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "cargo xtask hostile",
    bin_name = "cargo xtask hostile",
    max_term_width = 100,
    verbatim_doc_comment
)]
pub(crate) struct Options {
    /// How long [default: 2]; each combination has a slice whatever it says
    #[arg(long, value_name = "N", value_parser = minutes, allow_negative_numbers = true)]
    minutes: Option<f64>,
    /// Until this many jobs have been run, such as 1e9
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true,
          conflicts_with = "minutes")]
    jobs: Option<u64>,
    /// This many programs for each combination, and no more
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true,
          conflicts_with_all = ["minutes", "jobs"])]
    programs: Option<u64>,
    /// These kinds and no others
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "KIND")]
    only: Vec<Kind>,
    /// Numbers of workers
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "LIST", default_value = "0,1,2,3,8,32",
          value_parser = workers, allow_negative_numbers = true)]
    pub(crate) workers: Vec<usize>,
    /// Wait policies: active, passive, adaptive, or a time
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "LIST",
          default_value = "active,passive,adaptive,20us")]
    pub(crate) policy: Vec<Policy>,
    /// The seed of everything that is drawn [default: another one each time, shown]
    #[arg(long, value_name = "S", value_parser = seed, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Do the first slice of the seed again and again: to repeat a fault
    #[arg(long)]
    pub(crate) repeat: bool,
    /// Leave these ingredients out of the programs: to narrow down what breaks
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "LIST", value_parser = ingredients())]
    pub(crate) without: Vec<String>,
    /// These cases of misuse and no others; an unknown word shows all of them
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "LIST", value_parser = cases(),
          hide_possible_values = true)]
    pub(crate) case: Vec<String>,
    /// Seconds without any progress that are a hang, whatever the threads do
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = seconds, allow_negative_numbers = true)]
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
    /// The command line of this process. Ends the process if options of it are at odds.
    pub(crate) fn read() -> Options {
        let mut options = Options::parse();
        once(&mut options.workers);
        once(&mut options.policy);
        once(&mut options.case);
        if let Some(text) = options.is_at_odds().filter(|_| !options.inside) {
            let error = Options::command().error(ErrorKind::ArgumentConflict, text);
            error.exit();
        }
        options
    }

    /// Requests that would not be carried out.
    fn is_at_odds(&self) -> Option<String> {
        let kinds = self.kinds();
        if !self.case.is_empty() && kinds != [Kind::Misuse] {
            return Some("--case is for misuse: leave out --only, or use --only misuse".into());
        }
        if !self.without.is_empty() && !kinds.contains(&Kind::Programs) {
            return Some(
                "--without is for programs: leave out --only, or use --only programs".into(),
            );
        }
        // One kind among others may have nothing to do, and its row says so.
        let does_nothing = kinds.iter().all(|&kind| self.combinations(kind).is_empty());
        does_nothing.then(|| "--only liveness needs workers: graphs are run by idle ones".into())
    }

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
    let minutes = text.parse::<f64>().ok();
    // A year.
    let minutes = minutes.filter(|&minutes| minutes > 0.0 && minutes <= 525_600.0);
    minutes.ok_or_else(|| "a number of minutes is wanted, more than 0 and at most 525600".into())
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

fn seed(text: &str) -> Result<u64, String> {
    let wanted = |_| format!("a whole number from 0 to {} is wanted", u64::MAX);
    text.parse().map_err(wanted)
}

fn seconds(text: &str) -> Result<u64, String> {
    // A year, too.
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| (1..=31_536_000).contains(seconds));
    seconds.ok_or_else(|| "a whole number of seconds from 1 to 31536000 is wanted".into())
}

/// Each only once, in their order.
fn once<T: PartialEq>(list: &mut Vec<T>) {
    let mut kept: Vec<T> = Vec::new();
    for item in list.drain(..) {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    *list = kept;
}

fn workers(text: &str) -> Result<usize, String> {
    let most = paceline::WORKERS_MAX;
    let number = text.trim().parse::<usize>().ok();
    let number = number.filter(|&number| number <= most);
    number.ok_or_else(|| format!("a whole number from 0 to {most} is wanted"))
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
        assert!(refused(&["--jobs", "-5"]).contains("from 1 to 1e18"));
        assert!(refused(&["--seed", "-1"]).contains("from 0"));
        assert!(refused(&["--patience", "1.5"]).contains("whole number of seconds"));
        assert!(refused(&["--workers", "-1"]).contains("0 to 1024"));
        assert!(refused(&["--minutes", "1", "--jobs", "5"]).contains("cannot be used with"));
        assert!(refused(&["--workers", "1,4096"]).contains("1024"));
        assert!(refused(&["--policy", "sometimes"]).contains("use active"));
        assert!(refused(&["--without", "nonsense"]).contains("join"));
        assert!(refused(&["--case", "nonsense"]).contains("nonsense"));
    }

    /// Goal: a request that would not be carried out is refused; one made twice is carried out once. Method:
    /// each pair of options that do not fit, and some that do.
    #[test]
    fn options_that_do_not_fit_are_refused() {
        let at_odds = |words: &str| {
            let words = ["hostile"].into_iter().chain(words.split(' '));
            Options::parse_from(words).is_at_odds()
        };
        let text = at_odds("--case deep --only liveness");
        assert!(text.is_some_and(|text| text.contains("--case is for misuse")));
        let text = at_odds("--case deep --only misuse,programs");
        assert!(text.is_some_and(|text| text.contains("--case is for misuse")));
        let text = at_odds("--without join --only misuse");
        assert!(text.is_some_and(|text| text.contains("--without is for programs")));
        let text = at_odds("--only liveness --workers 0");
        assert!(text.is_some_and(|text| text.contains("needs workers")));
        for fits in ["--case deep", "--without join", "--workers 0", "--json"] {
            assert_eq!(at_odds(fits), None, "{fits}");
        }
        let mut numbers = vec![1, 0, 1, 1, 0];
        once(&mut numbers);
        assert_eq!(numbers, [1, 0]);
    }

    /// Goal: numbers may be written as people write them. Method: two ways, and four that are no numbers.
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
