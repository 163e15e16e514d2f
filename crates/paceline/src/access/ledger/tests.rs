//! The ledger against brute force.
//!
//! The oracle remembers all that ever happened, and decides each call by looking at all jobs and all ways
//! between them.

use event::Random;

use super::*;
use crate::access::AccessKind::{Reads, Writes};

const RESOURCES: u64 = 4;
/// So many slots that some are used again soon.
const SLOTS: usize = 24;
const ITEMS: u64 = 6;

/// What the ledger is not told, so that the oracle has something to find.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mistake {
    None,
    /// Jobs do not come after what the job comes after that they are scheduled in.
    Inside,
    /// Dependencies that are added later.
    LateEdges,
    /// Waits.
    Waits,
    /// The ends of scopes.
    Scopes,
    /// Which job opened a scope.
    Openers,
    /// Which items a job touches: all of them.
    Parts,
    /// What a job that was made to wait by `auto` comes after.
    Auto,
}

struct OracleJob {
    ticket: Ticket,
    label: Label,
    accesses: Vec<Declared>,
    /// Directly.
    preds: Vec<usize>,
    /// The number of its scope.
    scope: Option<usize>,
    was_waited_for: bool,
    is_over: bool,
}

struct OracleScope {
    ticket: Ticket,
    /// The job that opened it in its body.
    opener: Option<usize>,
    is_open: bool,
}

/// All jobs that were accepted, in the order of the calls.
#[derive(Default)]
struct Oracle {
    jobs: Vec<OracleJob>,
    scopes: Vec<OracleScope>,
    guards: Vec<(u64, Declared)>,
}

impl Oracle {
    fn opener(&self, job: usize) -> Option<usize> {
        self.scopes[self.jobs[job].scope?].opener
    }

    /// The jobs of the scopes that this one has opened.
    fn inner(&self, outer: usize) -> impl Iterator<Item = usize> {
        (0..self.jobs.len()).filter(move |&job| self.opener(job) == Some(outer))
    }

    /// Which jobs are over when those of `from` are.
    fn ancestors(&self, from: &[usize]) -> Vec<bool> {
        let mut found = vec![false; self.jobs.len()];
        let mut stack = from.to_vec();
        while let Some(job) = stack.pop() {
            if !std::mem::replace(&mut found[job], true) {
                stack.extend(&self.jobs[job].preds);
                stack.extend(self.inner(job));
            }
        }
        found
    }

    /// Whether the job begins after the end of `other`.
    fn begins_after(&self, job: usize, other: usize) -> bool {
        self.ancestors(&self.jobs[job].preds)[other]
    }

    /// The jobs that collide with these accesses of one that comes after `preds`, in no order with it. It
    /// ends before `opener` does.
    fn conflicts(
        &self,
        accesses: &[Declared],
        preds: &[usize],
        opener: Option<usize>,
    ) -> Vec<usize> {
        let is_later = |job| opener.is_some_and(|opener| self.begins_after(job, opener));
        let before = self.ancestors(preds);
        let collides = |job: &OracleJob| {
            let mut all = accesses
                .iter()
                .flat_map(|own| job.accesses.iter().map(move |x| (own, x)));
            all.any(|(own, other)| {
                let items = (0..ITEMS as usize)
                    .filter(|item| own.part.contains(item) && other.part.contains(item));
                own.resource == other.resource
                    && (own.kind == Writes || other.kind == Writes)
                    && items.count() > 0
            })
        };
        let jobs = self.jobs.iter().enumerate();
        let open = jobs.filter(|(place, job)| !before[*place] && !job.was_waited_for);
        open.filter(|(place, job)| collides(job) && !is_later(*place))
            .map(|(place, _)| place)
            .collect()
    }

    fn wait_for(&mut self, job: usize) {
        let before = self.ancestors(&[job]);
        for (job, _) in self
            .jobs
            .iter_mut()
            .zip(before)
            .filter(|(_, before)| *before)
        {
            (job.was_waited_for, job.is_over) = (true, true);
        }
    }
}

