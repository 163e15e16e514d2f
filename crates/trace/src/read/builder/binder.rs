//! Binder: calls from one process to another, as Android's driver tells of them.
//!
//! A call begins when the caller sends its transaction, and ends when it receives the reply. The thread that
//! receives the call serves it until it sends the reply. Both are slices of their threads, and calls nest on
//! either side; an arrow goes through them, there and back. One-way transactions are no calls: nobody waits
//! for them.

use std::collections::HashMap;

use event::{Nanos, Task};

use super::{At, Builder};
use crate::{Annotation, Loss, Mark, MarkKind, Recording};

/// The track of the slices, for programs that show tracks.
const TRACK: &str = "binder";
/// Arrows of programs have other numbers.
const ARROW: u64 = 0xb14d_e500_0000_0000;

/// An event of the driver about a transaction, which has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    /// The running thread calls a process.
    Call { number: u32, process: u32 },
    /// It answers the call that it serves.
    Reply { number: u32 },
    /// It receives one of the two.
    Received { number: u32 },
}

/// The flag of a transaction that goes one way.
const ONE_WAY: u64 = 1;

impl Transaction {
    /// What is sent; nothing if nobody waits for an answer.
    pub(crate) fn of(number: u32, process: u32, is_reply: bool, flags: u64) -> Option<Transaction> {
        match (is_reply, flags & ONE_WAY) {
            (true, _) => Some(Transaction::Reply { number }),
            (false, 0) => Some(Transaction::Call { number, process }),
            (false, _) => None,
        }
    }
}

/// What was sent and is not received yet.
#[derive(Clone, Copy, Debug)]
enum Sent {
    Call { from: Task },
    Reply { call: u32 },
}

/// A call, on one of its sides, that goes on.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: u32,
    begin: Nanos,
    with: With,
}

/// The other side of a call.
#[derive(Clone, Copy, Debug)]
enum With {
    /// The call is to this process.
    To(u32),
    /// The call is to this thread.
    Server(Task),
    /// The call is from this thread.
    Caller(Task),
}

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    sent: HashMap<u32, Sent>,
    /// By thread, the innermost last.
    called: HashMap<Task, Vec<Open>>,
    served: HashMap<Task, Vec<Open>>,
    /// Those that are over: thread, call, end.
    over: Vec<(Task, Open, Nanos)>,
}

impl Builder {
    /// The running thread sends or receives a transaction.
    pub(crate) fn transaction(&mut self, at: &At, what: Transaction) {
        let Some(task) = self.task(at.tid) else {
            return self.lose(Loss::BadFields, 1);
        };
        let arrow = |number: u32, ends| MarkKind::Flow {
            id: ARROW | u64::from(number),
            ends,
        };
        let begin = |number, with| Open {
            number,
            begin: at.time,
            with,
        };
        let calls = &mut self.calls;
        match what {
            Transaction::Call { number, process } => {
                let called = calls.called.entry(task).or_default();
                called.push(begin(number, With::To(process)));
                calls.sent.insert(number, Sent::Call { from: task });
                self.mark(at.time, task, arrow(number, false));
            }
            Transaction::Reply { number } => {
                let Some(served) = calls.served.get_mut(&task).and_then(Vec::pop) else {
                    return self.lose(Loss::Unbegun, 1);
                };
                let call = served.number;
                calls.sent.insert(number, Sent::Reply { call });
                calls.over.push((task, served, at.time));
                self.mark(at.time, task, arrow(call, false));
            }
            Transaction::Received { number } => match calls.sent.remove(&number) {
                Some(Sent::Call { from }) => {
                    let called = calls.called.get_mut(&from);
                    let mut called = called.into_iter().flatten();
                    if let Some(call) = called.find(|call| call.number == number) {
                        call.with = With::Server(task);
                    }
                    let served = calls.served.entry(task).or_default();
                    served.push(begin(number, With::Caller(from)));
                    self.mark(at.time, task, arrow(number, false));
                }
                Some(Sent::Reply { call }) => {
                    let called = calls.called.entry(task).or_default();
                    let Some(place) = called.iter().rposition(|open| open.number == call) else {
                        return self.lose(Loss::Unbegun, 1);
                    };
                    let open = called.remove(place);
                    calls.over.push((task, open, at.time));
                    self.mark(at.time, task, arrow(call, true));
                }
                // One way, or it was sent before the recording began.
                None => {}
            },
        }
    }
}

