//! From the beginning to the end: load, decide, tell, unload.

use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use event::Nanos;
use paceline_scx::{Adapter, Core as _};
use policy::ops::{Ops, Recorded};

use crate::hints::Hints;
use crate::kernel::Loaded;
use crate::options::{Options, Part};

/// The kernel's folder about sched_ext.
const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// Is in charge until it is told to stop.
///
/// # Errors
/// In one line: why it could not begin, or why the kernel threw it out.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    check_machine()?;
    let capacities = capacities();
    let mut policy = options.ops();
    // Before the scheduler is loaded: after that the process can map no memory and start none.
    let mut hints = options.hints.then(Hints::start).transpose()?;
    let mut object = MaybeUninit::uninit();
    let loaded = Loaded::load(&mut object, options, &policy.name().replace('-', "_"))?;
    let mut adapter = Adapter::new(loaded, capacities);
    println!("{}", greeting(options, policy.name(), hints.as_ref()));
    let recorded = match &options.record {
        None => {
            decide(options, &mut adapter, policy.as_mut(), hints.as_mut());
            Ok(())
        }
        Some(path) => {
            let mut policy = Recorded::new(policy, options.rounds as usize);
            decide(options, &mut adapter, &mut policy, hints.as_mut());
            let written = fs::write(path, policy.take());
            written.map_err(|error| format!("cannot write {}: {error}", path.display()))
        }
    };
    let ended = adapter.core().unload();
    println!("{}", stats(&mut adapter));
    if let Some(hints) = &hints {
        let it = hints.skipped();
        println!(
            "paceline-scx: of the last hints passed over: {} being written, {} of other processes, \
             {} malformed, {} without a slot",
            it.changing, it.foreign, it.malformed, it.refused
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

fn check_machine() -> Result<(), String> {
    if !Path::new(SCHED_EXT).exists() {
        return Err(format!(
            "this kernel has no sched_ext (there is no {SCHED_EXT}); it takes Linux from 6.12 on, built with \
             CONFIG_SCHED_CLASS_EXT"
        ));
    }
    // SAFETY: the call takes nothing and always succeeds.
    if unsafe { libc::geteuid() } != 0 {
        return Err("loading a scheduler takes root; try it with sudo".to_owned());
    }
    let state = fs::read_to_string(Path::new(SCHED_EXT).join("state")).unwrap_or_default();
    if state.trim() == "enabled" {
        let name = fs::read_to_string(Path::new(SCHED_EXT).join("root/ops")).unwrap_or_default();
        return Err(format!(
            "another scheduler is loaded: {}; stop it first",
            name.trim()
        ));
    }
    Ok(())
}

/// How fast each CPU can be, as the kernel says; where it says nothing they are alike.
fn capacities() -> Vec<u32> {
    let count = fs::read_to_string("/sys/devices/system/cpu/possible").ok();
    let last = count.and_then(|text| text.trim().rsplit(['-', ',']).next()?.parse::<u32>().ok());
    let capacity = |cpu: u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        let text = fs::read_to_string(path).ok()?;
        text.trim().parse().ok()
    };
    let all = 0..=last.unwrap_or(0);
    all.map(|cpu| capacity(cpu).unwrap_or(1024)).collect()
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
