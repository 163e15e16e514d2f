//! Rounds on record: what a scheduler in user space was told, and what it answered.
//!
//! [`Recorded`] stands between an [`Ops`] and any [`Kernel`], simulated or real, and writes each round down
//! as lines of text. [`read_rounds`] reads them, so that the same messages can be put before the same policy
//! through another kernel. The decisions have to be the same.
//!
//! ```text
//! round 12000000 online 4 running 4 wanted 1 idle 2
//! message 5 cpu 2 allowed 4 woken 0 start 8000000 stop 12000000 ran 4000000 weight 100 vtime 3 count 7
//! wait 3: 5
//! dispatch 5 cpu 2 slice 3000000 vtime 4000000 preempt 0 count 7
//! held 2
//! ```
//!
//! Times are in nanoseconds. `-` stands for no CPU in the first line, and for any CPU in a dispatch.

#[cfg(test)]
mod tests;

use std::fmt::{self, Display, Write as _};
use std::mem;

use event::{Cpu, Nanos, Task};

use super::{Dispatch, Kernel, Ops, Queued};
use crate::Attr;

/// A round: what the kernel said at its beginning, the messages, and the decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundRecord {
    /// The time.
    pub now: Nanos,
    /// [`Kernel::online`].
    pub online: usize,
    /// [`Kernel::running`].
    pub running: usize,
    /// [`Kernel::wanted`].
    pub wanted: usize,
    /// The CPUs of which [`Kernel::is_idle`] is true then.
    pub idle: Vec<Cpu>,
    /// The messages in their order.
    pub messages: Vec<Queued>,
    /// Each waiter with what it waits for.
    pub waits: Vec<(Task, Vec<Task>)>,
    /// The answers in their order.
    pub dispatches: Vec<Dispatch>,
    /// How many tasks were held back.
    pub held: usize,
}

/// A scheduler whose rounds are written down.
#[derive(Debug)]
pub struct Recorded<O> {
    ops: O,
    text: String,
    rounds: usize,
}

impl<O: Ops> Recorded<O> {
    /// Writes down the first so many rounds. Those in which nothing comes or goes count, too: time passes in
    /// them, and statements are heard.
    pub fn new(ops: O, rounds: usize) -> Recorded<O> {
        Recorded {
            ops,
            text: String::new(),
            rounds,
        }
    }

    /// What has been written, which is taken away.
    pub fn take(&mut self) -> String {
        mem::take(&mut self.text)
    }
}

impl<O: Ops> Ops for Recorded<O> {
    fn name(&self) -> &'static str {
        self.ops.name()
    }

    fn hint(&mut self, task: Task, attr: &Attr) {
        self.ops.hint(task, attr);
    }

    fn listens(&self) -> bool {
        self.ops.listens()
    }

    fn forget(&mut self, task: Task) {
        self.ops.forget(task);
    }

    fn round(&mut self, kernel: &mut dyn Kernel) -> usize {
        if self.rounds == 0 {
            return self.ops.round(kernel);
        }
        let all = (0..kernel.cpus() as u32).map(Cpu);
        let mut record = RoundRecord {
            now: kernel.now(),
            online: kernel.online(),
            running: kernel.running(),
            wanted: kernel.wanted(),
            idle: all.filter(|&cpu| kernel.is_idle(cpu)).collect(),
            ..RoundRecord::default()
        };
        // Asked here, because who asks during the round cannot write.
        kernel.waits(&mut |waiter, others| record.waits.push((waiter, others.to_vec())));
        let mut listener = Listener { kernel, record };
        let held = self.ops.round(&mut listener);
        let mut record = listener.record;
        record.held = held;
        self.rounds -= 1;
        // Text cannot fail to be written.
        let _ = write!(self.text, "{record}");
        held
    }
}

/// Hands on, and listens.
struct Listener<'a> {
    kernel: &'a mut dyn Kernel,
    record: RoundRecord,
}

impl Kernel for Listener<'_> {
    /// Always the same within a round, so that the record has it.
    fn now(&self) -> Nanos {
        self.record.now
    }

    fn dequeue(&mut self) -> Option<Queued> {
        let queued = self.kernel.dequeue()?;
        self.record.messages.push(queued);
        Some(queued)
    }

    fn dispatch(&mut self, dispatch: Dispatch) {
        self.record.dispatches.push(dispatch);
        self.kernel.dispatch(dispatch);
    }

    fn select_cpu(&mut self, task: Task, cpu: Cpu) -> Option<Cpu> {
        self.kernel.select_cpu(task, cpu)
    }

    fn is_idle(&self, cpu: Cpu) -> bool {
        self.kernel.is_idle(cpu)
    }

    fn online(&self) -> usize {
        self.record.online
    }

    fn running(&self) -> usize {
        self.record.running
    }

    fn wanted(&self) -> usize {
        self.kernel.wanted()
    }

    fn cpus(&self) -> usize {
        self.kernel.cpus()
    }

    fn capacity(&self, cpu: Cpu) -> u32 {
        self.kernel.capacity(cpu)
    }

    fn waits(&self, visit: &mut dyn FnMut(Task, &[Task])) {
        for (waiter, others) in &self.record.waits {
            visit(*waiter, others);
        }
    }
}

