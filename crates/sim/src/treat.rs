//! What a program asks of the kernel for a thread ([`platform::Platform::treat`]), in a policy's terms.
//!
//! Simulated threads have every right. What is not modelled (uclamp) is refused, as a kernel that was built
//! without it does.

use event::Nanos;
use platform::{Class, Treatment, TreatmentError};
use policy::{Attr, Discipline};

/// What a task treated like `before` asks for with this treatment, and the treatment that undoes it.
pub(crate) fn changed(before: &Attr, how: &Treatment) -> Result<(Attr, Treatment), TreatmentError> {
    if how.clamp.is_some() {
        return Err(TreatmentError("the simulated kernel has no uclamp".into()));
    }
    let Some(class) = class_of(before) else {
        let why = format!("it has a class of its own ({:?})", before.discipline);
        return Err(TreatmentError(why));
    };
    // As a question, nothing is asked for.
    let is_question = *how == Treatment::default();
    let mut undo = Treatment::default();
    undo.class = (is_question || how.class.is_some()).then_some(class);
    undo.slice = how.slice.map(|_| before.slice.unwrap_or(Nanos::ZERO));
    let mut attr = before.clone();
    match how.class {
        None => {}
        Some(Class::Fair { nice }) => {
            attr.discipline = Discipline::Fair;
            attr.nice = nice;
            attr.priority = 0;
        }
        Some(Class::RoundRobin { priority }) => {
            attr.discipline = Discipline::RoundRobin;
            attr.priority = priority;
        }
        Some(Class::Fifo { priority }) => {
            attr.discipline = Discipline::Fifo;
            attr.priority = priority;
        }
    }
    if let Some(slice) = how.slice {
        attr.slice = Some(slice).filter(|&slice| slice > Nanos::ZERO);
    }
    Ok((attr, undo))
}

fn class_of(attr: &Attr) -> Option<Class> {
    match attr.discipline {
        Discipline::Fair => Some(Class::Fair { nice: attr.nice }),
        Discipline::RoundRobin => Some(Class::RoundRobin {
            priority: attr.priority,
        }),
        Discipline::Fifo => Some(Class::Fifo {
            priority: attr.priority,
        }),
        Discipline::Batch | Discipline::Idle => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every treatment does what it says and can be undone. Method: each one on tasks of both classes,
    /// with a slice and without; then what undoes it.
    #[test]
    fn what_is_done_can_be_undone() {
        let slice = Nanos::from_micros(100);
        let fair = Attr::default();
        let sliced = Attr {
            slice: Some(slice),
            ..Attr::default()
        };
        let round_robin = Attr {
            discipline: Discipline::RoundRobin,
            priority: 7,
            ..Attr::default()
        };
        let fifo = Attr::fifo(7);
        for before in [&fair, &sliced, &round_robin, &fifo] {
            for how in [
                Treatment::nice(-10),
                Treatment::round_robin(3),
                Treatment::fifo(3),
                Treatment::slice(Nanos::from_millis(3)),
                Treatment::default(),
            ] {
                let (after, undo) = changed(before, &how).unwrap();
                assert_eq!(after == *before, how == Treatment::default(), "{how}");
                assert_eq!(class_of(&after), how.class.or(class_of(before)), "{how}");
                assert_eq!(after.slice, how.slice.or(before.slice), "{how}");
                let (undone, _) = changed(&after, &undo).unwrap();
                assert_eq!(class_of(&undone), class_of(before), "{how}");
                assert_eq!(undone.slice, before.slice, "{how}");
            }
        }
    }

    /// Goal: what is not modelled is refused, and nothing of it done. Method: uclamp, and a task of a class
    /// that treatments do not know.
    #[test]
    fn what_is_not_modelled_is_refused() {
        assert!(changed(&Attr::default(), &Treatment::clamped(1024, 1024)).is_err());
        let idle = Attr {
            discipline: Discipline::Idle,
            ..Attr::default()
        };
        assert!(changed(&idle, &Treatment::nice(-10)).is_err());
    }
}
