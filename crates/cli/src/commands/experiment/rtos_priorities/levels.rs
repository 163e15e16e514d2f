//! One level of priority to four: the article's advice, to use as few as possible.

use super::messages::{Cycles, PriorityCase};
use crate::commands::experiment::claim::{Claim, Expect};

/// From one level to four: each level more takes one thread out of those that share the lowest.
const FROM_ABOVE: [PriorityCase; 4] = [
    PriorityCase::Equal,
    PriorityCase::AboveTwo,
    PriorityCase::AboveThree,
    PriorityCase::Unique,
];
/// The same where the thread that sends is below all others from two levels on.
const SENDER_BELOW: [PriorityCase; 4] = [
    PriorityCase::Equal,
    PriorityCase::BelowTwo,
    PriorityCase::BelowThree,
    PriorityCase::Unique,
];

/// Whether each level more costs more switches, and whether fewer than four ever cost more than four.
pub(super) fn claims(of: impl Fn(PriorityCase) -> f64) -> [Claim; 2] {
    let (above, below) = (FROM_ABOVE.map(&of), SENDER_BELOW.map(&of));
    let most = above.into_iter().chain(below).fold(0.0, f64::max);
    let words = |counts: [f64; 4]| counts.map(|count| format!("{count:.0}")).join(", ");
    [
        Claim::source(
            "003-y",
            "The fewer levels of priority, the fewer switches",
            "Priority Inheritance and Time-Slicing, first paragraph; the last one",
        )
        .is(Expect::Exactly(3.0), steps(above), "of three levels more cost more")
        .varied("sharing", "the sender below the others", Expect::Exactly(3.0), steps(below))
        .note(format!(
            "one level to four: {} switches a cycle where the lowest is shared, {} where the sender has it \
             alone: there two levels cost what four do",
            words(above),
            words(below)
        )),
        Claim::source(
            "003-z",
            "… and a priority for each thread is the worst case",
            "below figure 11",
        )
        .is(Expect::Exactly(most), of(PriorityCase::Unique), "switches a cycle"),
    ]
}

/// How many levels more cost more.
fn steps(counts: [f64; 4]) -> f64 {
    counts.windows(2).filter(|pair| pair[0] < pair[1]).count() as f64
}

/// The switches of a cycle of this case, among all that were run.
pub(super) fn switches<'a>(
    mut all: impl Iterator<Item = (PriorityCase, &'a Cycles)>,
    case: PriorityCase,
) -> f64 {
    let found = all.find(|(its, _)| *its == case);
    found.map_or(f64::NAN, |(_, cycles)| cycles.switches.round())
}

#[cfg(test)]
mod tests {
    use super::super::messages::{Order, cycles};
    use super::*;
    use crate::commands::experiment::lab;

    /// Goal: the counts of all levels are those of the rules. Method: a cycle in which D sends AAABBBCCC, on
    /// paper: a receiver above D is switched to and back for each of its messages, and D then goes on; one
    /// beside D takes its three at once, after D; and D's turn comes last: 2 for each message above, 1 for
    /// each receiver beside, 1 back to D if there is any.
    #[test]
    fn each_level_costs_what_it_does_on_paper() {
        let machine = lab::machine("mcu");
        for (case, switches) in [
            (PriorityCase::Equal, 4.0),
            (PriorityCase::AboveTwo, 9.0),
            (PriorityCase::AboveThree, 14.0),
            (PriorityCase::BelowTwo, 18.0),
            (PriorityCase::BelowThree, 18.0),
            (PriorityCase::Unique, 18.0),
        ] {
            let ran = cycles(&machine, case, Order::ByReceiver, 30, 1);
            let ran = ran.unwrap_or_else(|failure| panic!("{}", failure.text()));
            assert_eq!(ran.switches, switches, "{}", case.name());
        }
    }

    /// Goal: the claim can fail. Method: counts that do not grow.
    #[test]
    fn levels_that_cost_nothing_are_no_advice() {
        let [fewer, worst] = claims(|_| 4.0);
        assert_eq!(
            (fewer.holds_here(), worst.holds_here()),
            (Some(false), Some(true))
        );
        let [_, worst] = claims(|case| f64::from(u8::from(case == PriorityCase::BelowTwo)));
        assert_eq!(worst.holds_here(), Some(false));
    }
}
