//! Bundles of kernel events, decoded in parallel if the executor allows it.
//!
//! Decoding is the larger half of reading a file, and each CPU's events can be decoded for themselves. So
//! there are several decoders, each with CPUs of its own, and with tables of its own for repeated names.
//! Bundles wait until all of a piece of the file are there; then each decoder takes its own, in their order.
//! The result does not depend on the threads that do it.
//!
//! The bundles' information about their clocks depends on the order of all bundles, and goes by their
//! numbers. Information about clocks or the machine elsewhere in a file is used when all bundles before it
//! are decoded.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::clocks::ClockId;
use super::ftrace::{Bundle, BundleDecoder};
use super::source::PIECE;
use super::wire::{Fields, Row};
use crate::read::builder::MOST_CPUS;
use crate::{Executor, Loss, Losses, Part};

/// The largest number of decoders. Each has tables that are best in the nearest caches, so there are no more
/// than can be at work: with four for each thread reading took a quarter more CPU time.
const MOST_DECODERS: usize = 64;

/// The size of the part of a file, for each decoder, that is read before bundles are decoded.
const PIECE_EACH: usize = 1 << 20;

/// Below this many bytes the executor is not asked for help: waking takes time, too.
const WORTH_HELP: usize = 128 << 10;

/// The number of the futex call on an x86-64. Every machine counts as one until its kind is known.
const FUTEX: u64 = 202;

/// All kernel events so far.
pub(super) struct Bundles {
    /// A power of two of them: the events of a CPU are with the decoder of the CPU's number, modulo that.
    decoders: Vec<BundleDecoder>,
    /// The number of bundles so far.
    count: u64,
    losses: Losses,
    /// By CPU: the number of events that its buffer had lost when recording began, if that is known, and in
    /// the end.
    overruns: BTreeMap<u64, (Option<u64>, u64)>,
}

/// Bundles that wait to be decoded.
pub(super) struct Waiting<'a> {
    /// By decoder, in the order of the file.
    bundles: Vec<Vec<Bundle<'a>>>,
    bytes: usize,
}

impl Bundles {
    /// No bundles yet, for `width` parts at the same time.
    pub(super) fn new(width: usize) -> Bundles {
        let decoders = width.clamp(1, MOST_DECODERS).next_power_of_two();
        Bundles {
            decoders: (0..decoders)
                .map(|_| BundleDecoder::new(Some(FUTEX)))
                .collect(),
            count: 0,
            losses: Losses::default(),
            overruns: BTreeMap::new(),
        }
    }

    /// The best size of the part of a file that is read before bundles are decoded.
    pub(super) fn piece(&self) -> usize {
        match self.decoders.len() {
            1 => PIECE,
            decoders => decoders * PIECE_EACH,
        }
    }

    /// Room for bundles that wait.
    pub(super) fn waiting<'a>(&self) -> Waiting<'a> {
        Waiting {
            bundles: vec![Vec::new(); self.decoders.len()],
            bytes: 0,
        }
    }

