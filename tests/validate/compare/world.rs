//! Programs that run on the machine at hand and on a simulated one.
//!
//! A [`Program`] is written once, against a [`World`]. Its run is a [`Course`], whichever world it was, and
//! every quantity is computed from courses by one function. So a difference between two numbers is one
//! between two kernels, and not between two programs or two ways of counting.

use std::sync::Arc;

use event::Nanos;
use platform::Platform;
use policy::Attr;

/// The actions of a program's threads.
pub(crate) trait World: Clone + Send + 'static {
    /// Memory, parkers and clock.
    type Platform: Platform;
    /// The platform.
    fn platform(&self) -> &Self::Platform;
    /// The time since the program began.
    fn now(&self) -> Nanos;
    /// Computes for as long as this takes on a CPU of one's own.
    fn work(&self, length: Nanos);
    /// Computes until then, however much that is.
    fn compute_until(&self, end: Nanos);
    /// Sleeps until then.
    fn sleep_until(&self, time: Nanos);
    /// Calls the kernel, which finds nothing to do: a futex wake without a waiter.
    fn call(&self);
    /// Calls `sched_yield`.
    fn yields(&self);
    /// A mutex of the kernel, whose holder inherits the priority of its waiters, or not.
    fn mutex(&self, inherits: bool) -> Arc<dyn Mutex>;
}

/// A mutex that is held across calls.
pub(crate) trait Mutex: Send + Sync {
    /// Takes it, waiting for it if another thread holds it.
    fn lock(&self);
    /// Gives it back. Only its holder may.
    fn unlock(&self);
}

/// A program: threads that are all there when it begins.
pub(crate) trait Program {
    /// Its threads, and what they share.
    fn threads<W: World>(&self, world: &W) -> Vec<Thread<W>>;

    /// Whether the switches will be looked at. Recording them costs the machine at hand time at each.
    /// Default: no.
    fn has_stints(&self) -> bool {
        false
    }
}

/// A thread of a program.
pub(crate) struct Thread<W> {
    /// Its attributes for the scheduler.
    pub(crate) attr: Attr,
    /// The only CPU it may run on: 0 or 1, of the two that programs are given. `None`: both.
    pub(crate) cpu: Option<usize>,
    /// Its body; gives its notes.
    pub(crate) body: Body<W>,
}

/// The body of a thread.
pub(crate) type Body<W> = Box<dyn FnOnce(&W) -> Vec<Note> + Send>;

impl<W> Thread<W> {
    /// A thread on the second CPU. The first one has the machine's other business: it is where interrupts
    /// usually go, and where the program that measures waits.
    pub(crate) fn new(attr: Attr, body: impl FnOnce(&W) -> Vec<Note> + Send + 'static) -> Self {
        Thread {
            attr,
            cpu: Some(1),
            body: Box::new(body),
        }
    }

    /// The same on another CPU, or on both.
    pub(crate) fn on(self, cpu: Option<usize>) -> Self {
        Thread { cpu, ..self }
    }
}

/// Something a thread noted: a name, and a length of time or a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) name: &'static str,
    pub(crate) value: u64,
}

impl Note {
    pub(crate) fn time(name: &'static str, time: Nanos) -> Note {
        let value = time.0;
        Note { name, value }
    }
}

/// The record of a program's run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Course {
    /// Which thread got which CPU when, in the order of time.
    pub(crate) switches: Vec<Switch>,
    /// How the switches were found out.
    pub(crate) seen_by: SeenBy,
    /// By thread: what it noted.
    pub(crate) notes: Vec<Vec<Note>>,
    /// By thread: what it used.
    pub(crate) used: Vec<Used>,
}

/// One of the program's threads, or none of them, gets a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) time: Nanos,
    pub(crate) cpu: u32,
    /// The thread's number.
    pub(crate) next: Option<usize>,
}

