//! The text of a report, for people.

use std::fmt;
use std::time::Duration;

use platform::Lane;

use super::{Activity, JobKind, JobState, LiveJob, LiveThread, LiveThreadKind, Report};
use crate::store::{Key, Label, Map, digest_of_text};

/// Lines about jobs, and about threads, at most.
const JOBS_MAX_SHOWN: usize = 12;
const THREADS_MAX_SHOWN: usize = 12;
/// The jobs that one job waits for are all named if there are no more of them.
const AWAITED_MAX_SHOWN: usize = 4;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for sentence in &self.verdict {
            writeln!(f, "{sentence}")?;
        }
        if self.is_forked {
            return Ok(());
        }
        self.write_jobs(f)?;
        self.write_threads(f)?;
        self.write_queues(f)
    }
}

/// Jobs that are shown on one line.
struct AlikeJobs<'a> {
    job: &'a LiveJob,
    /// What the line says after their label.
    says: String,
    count: usize,
}

/// What jobs of one line have in common.
impl Key for (Label, String) {
    fn digest(&self) -> u64 {
        digest_of_text(self.0.digest(), &self.1)
    }
}

impl Report {
    fn write_jobs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} live:", counted(self.jobs.len(), "job", "jobs"))?;
        let mut groups: Vec<AlikeJobs<'_>> = Vec::new();
        let mut known = Map::default();
        for job in &self.jobs {
            let says = self.about(job);
            let key = (job.label, says.clone());
            let place = *known.get_or_insert(key, groups.len());
            match groups.get_mut(place) {
                Some(group) => group.count += 1,
                None => groups.push(AlikeJobs {
                    job,
                    says,
                    count: 1,
                }),
            }
        }
        // What others wait for comes first, in the order of the table otherwise.
        groups.sort_by_key(|group| rank(group.job));
        for group in groups.iter().take(JOBS_MAX_SHOWN) {
            let count = match group.count {
                1 => String::new(),
                count => format!("{count} × "),
            };
            writeln!(f, "  {count}{}: {}", group.job.label, group.says)?;
        }
        let rest = groups.get(JOBS_MAX_SHOWN..).unwrap_or_default();
        if !rest.is_empty() {
            let jobs = rest.iter().map(|group| group.count).sum();
            let kinds = counted(rest.len(), "kind", "kinds");
            writeln!(
                f,
                "  and {} of {kinds}",
                counted(jobs, "more job", "more jobs")
            )?;
        }
        Ok(())
    }

    fn about(&self, job: &LiveJob) -> String {
        let verb = if job.is_pending {
            "awaits"
        } else {
            "waits for"
        };
        let names = job.waits_for.iter().map(ToString::to_string).collect();
        let waits_for = awaited(names).map(|jobs| format!("{verb} {jobs}"));
        match (job.state, job.kind, waits_for) {
            (JobState::Waiting, JobKind::Event, None) => "event, not completed".to_owned(),
            (JobState::Waiting, JobKind::Event, Some(waits)) => {
                format!("event, not completed, and {waits}")
            }
            (JobState::Waiting, _, None) if job.is_pending => "future, not woken".to_owned(),
            (JobState::Waiting, _, Some(waits)) if job.is_pending => {
                format!("future, not woken, and {waits}")
            }
            (JobState::Waiting, JobKind::Scope, None) => {
                "scope, its closure has not returned".to_owned()
            }
            (JobState::Waiting, JobKind::Graph { nodes_left }, waits) => {
                let nodes = counted(nodes_left, "node", "nodes");
                let goes_on = "goes on in the thread that waits for the run";
                format!(
                    "graph, {nodes} left, {}",
                    waits.as_deref().unwrap_or(goes_on)
                )
            }
            (JobState::Waiting, _, Some(waits)) => waits,
            (JobState::Waiting, _, None) => "is just being made or released".to_owned(),
            (JobState::Ready, ..) => self.about_ready(job),
            (JobState::Running { thread }, _, waits) => {
                let place = thread.and_then(|slot| self.thread_of(slot));
                let place = place.map_or(String::new(), |thread| format!(" on {thread}"));
                match waits {
                    Some(waits) => format!("runs{place}, and {waits}"),
                    None => format!("runs{place}"),
                }
            }
            (JobState::Open { participants }, _, waits) => {
                let shared = counted(participants, "participant", "participants");
                match waits {
                    Some(waits) => format!("open, {shared}, and {waits}"),
                    None => format!("open, {shared}"),
                }
            }
        }
    }

    fn about_ready(&self, job: &LiveJob) -> String {
        if let Some(thread) = job.pinned_to.and_then(|slot| self.thread_of(slot)) {
            return format!("ready, for {thread} alone");
        }
        match job.lane {
            Lane::Background => "ready, in the background".to_owned(),
            Lane::Frame => "ready, in front".to_owned(),
            Lane::Normal => "ready".to_owned(),
            share => format!("ready, in the lane with {share}"),
        }
    }

    fn thread_of(&self, slot: usize) -> Option<&LiveThread> {
        self.threads.iter().find(|thread| thread.slot == slot)
    }

    fn write_threads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "threads (workers wanted: {}):", self.workers)?;
        let is_busy = |thread: &&LiveThread| {
            use Activity::{MakesWay, Runs, Waits};
            matches!(thread.activity, Runs | Waits | MakesWay)
        };
        let (busy, idle): (Vec<_>, Vec<_>) = self.threads.iter().partition(is_busy);
        for thread in busy.iter().take(THREADS_MAX_SHOWN) {
            writeln!(f, "  {thread} {}", doing(thread))?;
        }
        if let Some(more) = busy.len().checked_sub(THREADS_MAX_SHOWN).filter(|n| *n > 0) {
            let more = counted(more, "more thread runs", "more threads run");
            writeln!(f, "  {more} jobs or wait")?;
        }
        let idle_sorts = [
            (
                Activity::Searches,
                "worker looks",
                "workers look",
                " for work",
            ),
            (Activity::Sleeps, "worker sleeps", "workers sleep", ""),
            (Activity::Rests, "spare rests", "spares rest", ""),
            (
                Activity::Outside,
                "outside thread is",
                "outside threads are",
                " in code of the program",
            ),
        ];
        for (activity, one, many, what) in idle_sorts {
            let alike = idle.iter().filter(|thread| thread.activity == activity);
            match alike.count() {
                0 => {}
                count => writeln!(f, "  {}{what}", counted(count, one, many))?,
            }
        }
        Ok(())
    }

    fn write_queues(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_threads = |len: fn(&LiveThread) -> usize| self.threads.iter().map(len).sum();
        let lengths: [(usize, &str); 6] = [
            (of_threads(|thread| thread.queue), "threads"),
            (of_threads(|thread| thread.inbox), "inboxes"),
            (self.front, "the front queue"),
            (self.injector, "the injector"),
            (self.beside, "the queues beside the normal lane"),
            (self.backlog, "the backlog"),
        ];
        let lengths = lengths.iter().filter(|(len, _)| *len > 0);
        let lengths: Vec<String> = lengths
            .map(|(len, place)| format!("{} in {place}", counted(*len, "ticket", "tickets")))
            .collect();
        match lengths.len() {
            0 => write!(f, "queues: empty")?,
            _ => write!(f, "queues: {}", lengths.join(", "))?,
        }
        match self.changing {
            0 => Ok(()),
            changing => write!(f, "\nleft out, because they changed meanwhile: {changing}"),
        }
    }
}

