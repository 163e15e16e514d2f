//! rt-app's files as scenarios.
//!
//! rt-app (<https://github.com/scheduler-tools/rt-app>) runs threads that a JSON file describes; it is the
//! usual tool for comparing schedulers of phones. The format is that of its `doc/tutorial.txt`:
//!
//! | in the file | here |
//! | --- | --- |
//! | `global`: `duration` | the scenario's end |
//! | `default_policy`, a task's `policy`, `priority` | discipline; nice, or a priority (10 if not given) |
//! | `pi_enabled` | all mutexes inherit |
//! | a task's `instance`, `delay`, `cpus`, `loop` | count, start, CPUs, repetition (for ever if not given) |
//! | `phases`, their `loop` | phases, one after the other |
//! | `run` | work, as time on the machine's fastest CPU. rt-app calibrates on CPU 0 by default |
//! | `runtime` | the CPU is kept busy until this much time has passed |
//! | `sleep`, `yield`, `lock`, `unlock`, `barrier` | the same |
//! | `timer` | a timer; a `ref` that begins with "unique" is the thread's own, others are shared |
//! | `wait`, `signal`, `broad`, `sync` | a condition |
//! | `suspend`, `resume` | a condition with the task's name, without a mutex; `resume` wakes all |
//!
//! Lengths are in microseconds, `duration` in seconds. Events come in the order of the file. One kind may
//! come several times, as `run`, `run1`, `run_b`, or under equal keys.
//!
//! Not supported, and an error: `fork`, `mem`, `iorun`; `SCHED_DEADLINE`; clamping, groups and memory nodes;
//! `policy`, `priority` and `cpus` of a phase. Ignored, because they concern rt-app's own output and
//! calibration: the other keys of `global`, and `resources`.
//!
//! The file names no machine and no policy; the scenario says [`MACHINE`] and [`POLICY`].

mod json;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use event::Nanos;

use self::json::Json;
use super::file::{BadScenario, DisciplineName, Forever, Phase, Repeat, Scenario, ThreadPlan};
use super::segments::Segments;
use super::span::Span;
use crate::Perturb;

/// The machine of scenarios whose file names none.
pub const MACHINE: &str = "vm-2";
/// The policy of scenarios whose file names none.
pub const POLICY: &str = "eevdf-6.18";

/// The longest time that is accepted, in microseconds: a day.
const MICROS_MAX: i64 = 86_400_000_000;
/// The priority of FIFO and RR tasks without one.
const REALTIME_PRIORITY: i64 = 10;
/// Keys of `global` that are allowed but not read.
const GLOBAL_ASIDE: [&str; 10] = [
    "calibration",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
];
/// The events that are supported.
const EVENTS: [&str; 14] = [
    "run", "runtime", "sleep", "timer", "lock", "unlock", "wait", "signal", "broad", "sync",
    "suspend", "resume", "yield", "barrier",
];
/// The events that are not supported.
const OTHER_EVENTS: [&str; 3] = ["mem", "iorun", "fork"];

impl Scenario {
    /// Reads a file of rt-app. `name`: the scenario's name.
    ///
    /// # Errors
    /// If it is no JSON, or has unknown or unsupported parts; the text names task and event.
    ///
    /// ```
    /// use paceline_sim::scenario::Scenario;
    ///
    /// let file = r#"{ "global": { "duration": 2 },
    ///                 "tasks": { "video": { "run": 2000, "sleep": 14667 } } }"#;
    /// let scenario = Scenario::from_rt_app("video", file)?;
    /// assert_eq!(scenario.threads[0].phases.len(), 2);
    /// # Ok::<(), paceline_sim::scenario::BadScenario>(())
    /// ```
    pub fn from_rt_app(name: &str, text: &str) -> Result<Scenario, BadScenario> {
        let read = || {
            let scenario = scenario(name, &Json::parse(text)?)?;
            scenario.check()?;
            Ok(scenario)
        };
        read().map_err(|what: String| {
            let words: Vec<&str> = what.split_whitespace().collect();
            BadScenario(format!("rt-app file {name}: {}", words.join(" ")))
        })
    }
}

