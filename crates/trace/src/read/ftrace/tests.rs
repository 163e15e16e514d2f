//! Tests of text: each form of each event, and that written events are read back.

use event::{Address, Cpu, FutexCall, KernelEvent, KernelEventKind, Left, Nanos, Task};
use proptest::prelude::*;

use super::read_text;
use crate::read::builder::Builder;
use crate::{Loss, Recording};

fn recording(text: &str) -> Recording {
    let mut builder = Builder::new("test");
    read_text(&mut builder, text.as_bytes());
    builder.finish()
}

/// The events of one line, of thread "me" with tid 1 (task 0) on CPU 2.
fn one(event: &str) -> (Vec<KernelEventKind>, Recording) {
    let found = recording(&format!("    me-1     [002] d..2.  5.000001: {event}\n"));
    (found.kernel.iter().map(|event| event.what).collect(), found)
}

fn switch(prev: Option<u32>, state: Left, next: Option<u32>) -> KernelEventKind {
    KernelEventKind::Switch {
        prev: prev.map(Task),
        state,
        next: next.map(Task),
    }
}

/// The line is this event, and nothing is lost.
fn is_one(event: &str, wanted: KernelEventKind) {
    let (events, found) = one(event);
    assert_eq!(events, [wanted], "{event}");
    assert_eq!(found.kernel[0].cpu, Cpu(2), "{event}");
    assert_eq!(found.kernel[0].time, Nanos(5_000_001_000));
    assert!(found.losses.is_empty(), "{event}");
}

/// Goal: every form of a switch is read. Method: the kernel's, raw numbers, a vendor's field more, the
/// plugin's; odd names.
#[test]
fn switches() {
    let (prev, next) = (
        "prev_comm=me prev_pid=1 prev_prio=120",
        "next_comm=a b:c next_pid=2 next_prio=-1",
    );
    for (event, state) in [
        (format!("{prev} prev_state=S ==> {next}"), Left::Sleeping),
        (format!("{prev} prev_state=R+ ==> {next}"), Left::Preempted),
        (format!("{prev} prev_state=D|K ==> {next}"), Left::Blocked),
        (
            format!("{prev} prev_state=X ==> {next} expeller_type=0"),
            Left::Dead,
        ),
        (format!("{prev} prev_state=1 {next}"), Left::Sleeping),
        (format!("{prev} prev_state=0x100 {next}"), Left::Preempted),
        (format!("{prev} prev_state=1024 {next}"), Left::Preempted),
        ("me:1 [120] S ==> a b:c:2 [-1]".to_owned(), Left::Sleeping),
        ("me:1 [120] R+ ==> a b:c:2 [-1]".to_owned(), Left::Preempted),
        ("me:1 [120] 64 ==> a b:c:2 [-1]".to_owned(), Left::Sleeping),
    ] {
        let (events, found) = one(&format!("sched_switch: {event}"));
        assert_eq!(events, [switch(Some(0), state, Some(1))], "{event}");
        assert_eq!(found.threads[1].name, "a b:c", "{event}");
        assert_eq!(found.threads[1].priority, -1, "{event}");
        assert!(found.losses.is_empty(), "{event}");
    }
}

/// Goal: every form of a wake-up is read, and a wake-up without an effect is left out. Method: each event,
/// old fields, the plugin's form.
#[test]
fn wakes() {
    let waking = KernelEventKind::Waking {
        task: Task(1),
        by: Some(Task(0)),
        target: Cpu(3),
    };
    for event in [
        "sched_waking: comm=x pid=y pid=9 prio=120 target_cpu=003",
        "sched_wakeup: comm=x pid=y pid=9 prio=120 success=1 target_cpu=003",
        "sched_wakeup_new: comm=x pid=y pid=9 prio=120 target_cpu=003",
        "sched_wakeup:         x pid=y:9 [120] success=1 CPU:003",
        "sched_wakeup:         x pid=y:9 [120] CPU:003",
    ] {
        let (events, found) = one(event);
        assert_eq!(events, [waking], "{event}");
        assert_eq!(found.threads[1].name, "x pid=y", "{event}");
    }
    let (events, found) = one("sched_wakeup: comm=x pid=9 prio=120 success=0 target_cpu=003");
    assert!(events.is_empty() && found.losses.is_empty());
}

