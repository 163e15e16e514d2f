//! The options of `paceline diagnose`.

use std::path::PathBuf;

use clap::Args;
use event::Nanos;
use replay::Change;

use super::{capacity, change, moment};
use crate::commands::values;

/// Explain the waits and frames in a recorded trace: what held each of them up
///
/// Reads text of ftrace, atrace and systrace (HTML too), `trace-cmd report`,
/// `perf sched script`, Perfetto's protobuf and Chrome's JSON, each packed with
/// gzip or not.
///
/// Explains the waits and frames of Paceline's job system, late frames of
/// Android's frame timeline, and slices whose names say that they are frames or
/// waits. If there are none, it explains the sleeps that another thread ended, or
/// where all threads mostly sleep, their turns: from a wake-up until there is
/// nothing to do. --thread, --process, --slice, --from and --to choose.
///
/// Examples:
///   paceline diagnose trace.txt.gz
///   paceline diagnose trace.pftrace --thread main --report waits.html
///   paceline diagnose trace.pftrace --process '*launcher*' --from +1.5 --to +2
///   paceline diagnose after.pftrace --against before.pftrace
///   paceline diagnose trace.txt.gz --what-if inherit --what-if 'nice:hog=19'
#[derive(Args)]
#[command(after_long_help = JSON)]
#[command(verbatim_doc_comment)]
pub(crate) struct DiagnoseArguments {
    /// The trace to read
    #[arg(value_name = "TRACE")]
    pub(super) trace: PathBuf,
    /// Only the waits of threads with this name or number; a pattern, such as 'Binder:*'; may be repeated
    ///
    /// In a pattern * stands for any text, ? for a character, `[ab]` for one of these. Quote it, since shells
    /// have patterns, too.
    #[arg(long, value_name = "NAME|TID")]
    pub(super) thread: Vec<String>,
    /// Only the threads of processes with this name, pattern or number; may be repeated
    #[arg(long, value_name = "NAME|PID")]
    pub(super) process: Vec<String>,
    /// Only what lasts beyond this time: seconds on the trace's clock, as the output has them, or since its
    /// beginning: +0.5
    #[arg(long, value_name = "SECONDS", value_parser = moment::read, allow_hyphen_values = true)]
    pub(super) from: Option<moment::Moment>,
    /// Only what begins before this time; totals of threads are those between --from and --to
    #[arg(long, value_name = "SECONDS", value_parser = moment::read, allow_hyphen_values = true)]
    pub(super) to: Option<moment::Moment>,
    /// Only the slices with this text in their names; may be repeated
    ///
    /// Frames and awaited jobs of Paceline's job system have names, too: --slice 'frame 73'.
    #[arg(long, value_name = "TEXT")]
    pub(super) slice: Vec<String>,
    /// Take slices with this text in their names for waits, also where the thread runs: it spins
    #[arg(long, value_name = "TEXT")]
    pub(super) busy: Vec<String>,
    /// How fast CPUs are, the fastest 1024: for traces without their capacities
    #[arg(long, value_name = "0-3=446,4-7=1024", value_parser = capacity::read)]
    pub(super) capacity: Option<capacity::Capacities>,
    /// The most waits that are explained; else 1000, or 200 if all of them are sleeps or turns
    #[arg(long, value_name = "N", value_parser = values::waits, allow_negative_numbers = true)]
    pub(super) waits: Option<u64>,
    /// Write the trace again with the findings on top, for ui.perfetto.dev
    ///
    /// A Perfetto trace stays as it is, byte for byte, with the findings behind it; other formats become one.
    #[arg(long, value_name = "F.pftrace")]
    pub(super) annotate: Option<PathBuf>,
    /// Write a page for a browser: the waits as pictures, over time, and by their causes
    ///
    /// With --against: what changed, and the waits of both traces beside each other.
    /// One file that holds all it shows, so that it can be kept, sent and opened offline.
    #[arg(long, value_name = "F.html")]
    pub(super) report: Option<PathBuf>,
    /// Compare with another trace, of before a change: which causes grew from that to this one
    ///
    /// Waits of one name, 8 or more in both traces, are compared by the means of their lengths and causes.
    /// One grew if that is beyond the spread within each trace. Then the exit code is 1, else 0.
    #[arg(long, value_name = "TRACE", conflicts_with = "annotate")]
    pub(super) against: Option<PathBuf>,
    /// Run the recording again with a change, and say how long the waits would have been; may be repeated
    ///
    /// First it is run as it was: where that is more than 10 % off, there is no answer. See WHAT IF below.
    #[arg(long, value_name = "CHANGE", value_parser = change::read)]
    #[arg(conflicts_with_all = ["against", "report", "annotate"])]
    pub(super) what_if: Vec<Change>,
    /// As --what-if, with each remedy that is named and can be tried; the one with the most gain comes first
    #[arg(long, conflicts_with_all = ["against", "report", "annotate"])]
    pub(super) try_remedies: bool,
    /// Write the recording as a program that `paceline simulate` runs, with its machine beside it
    #[arg(long, value_name = "F.toml", conflicts_with_all = ["against", "report", "annotate"])]
    pub(super) program: Option<PathBuf>,
    /// The kernel's policy in replays; else what its release suggests: `paceline simulate --policies`
    #[arg(long, value_name = "P")]
    pub(super) policy: Option<String>,
    /// The machine that a simulated recording was made on; then its replay is exact
    #[arg(long, value_name = "M")]
    pub(super) machine: Option<String>,
    /// The time between two ticks of the kernel in replays, such as 4ms [default: 4 ms]
    #[arg(long, value_name = "TIME", value_parser = change::length)]
    pub(super) tick: Option<Nanos>,
    /// How many times each replay is run, with other delays of the kernel's ticks
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) seeds: u64,
    /// Write one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// What changes there are and the keys of `--json`, at the end of the help.
