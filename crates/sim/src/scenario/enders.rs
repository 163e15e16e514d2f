//! Who can end a wait: what a scenario's threads say to a scheduler that listens.

use std::collections::BTreeMap;

use super::file::{Phase, Scenario};

/// A wait that so many threads could end names none of them.
const NAMED_MAX: usize = 8;

/// What a thread does to an object that ends the waits of others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Deed {
    Set,
    Post,
    Send,
    Receive,
    Signal,
}

/// For each object the threads whose phases end waits for it.
#[derive(Debug, Default)]
pub(super) struct Enders(BTreeMap<(Deed, String), Vec<usize>>);

impl Enders {
    pub(super) fn of(scenario: &Scenario) -> Enders {
        let mut enders = Enders::default();
        let mut number = 0;
        for plan in &scenario.threads {
            for _ in 0..plan.count {
                enders.add(number, &plan.phases);
                number += 1;
            }
        }
        enders.0.retain(|_, threads| threads.len() <= NAMED_MAX);
        enders
    }

    fn add(&mut self, thread: usize, phases: &[Phase]) {
        for phase in phases {
            let deed = match phase {
                Phase::Set(name) => (Deed::Set, name),
                Phase::Post(name) => (Deed::Post, name),
                Phase::Send(name) => (Deed::Send, name),
                Phase::Receive(name) => (Deed::Receive, name),
                Phase::Signal(name) | Phase::Broadcast(name) => (Deed::Signal, name),
                Phase::Repeat { phases, .. } => {
                    self.add(thread, phases);
                    continue;
                }
                _ => continue,
            };
            let threads = self.0.entry((deed.0, deed.1.clone())).or_default();
            if threads.last() != Some(&thread) {
                threads.push(thread);
            }
        }
    }

    /// The threads that can end this wait; none if there are too many.
    pub(super) fn of_wait(&self, phase: &Phase) -> &[usize] {
        let (deed, name) = match phase {
            Phase::Wait { flag, .. } => (Deed::Set, flag),
            Phase::Take(name) => (Deed::Post, name),
            Phase::Receive(name) => (Deed::Send, name),
            Phase::Send(name) => (Deed::Receive, name),
            Phase::Await { condition, .. } => (Deed::Signal, condition),
            _ => return &[],
        };
        self.0.get(&(deed, name.clone())).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a wait names the threads that can end it, through copies and repeated phases, and none if there
    /// are more than eight. Method: a scenario with a setter, two posters inside a repetition, and nine
    /// senders.
    #[test]
    fn a_wait_names_those_that_can_end_it() {
        let text = r#"
            about = "a test"
            machine = "ideal-1"
            policy = "waitfor"
            [[thread]]
            name = "setter"
            phases = [{ set = "f" }]
            [[thread]]
            name = "poster"
            count = 2
            phases = [{ repeat = { times = 2, phases = [{ post = "s" }, { post = "s" }] } }]
            [[thread]]
            name = "sender"
            count = 9
            phases = [{ send = "q" }]
        "#;
        let scenario = Scenario::parse("test", text).expect("it is a scenario");
        let enders = Enders::of(&scenario);
        let by = super::super::file::WaitKind::Park;
        let flag = "f".to_owned();
        assert_eq!(enders.of_wait(&Phase::Wait { flag, by }), [0]);
        assert_eq!(enders.of_wait(&Phase::Take("s".into())), [1, 2]);
        assert_eq!(enders.of_wait(&Phase::Receive("q".into())), [0usize; 0]);
        assert_eq!(enders.of_wait(&Phase::Take("other".into())), [0usize; 0]);
    }
}
