//! One policy in two kernels: on the same messages the same decisions.
//!
//! The records beside `policy::ops::recorded` are of the simulated kernel; `kernel/` here has one of Linux,
//! which `paceline-scx --record` wrote. Each is told again, message by message, through [`Adapter`].

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use event::{Nanos, Task};
use paceline_scx::{Adapter, Answer, Core, Message, PREEMPT, WAKEUP};
use policy::ops::recorded::{RoundRecord, read_rounds};
use policy::ops::waitfor::WaitForConstants;
use policy::ops::{Ops, WaitFor, rustland};

/// A thread of the record: its number there is a task's. The kernel's are larger and have gaps.
fn tid(task: Task) -> i32 {
    1000 + 7 * task.0 as i32
}

/// The kernel's side, from a record.
struct Told {
    round: Rc<RefCell<RoundRecord>>,
    messages: VecDeque<Message>,
    answers: Vec<Answer>,
    homes: BTreeMap<i32, u32>,
}

impl Told {
    fn begin(&mut self, round: &RoundRecord) {
        *self.round.borrow_mut() = round.clone();
        let homes = round.messages.iter();
        self.homes
            .extend(homes.map(|queued| (tid(queued.task), queued.cpu.0)));
        self.messages = round.messages.iter().map(message).collect();
        self.answers.clear();
    }
}

fn message(queued: &policy::ops::Queued) -> Message {
    Message {
        tid: tid(queued.task),
        cpu: queued.cpu.0 as i32,
        allowed: queued.allowed as u64,
        flags: if queued.woken { WAKEUP } else { 0 },
        start: queued.start.0,
        stop: queued.stop.0,
        exec_runtime: queued.exec_runtime.0,
        weight: queued.weight,
        vtime: queued.vtime,
        enq_cnt: queued.enq_cnt,
    }
}

impl Core for Told {
    fn now(&self) -> Nanos {
        self.round.borrow().now
    }

    fn next(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    fn answer(&mut self, answer: &Answer) {
        self.answers.push(*answer);
    }

    fn look(&mut self, wanting: &mut Vec<bool>) -> usize {
        wanting.fill(false);
        let round = self.round.borrow();
        for cpu in &round.idle {
            wanting[cpu.index()] = true;
        }
        // Tasks that were dispatched to any CPU earlier make up the difference. (Where the process's own CPU
        // is not an idle one, more are wanted than idle, and the policies do not ask.)
        round.idle.len().saturating_sub(round.wanted)
    }

    fn online(&mut self) -> usize {
        self.round.borrow().online
    }

    fn running(&mut self) -> usize {
        self.round.borrow().running - 1
    }

    /// In the records a thread that may not use all CPUs may use one, which is where it is.
    fn may_use(&self, tid: i32, cpu: u32) -> bool {
        self.homes.get(&tid) == Some(&cpu)
    }

    fn is_there(&self, _: i32) -> bool {
        true
    }
}

/// Tells a record to the policy again; the decisions have to be those of the record.
fn tell(text: &str, mut ops: Box<dyn Ops>) {
    let rounds = read_rounds(text).expect("a record");
    let tasks = rounds.iter().flat_map(|round| &round.messages);
    let last = tasks.map(|queued| queued.task).max().expect("messages");
    let told = Told {
        round: Rc::default(),
        messages: VecDeque::new(),
        answers: Vec::new(),
        homes: BTreeMap::new(),
    };
    let cpus = rounds[0].online;
    let mut adapter = Adapter::new(told, vec![1024; cpus]);
    // Among equals the lower number goes first, so the tasks need those of the record.
    let mut statements: Vec<(i32, Vec<i32>)> = (0..=last.0)
        .map(|task| (tid(Task(task)), Vec::new()))
        .collect();
    for (number, round) in rounds.iter().enumerate() {
        adapter.core().begin(round);
        for (waiter, others) in &round.waits {
            statements.push((tid(*waiter), others.iter().map(|&task| tid(task)).collect()));
        }
        let held = adapter.round(ops.as_mut(), &statements);
        statements.clear();
        let expected: Vec<Answer> = round.dispatches.iter().map(answer).collect();
        let mut found = adapter.core().answers.clone();
        for answer in &mut found {
            // The kernel's own flags come back as they came.
            answer.flags &= PREEMPT;
        }
        assert_eq!(
            found,
            expected,
            "round {number} of {}:\n{round}",
            ops.name()
        );
        assert_eq!(held, round.held, "round {number} of {}", ops.name());
    }
}

fn answer(dispatch: &policy::ops::Dispatch) -> Answer {
    Answer {
        tid: tid(dispatch.task),
        cpu: dispatch.cpu.map(|cpu| cpu.0 as i32),
        flags: if dispatch.preempt { PREEMPT } else { 0 },
        slice: dispatch.slice.0,
        vtime: if dispatch.preempt { 0 } else { dispatch.vtime },
        enq_cnt: dispatch.enq_cnt,
    }
}

/// The simulated kernel's record of this name.
fn simulated(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../policy/src/ops/recorded");
    let path = format!("{folder}/{name}.txt");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn waitfor() -> Box<dyn Ops> {
    Box::new(WaitFor::new(WaitForConstants::default()))
}

/// Goal: messages of the simulated kernel lead to the same decisions through the real one's adapter. Method:
/// the records of three policies.
#[test]
fn messages_of_the_simulated_kernel() {
    let constants = rustland::Constants::default();
    tell(&simulated("waitfor"), waitfor());
    tell(
        &simulated("rustland-333"),
        Box::new(rustland::merged(constants)),
    );
    tell(
        &simulated("rustland-pre333"),
        Box::new(rustland::pre333(constants)),
    );
}

/// Goal: what was decided in charge of Linux is decided again without it. Method: a record of Linux 7.2 with
/// two CPUs, of frames that say what they wait for beside four hogs.
#[test]
fn messages_of_linux() {
    let record = include_str!("kernel/waitfor.txt");
    assert!(record.contains("wait "));
    tell(record, waitfor());
}

/// Goal: the comparison can fail. Method: one policy's record told to another one.
#[test]
#[should_panic(expected = "round ")]
fn another_policy_decides_otherwise() {
    let constants = rustland::Constants::default();
    tell(&simulated("waitfor"), Box::new(rustland::pre333(constants)));
}