const JSON: &str = "\
WHAT IF (--what-if CHANGE), one or several with \" and \" between them. T is a
thread's name, number or pattern, as for --thread:
  inherit             all locks lend their waiters' priorities to their owners
  inherit:TEXT        so do waits in slices with this text
  hand-over           locks go from their owners to threads that wait for them
  hand-over:TEXT      so do those that threads want in slices with this text
  nice:T=N            the niceness of threads, -20 to 19
  fifo:T=N            SCHED_FIFO with this priority, 1 to 99
  rr:T=N              SCHED_RR with this priority
  fair:T              an ordinary thread
  batch:T             SCHED_BATCH
  idle:T              SCHED_IDLE
  slice:T=3 ms        the slice that threads ask for
  mask:T=0-3,6        the CPUs that threads may use
  without:T           what threads do takes no time
  without-process:P   the same of all threads of a process
  park:T              busy waits sleep instead
  work:T=50%          the work of threads takes this part of its time
  earlier:T=1 ms      timers wake threads so much earlier
  cut:TEXT=N          slices with this text are cut in N, with jobs in between
  quota:P=150%        the CPU time of a process, or of T,T, in 100 ms
  quota:P=none        a process has no quota any more
  cpus=N              the number of CPUs
  capacity:0-3=1024   how fast CPUs are, the fastest 1024
  policy=NAME         the kernel's policy: paceline simulate --policies

