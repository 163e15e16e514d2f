//! Threads that send each other messages, in cycles.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use console::Failure;
use event::{KernelEventKind, Left, Nanos, Random, Task};
use platform::Platform;
use policy::{Attr, Mask};
use sim::sync::Queue;
use sim::{FirstThread, Machine, Sim, SimConfig, SimReport};

use crate::commands::experiment::lab;
use crate::commands::experiment::timeline::{Stint, stints};

/// The priorities of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PriorityCase {
    /// All the same: the article's case 1.
    Equal,
    /// Two levels: A above the others.
    AboveTwo,
    /// Three: A, B, the others.
    AboveThree,
    /// Two, and D, which sends, below all that receive.
    BelowTwo,
    /// Three, and D below all that receive.
    BelowThree,
    /// Each its own: case 2.
    Unique,
    /// As case 2, but no thread preempts D.
    Threshold,
}

impl PriorityCase {
    pub(super) const ALL: [PriorityCase; 7] = [
        PriorityCase::Equal,
        PriorityCase::AboveTwo,
        PriorityCase::AboveThree,
        PriorityCase::BelowTwo,
        PriorityCase::BelowThree,
        PriorityCase::Unique,
        PriorityCase::Threshold,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            PriorityCase::Equal => "equal",
            PriorityCase::AboveTwo => "two: A, BCD",
            PriorityCase::AboveThree => "three: A, B, CD",
            PriorityCase::BelowTwo => "two: ABC, D",
            PriorityCase::BelowThree => "three: A, BC, D",
            PriorityCase::Unique => "unique",
            PriorityCase::Threshold => "unique, D with threshold 1",
        }
    }

    /// Of thread 0 to 3: A, B, C, D.
    fn attr(self, thread: usize) -> Attr {
        // Of A to D; the lowest number goes first.
        let priorities = match self {
            PriorityCase::Equal => [4, 4, 4, 4],
            PriorityCase::AboveTwo => [1, 4, 4, 4],
            PriorityCase::AboveThree => [1, 2, 4, 4],
            PriorityCase::BelowTwo => [1, 1, 1, 4],
            PriorityCase::BelowThree => [1, 2, 2, 4],
            PriorityCase::Unique | PriorityCase::Threshold => [1, 2, 3, 4],
        };
        Attr {
            priority: priorities[thread],
            threshold: (self == PriorityCase::Threshold && thread == D).then_some(1),
            ..Attr::default()
        }
    }
}

pub(super) const NAMES: [&str; 4] = ["A", "B", "C", "D"];
const D: usize = 3;

/// In which order D sends nine messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// AAA BBB CCC.
    ByReceiver,
    /// ABC ABC ABC.
    InTurn,
    /// Drawn for each cycle.
    Drawn,
}

impl Order {
    pub(super) const ALL: [Order; 3] = [Order::ByReceiver, Order::InTurn, Order::Drawn];

    pub(super) fn name(self) -> &'static str {
        match self {
            Order::ByReceiver => "AAABBBCCC",
            Order::InTurn => "ABCABCABC",
            Order::Drawn => "drawn",
        }
    }

    fn receivers(self, random: &mut Random) -> [usize; 9] {
        match self {
            Order::ByReceiver => std::array::from_fn(|message| message / 3),
            Order::InTurn => std::array::from_fn(|message| message % 3),
            Order::Drawn => {
                let mut receivers = std::array::from_fn(|message| message / 3);
                shuffle(&mut receivers, random);
                receivers
            }
        }
    }
}

/// R. Durstenfeld, "Algorithm 235: random permutation", 1964.
fn shuffle(items: &mut [usize], random: &mut Random) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// The results of some cycles.
#[derive(Clone, Debug)]
pub(super) struct Cycles {
    /// The length of each, in nanoseconds.
    lengths: Vec<f64>,
    /// A cycle, on the average.
    pub(super) switches: f64,
    /// How often a thread lost its CPU to another one.
    pub(super) preemptions: u64,
    /// Of each message, from sending to having it, in nanoseconds.
    pub(super) latencies: Vec<f64>,
    /// What the threads did in the second cycle; times are from its beginning on.
    pub(super) second: Vec<Stint>,
    /// Its length.
    pub(super) second_length: Nanos,
}

impl Cycles {
    /// Of all cycles but the first, in which threads start.
    fn of(report: &SimReport, log: &Log) -> Cycles {
        let begins = &log.begins;
        let (first, last) = (begins[1], begins[begins.len() - 1]);
        let is_switch = |event: &&event::KernelEvent| {
            let to_thread = matches!(event.what, KernelEventKind::Switch { next: Some(_), .. });
            to_thread && (first..last).contains(&event.time)
        };
        let pairs = begins[1..].windows(2);
        let lengths: Vec<f64> = pairs.map(|pair| (pair[1] - pair[0]).0 as f64).collect();
        Cycles {
            switches: report.trace.iter().filter(is_switch).count() as f64 / lengths.len() as f64,
            preemptions: preemptions(report, log),
            latencies: log.latencies.clone(),
            second: within(stints(report), first, begins[2]),
            second_length: begins[2] - first,
            lengths,
        }
    }

    pub(super) fn mean(&self) -> f64 {
        lab::mean(&self.lengths)
    }

    pub(super) fn deviation(&self) -> f64 {
        lab::deviation(&self.lengths)
    }

    /// The shortest and the longest.
    pub(super) fn ends(&self) -> (f64, f64) {
        let ends = (f64::MAX, f64::MIN);
        self.lengths.iter().fold(ends, |(least, most), &length| {
            (least.min(length), most.max(length))
        })
    }
}

