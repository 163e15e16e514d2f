//! What a program in C has made, as the header says it is: plain data, from which follows what each call has
//! to return. It knows nothing of the library.

/// How a job has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Fine,
    Failed,
    Cancelled,
    Abandoned,
}

/// What a job is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// With a body, which fails or not.
    Body { fails: bool },
    /// It ends when those before it have ended.
    Combine,
    /// To be completed so many times.
    Event { left: usize },
}

/// A job. All below are named by their places in the lists of [`Model`].
#[derive(Clone)]
pub(super) struct JobState {
    pub(super) system: usize,
    pub(super) kind: Kind,
    pub(super) after: Vec<usize>,
    pub(super) token: Option<usize>,
    pub(super) group: Option<usize>,
    /// Its lane, or its frame, may let other jobs go before it.
    pub(super) is_late: bool,
    pub(super) ended: Option<Outcome>,
    /// An event that was given up: it ends when all before it has ended, so. The first failure counts.
    pub(super) given_up: Option<Outcome>,
}

#[derive(Clone)]
pub(super) struct TokenState {
    pub(super) system: usize,
    pub(super) parent: Option<usize>,
    pub(super) is_cancelled: bool,
    pub(super) is_known: bool,
}

/// A frame or a group.
#[derive(Clone)]
pub(super) struct NamedState {
    pub(super) system: usize,
    pub(super) is_known: bool,
}

/// What a graph is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Declared,
    Built,
    Started,
    Broken,
    Gone,
}

#[derive(Clone)]
pub(super) struct GraphState {
    pub(super) system: usize,
    pub(super) phase: Phase,
    /// For each node those that it comes after.
    pub(super) nodes: Vec<Vec<usize>>,
    /// Which have run in the run that goes on.
    pub(super) has_run: Vec<bool>,
}

/// All of it.
#[derive(Clone, Default)]
pub(super) struct Model {
    /// Whether each job system lives. The first is a null pointer.
    pub(super) systems: Vec<bool>,
    pub(super) jobs: Vec<JobState>,
    pub(super) tokens: Vec<TokenState>,
    pub(super) frames: Vec<NamedState>,
    pub(super) groups: Vec<NamedState>,
    pub(super) graphs: Vec<GraphState>,
}

impl Model {
    /// Whether a token was cancelled, itself or by one that it was made from.
    pub(super) fn is_cancelled(&self, token: usize) -> bool {
        let of = &self.tokens[token];
        of.is_cancelled || of.parent.is_some_and(|parent| self.is_cancelled(parent))
    }

    fn is_called_off(&self, job: usize) -> bool {
        self.jobs[job]
            .token
            .is_some_and(|token| self.is_cancelled(token))
    }

    /// Whether a job has ended by what was said of those before it, as far as it has no body to run.
    fn follows(&self, job: usize) -> Option<Outcome> {
        let state = &self.jobs[job];
        let mut ends = Vec::new();
        for &before in &state.after {
            ends.push(self.jobs[before].ended?);
        }
        let is_bad = ends.iter().any(|&end| end != Outcome::Fine);
        match state.kind {
            Kind::Event { .. } if state.given_up.is_some() => state.given_up,
            Kind::Event { left } if left > 0 => None,
            _ if is_bad => Some(Outcome::Cancelled),
            Kind::Event { .. } | Kind::Combine => Some(Outcome::Fine),
            Kind::Body { .. } => None,
        }
    }

    /// An event is given up.
    pub(super) fn give_up(&mut self, event: usize) {
        let ends = self.jobs[event].after.iter();
        let mut ends = ends.filter_map(|&before| self.jobs[before].ended);
        let was_cancelled = ends.any(|end| end != Outcome::Fine);
        self.jobs[event].given_up = Some(if was_cancelled {
            Outcome::Cancelled
        } else {
            Outcome::Abandoned
        });
        self.settle();
    }

