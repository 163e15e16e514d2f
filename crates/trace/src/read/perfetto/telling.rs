//! Tells everything to the builder, in the order of its times.
//!
//! With help, two things are done at the same time, a batch of events after the other. One is to tell the
//! builder of the current batch. The other is the work before and behind that: to put the next batch in
//! order, and to move the results of the last one to the other events of the recording, which is the larger
//! half of all memory that is touched for the first time. Each has the data that it changes to itself, so the
//! result does not depend on the threads that do it.

use std::collections::BTreeMap;
use std::mem::swap;

use event::KernelEvent;

use super::ftrace::BundleDecoder;
use super::lists::List;
use super::merge::{Merged, Teller};
use super::raw::KernelFact;
use super::track_events::ReadTrackEvent;
use super::tracks::ReadTracks;
use crate::Executor;
use crate::read::builder::Builder;

/// Events in a batch: few enough to be in a cache still when they are told, and enough that waking a thread
/// for them costs little in comparison.
const BATCH: usize = 4 << 10;

/// Below this many events the executor is not asked for help.
const WORTH_HELP: usize = 2 * BATCH;

/// A kernel event: its CPU, its time, and the fact.
type TimedFact = (u32, u64, KernelFact);

/// All kernel events of decoders, and the largest number of them.
pub(super) struct DecodedEvents {
    merged: Merged,
    count: usize,
}

/// Takes the events out of decoders.
pub(super) fn events(decoders: &mut [BundleDecoder]) -> DecodedEvents {
    let lists = decoders.iter_mut();
    let lists = lists.flat_map(|decoder| std::mem::take(&mut decoder.cpus));
    // The CPUs are in the order of their numbers, whichever decoder had them.
    let lists: BTreeMap<u32, List> = lists.collect();
    DecodedEvents {
        count: lists.values().map(List::len).sum(),
        merged: Merged::new(lists),
    }
}

/// The state while everything is told.
pub(super) struct Telling<'t> {
    builder: &'t mut Builder,
    tracks: &'t mut ReadTracks,
    teller: Teller<'t>,
    /// The programs' events that are not told yet.
    said: &'t [ReadTrackEvent],
    first: Option<u64>,
    end: u64,
}

impl<'t> Telling<'t> {
    pub(super) fn new(
        builder: &'t mut Builder,
        tracks: &'t mut ReadTracks,
        teller: Teller<'t>,
        said: &'t [ReadTrackEvent],
    ) -> Telling<'t> {
        Telling {
            builder,
            tracks,
            teller,
            said,
            first: None,
            end: 0,
        }
    }

    /// Tells everything; at one time events of programs come first. Returns the first time and the last.
    pub(super) fn all(mut self, events: DecodedEvents, executor: &dyn Executor) -> (u64, u64) {
        let DecodedEvents { merged, count } = events;
        // Nearly each becomes one of the recording's events, which need not be moved then as the list grows.
        self.builder.recording().kernel.reserve(count);
        if executor.width() < 2 || count < WORTH_HELP {
            self.events(merged);
        } else {
            self.batches(merged, executor);
        }
        for said in self.said {
            self.first.get_or_insert(said.time);
            let what = said.what;
            self.tracks.tell(self.builder, said.track, said.time, what);
            self.end = said.time;
        }
        (self.first.unwrap_or(0), self.end)
    }

    /// Tells kernel events, and the programs' events until then.
    fn events(&mut self, events: impl Iterator<Item = TimedFact>) {
        for (cpu, time, what) in events {
            while let Some((before, others)) = self.said.split_first()
                && before.time <= time
            {
                self.first.get_or_insert(before.time);
                let what = before.what;
                self.tracks
                    .tell(self.builder, before.track, before.time, what);
                self.said = others;
            }
            self.first.get_or_insert(time);
            self.teller.tell(self.builder, cpu, time, what);
            self.end = time;
        }
    }

    /// The same with help.
    fn batches(&mut self, mut merged: Merged, executor: &dyn Executor) {
        let room = || Vec::<TimedFact>::with_capacity(BATCH);
        let (mut now, mut next) = (room(), room());
        let mut told: Vec<KernelEvent> = Vec::with_capacity(BATCH);
        let mut all = std::mem::replace(
            &mut self.builder.recording().kernel,
            Vec::with_capacity(BATCH),
        );
        next.extend(merged.by_ref().take(BATCH));
        while !next.is_empty() {
            swap(&mut now, &mut next);
            let before_and_behind = || {
                all.append(&mut told);
                next.clear();
                next.extend(merged.by_ref().take(BATCH));
            };
            let current = || self.events(now.iter().copied());
            executor.run(vec![Box::new(current), Box::new(before_and_behind)]);
            swap(&mut self.builder.recording().kernel, &mut told);
        }
        all.append(&mut told);
        self.builder.recording().kernel = all;
    }
}
