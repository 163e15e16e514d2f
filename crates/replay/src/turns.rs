//! Locks that are handed over.
//!
//! The owner of an ordinary lock that gives it back and soon wants it again has it before the thread that it
//! woke can run: that one finds it taken and sleeps again. A fair lock belongs to the thread that waits for
//! it as soon as its owner gives it back, and the owner waits in its turn.
//!
//! A recording shows that a thread slept again for a lock: several of its sleeps are in one slice. With the
//! change the first of them is the only one, and what the thread did between them, to try again, is left
//! out. A thread has the lock until the slice ends that says so, if there is one behind its wait.

use std::collections::BTreeSet;
use std::sync::Arc;

use event::Nanos;
use sim::scenario::{Segment, WaitUntil};

use crate::program::{Program, ProgramThread};

/// The first words of the name of a slice in which a thread holds a lock, in the segments at its two ends.
const WORDS: &str = "holds: ";

/// The name of such a slice with this name in the recording.
pub(crate) fn mark(name: &str) -> String {
    format!("{WORDS}{name}")
}

/// Hands over all locks, or those that threads want in slices with this text in their names.
///
/// # Errors
/// If no thread slept again for one of them, or more than two threads share one.
pub(crate) fn hand_over(program: &mut Program, text: Option<&str>) -> Result<(), String> {
    let mut pairs: BTreeSet<(Arc<str>, Arc<str>)> = BTreeSet::new();
    let mut again = 0;
    let mut said = Vec::new();
    let wishes: Result<Vec<_>, String> = program
        .threads
        .iter()
        .map(|thread| wishes_of(thread, text))
        .collect();
    for (thread, wishes) in program.threads.iter_mut().zip(wishes?) {
        again += wishes
            .iter()
            .map(|wish| wish.tries.len() - 1)
            .sum::<usize>();
        let unmarked = wishes.iter().filter(|wish| wish.is_unmarked).count();
        if unmarked > 0 {
            said.push(format!(
                "{} gives a lock back as soon as it has it, {unmarked} of {} times: no slice says how long \
                 it holds it",
                thread.name,
                wishes.len()
            ));
        }
        let name: Arc<str> = thread.name.as_str().into();
        pairs.extend(wishes.iter().map(|wish| (name.clone(), wish.owner.clone())));
        takes(thread, &wishes);
    }
    if again == 0 {
        return Err(match text {
            Some(text) => format!(
                "hand-over: in no slice with {text:?} in its name a thread slept again for a lock because \
                 its owner had taken it before; a fair lock changes nothing there"
            ),
            None => "hand-over: in no slice a thread slept again for a lock because its owner had taken it \
                     before; fair locks change nothing here"
                .to_owned(),
        });
    }
    said.push(format!(
        "{again} times a thread slept again for a lock that its owner had taken before; the lock is handed \
         over instead, between two threads at a time"
    ));
    for thread in &mut program.threads {
        let waiters = pairs
            .iter()
            .filter(|(_, owner)| **owner == *thread.name)
            .map(|(waiter, _)| waiter);
        let waiters: BTreeSet<&Arc<str>> = waiters.collect();
        thread.replace(|segment| match segment {
            Segment::Hold(waiter) if waiters.contains(&waiter) => Some(take(waiter)),
            Segment::Free(waiter) if waiters.contains(&waiter) => Some(Segment::Hand(waiter)),
            segment => Some(segment),
        });
    }
    program.assumed.extend(said);
    Ok(())
}

/// A thread wanted a lock, once.
struct Wish {
    /// The positions of its waits for it.
    tries: Vec<usize>,
    owner: Arc<str>,
    /// The position of the segment behind which it gives the lock back.
    gives_back: usize,
    is_unmarked: bool,
}

fn wishes_of(thread: &ProgramThread, text: Option<&str>) -> Result<Vec<Wish>, String> {
    let mut wishes: Vec<Wish> = Vec::new();
    let mut last = None;
    for wait in &thread.waits {
        let Some(Segment::Wait {
            on,
            until: WaitUntil::Free,
            ..
        }) = thread.segments.get(wait.segment)
        else {
            continue;
        };
        if text.is_some_and(|text| !wait.within.contains(text)) {
            continue;
        }
        let is_same = wait.since.is_some() && wait.since == last;
        last = wait.since;
        match wishes.last_mut().filter(|_| is_same) {
            Some(wish) if wish.owner == *on => wish.tries.push(wait.segment),
            Some(wish) => {
                return Err(format!(
                    "hand-over: {} waited for {} and for {on} in one slice, and a replay hands over locks of \
                     two threads only",
                    thread.name, wish.owner
                ));
            }
            None => wishes.push(Wish {
                tries: vec![wait.segment],
                owner: on.clone(),
                gives_back: wait.segment,
                is_unmarked: true,
            }),
        }
    }
    for wish in &mut wishes {
        let last = wish.tries[wish.tries.len() - 1];
        let end = end_of_hold(&thread.segments, last);
        wish.is_unmarked = end.is_none();
        wish.gives_back = end.unwrap_or(last);
    }
    Ok(wishes)
}

/// Where the slice ends that says that the thread holds a lock, if one begins behind this wait and before
/// the thread sleeps.
fn end_of_hold(segments: &[Segment], wait: usize) -> Option<usize> {
    let mut name = None;
    for (at, segment) in segments.iter().enumerate().skip(wait + 1) {
        match (segment, name) {
            (Segment::Begin(begun), None) if begun.starts_with(WORDS) => name = Some(begun),
            (Segment::End(ended), Some(begun)) if ended == begun => return Some(at),
            (
                Segment::Wait { .. } | Segment::Spin(_) | Segment::Sleep { .. } | Segment::Until(_),
                None,
            ) => return None,
            _ => {}
        }
    }
    None
}

/// A thread that waits takes the lock, once for each wish, and hands it over when it has held it.
fn takes(thread: &mut ProgramThread, wishes: &[Wish]) {
    let mut wishes = wishes.iter().peekable();
    let mut held: Vec<&Wish> = Vec::new();
    thread.rebuild(|at, segment, segments| {
        let wish = wishes.peek().filter(|wish| wish.tries[0] <= at);
        let is_trying = wish.is_some();
        match segment {
            Segment::Wait {
                on, late, lends, ..
            } if wish.is_some_and(|wish| wish.tries[0] == at) => segments.push(Segment::Wait {
                on,
                until: WaitUntil::Taken,
                late,
                lends,
            }),
            Segment::Wait { .. } if wish.is_some_and(|wish| wish.tries.contains(&at)) => {}
            Segment::Work(_) if is_trying => {}
            segment => segments.push(segment),
        }
        let is_last = |wish: &&Wish| wish.tries.last() == Some(&at);
        held.extend(wishes.next_if(is_last));
        held.retain(|wish| {
            let is_over = wish.gives_back <= at;
            if is_over {
                segments.push(Segment::Hand(wish.owner.clone()));
            }
            !is_over
        });
    });
}

fn take(on: Arc<str>) -> Segment {
    Segment::Wait {
        on,
        until: WaitUntil::Taken,
        late: Nanos::ZERO,
        lends: false,
    }
}