/// The contents of `global`.
struct Global {
    until: Option<Nanos>,
    policy: DisciplineName,
    inherits: bool,
}

fn scenario(name: &str, file: &Json) -> Result<Scenario, String> {
    let mut global = Global {
        until: None,
        policy: DisciplineName::Fair,
        inherits: false,
    };
    let mut tasks: &[(String, Json)] = &[];
    for (key, value) in object("the file", file)? {
        match key.as_str() {
            "global" => global = read_global(value)?,
            "tasks" => tasks = object("tasks", value)?,
            "resources" => {}
            _ => return Err(format!("{key:?}: give global, tasks and resources")),
        }
    }
    let mut threads = Vec::new();
    for (name, task) in tasks {
        let of = |what: String| format!("task {name:?}: {what}");
        let thread = read_task(name, task, &global).map_err(of)?;
        // A task without instances is there to be forked.
        if thread.count > 0 {
            threads.push(thread);
        }
    }
    let mut mutexes = Vec::new();
    if global.inherits {
        for thread in &threads {
            find_mutexes(&thread.phases, &mut mutexes);
        }
    }
    Ok(Scenario {
        name: name.to_owned(),
        about: format!("{} tasks of an rt-app file", tasks.len()),
        source: Some(name.to_owned()),
        machine: MACHINE.to_owned(),
        policy: POLICY.to_owned(),
        full_speed: false,
        hints: false,
        until: global.until,
        starvation: None,
        threads,
        inheriting_mutexes: mutexes,
        queues: BTreeMap::new(),
        semaphores: BTreeMap::new(),
        quota: None,
        changes: Vec::new(),
        perturb: Perturb::default(),
        program: None,
    })
}

fn read_global(value: &Json) -> Result<Global, String> {
    let mut global = Global {
        until: None,
        policy: DisciplineName::Fair,
        inherits: false,
    };
    for (key, value) in object("global", value)? {
        let of = |what: String| format!("global: {key}: {what}");
        match key.as_str() {
            "duration" => {
                global.until = match integer(value, -1, MICROS_MAX / 1_000_000).map_err(of)? {
                    -1 => None,
                    seconds => Some(Nanos::from_secs(seconds as u64)),
                }
            }
            "default_policy" => global.policy = discipline(value).map_err(of)?,
            "pi_enabled" => {
                global.inherits = match value {
                    Json::Bool(on) => *on,
                    other => return Err(of(format!("{other}: give true or false"))),
                }
            }
            aside if GLOBAL_ASIDE.contains(&aside) => {}
            _ => return Err(of("there is no such setting".into())),
        }
    }
    Ok(global)
}

fn read_task(name: &str, value: &Json, global: &Global) -> Result<ThreadPlan, String> {
    let mut thread = ThreadPlan {
        name: name.to_owned(),
        process: None,
        count: 1,
        discipline: global.policy,
        nice: 0,
        priority: 0,
        slice: None,
        threshold: None,
        percent: None,
        cpus: Vec::new(),
        start: None,
        repeat: Repeat::Word(Forever::Forever),
        phases: Vec::new(),
        segments: Segments::default(),
    };
    let mut priority = None;
    let mut phases = None;
    for (key, value) in object("it", value)? {
        let of = |what: String| format!("{key}: {what}");
        match key.as_str() {
            "instance" => thread.count = integer(value, 0, 4096).map_err(of)? as usize,
            "loop" => thread.repeat = repeat(value).map_err(of)?,
            "delay" => thread.start = Some(micros(value).map_err(of)?),
            "cpus" => thread.cpus = cpus(value).map_err(of)?,
            "policy" => thread.discipline = discipline(value).map_err(of)?,
            "priority" => priority = Some(integer(value, -20, 99).map_err(of)?),
            "phases" => phases = Some(object("phases", value)?),
            _ => add_event(name, key, value, &mut thread.phases)?,
        }
    }
    match (thread.attr().discipline.is_realtime(), priority) {
        (true, given) => thread.priority = given.unwrap_or(REALTIME_PRIORITY).max(0) as u8,
        (false, given) => thread.nice = given.unwrap_or(0) as i8,
    }
    if let Some(phases) = phases {
        if !thread.phases.is_empty() {
            return Err("it has phases, and events outside of them: put all into phases".into());
        }
        for (phase, value) in phases {
            let of = |what: String| format!("phase {phase:?}: {what}");
            let phase = read_phase(name, value).map_err(of)?;
            thread.phases.extend(phase);
        }
    }
    Ok(thread)
}

