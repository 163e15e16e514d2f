//! Starts the processes of a campaign, hears their reports, and goes on when one of them ends.
//!
//! Programs and liveness have one process each, so that their memory can be watched. Each case of misuse
//! has a process of its own with each combination, as long as there is time; a case that has failed is not
//! tried again.

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::combination::{Combination, Kind, slice_seed};
use crate::fault::{Fault, Place, What};
use crate::line::{Line, Tally};
use crate::misuse;
use crate::options::Options;
use crate::pace::{Budget, Pace};
use crate::progress::Progress;
use crate::summary::{Campaign, Row};
use crate::threads;

/// A process that says nothing for this much longer than it is patient itself is ended.
const SILENCE: Duration = Duration::from_secs(60);

/// Lines of standard error that are kept.
const LINES: usize = 12;

/// Does the campaign and reports the result.
pub(crate) fn run(options: &Options) -> ExitCode {
    let seed = options.seed();
    let mut supervisor = Supervisor {
        options,
        campaign: Campaign {
            seed,
            rows: Vec::new(),
            faults: Vec::new(),
        },
        progress: Progress::new(),
        done: 0.0,
    };
    supervisor.progress.say(&format!("hostile: seed {seed}"));
    if threads::others().is_none() {
        let patience = options.patience;
        supervisor.progress.say(&format!(
            "hostile: states of threads are not shown here: only time tells a hang, {patience} s of it"
        ));
    }
    let kinds = options.kinds();
    let shares = kinds.iter().map(|kind| share(*kind, options.budget()));
    let all: u32 = shares.clone().sum();
    for (kind, share) in kinds.iter().zip(shares) {
        let part = f64::from(share) / f64::from(all);
        let hundredths = share * 100 / all;
        supervisor.kind(*kind, options.budget().part(hundredths), part);
        supervisor.done += part;
    }
    let Supervisor {
        campaign, progress, ..
    } = supervisor;
    drop(progress);
    if options.json {
        println!("{}", campaign.json(options))
    } else {
        println!("{}", campaign.table())
    }
    match campaign.faults.len() {
        0 => ExitCode::SUCCESS,
        faults => {
            eprintln!("hostile: {faults} faults");
            ExitCode::FAILURE
        }
    }
}

/// The share of a campaign for a kind, beside the others. Graphs of liveness are small, or later work would
/// run the forgotten job: as many jobs take far longer there.
fn share(kind: Kind, budget: Budget) -> u32 {
    match (kind, budget) {
        (Kind::Programs, Budget::Jobs(_)) => 94,
        (Kind::Liveness, Budget::Jobs(_)) => 5,
        (Kind::Misuse, Budget::Jobs(_)) => 1,
        (Kind::Programs, _) => 55,
        (Kind::Liveness, _) => 30,
        (Kind::Misuse, _) => 15,
    }
}

struct Supervisor<'a> {
    options: &'a Options,
    campaign: Campaign,
    progress: Progress,
    /// The part of the campaign that is over, from 0 to 1.
    done: f64,
}