/// Low numbers are shown first.
fn rank(job: &LiveJob) -> u32 {
    match (job.state, job.kind) {
        (JobState::Waiting, JobKind::Event) => 0,
        _ if job.is_pending => 0,
        (JobState::Running { .. } | JobState::Open { .. }, _) => 1,
        (JobState::Waiting, _) => 2,
        (JobState::Ready, _) => 3,
    }
}

fn doing(thread: &LiveThread) -> String {
    let runs = match &thread.runs[..] {
        [] => String::new(),
        [one] => format!("{one}"),
        [one, ..] => format!("{one} and {} more", thread.runs.len() - 1),
    };
    let wait = thread.wait.as_ref().map(|wait| {
        let lasted = wait
            .lasted
            .map_or(String::new(), |lasted| format!(" {}", time(lasted)));
        let site = wait.site.map_or(String::new(), |site| {
            format!(" at {}:{}", site.file(), site.line())
        });
        (format!("waits{lasted}"), format!("{site} for {}", wait.job))
    });
    match (wait, thread.activity) {
        (_, Activity::MakesWay) => format!("makes way for urgent jobs in the middle of {runs}"),
        (Some((waits, what)), Activity::Waits) if runs.is_empty() => format!("{waits}{what}"),
        (Some((waits, what)), Activity::Waits) => format!("{waits} in {runs}{what}"),
        (Some((waits, what)), _) => format!("{waits}{what}, and runs {runs} meanwhile"),
        (None, Activity::Waits) => "waits for a job that is just ending".to_owned(),
        (None, _) => format!("runs {runs}"),
    }
}

