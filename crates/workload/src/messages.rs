//! Threads with priorities that send each other messages, after source 003.
//!
//! D sends three messages to each of A, B and C and yields; each of these takes its messages and waits for
//! more. On one CPU where the highest priority runs, that is one *cycle* with 4 switches if all have one
//! priority (D yields, and A, B and C find three messages each) and 18 if each has its own, A's the highest
//! (each message brings its receiver to the CPU and back). The program runs on every platform; priorities
//! are given where the platform grants them.

use std::sync::Arc;

use event::Nanos;
use platform::{
    Atomic, CpuSet, Lock, Machine as _, Ordering, Parker, Platform, Poll, Polling, SchedParams,
};

use crate::gang::{GangError, Member, run_gang};
use crate::naive::{Statistic, used};

/// Messages to each receiver in a cycle.
pub const EACH: u64 = 3;
/// Messages in a cycle.
pub const MESSAGES: u64 = 3 * EACH;

const NAMES: [&str; 4] = ["A", "B", "C", "D"];
const D: usize = 3;

/// A queue of messages without content, for one receiver.
pub struct Queue<P: Platform> {
    waiting: P::AtomicU64,
    receiver: P::Parker,
}

impl<P: Platform> Queue<P> {
    /// An empty one.
    pub fn new(platform: &P) -> Queue<P> {
        Queue {
            waiting: P::AtomicU64::new(0),
            receiver: platform.parker(),
        }
    }

    /// Puts a message in.
    pub fn send(&self) {
        // AcqRel: partner of itself, and of the Acquire in `receive`.
        self.waiting.fetch_add(1, Ordering::AcqRel);
        self.receiver.unpark();
    }

    /// Takes a message out, waiting for one. For one thread.
    pub fn receive(&self) {
        // Acquire, partner: the increment in `send`.
        while self.waiting.load(Ordering::Acquire) == 0 {
            self.receiver.park(Nanos::MAX);
        }
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The program to run.
#[derive(Clone, Debug)]
pub struct MessageLoop {
    /// Of A, B, C and D, which are `SCHED_FIFO` with these: 1 to 99, the highest. `None`: they are as threads
    /// usually are.
    pub priorities: Option<[u8; 4]>,
    /// How many cycles.
    pub cycles: u64,
    /// Where all four may run. Source: one CPU.
    pub mask: Option<CpuSet>,
}

/// The results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageReport {
    /// From the first message to the last yield.
    pub elapsed: Nanos,
    /// How often one of the four was switched away from; `None` if the platform does not count.
    pub switches: Option<u64>,
    /// Of each message, from sending to having it.
    pub latency: Statistic,
}

impl MessageLoop {
    /// Runs it on four new threads, and waits for them.
    ///
    /// # Errors
    /// If the system refuses a thread or its priority; then nothing was run.
    pub fn run<P: Polling>(&self, platform: &P) -> Result<MessageReport, GangError> {
        let times = || P::Lock::new(Vec::new());
        let shared = Arc::new(Shared::<P> {
            platform: platform.clone(),
            cycles: self.cycles,
            queues: [0; D].map(|_| Queue::new(platform)),
            sent: [0; D].map(|_| times()),
            had: [0; D].map(|_| times()),
            own: P::AtomicU64::new(0),
            report: P::Lock::new(MessageReport {
                switches: Some(0),
                ..MessageReport::default()
            }),
        });
        let params = |thread: usize| match self.priorities {
            Some(priorities) => SchedParams::fifo(priorities[thread]),
            None => SchedParams::default(),
        };
        let members = [0, 1, 2, D].map(|thread| Member {
            name: NAMES[thread].to_owned(),
            params: params(thread),
        });
        let theirs = Arc::clone(&shared);
        let body = move |thread| theirs.live(thread);
        run_gang(platform, &members, self.mask.as_ref(), body)?;
        Ok(shared.finish())
    }
}

/// The state that the four threads share.
struct Shared<P: Platform> {
    platform: P,
    cycles: u64,
    /// Of A, B and C.
    queues: [Queue<P>; D],
    /// When each message was sent, and when its receiver had it.
    sent: [P::Lock<Vec<Nanos>>; D],
    had: [P::Lock<Vec<Nanos>>; D],
    /// D's alone; what its yields look at.
    own: P::AtomicU64,
    report: P::Lock<MessageReport>,
}

impl<P: Polling> Shared<P> {
    fn live(&self, thread: usize) {
        let before = self.platform.machine().usage();
        let elapsed = match thread {
            D => Some(self.send_all()),
            receiver => {
                self.receive_all(receiver);
                None
            }
        };
        let used = used(before, self.platform.machine().usage());
        let away = used.voluntary.zip(used.involuntary);
        self.report.with(|report| {
            report.switches = report.switches.zip(away).map(|(sum, (a, b))| sum + a + b);
            report.elapsed = elapsed.unwrap_or(report.elapsed);
        });
    }