/// The parts of stints between these times, from the first one on.
fn within(stints: Vec<Stint>, from: Nanos, to: Nanos) -> Vec<Stint> {
    let cut = |stint: Stint| {
        let (begin, end) = (stint.begin.max(from), stint.end.min(to));
        (begin < end).then(|| Stint {
            begin: begin - from,
            end: end - from,
            ..stint
        })
    };
    stints.into_iter().filter_map(cut).collect()
}

/// How often a thread lost its CPU although it had not relinquished it.
fn preemptions(report: &SimReport, log: &Log) -> u64 {
    let lost = |event: &&event::KernelEvent| match event.what {
        KernelEventKind::Switch {
            prev: Some(Task(task)),
            state: Left::Runnable,
            ..
        } => task as usize != D || !log.relinquished.contains(&event.time),
        _ => false,
    };
    report.trace.iter().filter(lost).count() as u64
}

/// The records of the threads, which take turns on one OS thread.
#[derive(Default)]
struct Log {
    /// When each cycle began.
    begins: Vec<Nanos>,
    /// When D relinquished the CPU.
    relinquished: Vec<Nanos>,
    latencies: Vec<f64>,
}

/// Nine messages a cycle, after the article.
pub(super) fn cycles(
    machine: &Arc<Machine>,
    case: PriorityCase,
    order: Order,
    count: u64,
    seed: u64,
) -> Result<Cycles, Failure> {
    let log = Rc::new(RefCell::new(Log::default()));
    let report = Sim::run_all(config(machine, seed), |sim| {
        let queues: Vec<Queue> = (0..3).map(|_| Queue::new(sim, 3)).collect();
        let receiver = |thread: usize| {
            let (sim, queue, log) = (sim.clone(), queues[thread].clone(), log.clone());
            move || {
                for _ in 0..count * 3 {
                    let sent = Nanos(queue.receive());
                    let latency = sim.now() - sent;
                    log.borrow_mut().latencies.push(latency.0 as f64);
                }
            }
        };
        let sender = {
            let (sim, queues, log) = (sim.clone(), queues.clone(), log.clone());
            let mut random = Random::new(seed);
            move || {
                for _ in 0..count {
                    log.borrow_mut().begins.push(sim.time());
                    for thread in order.receivers(&mut random) {
                        queues[thread].send(sim.now().0);
                    }
                    // A step, so that it is the time at which the yield begins.
                    let now = sim.now();
                    log.borrow_mut().relinquished.push(now);
                    sim.yields();
                }
            }
        };
        let mut threads: Vec<FirstThread<'_>> = (0..3)
            .map(|thread| first(case, thread, receiver(thread)))
            .collect();
        threads.push(first(case, D, sender));
        threads
    });
    lab::sound("messages", &report)?;
    let log = log.borrow();
    Ok(Cycles::of(&report, &log))
}

/// A message a cycle that A, B and C forward to each other in an order that is drawn; the last one gives it
/// back to D.
pub(super) fn forwarding(
    machine: &Arc<Machine>,
    case: PriorityCase,
    count: u64,
    seed: u64,
) -> Result<Cycles, Failure> {
    let log = Rc::new(RefCell::new(Log::default()));
    let report = Sim::run_all(config(machine, seed), |sim| {
        let queues: Vec<Queue> = (0..4).map(|_| Queue::new(sim, 1)).collect();
        let route = Rc::new(RefCell::new([0; 3]));
        let forward = |thread: usize| {
            let (queues, route) = (queues.clone(), route.clone());
            move || {
                for _ in 0..count {
                    let place = queues[thread].receive() + 1;
                    let next = route.borrow().get(place as usize).copied().unwrap_or(D);
                    queues[next].send(place);
                }
            }
        };
        let sender = {
            let (sim, queues, route, log) =
                (sim.clone(), queues.clone(), route.clone(), log.clone());
            let mut random = Random::new(seed);
            move || {
                for _ in 0..count {
                    log.borrow_mut().begins.push(sim.time());
                    let mut order = [0, 1, 2];
                    shuffle(&mut order, &mut random);
                    *route.borrow_mut() = order;
                    queues[order[0]].send(0);
                    queues[D].receive();
                }
            }
        };
        let mut threads: Vec<FirstThread<'_>> = (0..3)
            .map(|thread| first(case, thread, forward(thread)))
            .collect();
        threads.push(first(case, D, sender));
        threads
    });
    lab::sound("forwarding", &report)?;
    let log = log.borrow();
    Ok(Cycles::of(&report, &log))
}

fn config(machine: &Arc<Machine>, seed: u64) -> SimConfig {
    SimConfig {
        trace: true,
        ..SimConfig::on(Arc::clone(machine), "rtos", seed)
    }
}

fn first<'a>(case: PriorityCase, thread: usize, body: impl FnOnce() + 'a) -> FirstThread<'a> {
    FirstThread {
        name: NAMES[thread].to_owned(),
        attr: case.attr(thread),
        mask: Mask::default(),
        body: Box::new(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: messages of the scenario and messages of the workload cost the same. Method: switches and
    /// lengths of cycles of both, where the scenario's are known to be the article's.
    #[test]
    fn cycles_are_those_of_the_scenario() {
        let machine = lab::machine("mcu");
        for (case, switches, tics) in [
            (PriorityCase::Equal, 4.0, 1034.0),
            (PriorityCase::Unique, 18.0, 1875.0),
        ] {
            for order in Order::ALL {
                let cycles = cycles(&machine, case, order, 30, 1).unwrap();
                assert_eq!(cycles.switches, switches, "{case:?} {order:?}");
                let tics_found = cycles.mean() * 841.0 / 4900.0;
                assert!((tics_found - tics).abs() < 1.0, "{tics_found}");
                assert_eq!(cycles.latencies.len(), 30 * 9);
            }
        }
    }
}