/// Numbers, or that there are none; as [`Words::list`] reads them.
fn listed(numbers: impl Iterator<Item = u32>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    if numbers.is_empty() {
        return "-".to_owned();
    }
    numbers.join(",")
}

impl Display for RoundRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let idle = listed(self.idle.iter().map(|cpu| cpu.0));
        let (now, online, running, wanted) = (self.now.0, self.online, self.running, self.wanted);
        writeln!(
            f,
            "round {now} online {online} running {running} wanted {wanted} idle {idle}"
        )?;
        for it in &self.messages {
            write!(
                f,
                "message {} cpu {} allowed {} ",
                it.task.0, it.cpu.0, it.allowed
            )?;
            let woken = u8::from(it.woken);
            write!(f, "woken {woken} start {} stop {} ", it.start.0, it.stop.0)?;
            write!(f, "ran {} weight {} ", it.exec_runtime.0, it.weight)?;
            writeln!(f, "vtime {} count {}", it.vtime, it.enq_cnt)?;
        }
        for (waiter, others) in &self.waits {
            let others = listed(others.iter().map(|task| task.0));
            writeln!(f, "wait {} for {others}", waiter.0)?;
        }
        for it in &self.dispatches {
            let cpu = it.cpu.map_or("-".to_owned(), |cpu| cpu.0.to_string());
            let preempt = u8::from(it.preempt);
            write!(f, "dispatch {} cpu {cpu} slice {} ", it.task.0, it.slice.0)?;
            writeln!(
                f,
                "vtime {} preempt {preempt} count {}",
                it.vtime, it.enq_cnt
            )?;
        }
        writeln!(f, "held {}", self.held)
    }
}

/// Reads what [`Recorded`] wrote.
///
/// # Errors
/// The first line that is no such text, by its number.
pub fn read_rounds(text: &str) -> Result<Vec<RoundRecord>, String> {
    let mut rounds: Vec<RoundRecord> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words = Words(line.split_whitespace().collect());
        read_line(&words, &mut rounds)
            .ok_or_else(|| format!("line {number} is not of a round: {line:?}"))?;
    }
    Ok(rounds)
}

fn read_line(words: &Words<'_>, rounds: &mut Vec<RoundRecord>) -> Option<()> {
    let kind = *words.0.first()?;
    if kind == "round" {
        rounds.push(RoundRecord {
            now: Nanos(words.number("round")?),
            online: words.small("online")?,
            running: words.small("running")?,
            wanted: words.small("wanted")?,
            idle: words.list("idle")?.into_iter().map(Cpu).collect(),
            ..RoundRecord::default()
        });
        return Some(());
    }
    let round = rounds.last_mut()?;
    match kind {
        "message" => round.messages.push(Queued {
            task: Task(words.small("message")?),
            cpu: Cpu(words.small("cpu")?),
            allowed: words.small("allowed")?,
            woken: words.number("woken")? != 0,
            start: Nanos(words.number("start")?),
            stop: Nanos(words.number("stop")?),
            exec_runtime: Nanos(words.number("ran")?),
            weight: words.number("weight")?,
            vtime: words.number("vtime")?,
            enq_cnt: words.number("count")?,
        }),
        "wait" => {
            let others = words.list("for")?;
            let others = others.into_iter().map(Task).collect();
            round.waits.push((Task(words.small("wait")?), others));
        }
        "dispatch" => round.dispatches.push(Dispatch {
            task: Task(words.small("dispatch")?),
            cpu: match words.after("cpu")? {
                "-" => None,
                _ => Some(Cpu(words.small("cpu")?)),
            },
            slice: Nanos(words.number("slice")?),
            vtime: words.number("vtime")?,
            preempt: words.number("preempt")? != 0,
            enq_cnt: words.number("count")?,
        }),
        "held" => round.held = words.small("held")?,
        _ => return None,
    }
    Some(())
}

/// The words of a line: names, each before its value.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn after(&self, name: &str) -> Option<&'a str> {
        let at = self.0.iter().position(|word| *word == name)?;
        self.0.get(at + 1).copied()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.after(name)?.parse().ok()
    }

    fn small<T: TryFrom<u64>>(&self, name: &str) -> Option<T> {
        T::try_from(self.number(name)?).ok()
    }

    /// Numbers with commas between them, or a dash for none.
    fn list(&self, name: &str) -> Option<Vec<u32>> {
        let text = self.after(name)?;
        if text == "-" {
            return Some(Vec::new());
        }
        let words = text.split(',');
        words.map(|word| word.parse().ok()).collect()
    }
}