/// Goal: the reason of a sleep has the kernel's function, unless it is an address, and limits of frequencies
/// are read. Method: one line of each.
#[test]
fn reasons_and_limits() {
    let me = Task(0);
    for (event, wanted) in [
        (
            "sched_blocked_reason: pid=1 iowait=1 caller=io_schedule+0x8/0x20",
            KernelEventKind::Blocked {
                task: me,
                io: true,
                function: Some(0),
            },
        ),
        (
            "sched_blocked_reason: pid=1 iowait=0 caller=ffffffc000123456",
            KernelEventKind::Blocked {
                task: me,
                io: false,
                function: None,
            },
        ),
        (
            "cpu_frequency_limits: min=300000 max=1056000 cpu_id=2",
            KernelEventKind::FrequencyLimit(1_056_000),
        ),
    ] {
        let (events, found) = one(event);
        assert_eq!(events, [wanted], "{event}");
        assert!(found.losses.is_empty());
    }
}

/// Goal: every other event is read. Method: one line of each kind and the event it is.
#[test]
fn other_events() {
    let interrupt = |begins, soft, number| KernelEventKind::Interrupt {
        begins,
        soft,
        number,
    };
    for (event, wanted) in [
        (
            "sched_migrate_task: comm=x pid=9 prio=120 orig_cpu=0 dest_cpu=1",
            KernelEventKind::Migrate {
                task: Task(1),
                from: Cpu(0),
                to: Cpu(1),
            },
        ),
        (
            "cpu_frequency: state=700000 cpu_id=2",
            KernelEventKind::Frequency(700_000),
        ),
        ("cpu_idle: state=2 cpu_id=2", KernelEventKind::Idle(Some(2))),
        (
            "cpu_idle: state=4294967295 cpu_id=2",
            KernelEventKind::Idle(None),
        ),
        (
            "sched_cpu_hotplug: cpu 2 offline error=0",
            KernelEventKind::Online(false),
        ),
        (
            "cpuhp_enter: cpu: 0002 target: 238 step:   1 (x)",
            KernelEventKind::Online(true),
        ),
        (
            "irq_handler_entry: irq=28 name=radeon",
            interrupt(true, false, 28),
        ),
        (
            "irq_handler_exit: irq=28 ret=handled",
            interrupt(false, false, 28),
        ),
        (
            "softirq_entry: vec=1 [action=TIMER]",
            interrupt(true, true, 1),
        ),
        (
            "softirq_exit: vec=1 [action=TIMER]",
            interrupt(false, true, 1),
        ),
        ("local_timer_entry: vector=236", interrupt(true, false, 236)),
        ("local_timer_exit: vector=236", interrupt(false, false, 236)),
    ] {
        is_one(event, wanted);
    }
}

/// Goal: futex calls are read in the form in which calls print themselves. Method: each kind of call, old
/// kernels' numbers, errors.
#[test]
fn futexes() {
    let me = Task(0);
    let call = |call| KernelEventKind::FutexCall {
        task: me,
        address: Address::new(0x7f07),
        call,
    };
    let result = |result| KernelEventKind::FutexReturn { task: me, result };
    for (event, wanted) in [
        (
            "sys_futex(uaddr: 0x7f07, op: 0x80, val: 2, utime: 0)",
            call(FutexCall::Wait),
        ),
        (
            "sys_futex(uaddr: 7f07, op: 81, val: 1)",
            call(FutexCall::Wake),
        ),
        (
            "sys_enter_futex: uaddr: 0x00007f07, op: 0x86, val: 1",
            call(FutexCall::LockPi),
        ),
        (
            "sys_futex(uaddr: 0x7f07, op: 0x87, val: 0)",
            call(FutexCall::UnlockPi),
        ),
        (
            "sys_futex(uaddr: 0x7f07, op: 0x8, val: 0)",
            call(FutexCall::Other),
        ),
        (
            "sys_enter_futex: op=FUTEX_WAKE|FUTEX_PRIVATE_FLAG uaddr=0x00007f07 val=1",
            call(FutexCall::Wake),
        ),
        (
            "sys_enter_futex: op=FUTEX_LOCK_PI2 uaddr=0x00007f07",
            call(FutexCall::LockPi),
        ),
        ("sys_futex -> 0xfffffffffffffff5", result(-11)),
        ("sys_exit_futex: 0x1", result(1)),
    ] {
        is_one(event, wanted);
    }
}