impl Supervisor<'_> {
    fn kind(&mut self, kind: Kind, budget: Budget, part: f64) {
        let combinations = self.options.combinations(kind);
        let tally = match (kind, combinations.is_empty()) {
            (_, true) => Tally::default(),
            (Kind::Misuse, _) => self.misuse(&combinations, budget, part),
            _ => self.one_process(kind, combinations.len(), budget, part),
        };
        self.campaign.rows.push(Row { kind, tally });
    }

    fn one_process(&mut self, kind: Kind, combinations: usize, budget: Budget, part: f64) -> Tally {
        let mut command = self.command(kind, budget);
        command.args(["--workers", &joined(&self.options.workers)]);
        command.args(["--policy", &joined(&self.options.policy)]);
        command.args(["--seed", &self.campaign.seed.to_string()]);
        if self.options.repeat {
            command.arg("--repeat");
        }
        let pace = Pace::new(budget, combinations, Instant::now());
        let place = Place {
            kind,
            workers: 0,
            policy: String::new(),
            seed: self.campaign.seed,
            case: None,
        };
        let done = self.done;
        let process = Process::start(command, self.options.patience() + SILENCE, place);
        let ended = process.listen(|place, tally| {
            let fraction = done + part * pace.fraction(tally, Instant::now());
            self.progress.reach(fraction, &place.to_string());
        });
        self.take(ended)
    }

    fn misuse(&mut self, combinations: &[Combination], budget: Budget, part: f64) -> Tally {
        let cases = if self.options.case.is_empty() {
            misuse::names().into_iter().map(str::to_owned).collect()
        } else {
            self.options.case.clone()
        };
        // A pass has each case once; after as many passes as combinations each has met each.
        let (all, began) = (combinations.len(), Instant::now());
        let trials = (0..).flat_map(|pass| (0..cases.len()).map(move |number| (pass, number)));
        let (mut sum, mut failed, mut seen) = (Tally::default(), BTreeSet::new(), BTreeSet::new());
        for (trial, (pass, number)) in trials.enumerate() {
            let first = number as f64 / cases.len() as f64;
            let fraction = match budget {
                Budget::Time(_) if pass == 0 => first,
                Budget::Time(time) => began.elapsed().as_secs_f64() / time.as_secs_f64(),
                // Jobs are few here: each case with each combination.
                Budget::Jobs(_) | Budget::Programs(_) => (pass as f64 + first) / all as f64,
            };
            if fraction >= 1.0 || failed.len() == cases.len() {
                break;
            }
            let case = &cases[number];
            if failed.contains(case) {
                continue;
            }
            let now = self.done + part * fraction;
            self.progress.reach(now, &format!("misuse {case}"));
            let index = (number + pass) % all;
            let tally = self.case(case, &combinations[index], trial);
            seen.insert(index);
            sum.programs += tally.programs;
            sum.jobs += tally.jobs;
            sum.expected_failures += tally.expected_failures;
            if self.has_failed(case) {
                failed.insert(case.clone());
            }
        }
        sum.combinations = seen.len() as u64;
        sum
    }

    /// Whether something was found in this case.
    fn has_failed(&self, case: &str) -> bool {
        let mut places = self.campaign.faults.iter().map(|fault| &fault.place);
        places.any(|place| place.case.as_deref() == Some(case))
    }

    fn case(&mut self, case: &str, combination: &Combination, number: usize) -> Tally {
        let seed = if self.options.repeat {
            self.campaign.seed
        } else {
            slice_seed(self.campaign.seed, number as u64)
        };
        let programs = match self.options.budget() {
            Budget::Programs(programs) => programs,
            Budget::Time(_) | Budget::Jobs(_) => 1,
        };
        let mut command = self.command(Kind::Misuse, Budget::Programs(programs));
        command.args(["--case", case, "--seed", &seed.to_string()]);
        command.args(["--workers", &combination.workers.to_string()]);
        command.args(["--policy", &combination.policy.to_string()]);
        let place = Place {
            kind: Kind::Misuse,
            workers: combination.workers,
            policy: combination.policy.to_string(),
            seed,
            case: Some(case.to_owned()),
        };
        let process = Process::start(command, self.options.patience() + SILENCE, place);
        let ended = process.listen(|_, _| ());
        self.take(ended)
    }

    /// A process of the campaign, without its task.
    fn command(&self, kind: Kind, budget: Budget) -> Command {
        // The program that runs: there is none other that would know these options.
        let this = std::env::current_exe().unwrap_or_else(|_| "hostile".into());
        let mut command = Command::new(this);
        command.args(["--inside", "--only", kind.name()]);
        match budget {
            Budget::Time(time) => {
                let minutes = (time.as_secs_f64() / 60.0).max(1e-6);
                command.args(["--minutes", &minutes.to_string()])
            }
            Budget::Jobs(jobs) => command.args(["--jobs", &jobs.to_string()]),
            Budget::Programs(programs) => command.args(["--programs", &programs.to_string()]),
        };
        command.args(["--patience", &self.options.patience.to_string()]);
        if !self.options.without.is_empty() {
            command.args(["--without", &self.options.without.join(",")]);
        }
        if let Some(plant) = self.options.plant {
            command.args(["--plant", plant.name()]);
        }
        // The environment would win over the combination.
        for variable in ["WAIT", "WORKERS", "CPUS", "PLACEMENT"] {
            command.env_remove(format!("PACELINE_{variable}"));
        }
        command
    }

    fn take(&mut self, ended: Ended) -> Tally {
        for fault in ended.faults {
            self.progress.say(&fault.line(self.options));
            for detail in &fault.details {
                self.progress.say(&format!("  {detail}"));
            }
            self.campaign.faults.push(fault);
        }
        ended.tally
    }
}

