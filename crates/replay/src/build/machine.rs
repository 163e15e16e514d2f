//! The machine that a recording was made on, as far as it is known, and its kernel's policy.

use std::collections::BTreeMap;
use std::fmt::Write;

use event::Nanos;
use sim::Machine;
use sim::machine::LineCosts;
use sim::scenario::Exactly;
use trace::timeline::Timeline;

use super::options::{BuildOptions, Unplayable};

/// The time between two ticks, where nothing is known.
const TICK: Nanos = Nanos::from_millis(4);
/// The largest machine.
const CPUS_MAX: u32 = 1024;

/// A machine without the costs that programs pay by themselves: they are part of the work in a recording.
pub(super) fn without_programs_costs(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    let kernel = &mut machine.kernel;
    for cost in [
        &mut kernel.syscall,
        &mut kernel.yields,
        &mut kernel.message,
        &mut kernel.wake,
        &mut kernel.ipi_send,
        &mut kernel.clock,
    ] {
        *cost = Nanos::ZERO;
    }
    machine.lines = LineCosts::default();
    machine.between.clear();
    machine
}

/// The machine of a recording, and its file.
pub(super) fn recorded(
    timeline: &Timeline,
    options: &BuildOptions,
    assumed: &mut Vec<String>,
) -> Result<(Machine, String), Unplayable> {
    let cpus = timeline.cpus();
    let count = cpus.last().map_or(1, |cpu| cpu.0.saturating_add(1));
    if count > CPUS_MAX {
        return Err(Unplayable(format!(
            "the recording names CPU {}; a replay takes machines of at most {CPUS_MAX}",
            count - 1
        )));
    }
    let mut classes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for cpu in 0..count {
        let capacity = timeline.capacity(event::Cpu(cpu)).unwrap_or(0);
        classes.entry(capacity).or_default().push(cpu);
    }
    say_classes(timeline, &classes, assumed);
    assumed.push("each CPU has the speed that it had in the recording, whatever the load".into());
    let tick = options.tick.unwrap_or(TICK);
    if options.tick.is_none() {
        assumed.push(format!("the kernel's tick comes every {}", Exactly(tick)));
    }
    let file = file(&classes, tick);
    let machine = Machine::from_toml("the recorded machine", &file)
        .map_err(|error| Unplayable(error.to_string()))?;
    Ok((machine, file))
}

fn say_classes(timeline: &Timeline, classes: &BTreeMap<u32, Vec<u32>>, assumed: &mut Vec<String>) {
    let most = classes.keys().copied().max().unwrap_or(0);
    if classes.len() > 1 && !timeline.has_capacities() {
        assumed.push(
            "CPUs are as fast as their highest frequencies say; --capacity says better".into(),
        );
    } else if most == 0 {
        assumed.push("all CPUs are equally fast; --capacity says better".into());
    }
}

/// The file of a machine with these CPUs by their capacities.
fn file(classes: &BTreeMap<u32, Vec<u32>>, tick: Nanos) -> String {
    let cpus: usize = classes.values().map(Vec::len).sum();
    let mut file = format!(
        "# Made of a recording by `paceline diagnose --program`.\n\
         name  = \"recorded\"\n\
         about = \"The machine of a recording, as far as it is known\"\n\n\
         [sources]\n\
         recording = \"the recording\"\n\n\
         [layout]\n\
         caches = [[\"0-{last}\"], \"assumed\"]\n\
         nodes  = [[\"0-{last}\"], \"assumed\"]\n\n\
         [kernel]\n\
         tick        = [\"{}\", \"assumed\"]\n\
         placement   = [\"mainline\", \"assumed\"]\n",
        Exactly(tick),
        last = cpus - 1,
    );
    for cost in [
        "syscall",
        "yields",
        "switch",
        "wake",
        "ipi-send",
        "ipi-deliver",
        "tick-cost",
        "migrate",
        "clock",
        "message",
    ] {
        let _ = writeln!(
            file,
            "{cost:11} = [\"0 ns\", \"assumed: in the recording it is part of what threads ran\"]"
        );
    }
    file.push_str(
        "\n[lines]\nhit   = [\"0 ns\", \"assumed: as above\"]\n\
         rmw   = [\"0 ns\", \"assumed: as above\"]\n\
         core  = [\"0 ns\", \"assumed: as above\"]\n\
         cache = [\"0 ns\", \"assumed: as above\"]\n\
         node  = [\"0 ns\", \"assumed: as above\"]\n",
    );
    add_clusters(&mut file, classes);
    file
}

fn add_clusters(file: &mut String, classes: &BTreeMap<u32, Vec<u32>>) {
    let most = classes.keys().copied().max().unwrap_or(0);
    for (capacity, cpus) in classes {
        let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let share = match (most, capacity) {
            (0, _) | (_, 0) => 1024,
            _ => (u64::from(*capacity) * 1024 / u64::from(most)).max(1),
        };
        let _ = write!(
            file,
            "\n[[cluster]]\n\
             name     = \"capacity-{share}\"\n\
             cpus     = [\"{}\", \"recording\"]\n\
             capacity = [{share}, \"assumed\"]\n\
             points   = [\"1 GHz\", \"assumed: it stands for the frequency it had\"]\n\
             governor = [\"fixed\", \"assumed\"]\n\
             fixed-at = [\"1 GHz\", \"assumed\"]\n\n\
             [[cluster.idle]]\n\
             name      = \"idle\"\n\
             residency = [\"0 ns\", \"assumed\"]\n\
             exit      = [\"0 ns\", \"assumed: wake-ups say how late they are\"]\n\
             power     = [\"0 W\", \"assumed\"]\n",
            list.join(","),
        );
    }
}

/// The policy of the recording's kernel, by its release.
pub(super) fn policy(timeline: &Timeline, assumed: &mut Vec<String>) -> String {
    let release = timeline.recording().origin.kernel.clone();
    let version = release.as_deref().and_then(|release| {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let major: u32 = numbers.next()?.parse().ok()?;
        let minor: u32 = numbers.next()?.parse().ok()?;
        Some((major, minor))
    });
    let policy = match version {
        Some((major, minor)) if (major, minor) < (6, 6) => "cfs-4.12",
        Some((6, 6..=11)) => "eevdf-6.6",
        _ => "eevdf-6.18",
    };
    assumed.push(match (&release, version) {
        (Some(release), Some(_)) => {
            format!("the kernel, {release}, schedules as {policy} does; --policy says better")
        }
        _ => format!("the kernel schedules as {policy} does; --policy says better"),
    });
    policy.to_owned()
}
