//! What a job leads to: the end of the chain of jobs that it waits for.

use super::{JobKind, JobState, LiveJob};
use crate::store::{JobId, Map};

/// What stands at the end of a chain of waiting jobs, the worse the later. Where a job waits for several, the
/// worst one counts: the others will be over sooner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ChainEnd {
    /// A job that is over by now, or changes.
    Gone,
    /// A job that a thread is just making or releasing.
    Changing,
    Runs,
    /// The closure of a scope has not returned.
    OpenScope,
    /// A graph whose next nodes are for the thread that waits for the run.
    LeftToCaller,
    Ready,
    /// A job that is ready, for one thread alone.
    ReadyForOne,
    /// A future that is pending.
    NotWoken,
    /// An event.
    NotCompleted,
    /// The chain leads back to itself.
    Cycle,
}

/// What one job leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    pub(super) end: ChainEnd,
    /// The next job of the chain.
    pub(super) next: Option<usize>,
}

/// How far the search from a job is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visited {
    Not,
    OnPath,
    Done,
}

/// A job on the path of the search, and how many of the jobs that it waits for have been visited.
struct Step {
    job: usize,
    visited: usize,
}

/// What each job leads to. A future that is pending ends a chain, even if it awaits other jobs: it may go on
/// without some of them. Takes time in proportion to jobs and edges, and no stack.
pub(super) fn all(jobs: &[LiveJob], places: &Map<JobId, usize>) -> Vec<Outlook> {
    let mut outlooks: Vec<Outlook> = jobs.iter().map(own).collect();
    let ends = |outlook: &Outlook| match outlook.end {
        ChainEnd::NotWoken => Visited::Done,
        _ => Visited::Not,
    };
    let mut visited: Vec<Visited> = outlooks.iter().map(ends).collect();
    let mut path = Vec::new();
    for start in 0..jobs.len() {
        if visited[start] != Visited::Not {
            continue;
        }
        path.push(enter(start, &mut visited));
        while let Some(step) = path.last_mut() {
            let job = step.job;
            let Some(awaited) = jobs[job].waits_for.get(step.visited) else {
                visited[job] = Visited::Done;
                path.pop();
                if let Some(below) = path.last() {
                    let end = outlooks[job].end;
                    worsen(&mut outlooks[below.job], end, Some(job));
                }
                continue;
            };
            step.visited += 1;
            let place = places.get(&awaited.id).copied();
            match place.map(|place| (place, visited[place])) {
                None => worsen(&mut outlooks[job], ChainEnd::Gone, None),
                Some((next, Visited::Not)) => path.push(enter(next, &mut visited)),
                Some((next, Visited::OnPath)) => {
                    worsen(&mut outlooks[job], ChainEnd::Cycle, Some(next));
                }
                Some((next, Visited::Done)) => {
                    let end = outlooks[next].end;
                    worsen(&mut outlooks[job], end, Some(next));
                }
            }
        }
    }
    outlooks
}

fn enter(job: usize, visited: &mut [Visited]) -> Step {
    visited[job] = Visited::OnPath;
    Step { job, visited: 0 }
}

/// The outlook of a job without the jobs that it waits for.
pub(super) fn own(job: &LiveJob) -> Outlook {
    let waits = !job.waits_for.is_empty();
    let end = match (job.state, job.kind) {
        (JobState::Waiting, JobKind::Event) => ChainEnd::NotCompleted,
        _ if job.is_pending => ChainEnd::NotWoken,
        _ if waits => ChainEnd::Gone,
        (JobState::Waiting, JobKind::Scope) => ChainEnd::OpenScope,
        (JobState::Waiting, JobKind::Graph { .. }) => ChainEnd::LeftToCaller,
        (JobState::Waiting, _) => ChainEnd::Changing,
        (JobState::Ready, _) if job.pinned_to.is_some() => ChainEnd::ReadyForOne,
        (JobState::Ready, _) => ChainEnd::Ready,
        (JobState::Running { .. } | JobState::Open { .. }, _) => ChainEnd::Runs,
    };
    Outlook { end, next: None }
}