/// Goal: facts about tasks are kept. Method: forks, new threads, renames and ends.
#[test]
fn tasks() {
    let found = recording(
        "a-1 (    1) [000] .... 1.0: task_newtask: pid=2 comm=a clone_flags=3d0f00 oom_score_adj=0\n\
         a-1 (    1) [000] .... 1.1: task_newtask: pid=3 comm=a clone_flags=1200000 oom_score_adj=0\n\
         b-2 (    1) [000] .... 1.2: task_rename: pid=2 oldcomm=a newcomm=new name oom_score_adj=0\n\
         a-1 (    1) [000] .... 1.3: sched_process_fork: comm=a pid=1 child_comm=a b child_pid=4\n\
         b-2 (    1) [000] .... 1.4: sched_process_exit: comm=new name pid=2 prio=120 group_dead=false\n",
    );
    assert!(found.losses.is_empty());
    let pid = |process: Option<usize>| process.and_then(|process| found.processes[process].pid);
    let threads = found
        .threads
        .iter()
        .map(|t| (t.tid, t.name.as_str(), pid(t.process)));
    let wanted = [
        (Some(1), "a", Some(1)),
        (Some(2), "new name", Some(1)),
        (Some(3), "a", Some(3)),
        (Some(4), "a b", None),
    ];
    assert_eq!(threads.collect::<Vec<_>>(), wanted);
}

/// Goal: events with missing or impossible fields are counted, each once, and nothing of them is read.
/// Method: each kind without its last field, or with an impossible one.
#[test]
fn bad_fields() {
    let bad = [
        "sched_switch: prev_comm=me prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=a next_pid=2",
        "sched_switch: prev_comm=m prev_pid=1 prev_prio=9 prev_state=? ==> next_comm= next_pid=2 next_prio=9",
        "sched_switch: prev_comm=m prev_pid=1 prev_prio=99999 prev_state=S next_comm= next_pid=2 next_prio=1",
        "sched_switch: me:1 [120] S ==> a:2",
        "sched_switch:",
        "sched_waking: comm=x pid=9 prio=120",
        "sched_waking: comm=x pid=9 target_cpu=000",
        "sched_waking: comm=x pid=9 prio=120 target_cpu=99999",
        "sched_waking: comm=idle pid=0 prio=120 target_cpu=000",
        "sched_wakeup: x:9 CPU:000",
        "sched_migrate_task: comm=x pid=9 prio=120 orig_cpu=0",
        "sched_pi_setprio: comm=x pid=9 oldprio=120",
        "cpu_frequency: state=99999999999 cpu_id=0",
        "cpu_idle: state=999 cpu_id=0",
        "sched_blocked_reason: iowait=1",
        "irq_handler_entry: name=x",
        "sys_futex(uaddr: x, op: 1)",
        "sys_futex -> 0x1ffffffff",
        "sys_futex(uaddr: 0x7f07, op: FUTEX_WAIT)",
        "sys_enter_futex: op=FUTEX_WALK uaddr=0x7f07",
        "task_newtask: pid=2 comm=a",
        "task_rename: pid=2",
        "sched_process_fork: comm=a pid=1 child_comm=b",
        "sched_cpu_hotplug: cpu 2 sideways",
        "cpuhp_enter: cpu: 2",
    ];
    for event in bad {
        let (events, found) = one(event);
        assert!(events.is_empty(), "{event}");
        let losses: Vec<_> = found.losses.iter().collect();
        assert_eq!(losses, [(Loss::BadFields, 1)], "{event}");
    }
}