/// How switches were found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SeenBy {
    /// The kernel said so: `sched_switch`, or a simulated one's trace.
    #[default]
    Kernel,
    /// From gaps: each computing thread reads the clock all the time, and where there is a gap it did not
    /// run. Threads that do not compute are not seen.
    Gaps,
}

/// The CPU use of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) cpu: Nanos,
    /// How often it was switched away from, of its own will or not.
    pub(crate) switches: u64,
}

impl Course {
    /// The values of all notes of this name.
    pub(crate) fn noted(&self, name: &str) -> Vec<u64> {
        let notes = self.notes.iter().flatten();
        let named = notes.filter(|note| note.name == name);
        named.map(|note| note.value).collect()
    }

    /// The *stints*, in the order of time: which thread had a CPU, and for how long, until another thread of
    /// the program had it. An interruption by other programs counts for the interrupted thread. The first is
    /// left out, and those that end after `until`: the program's beginning and end cut them.
    pub(crate) fn stints(&self, until: Nanos) -> Vec<(usize, Nanos)> {
        let mut stints: Vec<(usize, Nanos)> = Vec::new();
        let mut running: Option<(usize, Nanos)> = None;
        for switch in self
            .switches
            .iter()
            .take_while(|switch| switch.time <= until)
        {
            let Some(next) = switch.next else { continue };
            match running {
                Some((who, _)) if who == next => continue,
                Some((who, since)) => stints.push((who, switch.time - since)),
                None => {}
            }
            running = Some((next, switch.time));
        }
        stints.drain(..stints.len().min(1));
        stints
    }

    /// Which thread had a CPU, stint by stint, in stretches during which no other thread than the program's
    /// had it.
    pub(crate) fn undisturbed(&self, until: Nanos) -> Vec<Vec<usize>> {
        let switches = self.switches.iter();
        let switches: Vec<&Switch> = switches.take_while(|switch| switch.time <= until).collect();
        let stretches = switches.split(|switch| switch.next.is_none());
        let stints = |stretch: &[&Switch]| {
            let mut threads: Vec<usize> = stretch.iter().filter_map(|switch| switch.next).collect();
            threads.dedup();
            threads
        };
        stretches.map(stints).collect()
    }

    /// How often each thread got a CPU after another one.
    pub(crate) fn turns(&self, thread: usize, until: Nanos) -> usize {
        let stints = self.stints(until);
        stints.iter().filter(|(who, _)| *who == thread).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a stint is the time of one thread until another one has the CPU; others' interruptions do not
    /// end it, and stints cut by the ends are left out. Method: a made-up course of two threads.
    #[test]
    fn stints_end_when_another_thread_runs() {
        let at = |time: u64, next: Option<usize>| Switch {
            time: Nanos(time),
            cpu: 1,
            next,
        };
        let course = Course {
            switches: vec![
                at(3, Some(0)),
                at(10, Some(1)),
                at(12, None),
                at(13, Some(1)),
                at(20, Some(0)),
                at(33, Some(1)),
                at(50, None),
            ],
            ..Course::default()
        };
        let end = Nanos(50);
        assert_eq!(course.stints(end), [(1, Nanos(10)), (0, Nanos(13))]);
        assert_eq!(course.stints(Nanos(32)), [(1, Nanos(10))]);
        assert_eq!((course.turns(0, end), course.turns(1, end)), (1, 1));
        assert_eq!(Course::default().stints(end), []);
        let undisturbed = [vec![0, 1], vec![1, 0, 1], vec![]];
        assert_eq!(course.undisturbed(end), undisturbed);
    }

    /// Goal: notes are found by their names, over all threads. Method: two threads.
    #[test]
    fn notes_are_found_by_name() {
        let note = |name, value| Note { name, value };
        let course = Course {
            notes: vec![vec![note("a", 1), note("b", 2)], vec![note("a", 3)]],
            ..Course::default()
        };
        assert_eq!(course.noted("a"), [1, 3]);
        assert!(course.noted("c").is_empty());
    }
}
