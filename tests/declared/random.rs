//! Goal: no false alarm and no miss, whichever threads schedule, wait and touch data, and whenever jobs run.
//! Method: random programs of several threads, with jobs in the bodies of jobs and in scopes, on simulated
//! threads under random orders of steps, and on the machine; each call is noted (`oracle`), and judged
//! afterwards. That the judgement would see a mistake is seen by judging with some notes left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use event::Nanos;
use paceline::{
    AccessKind, Builder, Context, JobId, JobSystem, NewJob, Part, ScheduleError, Shared,
};
use platform::{Platform, Thread, ThreadSpec};
use sim::{Sim, SimConfig};

use super::oracle::{Access, Notes};
use crate::support::{Random, delays, each_seed, watched};

/// Pieces of data, and their items.
const PIECES: usize = 4;
const ITEMS: usize = 8;
/// Calls of a thread.
const CALLS: usize = 14;

struct World<P: Platform> {
    js: JobSystem<P>,
    data: Vec<Shared<[u64], P>>,
    notes: Notes,
}

/// How a job hangs together with those around it.
#[derive(Clone, Copy)]
struct Place<'o> {
    /// What the job comes after in whose body it is scheduled.
    outer: &'o [usize],
    /// That job, if this one is of a scope in its body, or is a guard there.
    within: Option<usize>,
    /// It is of a scope, and comes after nothing else, and nothing after it.
    in_scope: bool,
    depth: usize,
}

impl Place<'_> {
    const OUTSIDE: Place<'static> = Place {
        outer: &[],
        within: None,
        in_scope: false,
        depth: 0,
    };
}

struct Body<P: Platform> {
    world: Arc<World<P>>,
    number: usize,
    preds: Vec<usize>,
    seed: u64,
    depth: usize,
}

impl<P: Platform> Body<P> {
    fn run(self, cx: &Context<'_, P>) {
        let random = &mut Random::new(self.seed);
        cx.work(Nanos::from_micros(random.below(4) as u64));
        if self.depth > 0 {
            return;
        }
        let place = Place {
            outer: &self.preds,
            within: None,
            in_scope: false,
            depth: 1,
        };
        let inside = Place {
            within: Some(self.number),
            ..place
        };
        match random.below(8) {
            0 | 1 => _ = self.world.schedule(random, place, |name| cx.job(name)),
            2 => self.world.scope(random, inside, cx),
            3 => self.world.guard(random, inside),
            _ => {}
        }
    }
}

macro_rules! schedule {
    ($job:expr, $body:expr $(, $access:ident $part:expr)+) => {
        $job$(.$access($part))+.try_schedule(move |cx, _| $body.run(cx))
    };
}

impl<P: Platform> World<P> {
    fn new(js: JobSystem<P>) -> World<P> {
        let piece = |_| js.share_slice("piece", vec![0; ITEMS]);
        World {
            data: (0..PIECES).map(piece).collect(),
            notes: Notes::default(),
            js,
        }
    }

    fn accesses(random: &mut Random) -> Vec<Access> {
        let mut pieces: Vec<usize> = (0..PIECES).collect();
        random.shuffle(&mut pieces);
        let count = random.below(3);
        let access = |&piece: &usize| {
            let start = random.below(ITEMS);
            let part = match random.below(3) {
                0 => start..start + random.below(ITEMS - start + 1),
                _ => 0..ITEMS,
            };
            let kind = *random.pick(&[AccessKind::Reads, AccessKind::Writes]);
            Access { piece, kind, part }
        };
        pieces[..count].iter().map(access).collect()
    }

