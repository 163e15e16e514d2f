//! What holds a program up, in sentences.

use std::time::Duration;

use super::outlook::{self, ChainEnd, Outlook};
use super::text::{awaited, counted, time};
use super::{
    Activity, JobKind, JobState, LiveJob, LiveThread, LiveThreadKind, LiveWait, NamedJob, Report,
};
use crate::store::{JobId, Map};

/// Sentences about circles, and about waits, at most.
const CIRCLES_MAX: usize = 3;
const WAITS_MAX: usize = 8;

/// A wait that lasts longer may be stuck although jobs run: they may be stuck themselves, in code of the
/// program.
const SEEMS_LONG: Duration = Duration::from_secs(1);

/// How many jobs of a chain a sentence names, from its beginning.
const CHAIN_SHOWN: usize = 4;

/// The verdict of a report whose facts are complete. `confirm`: reads a job again; whether it still waits for
/// the other one.
pub(super) fn of(report: &Report, confirm: &dyn Fn(JobId, JobId) -> bool) -> Vec<String> {
    let places = super::places(&report.jobs);
    let outlooks = outlook::all(&report.jobs, &places);
    let about = Inquiry {
        report,
        places,
        outlooks,
    };
    let mut verdict = about.circles(confirm);
    verdict.extend(about.blocked_workers());
    let waits = about.waits();
    if verdict.is_empty() {
        verdict.extend(about.in_general(&waits));
    }
    verdict.extend(waits.iter().take(WAITS_MAX).map(|wait| about.wait(wait)));
    if let Some(more) = waits.len().checked_sub(WAITS_MAX).filter(|more| *more > 0) {
        verdict.push(format!(
            "threads wait for {} more",
            counted(more, "job", "jobs")
        ));
    }
    verdict
}

struct Inquiry<'a> {
    report: &'a Report,
    places: Map<JobId, usize>,
    outlooks: Vec<Outlook>,
}

/// Threads that wait for the same job.
struct Waiters<'a> {
    /// The one that waits longest.
    thread: &'a LiveThread,
    wait: &'a LiveWait,
    others: usize,
    end: ChainEnd,
}