fn joined(values: &[impl ToString]) -> String {
    let words: Vec<String> = values.iter().map(ToString::to_string).collect();
    words.join(",")
}

/// The end of a process.
struct Ended {
    tally: Tally,
    faults: Vec<Fault>,
}

/// A process of the campaign.
struct Process {
    child: Result<Child, String>,
    silence: Duration,
    /// Where it is.
    place: Place,
}

impl Process {
    fn start(mut command: Command, silence: Duration, place: Place) -> Process {
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn();
        let child = child.map_err(|error| format!("the process does not start: {error}"));
        Process {
            child,
            silence,
            place,
        }
    }

    /// Hears it to its end.
    fn listen(mut self, mut hear: impl FnMut(&Place, &Tally)) -> Ended {
        let mut ended = Ended {
            tally: Tally::default(),
            faults: Vec::new(),
        };
        let mut child = match self.child {
            Ok(child) => child,
            Err(text) => {
                let fault = Fault::new(What::Crashed, &self.place, text);
                ended.faults.push(fault);
                return ended;
            }
        };
        let errors = child.stderr.take().map(last_lines);
        let (says, lines) = mpsc::channel();
        let reader = child.stdout.take().map(|out| {
            thread::spawn(move || {
                let lines = BufReader::new(out).lines().map_while(Result::ok);
                lines.for_each(|line| _ = says.send(line));
            })
        });
        loop {
            match lines.recv_timeout(self.silence) {
                Ok(line) => match Line::read(&line) {
                    Some(Line::Begins(place)) => self.place = place,
                    Some(Line::Tally(tally)) => ended.tally = tally,
                    Some(Line::Fault(fault)) => ended.faults.push(fault),
                    None => eprintln!("{line}"),
                },
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let text = format!("it said nothing for {} s", self.silence.as_secs());
                    let fault = Fault::new(What::Stuck, &self.place, text);
                    ended.faults.push(fault);
                    // It may have ended by itself at this moment.
                    _ = child.kill();
                    break;
                }
            }
            hear(&self.place, &ended.tally);
        }
        let status = child.wait();
        let errors = errors
            .and_then(|lines| lines.join().ok())
            .unwrap_or_default();
        if let Some(reader) = reader {
            _ = reader.join();
        }
        let code = status.as_ref().ok().and_then(ExitStatus::code);
        let has_told = code == Some(1) && !ended.faults.is_empty();
        let was_ended = ended.faults.iter().any(|fault| fault.what == What::Stuck);
        if code != Some(0) && !has_told && !was_ended {
            let text = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            let text = format!("the process ended by itself: {text}");
            ended
                .faults
                .push(Fault::new(What::Crashed, &self.place, text));
        }
        if let Some(fault) = ended.faults.last_mut() {
            fault.details.extend(errors);
        }
        ended
    }
}

/// Reads a process's standard error; the last lines of it.
fn last_lines(from: impl Read + Send + 'static) -> JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let mut last = VecDeque::new();
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if last.len() == LINES {
                last.pop_front();
            }
            last.push_back(line);
        }
        last.into()
    })
}