    fn part(&self, access: &Access) -> Part<'_, u64, P> {
        self.data[access.piece].part(access.part.clone())
    }

    /// Schedules a job that `describe` begins. Its number, if it was accepted.
    fn schedule<'a, 'b>(
        self: &Arc<Self>,
        random: &mut Random,
        place: Place<'_>,
        describe: impl FnOnce(String) -> NewJob<'a, 'b, P>,
    ) -> Option<usize> {
        let accesses = World::<P>::accesses(random);
        let count = if place.in_scope { 0 } else { random.below(3) };
        let some: Vec<_> = (0..count).filter_map(|_| self.notes.pick(random)).collect();
        let mut preds: Vec<usize> = some.iter().map(|(number, _)| *number).collect();
        preds.extend(place.outer);
        let call = self.notes.begin(&accesses, &preds, place.within);
        let job = describe(format!("j{call}")).after_all(some.iter().map(|(_, id)| *id));
        let body = Body {
            world: self.clone(),
            number: call,
            preds,
            seed: random.next(),
            depth: place.depth,
        };
        let id = match self.submit(job, &accesses, body) {
            Err(ScheduleError::Access(error)) => Err(error),
            Err(other) => panic!("{other}"),
            Ok(id) => Ok(id),
        };
        self.notes.end(call, id.as_ref().map(|_| ()));
        let id = id.ok()?;
        if !place.in_scope {
            self.notes.made(call, id);
        }
        Some(call)
    }

    fn submit(
        &self,
        job: NewJob<'_, '_, P>,
        accesses: &[Access],
        body: Body<P>,
    ) -> Result<JobId, ScheduleError> {
        use AccessKind::{Reads, Writes};
        let kinds: Vec<AccessKind> = accesses.iter().map(|access| access.kind).collect();
        let part = |place: usize| self.part(&accesses[place]);
        match kinds[..] {
            [] => job.try_schedule(move |cx| body.run(cx)),
            [Reads] => schedule!(job, body, reads part(0)),
            [Writes] => schedule!(job, body, writes part(0)),
            [Reads, Reads] => schedule!(job, body, reads part(0), reads part(1)),
            [Reads, Writes] => schedule!(job, body, reads part(0), writes part(1)),
            [Writes, Reads] => schedule!(job, body, writes part(0), reads part(1)),
            [Writes, Writes] => schedule!(job, body, writes part(0), writes part(1)),
            _ => unreachable!("at most two accesses"),
        }
    }

    /// A scope with two jobs.
    fn scope(self: &Arc<Self>, random: &mut Random, place: Place<'_>, cx: &Context<'_, P>) {
        let place = Place {
            in_scope: true,
            depth: 1,
            ..place
        };
        self.notes.wait(|| {
            cx.scope(|scope| {
                let both = (0..2).map(|_| self.schedule(random, place, |name| scope.job(name)));
                both.flatten().collect()
            })
        });
    }

    /// What a thread does.
    fn run(self: &Arc<Self>, seed: u64) {
        let random = &mut Random::new(seed);
        for _ in 0..CALLS {
            match random.below(11) {
                0 | 1 => self.wait(random),
                2 => self.js.enter(|cx| self.scope(random, Place::OUTSIDE, cx)),
                3 => self.guard(random, Place::OUTSIDE),
                _ => _ = self.schedule(random, Place::OUTSIDE, |name| self.js.job(name)),
            }
        }
    }

    fn wait(&self, random: &mut Random) {
        if let Some((number, id)) = self.notes.pick(random) {
            self.notes.wait(|| {
                self.js.wait(id); // It would panic if two bodies had met.
                vec![number]
            });
        }
    }

    /// Takes a guard, and drops it.
    fn guard(&self, random: &mut Random, place: Place<'_>) {
        let access = Access {
            piece: random.below(PIECES),
            kind: *random.pick(&[AccessKind::Reads, AccessKind::Writes]),
            part: 0..ITEMS,
        };
        let data = &self.data[access.piece];
        let accesses = std::slice::from_ref(&access);
        let call = self.notes.begin(accesses, place.outer, place.within);
        macro_rules! hold {
            ($taken:expr) => {{
                let taken = $taken;
                self.notes.end(call, taken.as_ref().map(|_| ()));
                self.js.enter(|cx| cx.work(Nanos::from_micros(2)));
                self.notes.drops(call);
                drop(taken);
                self.notes.has_dropped(call);
            }};
        }
        match access.kind {
            AccessKind::Reads => hold!(data.try_read()),
            AccessKind::Writes => hold!(data.try_write()),
        }
    }
}

/// How many jobs were scheduled, and how often a judgement with notes left out has found something.
#[derive(Default)]
struct Sums {
    jobs: AtomicU64,
    without: [AtomicU64; 4],
}

fn program<P: Platform>(platform: &P, js: JobSystem<P>, seed: u64, sums: &Sums) {
    let world = Arc::new(World::new(js));
    let threads: Vec<P::Thread> = (1..1 + seed % 3)
        .map(|number| {
            let theirs = world.clone();
            let body = Box::new(move || theirs.run(seed * 8 + number));
            let thread = platform.spawn(ThreadSpec::default(), body);
            thread.expect("there is room for a few threads")
        })
        .collect();
    world.run(seed * 8);
    for thread in threads {
        thread.join().expect("it does not panic");
    }
    // Their bodies may schedule more.
    while let Some((number, id)) = world.notes.last() {
        world.notes.wait(|| {
            world.js.wait(id);
            vec![number]
        });
    }
    world.notes.judge().unwrap_or_else(|why| panic!("{why}"));
    sums.jobs.fetch_add(world.notes.count(), SeqCst);
    for (sum, without) in sums.without.iter().zip(world.notes.with_less()) {
        sum.fetch_add(u64::from(without.judge().is_err()), SeqCst);
    }
}

#[test]
fn declared_jobs_on_simulated_threads() {
    let sums = Arc::new(Sums::default());
    each_seed(
        "declared::random::declared_jobs_on_simulated_threads",
        4000,
        |seed| {
            let config = match seed % 3 {
                0 => delays(seed),
                _ => SimConfig::new(seed),
            };
            let sums = sums.clone();
            let report = Sim::run(config, move |sim| {
                let builder = Builder::with_platform(sim.clone()).workers(seed as usize / 3 % 4);
                program(&sim, builder.checks(true).build().unwrap(), seed, &sums);
            });
            assert_eq!(report.outcome, sim::Outcome::Finished, "{report}");
        },
    );
    println!("{} jobs", sums.jobs.load(SeqCst));
    for (number, sum) in sums.without.iter().enumerate() {
        assert!(
            sum.load(SeqCst) > 0,
            "nothing is found without notes {number}"
        );
    }
}

#[test]
fn declared_jobs_on_threads() {
    watched("declared jobs on threads", || {
        each_seed("declared::random::declared_jobs_on_threads", 300, |seed| {
            let builder = Builder::new().workers(seed as usize / 3 % 3);
            program(
                &platform::Os,
                builder.checks(true).build().unwrap(),
                seed,
                &Sums::default(),
            );
        });
    });
}