    /// A bundle comes in.
    pub(super) fn wait<'a>(&mut self, message: &'a [u8], waiting: &mut Waiting<'a>) {
        let number = self.count;
        self.count += 1;
        let cpu = self.cpu_of(message);
        let decoder = cpu.unwrap_or(0) as usize % self.decoders.len();
        let bundle = Bundle {
            number,
            cpu,
            message,
        };
        waiting.bundles[decoder].push(bundle);
        waiting.bytes += message.len();
    }

    /// Decodes the waiting bundles. Returns the pairs of times that they have: one on their clock, and one on
    /// the boot clock at the same moment.
    pub(super) fn decode(
        &mut self,
        waiting: &mut Waiting<'_>,
        executor: &dyn Executor,
    ) -> impl Iterator<Item = (ClockId, u64, u64)> + use<> {
        let bytes = std::mem::take(&mut waiting.bytes);
        let mut work: Vec<_> = self.decoders.iter_mut().zip(&mut waiting.bundles).collect();
        work.retain(|(_, bundles)| !bundles.is_empty());
        if bytes < WORTH_HELP || work.len() < 2 {
            for (decoder, bundles) in &mut work {
                decoder.decode(bundles);
            }
        } else {
            // It is best to begin the longest ones first.
            work.sort_by_cached_key(|(_, bundles)| Reverse(size(bundles)));
            for (decoder, bundles) in &mut work {
                decoder.spare.make(size(bundles));
            }
            let parts = work.into_iter();
            executor.run(
                parts
                    .map(|(decoder, bundles)| part(decoder, bundles))
                    .collect(),
            );
        }
        for bundles in &mut waiting.bundles {
            bundles.clear();
        }
        let decoders = self.decoders.iter_mut();
        let mut stamps: Vec<_> = decoders
            .flat_map(|decoder| std::mem::take(&mut decoder.stamps))
            .collect();
        stamps.sort_unstable_by_key(|(number, _)| *number);
        let both = stamps.into_iter();
        both.filter_map(|(_, stamp)| Some((stamp.clock, stamp.there?, stamp.boot?)))
    }

    /// The CPU of a bundle, if there can be one with this number.
    fn cpu_of(&mut self, message: &[u8]) -> Option<u32> {
        let mut fields = Fields::of(message);
        let cpu = fields.find(|(field, _)| *field == 1);
        let cpu = u32::try_from(cpu.map_or(0, |(_, cpu)| cpu.number())).unwrap_or(u32::MAX);
        if cpu < MOST_CPUS {
            return Some(cpu);
        }
        let events = Fields::of(message).filter(|(field, _)| *field == 2).count();
        self.losses.add(Loss::BadFields, events.max(1) as u64);
        None
    }

    /// Learns the machine, as `uname -m` prints it. All bundles before were decoded.
    pub(super) fn machine(&mut self, machine: &[u8]) {
        // `asm/unistd.h` of each.
        let futex = match machine {
            b"x86_64" => Some(FUTEX),
            b"aarch64" | b"riscv64" => Some(98),
            b"i686" | b"i386" | b"armv7l" | b"armv8l" | b"arm" => Some(240),
            _ => None,
        };
        for decoder in &mut self.decoders {
            decoder.futex = futex;
        }
    }

    /// `FtraceStats`: the number of events that the kernel's buffers have lost so far, at the beginning of
    /// the recording and each time that the recorder wrote to the file. `None` if the message is broken.
    pub(super) fn stats(&mut self, message: &[u8]) -> Option<()> {
        const BEGIN: u64 = 1;
        let phase = Row::of(message)?.number(1);
        for (_, cpu) in Fields::of(message).filter(|(field, _)| *field == 2) {
            let row = Row::of(cpu.bytes())?;
            // Overwritten; no room while others were being written; no room.
            let lost = [3, 4, 8].map(|field| row.number(field));
            let lost = lost.into_iter().fold(0, u64::saturating_add);
            let (before, by_now) = self.overruns.entry(row.number(1)).or_default();
            match phase {
                BEGIN => *before = before.or(Some(lost)),
                _ => *by_now = lost.max(*by_now),
            }
        }
        Some(())
    }

    /// The number of events that the kernel's buffers lost during the recording, as far as it is known.
    fn overrun(&self) -> u64 {
        let lost = self.overruns.values();
        let lost = lost.map(|(before, by_now)| by_now.saturating_sub(before.unwrap_or(0)));
        lost.fold(0, u64::saturating_add)
    }

    /// The clocks that events are on, in the order in which bundles first were on them.
    pub(super) fn clocks(&self) -> Vec<ClockId> {
        let all = self.decoders.iter().flat_map(|decoder| &decoder.clocks);
        let mut all: Vec<(ClockId, u64)> = all.copied().collect();
        all.sort_unstable_by_key(|(_, first)| *first);
        all.into_iter().map(|(clock, _)| clock).collect()
    }

    /// The losses.
    pub(super) fn losses(&self) -> Losses {
        let mut losses = self.losses.clone();
        losses.add(Loss::KernelEvents, self.overrun());
        for decoder in &self.decoders {
            losses.add_all(&decoder.losses);
        }
        losses
    }

    /// The decoders, when all is decoded.
    pub(super) fn into_decoders(self) -> Vec<BundleDecoder> {
        self.decoders
    }

    pub(super) fn decoders_mut(&mut self) -> &mut [BundleDecoder] {
        &mut self.decoders
    }
}

fn size(bundles: &[Bundle<'_>]) -> usize {
    bundles.iter().map(|bundle| bundle.message.len()).sum()
}

fn part<'p>(decoder: &'p mut BundleDecoder, bundles: &'p [Bundle<'p>]) -> Part<'p> {
    Box::new(move || decoder.decode(bundles))
}
