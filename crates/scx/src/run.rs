//! From the beginning to the end: load, decide, tell, unload.

use std::io::Write;
use std::mem::MaybeUninit;

use event::Nanos;
use paceline_scx::{Adapter, Core as _};
use policy::ops::{Ops, Recorded};

use crate::hints::Hints;
use crate::kernel::Loaded;
use crate::machine::{self, SYSTEM};
use crate::options::{Options, Part};

/// Is in charge until it is told to stop.
///
/// # Errors
/// In one line: why it could not begin, or why the kernel threw it out.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    machine::check(SYSTEM.as_ref())?;
    let capacities = machine::capacities();
    let mut policy = options.ops();
    // Before the scheduler is loaded: after that the process can map no memory and start none.
    let pages = options.pages.map(|pages| pages as usize);
    let hints = options.hints.then(|| Hints::start(pages));
    let mut hints = hints.transpose()?;
    let record = options.record.as_deref();
    let mut record = record.map(machine::record_file).transpose()?;
    let mut object = MaybeUninit::uninit();
    let loaded = Loaded::load(&mut object, options, &policy.name().replace('-', "_"))?;
    let mut adapter = Adapter::new(loaded, capacities);
    println!("{}", greeting(options, policy.name(), hints.as_ref()));
    let recorded = match &mut record {
        None => {
            decide(options, &mut adapter, policy.as_mut(), hints.as_mut());
            Ok(())
        }
        Some((file, path)) => {
            let mut policy = Recorded::new(policy, options.rounds());
            decide(options, &mut adapter, &mut policy, hints.as_mut());
            let written = file.write_all(policy.take().as_ref());
            written.map_err(|error| format!("cannot write {}: {error}", path.display()))
        }
    };
    let ended = adapter.core().unload();
    println!("{}", stats(&mut adapter));
    if let Some(hints) = &hints {
        println!(
            "paceline-scx: of the last hints passed over: {}",
            hints.skipped()
        );
    }
    ended.map_err(|why| {
        format!("the kernel threw the scheduler out, and its own one is in charge again: {why}")
    })?;
    println!("paceline-scx: stopped; the kernel's own scheduler is in charge again");
    recorded
}

fn decide(
    options: &Options,
    adapter: &mut Adapter<Loaded<'_>>,
    policy: &mut dyn Ops,
    mut hints: Option<&mut Hints>,
) {
    let period = options.stats.map(Nanos::from_secs);
    let mut told = adapter.core().now();
    while !adapter.core().is_over() {
        let now = adapter.core().now();
        let statements = hints.as_mut().map_or(&[][..], |hints| hints.read(now));
        let held = adapter.round(policy, statements);
        adapter.core().rest(held);
        let now = adapter.core().now();
        if period.is_some_and(|period| now - told >= period) {
            told = now;
            println!("{}", stats(adapter));
        }
    }
}

fn greeting(options: &Options, name: &str, hints: Option<&Hints>) -> String {
    let how = match (options.bpf, options.has_kicks()) {
        (Part::Core, _) => "the core's BPF part",
        (Part::Own, false) => "no interruptions by wake-ups",
        (Part::Own, true) => "wake-ups interrupt",
    };
    let heard = match hints {
        Some(hints) => format!("; hints are heard at {}", hints.path().display()),
        None => String::new(),
    };
    format!("paceline-scx: {name} is scheduling ({how}{heard}); Ctrl-C ends it")
}

fn stats(adapter: &mut Adapter<Loaded<'_>>) -> String {
    let (ours, threads) = (adapter.counts(), adapter.threads().len());
    let kernel = adapter.core().counts();
    format!(
        "paceline-scx: rounds {} (and {} empty), messages {}, dispatched {}, waits stated {}, \
         threads {threads}; kernel: placed {} by us and {} by itself, cancelled {}, bounced {}, \
         congested {}, kicks {}, preempts {}",
        ours.rounds,
        ours.empty,
        ours.messages,
        ours.dispatched,
        ours.waits,
        kernel.by_process,
        kernel.by_kernel,
        kernel.cancelled,
        kernel.bounced,
        kernel.congested,
        kernel.kicks,
        kernel.preempts
    )
}