impl Inquiry<'_> {
    /// Circles of jobs that wait for each other. Each link of a circle was seen at a moment of its own. Read
    /// again it is the same: so all were there at the same time, between the two looks.
    fn circles(&self, confirm: &dyn Fn(JobId, JobId) -> bool) -> Vec<String> {
        let jobs = &self.report.jobs;
        let mut seen = vec![false; jobs.len()];
        let mut circles = Vec::new();
        for start in 0..jobs.len() {
            let leads_there = self.outlooks[start].end == ChainEnd::Cycle && !seen[start];
            if !leads_there || circles.len() == CIRCLES_MAX {
                continue;
            }
            let (path, back) = self.path(start);
            let is_new = !path.iter().any(|&job| seen[job]);
            for &job in &path {
                seen[job] = true;
            }
            let Some(first) = back.filter(|_| is_new) else {
                continue;
            };
            let circle = &path[first..];
            let links = circle.iter().zip(circle.iter().cycle().skip(1));
            let mut links = links.map(|(&job, &next)| (jobs[job].id, jobs[next].id));
            if links.all(|(job, next)| confirm(job, next)) {
                circles.push(self.circle(circle));
            }
        }
        circles
    }

    fn circle(&self, circle: &[usize]) -> String {
        let jobs = &self.report.jobs;
        let ends_at_a_deadline = circle.iter().any(|&job| jobs[job].has_deadline);
        let mut text = if ends_at_a_deadline {
            "these waits end only when one of them gives up: ".to_owned()
        } else {
            "these waits can never end: ".to_owned()
        };
        if let [job] = circle {
            let label = jobs[*job].label;
            return format!("{text}{label} waits for itself");
        }
        let shown = circle.len().min(2 * CHAIN_SHOWN);
        for &job in &circle[..shown] {
            text += &format!("{} waits for ", jobs[job].label);
        }
        if let Some(more) = circle.len().checked_sub(shown).filter(|more| *more > 0) {
            let more = counted(more, "more job", "more jobs");
            text += &format!("{more}, the last of which waits for ");
        }
        text + &jobs[circle[0]].label.to_string()
    }

    fn blocked_workers(&self) -> Option<String> {
        let workers = self.report.threads.iter();
        let mut workers = workers.filter(|thread| {
            thread.kind != LiveThreadKind::Outside && thread.activity != Activity::Rests
        });
        let count = workers.clone().count();
        let ready = self.ready();
        if count == 0 || ready == 0 || !workers.all(|thread| thread.activity == Activity::Waits) {
            return None;
        }
        let who = match count {
            1 => "the only worker waits inside a job".to_owned(),
            _ => format!("all {count} workers wait inside jobs"),
        };
        Some(format!("{who} while {}", are_ready(ready)))
    }

    fn ready(&self) -> usize {
        let jobs = self.report.jobs.iter();
        jobs.filter(|job| job.state == JobState::Ready && job.pinned_to.is_none())
            .count()
    }

    /// A sentence about all of it, where nothing worse is known.
    fn in_general(&self, waits: &[Waiters<'_>]) -> Option<String> {
        let report = self.report;
        let runs = |job: &&LiveJob| {
            let is_begun = !matches!(job.state, JobState::Waiting | JobState::Ready);
            is_begun && job.waits_for.is_empty()
        };
        let running = report.jobs.iter().filter(runs).count();
        let ready = self.ready();
        let worst = waits.iter().map(|wait| wait.end).max();
        if running > 0 {
            let is_long = |wait: &Waiters<'_>| wait.wait.lasted > Some(SEEMS_LONG);
            let is_fine = worst <= Some(ChainEnd::Ready) && !waits.iter().any(is_long);
            let fine = if is_fine { "nothing is stuck: " } else { "" };
            let verb = if running == 1 { "runs" } else { "run" };
            return Some(format!("{fine}{} {verb}", counted(running, "job", "jobs")));
        }
        if ready > 0 {
            let ready = are_ready(ready);
            return Some(if report.workers == 0 {
                format!("{ready}, and there is no worker: they run in waits, flush, poll and pump")
            } else {
                format!("{ready}, and no thread has begun with them")
            });
        }
        if report.jobs.is_empty() && waits.is_empty() {
            return Some("nothing is stuck: no job is live, and no thread waits".to_owned());
        }
        if worst >= Some(ChainEnd::ReadyForOne) {
            return None; // The sentence about that wait says it all.
        }
        let is_open = |job: &&LiveJob| job.kind == JobKind::Event;
        let is_pending = |job: &&LiveJob| job.is_pending;
        let open = not_yet(report.jobs.iter().filter(is_open), "completed", "event");
        let pending = not_yet(report.jobs.iter().filter(is_pending), "woken", "future");
        let all: Vec<String> = open.into_iter().chain(pending).collect();
        let none = "no job runs and none is ready";
        (!all.is_empty()).then(|| format!("{none}; {}", all.join("; ")))
    }

    /// Waits in which nothing is run, by job, the worst ones first.
    fn waits(&self) -> Vec<Waiters<'_>> {
        let mut waits: Vec<Waiters<'_>> = Vec::new();
        let mut known: Map<JobId, usize> = Map::default();
        for (thread, wait) in self.report.waits() {
            if thread.activity != Activity::Waits {
                continue;
            }
            if let Some(&place) = known.get(&wait.job.id) {
                let waiters = &mut waits[place];
                waiters.others += 1;
                if wait.lasted > waiters.wait.lasted {
                    (waiters.thread, waiters.wait) = (thread, wait);
                }
                continue;
            }
            known.insert(wait.job.id, waits.len());
            let place = self.places.get(&wait.job.id);
            let end = place.map_or(ChainEnd::Gone, |&place| self.outlooks[place].end);
            waits.push(Waiters {
                thread,
                wait,
                others: 0,
                end,
            });
        }
        waits.sort_by_key(|waiters| std::cmp::Reverse((waiters.end, waiters.wait.lasted)));
        waits
    }

    fn wait(&self, waiters: &Waiters<'_>) -> String {
        let Waiters { thread, wait, .. } = waiters;
        let mut text = match waiters.others {
            0 => format!("{thread} waits"),
            others => {
                let others = counted(others, "other thread", "other threads");
                format!("{thread} and {others} wait")
            }
        };
        if let Some(lasted) = wait.lasted {
            let up_to = if waiters.others > 0 { "up to " } else { "" };
            text += &format!(" {up_to}{}", time(lasted));
        }
        if let (Some(left), 0) = (wait.time_left, waiters.others) {
            text += &format!(" (gives up in {})", time(left));
        }
        if let ([job], 0) = (&thread.runs[..], waiters.others) {
            text += &format!(" in {job}");
        }
        if let (Some(site), 0) = (wait.site, waiters.others) {
            text += &format!(" at {}:{}", site.file(), site.line());
        }
        match self.places.get(&wait.job.id) {
            Some(&place) => {
                let job = described(&self.report.jobs[place]);
                format!("{text} for {job}{}", self.chain(place))
            }
            None => format!("{text} for {}, which is just ending", wait.job),
        }
    }

    /// The jobs of the chain from this one on, and the place in it to which it leads back, if it does.
    fn path(&self, start: usize) -> (Vec<usize>, Option<usize>) {
        let mut path = Vec::new();
        let mut places = Map::default();
        let mut next = Some(start);
        while let Some(job) = next {
            if let Some(&place) = places.get(&job) {
                return (path, Some(place));
            }
            places.insert(job, path.len());
            path.push(job);
            next = self.outlooks[job].next;
        }
        (path, None)
    }

    /// What follows in a sentence that has named the job.
    fn chain(&self, start: usize) -> String {
        let (path, back) = self.path(start);
        let mut text = String::new();
        let shown = path.len().min(CHAIN_SHOWN);
        for pair in path[..shown].windows(2) {
            text += &self.link(pair[0], &described(&self.report.jobs[pair[1]]));
        }
        let last = path[path.len() - 1];
        let jobs = &self.report.jobs;
        match path.len() - shown {
            0 => {}
            1 => text += &self.link(path[shown - 1], &described(&jobs[last])),
            more => {
                let through = counted(more - 1, "more job", "more jobs");
                let job = described(&jobs[last]);
                text += &format!(", which waits, through {through}, for {job}");
            }
        }
        let end = match back {
            Some(first) => self.link(last, &format!("{} again", jobs[path[first]].label)),
            None => self.end(last),
        };
        text + &end
    }

    /// A job waits for the next one of its chain, which is named last: the sentence goes on with it.
    fn link(&self, job: usize, next: &str) -> String {
        let next_id = self.outlooks[job]
            .next
            .map(|next| self.report.jobs[next].id);
        let job = &self.report.jobs[job];
        match job.state {
            JobState::Running { thread: Some(slot) } => {
                format!(", which waits on {} for {next}", self.thread(slot))
            }
            JobState::Open { participants } if participants > 1 => {
                format!(", whose {participants} participants wait, one of them for {next}")
            }
            _ => {
                let others = job.waits_for.iter().filter(|job| Some(job.id) != next_id);
                let mut names = self.described_all(others);
                names.push(next.to_owned());
                let jobs = awaited(names).unwrap_or_default();
                format!(", which waits for {jobs}")
            }
        }
    }

    fn end(&self, job: usize) -> String {
        let job = &self.report.jobs[job];
        match (own_end(job), job.state) {
            (ChainEnd::NotCompleted, _) => ", which is not completed".to_owned(),
            (ChainEnd::NotWoken, _) => {
                let awaits = awaited(self.described_all(job.waits_for.iter()));
                let awaits = awaits.map_or(String::new(), |jobs| format!(", and awaits {jobs}"));
                format!(", which has not been woken{awaits}")
            }
            (ChainEnd::Runs, JobState::Running { thread: Some(slot) }) => {
                format!(", which runs on {}", self.thread(slot))
            }
            (ChainEnd::Runs, JobState::Open { participants }) => match participants {
                1 => ", which 1 thread runs".to_owned(),
                many => format!(", which {many} threads run"),
            },
            (ChainEnd::Runs, _) => ", which has just begun".to_owned(),
            (ChainEnd::OpenScope, _) => ", whose closure has not returned".to_owned(),
            (ChainEnd::LeftToCaller, _) => {
                ", which goes on in the thread that waits for the run".to_owned()
            }
            (ChainEnd::Ready, _) => ", which is ready".to_owned(),
            (ChainEnd::ReadyForOne, _) => match job.pinned_to {
                Some(slot) => format!(", which is ready for {}", self.pinned_to(slot)),
                None => ", which is ready".to_owned(),
            },
            (ChainEnd::Changing, _) => ", which is just being made or released".to_owned(),
            (ChainEnd::Gone | ChainEnd::Cycle, _) => {
                ", which waits for a job that is just ending".to_owned()
            }
        }
    }

    /// The jobs as a sentence names them, as far as they are still there.
    fn described_all<'j>(&self, jobs: impl Iterator<Item = &'j NamedJob>) -> Vec<String> {
        let described = |job: &NamedJob| match self.places.get(&job.id) {
            Some(&place) => described(&self.report.jobs[place]),
            None => job.to_string(),
        };
        jobs.map(described).collect()
    }

    /// The thread that alone may run a job, and why it does not.
    fn pinned_to(&self, slot: usize) -> String {
        let mut threads = self.report.threads.iter();
        let activity = threads.find(|thread| thread.slot == slot);
        let why = match activity.map(|thread| thread.activity) {
            Some(Activity::Outside) => {
                " alone, and that is in code of the program: it neither waits nor runs its jobs"
            }
            _ => " alone",
        };
        self.thread(slot) + why
    }

    fn thread(&self, slot: usize) -> String {
        let mut threads = self.report.threads.iter();
        let known = threads.find(|thread| thread.slot == slot);
        known.map_or_else(|| format!("thread slot {slot}"), LiveThread::to_string)
    }
}

/// The end of a chain of which the job is the last.
fn own_end(job: &LiveJob) -> ChainEnd {
    outlook::own(job).end
}

/// The job as a sentence names it.
fn described(job: &LiveJob) -> String {
    match job.kind {
        JobKind::Event => format!("event {}", job.label),
        JobKind::Future => format!("future {}", job.label),
        JobKind::Graph { .. } => format!("graph {}", job.label),
        _ => job.label.to_string(),
    }
}

/// That these are not yet what they wait to be: the first by its name, of the others the number.
fn not_yet<'j>(
    mut jobs: impl Iterator<Item = &'j LiveJob>,
    what: &str,
    kind: &str,
) -> Option<String> {
    let first = described(jobs.next()?);
    let more = match jobs.count() {
        0 => String::new(),
        1 => format!(", nor is 1 more {kind}"),
        more => format!(", nor are {more} more {kind}s"),
    };
    Some(format!("{first} is not {what}{more}"))
}

fn are_ready(jobs: usize) -> String {
    let verb = if jobs == 1 { "is" } else { "are" };
    format!("{} {verb} ready", counted(jobs, "job", "jobs"))
}