/// Goal: lines about the trace are understood, lines without a beginning belong to those before, all others
/// are counted. Method: headers, gaps, line breaks in texts, call chains, noise.
#[test]
fn other_lines() {
    let event = |text: &str| format!("me-1 [000] .... 1.0: {text}\n");
    let header = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 10/17   #P:4\n\r\n\n";
    let losses = |text: &str| recording(text).losses.iter().collect::<Vec<_>>();
    assert_eq!(losses(header), [(Loss::KernelEvents, 7)]);
    assert_eq!(recording(header).cpus.len(), 4);
    assert_eq!(
        recording("cpus=6\nCPU 3 is empty\nversion = 6\n")
            .cpus
            .len(),
        6
    );
    assert!(losses("cpus=6\nCPU 3 is empty\nversion = 6\n").is_empty());
    for (text, loss) in [
        ("CPU:3 [LOST 123 EVENTS]\n", (Loss::KernelEvents, 123)),
        ("CPU:3 [LOST EVENTS]\n", (Loss::Gaps, 1)),
        ("CPU:3 [EVENTS DROPPED]\n", (Loss::Gaps, 1)),
        ("CPU:3 [5 EVENTS DROPPED]\n", (Loss::KernelEvents, 5)),
        ("##### CPU 3 buffer started ####\n", (Loss::Gaps, 1)),
        ("noise\n", (Loss::Malformed, 1)),
        (
            &event("sched_stat_runtime: comm=x pid=1 runtime=1 [ns]"),
            (Loss::OtherEvents, 1),
        ),
        (&event("do_fork <-sys_clone"), (Loss::OtherEvents, 1)),
        (&event("sys_read(fd: 3)"), (Loss::OtherEvents, 1)),
        (&event("bprint: f: one\ntwo"), (Loss::OtherEvents, 1)),
        (
            &event("tracing_mark_write: B|1|one\ntwo"),
            (Loss::Unsupported, 1),
        ),
        (
            &event("cpu_frequency: state=1 cpu_id=0\nnoise"),
            (Loss::Malformed, 1),
        ),
    ] {
        let found = recording(text);
        assert_eq!(found.losses.iter().collect::<Vec<_>>(), [loss], "{text}");
        let is_gap = found
            .kernel
            .iter()
            .any(|event| matches!(event.what, KernelEventKind::Lost { .. }));
        assert_eq!(
            is_gap,
            loss.0 != Loss::Malformed && text.contains("CPU"),
            "{text}"
        );
    }
    let lost = recording("perf 9 [003] 1.0: PERF_RECORD_LOST lost 57\n");
    assert_eq!(lost.kernel[0].what, KernelEventKind::Lost { events: 57 });
    assert_eq!(
        lost.losses.iter().collect::<Vec<_>>(),
        [(Loss::KernelEvents, 57)]
    );
    let chain = "me 1 [000] 1.0: sched:sched_waking: comm=x pid=9 prio=1 target_cpu=000\n\t ffff8 f (x)\n\n";
    assert_eq!(losses(chain), [(Loss::Unsupported, 1)]);
}

/// Goal: markers are read under every name that kernels and tools print for them. Method: one of each.
#[test]
fn markers_by_name() {
    for event in [
        "tracing_mark_write: B|1|frame",
        "0: B|1|frame",
        "print: tracing_mark_write: B|1|frame",
        "print: 0xffffffff8107: B|1|frame",
        "print: B|1|frame",
        "tracing_mark_write.isra.4: B|1|frame",
    ] {
        let (_, found) = one(event);
        assert_eq!(found.marks.len(), 1, "{event}");
        assert_eq!(found.names.iter().collect::<Vec<_>>(), ["frame"], "{event}");
        assert!(found.losses.is_empty(), "{event}");
    }
}

/// Goal: a line's end may be CR LF. Method: the same text with both.
#[test]
fn carriage_returns() {
    let text = "# tracer: nop\nme-1 [000] .... 1.0: tracing_mark_write: B|1|frame\n";
    assert_eq!(recording(text), recording(&text.replace('\n', "\r\n")));
}