JSON (--json), one object; times are the trace's:
  format, clock, start_ns, end_ns
  kernel              its release, or null
  cpus                how many
  threads[]{name, tid, process, running_ns, runnable_ns, preempted_ns,
            sleeping_ns, blocked_ns, other_ns}
                      the threads that were chosen, with their times between
                      from_ns and to_ns, which sum to that; preempted is a part
                      of runnable, other: not known, or there was no such thread
                      yet, or any more. Without scheduler events there are no
                      times
  from_ns, to_ns      what --from and --to chose; else all
  version             2; 1 had names where 2 has positions in who
  who[]{who, thread, tid, process}
                      threads, each once; and what else can have a CPU: idle,
                      offline, unknown, others (several, summed up). Elsewhere
                      who, waiter, holder and runner are positions in it
  waits[]{thread, tid, process, name, kind, start_ns, duration_ns, late_ns,
          preemptions,
          causes[]{kind, who, within, job, ns, by[]{who, ns}, beside_idle_ns,
                   cpu, idle_state, function, confidence, count},
          sum_ns}
                      worst first, at most 1000, of sleeps or turns 200
                      (--waits); kind: job, frame, slice, turn or sleep;
                      preemptions: how often the thread lost its CPU in it,
                      null without scheduler events
  waits_omitted
  groups[]{name, process, kind, count, p50, p90, max, slow, others,
           slow_longer_ns,
           in_common[]{kind, thread, function, within, more_ns,
                       slow{waits, mean_ns}, others{waits, mean_ns}}}
                      8 waits or more of one name (* for its numbers), with the
                      lengths of all of them. in_common: what the slowest
                      quarter of those that were explained has more of than the
                      others, on average; waits: in how many it is a twentieth
                      of p50, or more. thread: itself, or a name; wake_latency
                      counts as preempted
  inversions[]{kind, waiter, holder, runner, by[]{who, ns}, beside_idle_ns,
               wait, start_ns, ns, priorities{waiter, holder, runner},
               confidence, remedies[],
               gains[]{remedy, change, replayed_ns, predicted_ns,
                       predicted_min_ns, predicted_max_ns, verdict}}
                      wait: its position in waits; gains: those of remedies that
                      a replay can play, for this wait, medians of 3 draws and
                      the least and most of them; null: it replays badly.
                      verdict: gain, no_gain, worse, unclear (the draws
                      disagree) or beyond (more is gained than the inversion
                      took: it changes something else, too)
  inversions_omitted
  least_share         mostly 0. So that 10 000 waits fit in 5 MB: what is a
                      smaller part of its wait is summed up, causes as one of
                      kind rest (count: of how many), shares as others;
                      inversions are left out
  changes[]{text, waits, replayed_ns, predicted_ns, predicted_min_ns,
            predicted_max_ns, verdict, longest_loss{wait, ns},
            less_cpu_time[]{thread, ns}}
                      what remedies would be worth by replays, the one with the
                      most gain first; text: as --what-if takes it; waits: the
                      long waits that replay well, with their lengths as they
                      were and with the change; longest_loss: if it is more than
                      1 %. None where replays would take too long, or less than
                      a quarter of the long waits replays well
  late_ns             of a late frame: by how much; or null
  by[]                what had the CPU in whose queue the thread was
  losses{}
  limits[]            what the trace cannot know
  annotated, report   the files, or null
With --against:
  trace, against, report, method
  compared, grew, shrank
                      how many lengths and causes
  not_compared        names of either trace without a match in the other
  groups[]{name, process, kind, count, p50_ns,
           changes[]{factor{kind, thread, function, within}, mean_ns, change_ns,
                     interval_ns, verdict}}
                      pairs are of this trace and of the other; factor: null for
                      the length, which is first; verdict: grew, shrank or same
With --what-if:
  trace, program, policy, cpus, seeds, assumed[]
  replay{long_waits, within_10_percent, share_error}
                      as it was; share_error: the part of the CPU time that went
                      to other threads
  waits[]{thread, tid, name, start_ns, recorded_ns,
          replayed_ns{median, min, max}, error, refused,
          difference{kind, thread, recorded_ns, replayed_ns}}
                      error: of the median, as a part of recorded_ns; refused:
                      why there is no answer, or null; difference: what differs
                      most
  what_if[]{text, waits[]{wait, predicted_ns{median, min, max}, gain_ns},
            groups[]{thread, name, count, mean{recorded_ns, replayed_ns,
                     predicted_ns, error, refused}, median{…}},
            less_cpu_time[]{thread, ns}}
                      wait: its position in waits; predicted_ns: null if it does
                      not end; groups: 8 waits or more of one name; mean: null
                      if many do not end. Exit code 1: nothing has an answer
Of causes and inversions these are left out if there is nothing to tell:
  who                 the thread is not known
  within              the slices in which most of it passed
  beside_idle_ns      for how long another CPU was idle that it may use
  cpu, idle_state     of idle_exit: the CPU, and the state that it left
  function            of the kernel, in which the thread slept
  confidence          known, if it is left out";