    /// Ends all that ends because others have.
    pub(super) fn settle(&mut self) {
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for job in 0..self.jobs.len() {
                if self.jobs[job].ended.is_none() {
                    let end = self.follows(job);
                    goes_on |= end.is_some();
                    self.jobs[job].ended = end;
                }
            }
        }
    }

    /// Whether a job with a body may begin, or be found to be called off.
    pub(super) fn is_ready(&self, job: usize) -> bool {
        let state = &self.jobs[job];
        let is_fine = |&before: &usize| self.jobs[before].ended == Some(Outcome::Fine);
        matches!(state.kind, Kind::Body { .. })
            && state.ended.is_none()
            && state.after.iter().all(is_fine)
    }

    /// Whether a job is ready, and was not called off.
    pub(super) fn can_run(&self, job: usize) -> bool {
        self.is_ready(job) && !self.is_called_off(job)
    }

    /// A body has run.
    pub(super) fn ran(&mut self, job: usize) {
        assert!(
            self.is_ready(job),
            "job {job} ran before those that it waits for"
        );
        assert!(
            !self.is_called_off(job),
            "job {job} ran although it was called off"
        );
        let fails = self.jobs[job].kind == Kind::Body { fails: true };
        let end = if fails {
            Outcome::Failed
        } else {
            Outcome::Fine
        };
        self.jobs[job].ended = Some(end);
        self.settle();
    }

    /// A body is gone. It has run, or it never will. Whether that ends the job.
    pub(super) fn released(&mut self, job: usize, at_end: bool) -> bool {
        let ends = self.jobs[job].ended.is_none();
        if ends {
            let may_be = at_end || self.is_ready(job) && self.is_called_off(job);
            assert!(may_be, "job {job} was dropped, and could have run");
            self.jobs[job].ended = Some(Outcome::Cancelled);
            self.settle();
        }
        ends
    }

    /// What a job needs before it can end, itself included.
    pub(super) fn needed(&self, job: usize) -> Vec<usize> {
        let mut needed = vec![job];
        let mut at = 0;
        while at < needed.len() {
            let state = &self.jobs[needed[at]];
            for &before in &state.after {
                if !needed.contains(&before) {
                    needed.push(before);
                }
            }
            at += 1;
        }
        needed
    }

    /// Whether a wait that runs what it needs comes to an end: no event stands in its way.
    pub(super) fn can_end(&self, job: usize) -> bool {
        let open = |&job: &usize| {
            let state = &self.jobs[job];
            let is_open = matches!(state.kind, Kind::Event { left } if left > 0);
            state.ended.is_none() && is_open && state.given_up.is_none()
        };
        !self.needed(job).iter().any(open)
    }

    /// Whether `job` waits for `other`, at whatever distance, through what has not ended.
    pub(super) fn waits_for(&self, job: usize, other: usize) -> bool {
        let mut waits = vec![job];
        let mut at = 0;
        while at < waits.len() {
            let state = &self.jobs[waits[at]];
            let open = state.ended.is_none();
            for &before in state.after.iter().filter(|_| open) {
                if !waits.contains(&before) {
                    waits.push(before);
                }
            }
            at += 1;
        }
        waits.contains(&other)
    }

    /// The jobs of a job system that run if its thread runs all that it can.
    pub(super) fn runnable(&self, system: usize) -> Vec<usize> {
        let mut then = self.clone();
        let mut runnable = Vec::new();
        loop {
            let mut jobs = 0..then.jobs.len();
            let can_run = |job: &usize| {
                then.jobs[*job].system == system && then.is_ready(*job) && !then.is_called_off(*job)
            };
            let Some(next) = jobs.find(can_run) else {
                return runnable;
            };
            runnable.push(next);
            then.ran(next);
        }
    }

    /// Whether a job is ready: it runs if a thread comes for it, or is dropped if it was called off.
    pub(super) fn has_ready(&self, system: usize) -> bool {
        let mut jobs = 0..self.jobs.len();
        jobs.any(|job| self.jobs[job].system == system && self.is_ready(job))
    }
}

impl GraphState {
    /// Whether a node comes after another, at whatever distance.
    pub(super) fn leads(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![to];
        let mut at = 0;
        while at < seen.len() {
            for &before in &self.nodes[seen[at]] {
                if !seen.contains(&before) {
                    seen.push(before);
                }
            }
            at += 1;
        }
        seen.contains(&from)
    }

    /// Whether its nodes come after each other in a circle.
    pub(super) fn has_circle(&self) -> bool {
        (0..self.nodes.len()).any(|node| {
            self.nodes[node]
                .iter()
                .any(|&before| self.leads(node, before))
        })
    }

    /// A node has run.
    pub(super) fn ran(&mut self, node: usize) {
        assert!(!self.has_run[node], "node {node} ran twice in a run");
        let before = &self.nodes[node];
        assert!(
            before.iter().all(|&before| self.has_run[before]),
            "node {node} ran too early"
        );
        self.has_run[node] = true;
    }
}