/// An event as a test makes it.
#[derive(Clone, Debug)]
enum Made {
    Switch(usize, &'static str, Left, usize),
    Wake(usize, u32),
    Migrate(usize, u32, u32),
    Frequency(u32, u32),
    Idle(u32, u32),
}

/// The program that writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Kernel,
    KernelWithTgid,
    TraceCmd,
    Perf,
}

/// The tasks of a generated trace: 0 is the idle one. Each keeps its priority.
const NAMES: [&str; 6] = [
    "swapper/0",
    "a",
    "Web Content",
    "kworker/0:1-x",
    "(sd-pam)",
    "a=b [1] x",
];

fn priority(task: usize) -> i16 {
    [120, 120, 49, 100, 139, -1][task]
}

impl Made {
    fn text(&self, writer: Writer) -> (&'static str, String) {
        let plugin = writer == Writer::TraceCmd;
        let full = |prefix: &str, task: usize, state: &str| {
            let (name, priority) = (NAMES[task], priority(task));
            format!("{prefix}comm={name} {prefix}pid={task} {prefix}prio={priority}{state}")
        };
        let short = |task: usize| format!("{}:{task} [{}]", NAMES[task], priority(task));
        match *self {
            Made::Switch(prev, letters, _, next) if plugin => (
                "sched_switch",
                format!("{} {letters} ==> {}", short(prev), short(next)),
            ),
            Made::Switch(prev, letters, _, next) => {
                let state = format!(" prev_state={letters} ==> ");
                (
                    "sched_switch",
                    full("prev_", prev, &state) + &full("next_", next, ""),
                )
            }
            Made::Wake(task, cpu) if plugin => {
                ("sched_wakeup", format!("{} CPU:{cpu:03}", short(task)))
            }
            Made::Wake(task, cpu) => (
                "sched_wakeup",
                format!("{} target_cpu={cpu:03}", full("", task, "")),
            ),
            Made::Migrate(task, from, to) => (
                "sched_migrate_task",
                format!("{} orig_cpu={from} dest_cpu={to}", full("", task, "")),
            ),
            Made::Frequency(cpu, khz) => ("cpu_frequency", format!("state={khz} cpu_id={cpu}")),
            Made::Idle(cpu, state) => ("cpu_idle", format!("state={state} cpu_id={cpu}")),
        }
    }

    /// The wanted event, with tids for tasks.
    fn wanted(&self, cpu: u32, by: usize) -> (u32, KernelEventKind) {
        let task = |task: usize| Task(task as u32);
        let some = |number: usize| (number > 0).then(|| task(number));
        let what = match *self {
            Made::Switch(prev, _, state, next) => KernelEventKind::Switch {
                prev: some(prev),
                state,
                next: some(next),
            },
            Made::Wake(woken, target) => KernelEventKind::Waking {
                task: task(woken),
                by: some(by),
                target: Cpu(target),
            },
            Made::Migrate(moved, from, to) => KernelEventKind::Migrate {
                task: task(moved),
                from: Cpu(from),
                to: Cpu(to),
            },
            Made::Frequency(cpu, khz) => return (cpu, KernelEventKind::Frequency(khz)),
            Made::Idle(cpu, state) => {
                return (cpu, KernelEventKind::Idle(u8::try_from(state).ok()));
            }
        };
        (cpu, what)
    }
}

fn made() -> impl Strategy<Value = Made> {
    let states = prop::sample::select(vec![
        ("S", Left::Sleeping),
        ("R", Left::Runnable),
        ("R+", Left::Preempted),
        ("D", Left::Blocked),
        ("Z", Left::Dead),
        ("I", Left::Sleeping),
    ]);
    prop_oneof![
        (0..6_usize, states, 0..6_usize).prop_map(|(prev, (letters, state), next)| {
            Made::Switch(prev, letters, state, next)
        }),
        (1..6_usize, 0..9_u32).prop_map(|(task, cpu)| Made::Wake(task, cpu)),
        (1..6_usize, 0..9_u32, 0..9_u32).prop_map(|(task, from, to)| Made::Migrate(task, from, to)),
        (0..9_u32, any::<u32>()).prop_map(|(cpu, khz)| Made::Frequency(cpu, khz)),
        (0..9_u32, prop_oneof![0..9_u32, Just(u32::MAX)])
            .prop_map(|(cpu, state)| Made::Idle(cpu, state)),
    ]
}

