//! The end of a file: all times on one clock, all events in one order, and everything to the builder.

use event::Cpu;

use super::PerfettoFile;
use super::bundles::Bundles;
use super::clocks::{BOOT, ClockId, Clocks, MONOTONIC};
use super::merge::Teller;
use super::telling::{Telling, events};
use super::track_events::ReadTrackEvent;
use super::tracks::NOBODY;
use crate::layout::Layout;
use crate::{CpuFacts, Loss};

impl PerfettoFile<'_> {
    pub(super) fn finish(mut self) {
        // Threads get their numbers in the order in which they are first mentioned.
        self.told.introduce(self.builder);
        let no_processes = self.told.no_processes();
        for named in &mut self.facts.people {
            if no_processes.contains(&named.pid) {
                named.pid = 0;
            }
            named.tell(self.builder);
        }
        let layout = match &self.facts.release {
            Some(release) => {
                self.builder.set_kernel(release);
                Layout::of(release)
            }
            None => Layout::Unknown,
        };
        let others = self.frames.clocks();
        let base = base(&self.clocks, &self.bundles.clocks(), &self.said, others);
        self.builder.set_clock(match base {
            BOOT => crate::Clock::Boot,
            MONOTONIC => crate::Clock::Monotonic,
            other => crate::Clock::Other(other.to_string()),
        });
        let mut lost = convert_events(&mut self.bundles, &self.clocks, base);
        lost += convert_said(&mut self.said, &self.clocks, base);
        self.builder.lose(Loss::BadFields, lost);
        // Those of one track come from one sequence, and so in their order.
        if !self.said.is_sorted_by_key(|said| said.time) {
            self.said.sort_by_key(|said| said.time);
        }
        for (loss, count) in self.bundles.losses().iter() {
            self.builder.lose(loss, count);
        }
        self.builder.keep_heap();
        let mut decoders = self.bundles.into_decoders();
        let events = events(&mut decoders);
        let telling = Telling::new(
            self.builder,
            &mut self.tracks,
            Teller::new(&decoders, layout),
            &self.said,
        );
        let (first, end) = telling.all(events, self.executor);
        self.tracks.finish(self.builder, end);
        let clocks = &self.clocks;
        let to_base = |(time, clock)| convert(clocks, base, clock, time);
        self.frames.tell(self.builder, to_base, first);
        for (cpu, (capacity, max_khz)) in self.facts.cpus {
            self.builder.cpu_facts(CpuFacts {
                cpu: Cpu(cpu),
                capacity,
                max_khz,
            });
        }
        for (pid, mut counter) in std::mem::take(&mut self.tracks.values) {
            counter.process = (pid != 0).then(|| self.builder.process(pid));
            self.builder.recording().counters.push(counter);
        }
        self.builder
            .recording()
            .annotations
            .append(&mut self.tracks.notes);
        self.builder.no_thread(NOBODY, "trace");
        self.told.tell(self.builder);
    }
}

/// The clock that all times are converted to: the boot clock, if any time is on it or can be converted to it;
/// else the first clock in the file.
fn base(
    clocks: &Clocks,
    of_bundles: &[ClockId],
    said: &[ReadTrackEvent],
    others: impl Iterator<Item = ClockId>,
) -> ClockId {
    let mut all = of_bundles
        .iter()
        .copied()
        .chain(said.iter().map(|said| said.clock))
        .chain(others);
    let mut first = None;
    let mut latest = None;
    let has_boot = all.any(|clock| {
        first = first.or(Some(clock));
        let is_known = latest != Some(clock) && clocks.knows(clock);
        latest = Some(clock);
        is_known
    });
    match (has_boot, first) {
        (false, Some(first)) => first,
        _ => BOOT,
    }
}

fn convert(clocks: &Clocks, base: ClockId, clock: ClockId, time: u64) -> Option<u64> {
    if clock == base {
        Some(time)
    } else {
        clocks.boot(clock, time)
    }
}

/// Converts kernel events to one clock. Returns the number of those that could not be.
fn convert_events(bundles: &mut Bundles, clocks: &Clocks, base: ClockId) -> u64 {
    let mut lost = 0;
    for decoder in bundles.decoders_mut() {
        if decoder.clocks.iter().all(|(clock, _)| *clock == base) {
            continue;
        }
        for list in decoder.cpus.values_mut() {
            lost += list.convert(|time, clock| {
                let (clock, _) = decoder.clocks[usize::from(clock)];
                convert(clocks, base, clock, time)
            });
        }
    }
    lost
}

/// Converts track events to one clock.
fn convert_said(said: &mut Vec<ReadTrackEvent>, clocks: &Clocks, base: ClockId) -> u64 {
    let before = said.len();
    said.retain_mut(|said| {
        let time = convert(clocks, base, said.clock, said.time);
        said.time = time.unwrap_or(0);
        time.is_some()
    });
    (before - said.len()) as u64
}
