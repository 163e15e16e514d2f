//! The jobs of a frame in the order of what hangs on them, as it was in the last frames of that name.
//!
//! A job is known again by its label and by how many jobs of that label the frame has made before. When a
//! frame ends, the jobs that it has made and their edges are a graph, in which each job stands behind those
//! that it comes after, since an edge to a job can be made only once it is there. From that graph and the
//! times of the jobs come the ranks of the next frame ([`WayRanks`]).
//!
//! A job costs a short lock when it is made, and in frames that are timed two more.
//!
//! It is made by [`Builder::critical_first`](crate::Builder::critical_first), behind a trait object, and the
//! linker leaves it out of other programs.

use event::Nanos;
use platform::{Atomic, Lock, Ordering, Platform};
use smallvec::SmallVec;

use super::{JobWay, WayRanks, is_timed_after, mean_of_late};
use crate::hooks::JobMoment;
use crate::store::{Chunks, JobRanks, Key, Label, LabelId, Map, Rank, Slab, Slot, Ticket};
use crate::work::context::Context;
use crate::work::shared::{FrameOrder, Shared};

/// Makes the order of a new job system.
pub(crate) type MakeOrder<P> = fn(&Shared<P>);

/// A job that so many frames of its name were without is forgotten.
const FORGET_AFTER: u64 = 64;

/// See the module.
struct LearnedOrder<P: Platform> {
    /// How many frames in flight are timed. It lets jobs skip the lock.
    timed: P::AtomicU32,
    known: P::Lock<KnownFrames>,
    /// By slot: the ranks of the job that was made there last, packed. A slot has no room for them while the
    /// job waits.
    ranks: Chunks<P, P::AtomicU32>,
}

#[derive(Default)]
struct KnownFrames {
    names: Map<LabelId, NamedFrames>,
    in_flight: Vec<FrameInFlight>,
    /// The frame of each job of a frame in flight, and the job's number in it.
    of_job: Map<Ticket, (u64, u32)>,
    /// Memory for a moment.
    slacks: Vec<Nanos>,
}

/// What is known of the frames of a name.
#[derive(Default)]
struct NamedFrames {
    /// How many have begun.
    begun: u64,
    jobs: Map<JobKey, KnownJob>,
}

/// The label of a job, and how many of that label the frame has made before.
#[derive(Clone, Copy, PartialEq, Eq)]
struct JobKey(LabelId, u32);

impl Key for JobKey {
    fn digest(&self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.1)
    }
}

#[derive(Clone, Copy)]
struct KnownJob {
    /// The mean time of late.
    recent: Nanos,
    way: JobWay,
    ranks: JobRanks,
    /// The last frame of the name that had it.
    frame: u64,
}

/// A frame in flight.
struct FrameInFlight {
    number: u64,
    name: LabelId,
    is_timed: bool,
    /// By label: how many jobs there are so far.
    counts: Map<LabelId, u32>,
    jobs: Vec<FrameJob>,
}

/// A job of a frame in flight.
struct FrameJob {
    key: JobKey,
    job: Ticket,
    /// The numbers of the jobs before it, as far as they are of this frame.
    after: SmallVec<[u32; 4]>,
    begun: Option<Nanos>,
    ended: Nanos,
}

impl KnownFrames {
    fn frame(&mut self, number: u64) -> Option<&mut FrameInFlight> {
        let mut frames = self.in_flight.iter_mut();
        frames.find(|frame| frame.number == number)
    }

    /// Notes a new job of a frame. Returns its ranks.
    fn note(&mut self, number: u64, (label, job): (LabelId, Ticket), after: &[Ticket]) -> JobRanks {
        let of_job = &self.of_job;
        let before = after.iter().filter_map(|before| match of_job.get(before) {
            Some(&(frame, place)) if frame == number => Some(place),
            _ => None,
        });
        let after = before.collect();
        let Some(frame) = self.frame(number) else {
            return JobRanks::NONE; // It is over.
        };
        let count = frame.counts.get_or_insert(label, 0);
        let key = JobKey(label, *count);
        *count += 1;
        let (name, place) = (frame.name, frame.jobs.len() as u32);
        frame.jobs.push(FrameJob {
            key,
            job,
            after,
            begun: None,
            ended: Nanos::ZERO,
        });
        self.of_job.insert(job, (number, place));
        let known = self.names.get(&name).and_then(|named| named.jobs.get(&key));
        known.map_or(JobRanks::NONE, |known| known.ranks)
    }

    /// Notes that a body, or a part of it, begins or has ended.
    fn time(&mut self, job: Ticket, moment: JobMoment, now: Nanos) {
        let Some(&(number, place)) = self.of_job.get(&job) else {
            return;
        };
        let Some(job) = self
            .frame(number)
            .map(|frame| &mut frame.jobs[place as usize])
        else {
            return;
        };
        match moment {
            JobMoment::Begin => _ = job.begun.get_or_insert(now),
            JobMoment::End => job.ended = now,
        }
    }

    /// Learns from a frame that has ended. Returns whether there are new ranks.
    fn learn(&mut self, frame: &FrameInFlight, threads: u64) -> bool {
        for job in &frame.jobs {
            self.of_job.remove(&job.job);
        }
        let Some(named) = self.names.get_mut(&frame.name) else {
            return false;
        };
        let begun = named.begun;
        let mut ways: Vec<JobWay> = frame.jobs.iter().map(|job| named.way(job, begun)).collect();
        if !frame.is_timed {
            return false;
        }
        let behind = successors(&frame.jobs);
        let (order, slacks) = (|| 0..frame.jobs.len() as u32, &mut self.slacks);
        let behind = |job: u32| behind[job as usize].iter().copied();
        let ranks = WayRanks::find(&mut ways, order, behind, slacks, threads);
        for (job, way) in frame.jobs.iter().zip(ways) {
            if let Some(known) = named.jobs.get_mut(&job.key) {
                known.way = way;
                known.ranks = ranks.of(&way);
            }
        }
        named
            .jobs
            .retain(|_, known: &KnownJob| begun - known.frame < FORGET_AFTER);
        true
    }
}