impl Calls {
    /// Adds the calls to the recording, whose threads and processes have their names now. Those that were not
    /// over are counted.
    pub(super) fn finish(self, recording: &mut Recording) {
        let sides = self.called.values().chain(self.served.values());
        let open: usize = sides.map(Vec::len).sum();
        recording.losses.add(Loss::Unfinished, open as u64);
        let notes = self.over.iter().map(|(task, call, end)| {
            let side = match call.with {
                With::To(process) => {
                    format!("to {}", process_name(recording, process))
                }
                With::Server(server) => format!("to {}", name(recording, server)),
                With::Caller(caller) => format!("from {}", name(recording, caller)),
            };
            Annotation {
                on: Some(*task),
                track: TRACK.into(),
                name: format!("{}{side}", Mark::BINDER_CALL),
                begin: call.begin,
                end: *end,
            }
        });
        let notes: Vec<Annotation> = notes.collect();
        recording.annotations.extend(notes);
    }
}

/// The name of a thread's process; where it has none, of the thread.
fn name(recording: &Recording, task: Task) -> String {
    let thread = recording.threads.get(task.index());
    let process = thread.and_then(|thread| recording.processes.get(thread.process?));
    let process = process.map(|process| process.name.clone());
    let process = process.filter(|name| !name.is_empty());
    process.unwrap_or_else(|| thread.map_or_else(String::new, |thread| thread.name.clone()))
}

fn process_name(recording: &Recording, pid: u32) -> String {
    let mut processes = recording.processes.iter();
    let process = processes.find(|process| process.pid == Some(pid));
    let name = process.map(|process| process.name.clone());
    let name = name.filter(|name| !name.is_empty());
    name.unwrap_or_else(|| format!("process {pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays transactions: time, thread, what.
    fn play(events: &[(u64, u32, Transaction)]) -> Recording {
        let mut builder = Builder::new("");
        for (time, tid, what) in events {
            let at = At {
                time: Nanos(*time),
                cpu: 0,
                tid: *tid,
                in_interrupt: false,
            };
            builder.transaction(&at, *what);
        }
        builder.finish()
    }

    fn call(number: u32) -> Transaction {
        Transaction::Call { number, process: 2 }
    }

    /// Goal: what is missing of a call is counted, and changes no other one. Method: an answer to a call
    /// before the recording, on both sides; a call without an answer around one with one; the idle task.
    #[test]
    fn parts_of_calls() {
        let reply = |number| Transaction::Reply { number };
        let received = |number| Transaction::Received { number };
        let found = play(&[
            (1, 2, reply(1)),
            (2, 1, received(1)),
            (3, 1, call(2)),
            (4, 1, call(3)),
            (5, 2, received(3)),
            (6, 2, reply(4)),
            (7, 1, received(4)),
            (8, 0, call(5)),
        ]);
        let notes = found.annotations.iter();
        let mut told: Vec<_> = notes.map(|note| (note.begin.0, note.end.0)).collect();
        told.sort_unstable();
        assert_eq!(told, [(4, 7), (5, 6)]);
        let losses = [Loss::Unbegun, Loss::Unfinished, Loss::BadFields];
        assert_eq!(losses.map(|loss| found.losses.get(loss)), [1, 1, 1]);
    }

    /// Goal: an arrow goes from the caller to the server, and back. Method: one call.
    #[test]
    fn arrows_go_there_and_back() {
        let reply = Transaction::Reply { number: 2 };
        let received = |number| Transaction::Received { number };
        let found = play(&[
            (1, 1, call(1)),
            (2, 2, received(1)),
            (3, 2, reply),
            (4, 1, received(2)),
        ]);
        let marks = found.marks.iter().map(|mark| match mark.what {
            MarkKind::Flow { id, ends } => (mark.time.0, mark.on.index(), id, ends),
            other => panic!("{other:?}"),
        });
        let id = ARROW | 1;
        let wanted = [
            (1, 0, id, false),
            (2, 1, id, false),
            (3, 1, id, false),
            (4, 0, id, true),
        ];
        assert_eq!(marks.collect::<Vec<_>>(), wanted);
    }
}
