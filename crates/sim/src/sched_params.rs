//! A program's requests to the kernel for a thread ([`platform::Machine::set_sched_params`]), in a policy's
//! terms.
//!
//! Simulated threads have every right. Requests that are not modelled (uclamp) are refused, as a kernel
//! refuses them that was built without it.

use event::Nanos;
use platform::{Class, RefusalKind, SchedParams, SchedParamsError};
use policy::{Attr, Discipline};

/// The attributes that a task with those of `before` gets from these parameters, and the parameters that undo
/// them.
pub(crate) fn changed(
    before: &Attr,
    how: &SchedParams,
) -> Result<(Attr, SchedParams), SchedParamsError> {
    if how.uclamp.is_some() {
        let text = "the simulated kernel has no uclamp: ask for a class or a slice";
        return Err(SchedParamsError::new(how, RefusalKind::Unsupported, text));
    }
    let Some(class) = class_of(before) else {
        let text = format!(
            "the class of the thread is none of those known here ({:?})",
            before.discipline
        );
        return Err(SchedParamsError::new(how, RefusalKind::Unsupported, text));
    };
    // As a question it asks for nothing.
    let is_question = *how == SchedParams::default();
    let mut undo = SchedParams::default();
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

    /// Goal: every parameter does what it says and can be undone. Method: each one on tasks of both classes,
    /// with a slice and without; then the parameters that undo it.
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
                SchedParams::nice(-10),
                SchedParams::round_robin(3),
                SchedParams::fifo(3),
                SchedParams::slice(Nanos::from_millis(3)),
                SchedParams::default(),
            ] {
                let (after, undo) = changed(before, &how).unwrap();
                assert_eq!(after == *before, how == SchedParams::default(), "{how}");
                assert_eq!(class_of(&after), how.class.or(class_of(before)), "{how}");
                assert_eq!(after.slice, how.slice.or(before.slice), "{how}");
                let (undone, _) = changed(&after, &undo).unwrap();
                assert_eq!(class_of(&undone), class_of(before), "{how}");
                assert_eq!(undone.slice, before.slice, "{how}");
            }
        }
    }

    /// Goal: a parameter that is not modelled is refused, and nothing changes. Method: uclamp, and a task of
    /// a class that `SchedParams` does not know.
    #[test]
    fn what_is_not_modelled_is_refused() {
        assert!(changed(&Attr::default(), &SchedParams::uclamp(1024, 1024)).is_err());
        let idle = Attr {
            discipline: Discipline::Idle,
            ..Attr::default()
        };
        assert!(changed(&idle, &SchedParams::nice(-10)).is_err());
    }
}