    /// The life of D. How long it took.
    fn send_all(&self) -> Nanos {
        // Kept beside and put where others look at the end: a lock would be one more thing to wait for.
        let mut sent = [0; D].map(|_| Vec::with_capacity((self.cycles * EACH) as usize));
        let begin = self.platform.now();
        for _ in 0..self.cycles {
            for (queue, sent) in self.queues.iter().zip(&mut sent) {
                for _ in 0..EACH {
                    sent.push(self.platform.now());
                    queue.send();
                }
            }
            self.platform.poll(Poll::Yield, &self.own);
        }
        let elapsed = self.platform.now() - begin;
        for (kept, sent) in self.sent.iter().zip(sent) {
            kept.with(|kept| *kept = sent);
        }
        elapsed
    }

    /// The life of A, B or C.
    fn receive_all(&self, receiver: usize) {
        let mut had = Vec::with_capacity((self.cycles * EACH) as usize);
        for _ in 0..self.cycles * EACH {
            self.queues[receiver].receive();
            had.push(self.platform.now());
        }
        self.had[receiver].with(|kept| *kept = had);
    }

    fn finish(&self) -> MessageReport {
        let mut report = self.report.with(|report| report.clone());
        for (sent, had) in self.sent.iter().zip(&self.had) {
            let (sent, had) = (sent.with(std::mem::take), had.with(std::mem::take));
            for (sent, had) in sent.into_iter().zip(had) {
                report.latency.add(had - sent);
            }
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use platform::Os;
    use sim::{Machine, Sim, SimConfig};

    use super::*;

    const CYCLES: u64 = 100;

    /// Goal: threads of one priority switch four times a cycle, threads with one each 18 times, and every
    /// message arrives. Method: simulated threads on one CPU of Linux; the beginning and the end have some
    /// switches beside.
    #[test]
    fn priorities_decide_about_switches() {
        for (priorities, expected) in [([10; 4], 4), ([14, 13, 12, 11], 18)] {
            let mut told = None;
            let config = SimConfig::on(Machine::ideal(1), "eevdf-6.18", 1);
            Sim::run(config, |sim| {
                let what = MessageLoop {
                    priorities: Some(priorities),
                    cycles: CYCLES,
                    mask: None,
                };
                told = Some(what.run(&sim).unwrap());
            })
            .expect_finished();
            let told = told.unwrap();
            let switches = told.switches.unwrap();
            assert!(switches.abs_diff(expected * CYCLES) < 10, "{switches}");
            assert_eq!(told.latency.count(), CYCLES * MESSAGES);
        }
    }

    /// Goal: every message arrives under any order of steps. Method: some seeds of the simulated explorer,
    /// with waits that return early; and the machine at hand.
    #[test]
    fn every_message_arrives() {
        let what = MessageLoop {
            priorities: None,
            cycles: 5,
            mask: None,
        };
        for seed in 0..50 {
            let config = SimConfig::new(seed).with_spurious(seed % 2 == 0);
            Sim::run(config, |sim| {
                let told = what.run(&sim).unwrap();
                assert_eq!(told.latency.count(), 5 * MESSAGES);
            })
            .expect_finished();
        }
        let told = what.run(&Os).unwrap();
        assert_eq!(told.latency.count(), 5 * MESSAGES);
    }

    /// Goal: where priorities are granted four of them need 18 switches a cycle, and elsewhere the refusal is
    /// told. Method: this machine, pinned to a CPU; other programs on it add switches and take none away but
    /// for those of messages that were sent before their receiver waited.
    #[test]
    fn unique_priorities_need_eighteen_switches_where_granted() {
        let cpu = Os.topology().allowed().iter().last();
        let what = MessageLoop {
            priorities: Some([14, 13, 12, 11]),
            cycles: CYCLES,
            mask: cpu.map(|cpu| CpuSet::from_iter([cpu])),
        };
        match what.run(&Os) {
            Ok(told) => {
                assert_eq!(told.latency.count(), CYCLES * MESSAGES);
                if let Some(switches) = told.switches {
                    assert!(switches >= 17 * CYCLES, "{switches}");
                }
            }
            Err(refused) => assert!(matches!(refused, GangError::Refused(_)), "{refused}"),
        }
    }
}