/// Kernel events with tids for tasks.
fn by_tid(recording: &Recording) -> Vec<KernelEvent> {
    let tid = |task: Task| Task(recording.threads[task.index()].tid.unwrap());
    let event = |mut event: KernelEvent| {
        match &mut event.what {
            KernelEventKind::Switch { prev, next, .. } => {
                (*prev, *next) = (prev.map(tid), next.map(tid));
            }
            KernelEventKind::Waking { task, by, .. } => (*task, *by) = (tid(*task), by.map(tid)),
            KernelEventKind::Migrate { task, .. } => *task = tid(*task),
            _ => {}
        }
        event
    };
    recording.kernel.iter().map(|found| event(*found)).collect()
}

proptest! {
    /// Goal: events are read as they were written, by any program. Method: events are made, written as the
    /// kernel, trace-cmd's plugins and perf write them, and compared with the result, in exact times.
    #[test]
    fn written_is_read(
        events in prop::collection::vec((made(), 0..9_u32, 0..6_usize, 0..5_000_000_u64), 0..60),
        writer in prop::sample::select(vec![
            Writer::Kernel, Writer::KernelWithTgid, Writer::TraceCmd, Writer::Perf,
        ]),
        nanos in any::<bool>(),
    ) {
        let mut text = String::from(if writer == Writer::TraceCmd { "cpus=9\n" } else { "# tracer: nop\n" });
        let (mut wanted, mut time) = (Vec::new(), 0);
        for (made, cpu, by, later) in &events {
            time += later;
            let exact = if nanos { time } else { time / 1_000 * 1_000 };
            let (seconds, rest) = (exact / 1_000_000_000, exact % 1_000_000_000);
            let stamp = if nanos {
                format!("{seconds}.{rest:09}")
            } else {
                format!("{seconds}.{:06}", rest / 1_000)
            };
            let (name, args) = made.text(writer);
            let comm = NAMES[*by];
            text += &match writer {
                Writer::Kernel => {
                    format!("{comm:>16}-{by:<7} [{cpu:03}] d..2. {stamp:>12}: {name}: {args}\n")
                },
                Writer::KernelWithTgid => {
                    format!("{comm:>16}-{by:<7} (      7) [{cpu:03}] d..2. {stamp:>12}: {name}: {args}\n")
                }
                Writer::TraceCmd => format!("{comm:>16}-{by:<5} [{cpu:03}] {stamp:>12}: {name:<20} {args}\n")
                    .replacen(&format!("{name:<20}"), &format!("{:<21}", format!("{name}:")), 1),
                Writer::Perf => format!("{comm:>16} {by:>5} [{cpu:03}] {stamp:>12}: sched:{name}: {args}\n"),
            };
            let (cpu, what) = made.wanted(*cpu, *by);
            wanted.push(KernelEvent { time: Nanos(exact), cpu: Cpu(cpu), what });
        }
        let found = recording(&text);
        prop_assert_eq!(by_tid(&found), wanted, "{}", text);
        prop_assert!(found.losses.is_empty(), "{:?}\n{}", found.losses, text);
        for thread in &found.threads {
            prop_assert_eq!(&thread.name, NAMES[thread.tid.unwrap() as usize]);
        }
    }
}

/// Goal: a trace whose lines have lost their ends is refused, and one that is cut in its first comment is
/// not. Method: a header and events with blanks for the ends.
#[test]
fn a_trace_without_ends_of_lines_is_refused() {
    let line = "me-1 [002] d..2.  5.000001: cpu_frequency: state=1 cpu_id=0 ";
    for count in [100, 100_000] {
        let text = format!("# tracer: nop # {}", line.repeat(count));
        let refused = crate::read::read(text.as_bytes(), "one line").unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("ends of its lines are lost"), "{refused}");
    }
    let cut = crate::read::read(&b"# tracer: nop"[..], "cut").unwrap();
    assert_eq!(cut.losses.get(Loss::Truncated), 13);
}