/// The job waits for one with this outlook, too.
fn worsen(outlook: &mut Outlook, end: ChainEnd, next: Option<usize>) {
    let is_first = outlook.next.is_none() && outlook.end == ChainEnd::Gone;
    if end > outlook.end || is_first {
        *outlook = Outlook { end, next };
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::panic::Location;

    use platform::Lane;

    use super::super::{NamedJob, places};
    use super::*;
    use crate::store::{Label, Ticket};

    /// Jobs that wait for each other like this, by number. A job that waits for none is ready.
    fn jobs(edges: &[Vec<usize>]) -> Vec<LiveJob> {
        let pool = NonZeroU32::MIN;
        let site = Location::caller();
        let named = |number: usize| NamedJob {
            id: JobId::new(pool, Ticket::new(number as u32, 1)),
            label: Label { name: "job", site },
        };
        let job = |(number, awaited): (usize, &Vec<usize>)| LiveJob {
            id: named(number).id,
            label: named(number).label,
            kind: JobKind::Body,
            state: if awaited.is_empty() {
                JobState::Ready
            } else {
                JobState::Waiting
            },
            waits_for: awaited.iter().map(|&awaited| named(awaited)).collect(),
            has_deadline: false,
            is_pending: false,
            lane: Lane::Normal,
            pinned_to: None,
            scope: None,
        };
        edges.iter().enumerate().map(job).collect()
    }

    fn outlooks(edges: &[Vec<usize>]) -> Vec<Outlook> {
        let jobs = jobs(edges);
        all(&jobs, &places(&jobs))
    }

    /// Goal: a job's outlook is a circle if one can be reached from it, and else that of the job where each
    /// way ends; and the way that is named leads there. Method: random graphs against a search from each job.
    #[test]
    fn outlooks_lead_where_they_say() {
        let mut state = 7_u64;
        let mut below = |bound: u64| {
            state = event::mix(state);
            state % bound
        };
        let mut circles = 0;
        for _ in 0..if cfg!(miri) { 20 } else { 2_000 } {
            let count = 1 + below(8) as usize;
            let edges: Vec<Vec<usize>> = (0..count)
                .map(|_| {
                    let awaited = (0..below(3)).map(|_| below(count as u64) as usize);
                    awaited.collect()
                })
                .collect();
            let reached = |from: usize| {
                let mut visited = vec![false; count];
                let mut left = edges[from].clone();
                while let Some(job) = left.pop() {
                    if !std::mem::replace(&mut visited[job], true) {
                        left.extend(&edges[job]);
                    }
                }
                visited
            };
            let in_circle = |job: usize| reached(job)[job];
            for (job, outlook) in outlooks(&edges).iter().enumerate() {
                let reached = reached(job);
                let circle = in_circle(job) || (0..count).any(|at| reached[at] && in_circle(at));
                circles += u32::from(circle);
                let expected = if circle {
                    ChainEnd::Cycle
                } else {
                    ChainEnd::Ready
                };
                assert_eq!(outlook.end, expected, "{job} of {edges:?}");
                match outlook.next {
                    Some(next) => assert!(edges[job].contains(&next)),
                    None => assert!(edges[job].is_empty()),
                }
            }
        }
        assert!(circles > 0);
    }

    /// Goal: a chain may be as long as a job system has jobs. Method: a long one, named from its end.
    #[test]
    fn a_chain_may_be_long() {
        let length = if cfg!(miri) { 100 } else { 200_000 };
        let mut edges: Vec<Vec<usize>> = (1..length).map(|next| vec![next]).collect();
        edges.push(Vec::new());
        assert!(
            outlooks(&edges)
                .iter()
                .all(|outlook| outlook.end == ChainEnd::Ready)
        );
        edges[length - 1] = vec![0];
        assert!(
            outlooks(&edges)
                .iter()
                .all(|outlook| outlook.end == ChainEnd::Cycle)
        );
    }
}
