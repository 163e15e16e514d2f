//! What the article does not give of its scene, and was chosen.

use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};

/// What the scene as the article has it hangs on.
pub(super) const OF_SCENE: &[&ChosenValue] = &[&CORES_BACK, &CRITICAL, &SMALL_JOB];
/// What frames that differ hang on.
pub(super) const OF_FRAMES: &[&ChosenValue] = &[
    &CORES_BACK,
    &CRITICAL,
    &ABSENCE,
    &FOREIGN,
    &MORE_WORKERS,
    &PIECE,
    &CLOCKS,
];
/// What the frames that are held up under each kernel hang on.
pub(super) const OF_KERNELS: &[&ChosenValue] = &[
    &CORES_BACK,
    &CRITICAL,
    &ABSENCE,
    &FOREIGN,
    &PIECE,
    &CLOCKS,
    &HELD_UP,
];

pub(in crate::commands::experiment) const CORES_BACK: ChosenValue = ChosenValue {
    name: "cores-back",
    about: "when the cores that went away come back",
    unit: ValueUnit::Millis,
    chosen: 8.7,
    others: &[7.5, 10.0, 13.0, 19.0],
    why: "the picture's busy wait is 2 ms then",
};
pub(in crate::commands::experiment) const CRITICAL: ChosenValue = ChosenValue {
    name: "critical-job",
    about: "the work of the job that is waited for",
    unit: ValueUnit::Millis,
    chosen: 3.38,
    others: &[3.2, 4.0, 5.0, 8.0],
    why: "it is all but done when it is interrupted, as in the picture",
};
pub(super) const SMALL_JOB: ChosenValue = ChosenValue {
    name: "small-job",
    about: "the work of worker 2's job, on the fast core",
    unit: ValueUnit::Micros,
    chosen: 30.0,
    others: &[10.0, 20.0],
    why: "less than 46 µs on the core where it runs",
};
pub(super) const ABSENCE: ChosenValue = ChosenValue {
    name: "absence",
    about: "when the cores come back in frames that differ",
    unit: ValueUnit::Ways(&[
        "as chosen, 0.3 ms earlier or later",
        "drawn from 7 to 19 ms",
    ]),
    chosen: 0.0,
    others: &[1.0],
    why: "the scene is one frame; nothing is known of others",
};
pub(super) const FOREIGN: ChosenValue = ChosenValue {
    name: "foreign",
    about: "fair threads of other programs on the same cores",
    unit: ValueUnit::Ways(&["none", "two that compute for 2 ms and sleep for 2 ms"]),
    chosen: 0.0,
    others: &[1.0],
    why: "the pictures show none",
};
pub(super) const MORE_WORKERS: ChosenValue = ChosenValue {
    name: "more-workers",
    about: "what three more workers do",
    unit: ValueUnit::Ways(&["half of the others' work", "as much again"]),
    chosen: 0.0,
    others: &[1.0],
    why: "the same frame, with more threads",
};
pub(super) const PIECE: ChosenValue = ChosenValue {
    name: "piece",
    about: "the pieces in which Paceline runs the jobs",
    unit: ValueUnit::Micros,
    chosen: 20.0,
    others: &[5.0, 100.0, 500.0],
    why: "some triangles",
};
pub(super) const CLOCKS: ChosenValue = ChosenValue {
    name: "clocks",
    about: "the clocks of the cores",
    unit: ValueUnit::Ways(&["at their highest", "as the governor has them"]),
    chosen: 0.0,
    others: &[1.0],
    why: "the article has the last core at its highest; it says nothing of small ones",
};
pub(super) const HELD_UP: ChosenValue = ChosenValue {
    name: "held-up",
    about: "a frame that takes longer counts as held up",
    unit: ValueUnit::Millis,
    chosen: 1.0,
    others: &[0.5, 2.0],
    why: "the critical work that is left is shorter",
};