/// A ledger and an oracle that are told the same, but for the mistake.
struct Both {
    random: Random,
    mistake: Mistake,
    ledger: Ledger,
    resources: Vec<u64>,
    oracle: Oracle,
    generations: [u64; SLOTS],
    schedules: usize,
}

fn label(number: usize) -> Label {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    Label {
        name: NAMES[number % NAMES.len()],
        site: std::panic::Location::caller(),
    }
}

impl Both {
    fn new(seed: u64, mistake: Mistake) -> Both {
        let mut ledger = Ledger::default();
        // So that small sessions have searches of all sorts.
        ledger.jobs.limits = jobs::Limits {
            looked_at: seed as usize % 5,
            records: [0, 1000, 1000, 10][seed as usize / 5 % 4],
            left: seed as usize / 20 % 8,
        };
        Both {
            random: Random::new(seed),
            mistake,
            resources: (0..RESOURCES)
                .map(|_| ledger.add_resource("data"))
                .collect(),
            ledger,
            oracle: Oracle::default(),
            generations: [0; SLOTS],
            schedules: 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn resource(&mut self) -> u64 {
        let place = self.below(RESOURCES as usize);
        self.resources[place]
    }

    fn accesses(&mut self) -> Vec<Declared> {
        let mut accesses: Vec<Declared> = Vec::new();
        for _ in 0..self.below(4) {
            let resource = self.resource();
            let kind = [Reads, Reads, Writes][self.below(3)];
            let part = match self.below(3) {
                0 => {
                    let start = self.below(ITEMS as usize);
                    start..start + self.below(ITEMS as usize - start + 1)
                }
                _ => Declared::WHOLE,
            };
            let access = Declared {
                resource,
                kind,
                part,
            };
            if !accesses.iter().any(|before| before.collides(&access)) {
                accesses.push(access);
            }
        }
        accesses
    }

    /// What the ledger is told of these accesses.
    fn told(&self, accesses: &[Declared]) -> Vec<Declared> {
        let mut told = accesses.to_vec();
        if self.mistake == Mistake::Parts {
            for access in &mut told {
                access.part = Declared::WHOLE;
            }
        }
        told
    }

    /// A slot whose last job is over, with the next generation.
    fn free_slot(&mut self) -> Option<Ticket> {
        let taken = |slot: usize| {
            let jobs = self.oracle.jobs.iter();
            let mut of_slot = jobs.filter(|job| job.ticket.index() as usize == slot);
            of_slot.any(|job| !job.is_over)
        };
        let free: Vec<usize> = (0..SLOTS).filter(|&slot| !taken(slot)).collect();
        let &slot = free.get(self.below(free.len().max(1)))?;
        self.generations[slot] += 1;
        Some(Ticket::new(slot as u32, self.generations[slot]))
    }

    /// One call. An error says how the ledger and the oracle differ.
    fn step(&mut self) -> Result<(), String> {
        match self.below(20) {
            0 => self.wait(),
            1 => self.end_one(),
            2 => self.add_late(),
            3 => self.end_some_scope(),
            4 => self.sweep(),
            5 => return self.guard(),
            _ => return self.schedule(),
        }
        Ok(())
    }

    /// Whether the job waits for a scope.
    fn is_in_scope(&self, job: usize) -> bool {
        let mut scopes = self.oracle.scopes.iter();
        scopes.any(|scope| scope.is_open && scope.opener == Some(job))
    }

    /// A job that may be running: what comes before it is over, and it is not.
    fn running(&mut self) -> Option<usize> {
        let oracle = &self.oracle;
        let may_run = |&job: &usize| {
            let mut before = oracle
                .ancestors(&oracle.jobs[job].preds)
                .into_iter()
                .enumerate();
            !oracle.jobs[job].is_over
                && before.all(|(other, is_before)| !is_before || oracle.jobs[other].is_over)
        };
        let all: Vec<usize> = (0..oracle.jobs.len()).filter(may_run).collect();
        all.get(self.below(all.len().max(1))).copied()
    }

    /// One of the last jobs.
    fn recent(&mut self) -> Option<usize> {
        let count = self.oracle.jobs.len();
        (count > 0).then(|| count - 1 - self.below(count.min(SLOTS)))
    }

    fn ticket(&self, job: usize) -> Ticket {
        self.oracle.jobs[job].ticket
    }

    fn schedule(&mut self) -> Result<(), String> {
        let Some(ticket) = self.free_slot() else {
            self.wait();
            return Ok(());
        };
        let scope = (self.below(3) == 0).then(|| self.scope());
        let opener = scope.and_then(|scope| self.oracle.scopes[scope].opener);
        let mut preds: Vec<usize> = (0..self.below(4)).filter_map(|_| self.recent()).collect();
        // A job of a scope cannot come after what comes after the scope: it would never begin.
        let is_late = |job| opener.is_some_and(|opener| self.oracle.ancestors(&[job])[opener]);
        preds.retain(|&job| !is_late(job));
        let after: Vec<Ticket> = preds.iter().map(|&job| self.ticket(job)).collect();
        let outer = match scope {
            Some(_) => opener,
            None => (self.below(3) == 0).then(|| self.running()).flatten(),
        };
        let inside: Vec<Ticket> = outer.map(|outer| self.ticket(outer)).into_iter().collect();
        preds.extend(
            outer
                .iter()
                .flat_map(|&outer| &self.oracle.jobs[outer].preds),
        );
        let accesses = self.accesses();
        let job = OracleJob {
            ticket,
            label: label(self.oracle.jobs.len()),
            accesses,
            preds,
            scope,
            was_waited_for: false,
            is_over: false,
        };
        let told = self.told(&job.accesses);
        let openers = match opener {
            Some(_) if self.mistake != Mistake::Openers => self.openers(opener),
            _ => Vec::new(),
        };
        let planned = Planned {
            label: job.label,
            after: &after,
            inside: if self.mistake == Mistake::Inside {
                &[]
            } else {
                &inside
            },
            scope: scope.map(|scope| self.oracle.scopes[scope].ticket),
            openers: &openers,
            accesses: &told,
            is_auto: self.below(4) == 0,
        };
        self.schedules += 1;
        self.compare(job, &planned)
    }

    /// The job that opened a scope, the one that opened the scope of that one, and so on.
    fn openers(&self, mut opener: Option<usize>) -> Vec<Ticket> {
        let mut openers = Vec::new();
        while let Some(job) = opener {
            openers.push(self.ticket(job));
            opener = self.oracle.opener(job);
        }
        openers
    }

    /// An open scope, or a new one, in the body of some job or of none.
    fn scope(&mut self) -> usize {
        let scopes = self.oracle.scopes.iter().enumerate();
        let open: Vec<usize> = scopes
            .filter(|(_, scope)| scope.is_open)
            .map(|(number, _)| number)
            .collect();
        if open.len() == 3 || !open.is_empty() && self.below(2) == 0 {
            return open[self.below(open.len())];
        }
        let number = self.oracle.scopes.len();
        let opener = (self.below(4) > 0).then(|| self.running()).flatten();
        self.oracle.scopes.push(OracleScope {
            ticket: Ticket::new(1000 + number as u32, 1),
            opener,
            is_open: true,
        });
        number
    }

    /// Asks both whether the job may be scheduled, and if so, schedules it.
    fn compare(&mut self, mut job: OracleJob, planned: &Planned<'_>) -> Result<(), String> {
        let guards = &self.oracle.guards;
        let collides = |guard: &Declared| job.accesses.iter().any(|own| own.collides(guard));
        let is_guarded = guards.iter().any(|(_, guard)| collides(guard));
        let opener = job.scope.and_then(|scope| self.oracle.scopes[scope].opener);
        let conflicts = self.oracle.conflicts(&job.accesses, &job.preds, opener);
        let passed = self.ledger.check(planned);
        match passed.map_err(|error| error.fault().clone()) {
            Err(AccessFault::Guarded { .. }) if is_guarded => Ok(()),
            Err(AccessFault::Unordered(conflict)) if !is_guarded => {
                // Where `auto` could only make a circle.
                let waits = |other: &&usize| {
                    opener.is_some_and(|opener| self.oracle.ancestors(&[**other])[opener])
                };
                let circles: Vec<usize> = conflicts.iter().filter(waits).copied().collect();
                let conflicts = if planned.is_auto {
                    &circles
                } else {
                    &conflicts
                };
                let both = (&conflict.earlier, &conflict.later);
                self.find(both, conflicts, &job, |other| {
                    !planned.inside.contains(&other.ticket)
                })
            }
            Err(AccessFault::Held { outer, inner, .. })
                if !is_guarded && (!planned.is_auto || job.scope.is_some()) =>
            {
                self.find((&outer, &inner), &conflicts, &job, |other| {
                    planned.inside.contains(&other.ticket)
                })
            }
            Err(fault) => Err(format!("{fault:?}; guarded: {is_guarded}")),
            Ok(_) if is_guarded => Err("a guard was missed".into()),
            Ok(passed) => {
                let added = passed.added.iter().map(|&ticket| self.place_of(ticket));
                let added: Vec<usize> = added.collect();
                if let Some(extra) = added.iter().find(|&other| !conflicts.contains(other)) {
                    return Err(format!("{extra} need not come before"));
                }
                job.preds.extend(added);
                let left = self.oracle.conflicts(&job.accesses, &job.preds, opener);
                if let Some(left) = left.first() {
                    return Err(format!("missed: {left}"));
                }
                let jobs = &self.oracle.jobs;
                let is_over = |ticket| jobs.iter().any(|job| job.ticket == ticket && job.is_over);
                if self.mistake == Mistake::Auto {
                    self.ledger.preds.clear();
                }
                self.ledger.note(planned, passed, job.ticket, is_over);
                self.oracle.jobs.push(job);
                Ok(())
            }
        }
    }

    /// Whether what was reported is one of the conflicts, with a job that passes the test.
    fn find(
        &self,
        (earlier, later): (&Conflicting, &Conflicting),
        conflicts: &[usize],
        job: &OracleJob,
        test: impl Fn(&OracleJob) -> bool,
    ) -> Result<(), String> {
        let is_of = |one: &Conflicting, job: &OracleJob| {
            let part = one.part.clone().unwrap_or(Declared::WHOLE);
            let is_own = |own: &Declared| {
                let inside = own.part.start <= part.start && part.end <= own.part.end;
                inside && own.kind == one.kind
            };
            one.label == job.label && job.accesses.iter().any(is_own)
        };
        let mut others = conflicts.iter().map(|&other| &self.oracle.jobs[other]);
        let is_it = others.any(|other| is_of(earlier, other) && test(other)) && is_of(later, job);
        is_it
            .then_some(())
            .ok_or_else(|| format!("false alarm: {earlier} and {later}; true ones: {conflicts:?}"))
    }

    fn place_of(&self, ticket: Ticket) -> usize {
        let place = self.oracle.jobs.iter().position(|job| job.ticket == ticket);
        place.expect("only jobs are added")
    }

    fn wait(&mut self) {
        if let Some(job) = self.recent() {
            self.end_scopes_before(job);
            self.oracle.wait_for(job);
            if self.mistake != Mistake::Waits {
                self.ledger.waited_for(self.ticket(job));
            }
        }
    }

    /// The job can only be over when these have ended.
    fn end_scopes_before(&mut self, job: usize) {
        for number in 0..self.oracle.scopes.len() {
            let before = self.oracle.ancestors(&[job]);
            let scope = &self.oracle.scopes[number];
            if scope.is_open && scope.opener.is_some_and(|opener| before[opener]) {
                self.end_scope(number);
            }
        }
    }

    /// A job ends, and nobody waits for it.
    fn end_one(&mut self) {
        if let Some(job) = self.running().filter(|&job| !self.is_in_scope(job)) {
            self.oracle.jobs[job].is_over = true;
        }
    }

    fn end_some_scope(&mut self) {
        let open = |number: &usize| self.oracle.scopes[*number].is_open;
        let open: Vec<usize> = (0..self.oracle.scopes.len()).filter(open).collect();
        if let Some(&number) = open.get(self.below(open.len().max(1))) {
            self.end_scope(number);
        }
    }

    /// A scope ends, after those that its jobs have opened.
    fn end_scope(&mut self, number: usize) {
        self.oracle.scopes[number].is_open = false;
        for job in 0..self.oracle.jobs.len() {
            if self.oracle.jobs[job].scope == Some(number) {
                self.end_scopes_before(job);
                self.oracle.wait_for(job);
            }
        }
        if self.mistake != Mistake::Scopes {
            self.ledger.scope_ended(self.oracle.scopes[number].ticket);
        }
    }

    /// A job that has not started comes after another one, scheduled earlier or later.
    fn add_late(&mut self) {
        let (Some(job), Some(pred)) = (self.recent(), self.recent()) else {
            return;
        };
        // Nothing in a scope waits for what comes after it.
        let ends_with = |job: usize| {
            let mut above = vec![job];
            while let Some(opener) = self.oracle.opener(above[above.len() - 1]) {
                above.push(opener);
            }
            above
        };
        let before = self.oracle.ancestors(&[pred]);
        let is_circle = ends_with(job).into_iter().any(|job| before[job]);
        // One that waits for nothing may have started.
        let waits = self.oracle.jobs[job]
            .preds
            .iter()
            .any(|&pred| !self.oracle.jobs[pred].is_over);
        if is_circle || !waits || self.oracle.jobs[job].is_over {
            return;
        }
        self.oracle.jobs[job].preds.push(pred);
        if self.mistake != Mistake::LateEdges {
            self.ledger.add_late(self.ticket(job), self.ticket(pred));
        }
    }

    fn sweep(&mut self) {
        let jobs = &self.oracle.jobs;
        let is_over = |ticket| jobs.iter().any(|job| job.ticket == ticket && job.is_over);
        self.ledger.sweep(is_over);
    }

    /// The program takes a guard, or drops one.
    fn guard(&mut self) -> Result<(), String> {
        if let Some((number, access)) = self.oracle.guards.pop() {
            self.ledger.give_back(access.resource, number);
            return Ok(());
        }
        let access = Declared {
            resource: self.resource(),
            kind: [Reads, Writes][self.below(2)],
            part: Declared::WHOLE,
        };
        let outer = (self.below(2) == 0).then(|| self.running()).flatten();
        let preds = outer.map_or(Vec::new(), |outer| self.oracle.jobs[outer].preds.clone());
        let inside: Vec<Ticket> = outer.map(|outer| self.ticket(outer)).into_iter().collect();
        let accesses = std::slice::from_ref(&access);
        let conflicts = self.oracle.conflicts(accesses, &preds, outer);
        let site = std::panic::Location::caller();
        match self.ledger.take(&access, &inside, site) {
            Ok(_) if !conflicts.is_empty() => Err(format!("a guard beside {conflicts:?}")),
            Err(error) if conflicts.is_empty() => Err(error.to_string()),
            Ok(number) => {
                self.oracle.guards.push((number, access));
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }
}

/// The first difference of a session, and how many jobs were scheduled until then.
fn session(seed: u64, mistake: Mistake) -> (Result<(), String>, usize) {
    let mut both = Both::new(seed, mistake);
    let outcome = (0..150).try_for_each(|_| both.step());
    (outcome, both.schedules)
}

/// Goal: no false alarm and no miss, for jobs and for guards; jobs that are `auto` come after those that they
/// have to, and after no others. Method: random sessions of calls, with late edges, scopes, waits and slots
/// that are used again, each call compared with brute force.
#[test]
fn the_ledger_answers_as_brute_force_does_long() {
    const WANTED: usize = 120_000;
    let (mut schedules, mut seed) = (0, 0);
    while schedules < WANTED {
        let (outcome, more) = session(seed, Mistake::None);
        assert_eq!(outcome, Ok(()), "seed {seed}");
        schedules += more;
        seed += 1;
    }
}

/// Goal: the comparison would see it if the ledger did not know one of the things that it is told. Method: as
/// above, with each of them kept from it.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_ledger_that_is_told_less_is_found_out() {
    use Mistake::{Auto, Inside, LateEdges, Openers, Parts, Scopes, Waits};
    for mistake in [Inside, LateEdges, Waits, Scopes, Openers, Parts, Auto] {
        let found = (0..100).any(|seed| session(seed, mistake).0.is_err());
        assert!(found, "{mistake:?}");
    }
}

/// Frames of this many jobs, each after a job that comes after all of the frame before. Each job reads one
/// piece of data and writes another.
struct Frames {
    ledger: Ledger,
    read: u64,
    written: Vec<u64>,
    last: Option<Ticket>,
    scheduled: u64,
}

impl Frames {
    fn new(jobs: usize) -> Frames {
        let mut ledger = Ledger::default();
        Frames {
            read: ledger.add_resource("read"),
            written: (0..jobs).map(|_| ledger.add_resource("written")).collect(),
            ledger,
            last: None,
            scheduled: 0,
        }
    }

    fn schedule(&mut self, after: &[Ticket], accesses: &[Declared]) -> Ticket {
        let planned = Planned {
            label: label(0),
            after,
            inside: &[],
            scope: None,
            openers: &[],
            accesses,
            is_auto: false,
        };
        let passed = self.ledger.check(&planned).unwrap();
        let ticket = Ticket::new(self.scheduled as u32, 0);
        self.scheduled += 1;
        self.ledger.note(&planned, passed, ticket, |_| false);
        ticket
    }

    /// Schedules a frame. Returns what ended the frame before.
    fn frame(&mut self) -> Option<Ticket> {
        let whole = |resource, kind| Declared {
            resource,
            kind,
            part: Declared::WHOLE,
        };
        let before: Vec<Ticket> = self.last.into_iter().collect();
        let jobs = self.written.clone().into_iter().map(|written| {
            let accesses = [whole(self.read, Reads), whole(written, Writes)];
            self.schedule(&before, &accesses)
        });
        let jobs: Vec<Ticket> = jobs.collect();
        let end = self.schedule(&jobs, &[]);
        self.last.replace(end)
    }
}

/// Goal: all jobs of a frame that come after one job share one search for what comes before it. Method:
/// frames of 300 jobs, of which two are remembered; the searches are counted. The first frames earn what
/// the first search costs.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn the_jobs_of_a_frame_share_a_search() {
    let mut frames = Frames::new(300);
    for frame in 0..50 {
        let before = frames.frame();
        let searches = frames.ledger.jobs.standing_searches();
        assert!(
            (frame - 1..=frame + 1).contains(&(searches as i32)),
            "{searches} in {frame}"
        );
        before.inspect(|&before| frames.ledger.waited_for(before));
    }
}

/// Goal: an edge that is added later counts for jobs that share a search with earlier ones. Method: two jobs
/// come after the same one. The first of them makes a search that stands. Then what both come after is made
/// to come after one more job, whose data the second of them writes.
#[test]
fn a_late_edge_ends_a_search_that_stands() {
    let mut frames = Frames::new(3);
    frames.ledger.jobs.limits.looked_at = 0;
    let [early, late, _] = frames.written[..] else {
        panic!("there are three");
    };
    let writes = |resource| Declared {
        resource,
        kind: Writes,
        part: Declared::WHOLE,
    };
    let first = frames.schedule(&[], &[writes(early)]);
    let other = frames.schedule(&[], &[writes(late)]);
    let middle = frames.schedule(&[first], &[]);
    let end = frames.schedule(&[middle], &[]);
    frames.schedule(&[end], &[writes(early)]);
    assert_eq!(frames.ledger.jobs.standing_searches(), 1);
    frames.ledger.add_late(middle, other);
    frames.schedule(&[end], &[writes(late)]);
}

/// Goal: data that jobs read and none writes takes no memory without end. Method: two thousand frames of
/// twenty readers each, one after the other, which are waited for; how many uses are remembered.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn readers_that_were_waited_for_are_forgotten() {
    let mut frames = Frames::new(20);
    for _ in 0..2000 {
        let before = frames.frame();
        before.inspect(|&before| frames.ledger.waited_for(before));
        let read = frames.ledger.resource(frames.read).unwrap();
        assert!(read.users().count() <= 200);
    }
}
