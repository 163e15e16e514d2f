//! What a thread holds and measures, phase by phase: so mistakes in a scenario are found before it runs.

use std::collections::{BTreeMap, BTreeSet};

use super::file::Phase;

/// The mutexes that a thread holds at some point of its phases, and the stretches that it measures there.
#[derive(Debug, Default)]
pub(super) struct Held<'s> {
    mutexes: BTreeSet<&'s str>,
    open: BTreeMap<&'s str, u64>,
}

impl<'s> Held<'s> {
    /// Goes through phases that are repeated so often. What a second time does not find, no later one does:
    /// mutexes are then as they were a time before.
    ///
    /// # Errors
    /// A phase that can never do what it says.
    pub(super) fn check(&mut self, times: u64, phases: &'s [Phase]) -> Result<(), String> {
        for _ in 0..times.min(2) {
            phases.iter().try_for_each(|phase| self.pass(phase))?;
        }
        Ok(())
    }

    fn pass(&mut self, phase: &'s Phase) -> Result<(), String> {
        match phase {
            Phase::Lock(name) if !self.mutexes.insert(name) => Err(format!(
                "it locks {name:?}, which it holds already; unlock it before"
            )),
            Phase::Unlock(name) if !self.mutexes.remove(name.as_str()) => Err(format!(
                "it unlocks {name:?}, which it does not hold; lock it before"
            )),
            Phase::Await {
                condition,
                mutex: Some(mutex),
            } if !self.mutexes.contains(mutex.as_str()) => Err(format!(
                "it awaits {condition:?} with mutex {mutex:?}, which it does not hold; lock it before"
            )),
            Phase::Begin(name) => {
                *self.open.entry(name).or_default() += 1;
                Ok(())
            }
            Phase::End(name) => match self.open.get_mut(name.as_str()) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    Ok(())
                }
                _ => Err(format!(
                    "it ends {name:?}, which has not begun; begin it before"
                )),
            },
            Phase::Repeat { times, phases } => self.check(*times, phases),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    /// The mistake of a thread with these phases, or nothing.
    fn mistake(phases: &str) -> String {
        let text = format!(
            "about = 'x'\nmachine = 'vm-2'\npolicy = 'eevdf-6.18'\nuntil = '1 s'\n[[thread]]\nname = 'a'\n\
             repeat = 'forever'\nphases = [{{ work = '1 ms' }}, {phases}]\n"
        );
        let refused = Scenario::parse("dir/t.toml", &text).err();
        refused.map_or(String::new(), |bad| bad.to_string())
    }

    /// Goal: what a thread cannot do is told before the run, with the thread and the name, also where only
    /// the second time goes wrong. Method: each mistake, and phases beside it that are fine.
    #[test]
    fn mistakes_are_found_before_the_run() {
        for (phases, part) in [
            ("{ unlock = 'm' }", "unlocks \"m\", which it does not hold"),
            ("{ lock = 'm' }", "locks \"m\", which it holds already"),
            (
                "{ lock = 'm' }, { repeat = { times = 3, phases = [{ unlock = 'm' }] } }",
                "unlocks \"m\"",
            ),
            (
                "{ await = { condition = 'c', mutex = 'm' } }",
                "awaits \"c\" with mutex \"m\"",
            ),
            ("{ end = 'x' }", "ends \"x\", which has not begun"),
        ] {
            let said = mistake(phases);
            assert!(said.starts_with("dir/t.toml: thread \"a\": "), "{said}");
            assert!(said.contains(part), "{said}");
        }
        for fine in [
            "{ lock = 'm' }, { await = { condition = 'c', mutex = 'm' } }, { unlock = 'm' }",
            "{ begin = 'x' }, { begin = 'x' }, { end = 'x' }, { end = 'x' }",
            "{ begin = 'x' }",
            "{ repeat = { times = 0, phases = [{ unlock = 'm' }] } }",
        ] {
            assert_eq!(mistake(fine), "", "{fine}");
        }
    }
}