fn read_phase(task: &str, value: &Json) -> Result<Vec<Phase>, String> {
    let mut times = 1;
    let mut phases = Vec::new();
    for (key, value) in object("it", value)? {
        match key.as_str() {
            "loop" => {
                let of = |what: String| format!("{key}: {what}");
                times = match repeat(value).map_err(of)? {
                    Repeat::Times(times) => times,
                    Repeat::Word(_) => u64::MAX,
                }
            }
            "cpus" | "policy" | "priority" => {
                return Err(format!(
                    "{key}: this is supported for whole tasks only: make it another task"
                ));
            }
            _ => add_event(task, key, value, &mut phases)?,
        }
    }
    match times {
        1 => Ok(phases),
        times => Ok(vec![Phase::Repeat { times, phases }]),
    }
}

/// The event that a key names. The key is the event's name, or begins with it and goes on with a character
/// that is no letter, as in `run2`.
fn event_of(key: &str) -> Option<&'static str> {
    let is_it = |name: &&&str| {
        let rest = key.strip_prefix(**name);
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
    };
    EVENTS.iter().chain(&OTHER_EVENTS).find(is_it).copied()
}

fn add_event(task: &str, key: &str, value: &Json, phases: &mut Vec<Phase>) -> Result<(), String> {
    let of = |what: String| format!("event {key:?}: {what}");
    let Some(event) = event_of(key) else {
        return Err(format!(
            "{key:?} is no event and no property that is supported; events are {}",
            EVENTS.join(", ")
        ));
    };
    let phase = match event {
        "run" => Phase::Work(Span::fixed(micros(value).map_err(of)?)),
        "runtime" => Phase::Spin(Span::fixed(micros(value).map_err(of)?)),
        "sleep" => Phase::Sleep(Span::fixed(micros(value).map_err(of)?)),
        "timer" => timer(value).map_err(of)?,
        "lock" => Phase::Lock(text(value).map_err(of)?),
        "unlock" => Phase::Unlock(text(value).map_err(of)?),
        "wait" => wait(value).map_err(of)?.1,
        "signal" => Phase::Signal(text(value).map_err(of)?),
        "broad" => Phase::Broadcast(text(value).map_err(of)?),
        "sync" => {
            let (mutex, wait) = wait(value).map_err(of)?;
            let Phase::Await { condition, .. } = &wait else {
                unreachable!("a wait awaits");
            };
            let signal = Phase::Signal(condition.clone());
            let lock = Phase::Lock(mutex.clone());
            phases.extend([lock, signal, wait, Phase::Unlock(mutex)]);
            return Ok(());
        }
        "suspend" => Phase::Await {
            condition: suspended(match value {
                Json::Null => task,
                Json::Text(name) if name.is_empty() => task,
                Json::Text(name) => name,
                other => return Err(of(format!("{other}: give the name of a task, or \"\""))),
            }),
            mutex: None,
        },
        "resume" => Phase::Broadcast(suspended(&text(value).map_err(of)?)),
        "yield" => Phase::Yield,
        "barrier" => Phase::Barrier(text(value).map_err(of)?),
        other => {
            return Err(of(format!("{other} is not supported: leave the event out")));
        }
    };
    phases.push(phase);
    Ok(())
}

/// The condition on which a suspended task waits. Names in files do not begin with a blank; a file with such
/// a name has itself to blame.
fn suspended(task: &str) -> String {
    format!(" suspended {task}")
}

