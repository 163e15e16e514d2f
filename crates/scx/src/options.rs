//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use event::Nanos;
use policy::ops::waitfor::WaitForConstants;
use policy::ops::{Ops, WaitFor, rustland};

/// Hand this machine's CPUs to one of Paceline's scheduling policies, until Ctrl-C.
///
/// The policies are those of `paceline simulate`; `--policy waitfor --hints` has a thread that waits pay for
/// what it waits for, if its program says what that is. It takes root, and Linux from 6.12 on with sched_ext.
/// Whatever happens to this program, the kernel's own scheduler takes over again.
///
/// Exit codes: 0 it was told to stop, 1 it could not begin or the kernel threw it out, 2 bad usage.
#[derive(Parser)]
#[command(name = "paceline-scx", version, max_term_width = 100)]
pub(crate) struct Options {
    /// Which policy decides
    #[arg(long, value_enum, default_value_t = Policy::Waitfor)]
    pub(crate) policy: Policy,
    /// Hear what programs say about their waits, at the usual place or the one in PACELINE_HINTS
    #[arg(long)]
    pub(crate) hints: bool,
    /// How many processes can be heard at the same time, with --hints [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) pages: Option<u64>,
    /// Print what it does, every so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) stats: Option<u64>,
    /// The longest that a task runs at a time, in microseconds [default: the policy's own]
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(100..=100_000))]
    pub(crate) slice: Option<u64>,
    /// How much CPU time a thread that sleeps saves up at most, in microseconds, under waitfor [default: two
    /// slices, as Linux's fair class has it]
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) credit: Option<u64>,
    /// How the BPF part works: `own`, or as `core` does, which can neither interrupt nor hold tasks back
    #[arg(long, value_enum, default_value_t = Part::Own)]
    pub(crate) bpf: Part,
    /// Whether a task that wakes up while no CPU idles interrupts one [default: as the policy wants it]
    #[arg(long, value_name = "BOOL")]
    pub(crate) kicks: Option<bool>,
    /// Write the first rounds to this file: what the policy was told, and what it decided
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// How many rounds that is [default: 500]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) rounds: Option<u64>,
}

/// The policies.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// scx_rustland 0.0.7, before source 004's pull request
    RustlandPre333,
    /// scx_rustland with it: slices by virtual time
    #[value(name = "rustland-333")]
    Rustland333,
    /// Fair, and a task that waits pays for what it waits for
    Waitfor,
}

/// How the BPF part works.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// It asks when a decision is due, and can interrupt
    Own,
    /// As `scx_rustland_core` has it
    Core,
}

impl Options {
    /// Why the options make no sense together: one of them would do nothing.
    pub(crate) fn misuse(&self) -> Option<&'static str> {
        let is_waitfor = self.policy == Policy::Waitfor;
        let all = [
            (
                self.hints && !self.ops().listens(),
                "--hints: this policy does not listen; take --policy waitfor, or leave --hints out",
            ),
            (
                self.pages.is_some() && !self.hints,
                "--pages: there are pages only with --hints; add it, or leave --pages out",
            ),
            (
                self.credit.is_some() && !is_waitfor,
                "--credit: this policy has none; take --policy waitfor, or leave --credit out",
            ),
            (
                self.kicks.is_some() && self.bpf == Part::Core,
                "--kicks: the core cannot interrupt; take --bpf own, or leave --kicks out",
            ),
            (
                self.rounds.is_some() && self.record.is_none(),
                "--rounds: nothing is recorded; add --record FILE, or leave --rounds out",
            ),
        ];
        let wrong = all.into_iter().find(|(is_wrong, _)| *is_wrong);
        wrong.map(|(_, why)| why)
    }

    /// How many rounds are recorded.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(500) as usize
    }

    /// The policy, with its slice.
    pub(crate) fn ops(&self) -> Box<dyn Ops> {
        let mut constants = rustland::Constants::default();
        constants.slice = self.slice_or(constants.slice);
        let slice = self.slice_or(WaitForConstants::default().slice);
        match self.policy {
            Policy::RustlandPre333 => Box::new(rustland::pre333(constants)),
            Policy::Rustland333 => Box::new(rustland::merged(constants)),
            Policy::Waitfor => {
                let usual = WaitForConstants::of_slice(slice);
                let credit = self.credit.map_or(usual.credit, Nanos::from_micros);
                Box::new(WaitFor::new(WaitForConstants { slice, credit }))
            }
        }
    }

    /// The slice of tasks that the policy does not hear of.
    pub(crate) fn kernel_slice(&self) -> Nanos {
        self.slice_or(match self.policy {
            Policy::Waitfor => WaitForConstants::default().slice,
            _ => rustland::Constants::default().slice,
        })
    }

    /// Only `waitfor` is written for interruptions by wake-ups; rustland's interrupt by themselves.
    pub(crate) fn has_kicks(&self) -> bool {
        self.bpf == Part::Own && self.kicks.unwrap_or(self.policy == Policy::Waitfor)
    }

    fn slice_or(&self, usual: Nanos) -> Nanos {
        self.slice.map_or(usual, Nanos::from_micros)
    }
}