impl NamedFrames {
    /// The way of a job, with what was learnt in its frame.
    fn way(&mut self, job: &FrameJob, frame: u64) -> JobWay {
        let unknown = KnownJob {
            recent: Nanos::ZERO,
            way: JobWay::default(),
            ranks: JobRanks::NONE,
            frame,
        };
        let known = self.jobs.get_or_insert(job.key, unknown);
        known.frame = frame;
        if let Some(begun) = job.begun.filter(|&begun| begun <= job.ended) {
            known.recent = mean_of_late(known.recent, job.ended - begun);
            known.way.takes_turns = true; // It has a body.
            known.way.learn(known.recent);
        }
        known.way
    }
}

/// The jobs that come after each one.
fn successors(jobs: &[FrameJob]) -> Vec<SmallVec<[u32; 4]>> {
    let mut behind = vec![SmallVec::new(); jobs.len()];
    for (number, job) in jobs.iter().enumerate() {
        for &before in &job.after {
            behind[before as usize].push(number as u32);
        }
    }
    behind
}

impl<P: Platform> LearnedOrder<P> {
    /// The ranks of a job of a frame.
    fn ranks_of(&self, job: Ticket) -> JobRanks {
        // Relaxed: acquired with the job.
        JobRanks::unpack(self.ranks.get(job.index()).load(Ordering::Relaxed))
    }
}

impl<P: Platform> FrameOrder<P> for LearnedOrder<P> {
    fn frame_begins(&self, cx: &Context<'_, P>, number: u64, label: &Label) {
        let name = cx.graph().label_number(label);
        let is_timed = self.known.with(|known| {
            let named = known.names.get_or_insert(name, NamedFrames::default());
            let is_timed = is_timed_after(named.begun);
            named.begun += 1;
            known.in_flight.push(FrameInFlight {
                number,
                name,
                is_timed,
                counts: Map::default(),
                jobs: Vec::new(),
            });
            is_timed
        });
        if is_timed {
            // Relaxed: a job that sees it late is not timed.
            self.timed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn frame_ends(&self, cx: &Context<'_, P>, number: u64) {
        let threads = cx.shared.workers.active() as u64 + 1;
        let (is_timed, is_news) = self.known.with(|known| {
            let mut frames = known.in_flight.iter();
            let Some(place) = frames.position(|frame| frame.number == number) else {
                return (false, false);
            };
            let frame = known.in_flight.swap_remove(place);
            (frame.is_timed, known.learn(&frame, threads))
        });
        if is_timed {
            // Relaxed: as above.
            self.timed.fetch_sub(1, Ordering::Relaxed);
        }
        if is_news {
            cx.note_ranks();
        }
    }

    fn note(&self, cx: &Context<'_, P>, frame: u64, job: Ticket, after: &[Ticket]) {
        let slot = cx.shared.slot(job);
        let label = slot.label_number();
        let find = |known: &mut KnownFrames| known.note(frame, (label, job), after);
        let ranks = self.known.with(find);
        let none = || P::AtomicU32::new(JobRanks::NONE.pack());
        self.ranks.ensure(job.index(), none);
        // Relaxed: published with the job.
        let place = self.ranks.get(job.index());
        place.store(ranks.pack(), Ordering::Relaxed);
    }

    fn is_about_to_be_ready(&self, job: Ticket, slot: &Slot<P>) {
        let rank = self.ranks_of(job).own;
        if rank != Rank::NONE {
            // Relaxed: published with the state.
            slot.place.store(rank.as_place(), Ordering::Relaxed);
        }
    }

    fn rank_of_loops(&self, job: Ticket) -> Rank {
        self.ranks_of(job).of_loops
    }

    fn body_moment(&self, cx: &Context<'_, P>, moment: JobMoment, job: Ticket, slot: &Slot<P>) {
        // Relaxed: the flag does not change.
        if slot.flags.load(Ordering::Relaxed) & Slot::<P>::IS_RANKED == 0 {
            return;
        }
        let ranks = self.ranks_of(job);
        cx.own(|own| match moment {
            JobMoment::Begin => {
                let outer = std::mem::replace(&mut own.rank, ranks.of_loops);
                own.ranks_underneath.push(outer);
            }
            JobMoment::End => own.rank = own.ranks_underneath.pop().unwrap_or(Rank::NONE),
        });
        // Relaxed: a frame that begins at this moment is not this job's.
        if self.timed.load(Ordering::Relaxed) > 0 {
            let now = cx.shared.platform.now();
            self.known.with(|known| known.time(job, moment, now));
        }
    }
}

impl<P: Platform> Shared<P> {
    /// From now on the jobs of frames begin in the order of what hangs on them. For a new job system.
    pub(crate) fn learn_order(&self) {
        let threads = self.threads.len() as u32;
        let slots = Slab::<P, Slot<P>>::with_hoards(self.graph.max_jobs, threads);
        let order = LearnedOrder {
            ranks: Chunks::new(slots, slots),
            timed: P::AtomicU32::new(0),
            known: P::Lock::new(KnownFrames::default()),
        };
        _ = self.order.set(Box::new(order));
    }
}