fn timer(value: &Json) -> Result<Phase, String> {
    let (mut name, mut period, mut absolute) = (None, None, false);
    for (key, value) in object("it", value)? {
        let of = |what: String| format!("{key}: {what}");
        match key.as_str() {
            "ref" => name = Some(text(value).map_err(of)?),
            "period" => period = Some(micros(value).map_err(of)?),
            "mode" => {
                absolute = match text(value).map_err(of)?.as_str() {
                    "absolute" => true,
                    "relative" => false,
                    _ => return Err(of("give relative or absolute".into())),
                }
            }
            _ => return Err(of("give ref, period and mode".into())),
        }
    }
    let (Some(name), Some(period)) = (name, period) else {
        return Err("give a ref and a period".into());
    };
    Ok(Phase::Timer {
        shared: !name.starts_with("unique"),
        name,
        period: Span::fixed(period),
        absolute,
    })
}

/// The mutex of a wait, and the wait.
fn wait(value: &Json) -> Result<(String, Phase), String> {
    let (mut condition, mut mutex) = (None, None);
    for (key, value) in object("it", value)? {
        let of = |what: String| format!("{key}: {what}");
        match key.as_str() {
            "ref" => condition = Some(text(value).map_err(of)?),
            "mutex" => mutex = Some(text(value).map_err(of)?),
            _ => return Err(of("give ref and mutex".into())),
        }
    }
    let (Some(condition), Some(mutex)) = (condition, mutex) else {
        return Err("give a ref and a mutex".into());
    };
    let wait = Phase::Await {
        condition,
        mutex: Some(mutex.clone()),
    };
    Ok((mutex, wait))
}

fn find_mutexes(phases: &[Phase], found: &mut Vec<String>) {
    for phase in phases {
        match phase {
            Phase::Lock(name) if !found.contains(name) => found.push(name.clone()),
            Phase::Repeat { phases, .. } => find_mutexes(phases, found),
            _ => {}
        }
    }
}

fn object<'a>(what: &str, value: &'a Json) -> Result<&'a [(String, Json)], String> {
    match value {
        Json::Object(entries) => Ok(entries),
        other => Err(format!("{what} is {other}: give an object")),
    }
}

fn text(value: &Json) -> Result<String, String> {
    match value {
        Json::Text(text) if !text.is_empty() => Ok(text.clone()),
        other => Err(format!("{other}: give a name")),
    }
}

fn integer(value: &Json, least: i64, most: i64) -> Result<i64, String> {
    match value {
        Json::Integer(number) if (least..=most).contains(number) => Ok(*number),
        other => Err(format!(
            "{other}: give a whole number from {least} to {most}"
        )),
    }
}

fn micros(value: &Json) -> Result<Nanos, String> {
    integer(value, 0, MICROS_MAX).map(|micros| Nanos(micros as u64 * 1_000))
}

fn repeat(value: &Json) -> Result<Repeat, String> {
    Ok(match integer(value, -1, i64::MAX)? {
        -1 => Repeat::Word(Forever::Forever),
        times => Repeat::Times(times as u64),
    })
}

fn cpus(value: &Json) -> Result<Vec<u32>, String> {
    let Json::List(list) = value else {
        return Err(format!("{value}: give a list of CPUs"));
    };
    let cpu = |value: &Json| integer(value, 0, 4095).map(|cpu| cpu as u32);
    list.iter().map(cpu).collect()
}

fn discipline(value: &Json) -> Result<DisciplineName, String> {
    Ok(match text(value)?.as_str() {
        "SCHED_OTHER" => DisciplineName::Fair,
        "SCHED_BATCH" => DisciplineName::Batch,
        "SCHED_IDLE" => DisciplineName::Idle,
        "SCHED_FIFO" => DisciplineName::Fifo,
        "SCHED_RR" => DisciplineName::Rr,
        _ => {
            return Err(format!(
                "{value}: give SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO or SCHED_RR"
            ));
        }
    })
}