/// Shown as `worker 3`, `spare 5`, `thread 'main'`, or `an outside thread (slot 7)` if it has no name.
impl fmt::Display for LiveThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, &self.name) {
            (LiveThreadKind::Worker, _) => write!(f, "worker {}", self.slot),
            (LiveThreadKind::Spare, _) => write!(f, "spare {}", self.slot),
            (LiveThreadKind::Outside, Some(name)) => write!(f, "thread '{name}'"),
            (LiveThreadKind::Outside, None) => write!(f, "an outside thread (slot {})", self.slot),
        }
    }
}

/// Awaited jobs in a sentence: all of them if they are few, the last one last; the last one of many. `None`
/// if there are none.
pub(super) fn awaited(mut names: Vec<String>) -> Option<String> {
    let jobs = names.len();
    let last = names.pop()?;
    Some(match jobs {
        1 => last,
        2..=AWAITED_MAX_SHOWN => format!("{jobs} jobs: {} and {last}", names.join(", ")),
        _ => format!("{jobs} jobs, among them {last}"),
    })
}

/// A number of things.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

/// A length of time with as many digits as a person wants.
pub(crate) fn time(time: Duration) -> String {
    match time.as_millis() {
        0 => "under 1 ms".to_owned(),
        millis @ 1..1_000 => format!("{millis} ms"),
        _ if time.as_secs() < 600 => format!("{:.1} s", time.as_secs_f64()),
        _ => format!("{} min", time.as_secs() / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: few awaited jobs are all named, and of many one. Method: a table.
    #[test]
    fn few_awaited_jobs_are_all_named() {
        let table = [
            (0, None),
            (1, Some("0")),
            (2, Some("2 jobs: 0 and 1")),
            (4, Some("4 jobs: 0, 1, 2 and 3")),
            (5, Some("5 jobs, among them 4")),
        ];
        for (jobs, text) in table {
            let names = (0..jobs).map(|job: usize| job.to_string()).collect();
            assert_eq!(awaited(names).as_deref(), text);
        }
    }

    /// Goal: a time has the digits that a person wants. Method: a table.
    #[test]
    fn times_are_short() {
        let table = [
            (Duration::from_micros(999), "under 1 ms"),
            (Duration::from_millis(1), "1 ms"),
            (Duration::from_millis(999), "999 ms"),
            (Duration::from_millis(5_249), "5.2 s"),
            (Duration::from_secs(599), "599.0 s"),
            (Duration::from_secs(3_600), "60 min"),
        ];
        for (length, text) in table {
            assert_eq!(time(length), text);
        }
    }
}
