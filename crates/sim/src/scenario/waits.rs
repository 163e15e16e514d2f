//! What each thread waits for, by the names of the scenario: a report says those, and not the simulator's
//! numbers.

use std::sync::Mutex as StdMutex;

use super::objects::held;
use crate::report::{On, Outcome, SimReport, ThreadState};

/// The wait of each thread, by its number.
#[derive(Debug, Default)]
pub(super) struct NamedWaits(StdMutex<Vec<NamedWait>>);

/// The last wait of a thread.
#[derive(Clone, Debug, Default)]
struct NamedWait {
    /// The sort of object.
    what: &'static str,
    name: String,
    is_over: bool,
}

impl NamedWaits {
    /// A thread may wait for an object from now on.
    pub(super) fn begin(&self, thread: usize, what: &'static str, name: &str) {
        let mut waits = held(&self.0);
        if waits.len() <= thread {
            waits.resize(thread + 1, NamedWait::default());
        }
        let wait = &mut waits[thread];
        wait.what = what;
        name.clone_into(&mut wait.name);
        wait.is_over = false;
    }

    /// It goes on.
    pub(super) fn end(&self, thread: usize) {
        if let Some(wait) = held(&self.0).get_mut(thread) {
            wait.is_over = true;
        }
    }

    /// Puts the names into a report.
    pub(super) fn tell(&self, report: &mut SimReport) {
        let waits = held(&self.0);
        let names: Vec<String> = report.threads.iter().map(|it| it.name.clone()).collect();
        for (thread, wait) in report.threads.iter_mut().zip(&*waits) {
            if let ThreadState::Blocked(on) = thread.state
                && !wait.is_over
                && !wait.what.is_empty()
            {
                thread.waits_for = Some(wait.told(on, &names));
            }
        }
        if let Outcome::Deadlock(blocked) = &mut report.outcome {
            for blocked in blocked {
                let thread = report.threads.get(blocked.thread);
                blocked.what = thread.and_then(|thread| thread.waits_for.clone());
            }
        }
    }
}

impl NamedWait {
    fn told(&self, on: On, names: &[String]) -> String {
        let holder = match on {
            On::Mutex { held_by, .. } => names.get(held_by),
            _ => None,
        };
        let held_by = holder.map_or(String::new(), |name| format!(", held by thread {name:?}"));
        format!("{} {:?}{held_by}", self.what, self.name)
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, run};
    use crate::{Machine, SimConfig};

    /// Goal: a deadlock is told with the names in the file, and no place of the simulator's source. Method:
    /// two threads that take two mutexes crosswise, and one that waits for each other sort of object.
    #[test]
    fn a_deadlock_has_the_names_of_the_file() {
        let text = "about = 'x'\nmachine = 'vm-2'\npolicy = 'eevdf-6.18'\n\
            [[thread]]\nname = 'a'\nphases = [{ lock = 'm' }, { sleep = '1 ms' }, { lock = 'n' }]\n\
            [[thread]]\nname = 'b'\nphases = [{ lock = 'n' }, { sleep = '1 ms' }, { lock = 'm' }]\n\
            [[thread]]\nname = 'c'\nphases = [{ wait = { flag = 'f', by = 'park' } }]\n\
            [[thread]]\nname = 'd'\nphases = [{ take = 's' }]\n\
            [[thread]]\nname = 'e'\nphases = [{ receive = 'q' }]\n\
            [[thread]]\nname = 'g'\nphases = [{ await = { condition = 'k' } }]\n\
            [[thread]]\nname = 'h'\nphases = [{ barrier = 'r' }]\n\
            [[thread]]\nname = 'i'\nphases = [{ barrier = 'r' }, { barrier = 'r' }]\n\
            [[thread]]\nname = 'j'\nphases = [{ barrier = 'r' }, { wait = { flag = 'f', by = 'spin' } }]\n";
        let scenario = Scenario::parse("test", text).unwrap();
        let machine = Machine::named("vm-2").unwrap();
        let config = SimConfig::on(machine, "eevdf-6.18", 1);
        let report = run(&scenario, config).report;
        let blocked: Vec<String> = report
            .deadlocked()
            .expect("it is one")
            .iter()
            .map(ToString::to_string)
            .collect();
        let all = report.to_string();
        for told in [
            "thread 0 \"a\" waits for mutex \"n\", held by thread \"b\"",
            "thread 1 \"b\" waits for mutex \"m\", held by thread \"a\"",
            "thread 2 \"c\" waits for flag \"f\"",
            "thread 3 \"d\" waits for semaphore \"s\"",
            "thread 4 \"e\" waits for queue \"q\"",
            "thread 5 \"g\" waits for condition \"k\"",
            "thread 7 \"i\" waits for barrier \"r\"",
            "thread 8 \"j\" waits for flag \"f\"",
        ] {
            assert!(blocked.contains(&told.to_owned()), "{told}: {blocked:?}");
            let (thread, told) = told.split_once(" waits").unwrap();
            let line = format!("{thread}: waits{told}");
            assert!(all.contains(&line), "{line}: {all}");
        }
        assert!(!all.contains(".rs:"), "{all}");
    }
}
