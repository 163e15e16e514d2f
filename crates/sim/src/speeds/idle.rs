//! The sleep state of an idle core: the deepest state whose residency has passed.
//!
//! A real kernel predicts how long a core will idle and chooses a state at once; here a core sinks from one
//! state into the next. Programs notice only the exit latency, which is the same if the idling is predicted
//! well.

use event::Nanos;

use crate::machine::IdleState;

/// The states of a cluster's cores.
#[derive(Debug)]
pub(super) struct Ladder {
    states: Vec<IdleState>,
}

impl Ladder {
    pub(super) fn new(states: &[IdleState]) -> Ladder {
        Ladder {
            states: states.to_vec(),
        }
    }

    /// The time it takes to wake up after idling for `idle`.
    pub(super) fn exit_latency(&self, idle: Nanos) -> Nanos {
        let deepest = self.states.iter().rfind(|state| state.residency <= idle);
        deepest.map_or(Nanos::ZERO, |state| state.exit)
    }

    /// The energy of the core between these two moments of its idling, in femtojoules: microwatts times
    /// nanoseconds.
    pub(super) fn femtojoules(&self, from: Nanos, to: Nanos) -> u128 {
        let ends = self.states.iter().skip(1).map(|state| state.residency);
        let ends = ends.chain([Nanos::MAX]);
        let within = |(state, end): (&IdleState, Nanos)| {
            let time = end.min(to) - state.residency.max(from);
            u128::from(state.microwatts) * u128::from(time.0)
        };
        self.states.iter().zip(ends).map(within).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        let state = |residency, exit, microwatts| IdleState {
            name: String::new(),
            residency: Nanos::from_micros(residency),
            exit: Nanos::from_micros(exit),
            microwatts,
        };
        Ladder::new(&[state(0, 1, 100), state(2000, 170, 20), state(5000, 2500, 3)])
    }

    /// Goal: the exit latency is that of the deepest state that was reached. Method: a table of idle times
    /// around each residency.
    #[test]
    fn the_deepest_state_that_was_reached_counts() {
        let table = [
            (0, 1),
            (1999, 1),
            (2000, 170),
            (4999, 170),
            (5000, 2500),
            (1_000_000, 2500),
        ];
        for (idle, exit) in table {
            let latency = ladder().exit_latency(Nanos::from_micros(idle));
            assert_eq!(latency, Nanos::from_micros(exit), "after {idle} us");
        }
        assert_eq!(Ladder::new(&[]).exit_latency(Nanos::MAX), Nanos::ZERO);
    }

    /// Goal: each state's power counts for the time spent in it, however the time is cut. Method: 6 ms by
    /// hand: 2 ms of 100 µW, 3 ms of 20 µW, 1 ms of 3 µW; whole, and as the sum of two parts cut anywhere.
    #[test]
    fn energy_is_the_sum_over_the_states() {
        const WHOLE: u128 = 2_000_000 * 100 + 3_000_000 * 20 + 1_000_000 * 3;
        let end = Nanos::from_millis(6);
        let ladder = ladder();
        assert_eq!(ladder.femtojoules(Nanos::ZERO, end), WHOLE);
        for cut in (0..=6000).step_by(250).map(Nanos::from_micros) {
            let parts = ladder.femtojoules(Nanos::ZERO, cut) + ladder.femtojoules(cut, end);
            assert_eq!(parts, WHOLE, "cut at {cut}");
        }
        assert_eq!(Ladder::new(&[]).femtojoules(Nanos::ZERO, end), 0);
    }
}
