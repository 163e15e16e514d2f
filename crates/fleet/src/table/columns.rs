//! The columns of every table, each with its meaning. Times end in `_ns`.

use super::{ColumnSpec, ColumnType, TableName};

const fn text(name: &'static str, about: &'static str) -> ColumnSpec {
    column(name, ColumnType::Text, about)
}

const fn integer(name: &'static str, about: &'static str) -> ColumnSpec {
    column(name, ColumnType::Integer, about)
}

const fn column(name: &'static str, of_type: ColumnType, about: &'static str) -> ColumnSpec {
    ColumnSpec {
        name,
        of_type,
        is_nullable: false,
        about,
    }
}

impl ColumnSpec {
    /// The same column, which may have no value in a row.
    const fn or_null(mut self) -> ColumnSpec {
        self.is_nullable = true;
        self
    }
}

const TRACE: ColumnSpec = text(
    "trace",
    "the trace: its path below the folder that was given",
);
const DEVICE: ColumnSpec = text("device", "the device, from the path or a sidecar file").or_null();
const BUILD: ColumnSpec = text("build", "the build, from the path or a sidecar file").or_null();
const ERROR: ColumnSpec = text("error", "why there is no result, in one line").or_null();
const AGAIN: ColumnSpec = text("again", "the command that repeats what failed").or_null();
const WAIT: ColumnSpec = integer(
    "wait",
    "the position of the wait in its trace, the worst first",
);
const GROUP: ColumnSpec = text(
    "wait_group",
    "the name of the wait with * for its numbers: waits of one kind",
);
const WAIT_KIND: ColumnSpec = text("kind", "job, frame, slice, turn or sleep");
const PROCESS: ColumnSpec = text("process", "the name of the thread's program").or_null();
const THREAD: ColumnSpec = text("thread", "the name of the thread");
const TID: ColumnSpec = integer("tid", "the kernel's number of the thread").or_null();
const START: ColumnSpec = integer("start_ns", "the beginning, on the trace's clock");
const DURATION: ColumnSpec = integer("duration_ns", "the length");
const LATE: ColumnSpec = integer(
    "late_ns",
    "of a late frame: how long after its deadline it ended",
)
.or_null();
const PREEMPTIONS: ColumnSpec =
    integer("preemptions", "how often the thread lost its CPU in it").or_null();
const CONFIDENCE: ColumnSpec = text("confidence", "known, inferred or assumed");

const TRACES: &[ColumnSpec] = &[
    TRACE,
    DEVICE,
    BUILD,
    integer("size_bytes", "the size of the file, as it is stored"),
    text("format", "the format, in a word").or_null(),
    text("clock", "the clock of its times").or_null(),
    text("kernel", "the kernel's release").or_null(),
    integer("cpus", "how many CPUs are known").or_null(),
    integer("threads", "how many threads are known").or_null(),
    integer("events", "how many scheduler events were read").or_null(),
    integer("start_ns", "the time of its first event").or_null(),
    integer("duration_ns", "from the first event to the last").or_null(),
    integer("waits", "how many waits were explained").or_null(),
    integer("waits_omitted", "how many more there are").or_null(),
    integer("frames", "how many of the waits are frames").or_null(),
    integer("inversions", "how many inversions were found").or_null(),
    ERROR,
    AGAIN,
];

const FRAMES: &[ColumnSpec] = &[
    TRACE,
    DEVICE,
    BUILD,
    WAIT,
    text("name", "the name of the frame"),
    GROUP,
    PROCESS,
    THREAD,
    TID,
    START,
    DURATION,
    LATE,
    PREEMPTIONS,
];

const WAITS: &[ColumnSpec] = &[
    TRACE,
    DEVICE,
    BUILD,
    WAIT,
    WAIT_KIND,
    text(
        "name",
        "the slice's name, the awaited job's label, the frame's name",
    ),
    GROUP,
    PROCESS,
    THREAD,
    TID,
    START,
    DURATION,
    LATE,
    PREEMPTIONS,
];

const CAUSES: &[ColumnSpec] = &[
    TRACE,
    DEVICE,
    BUILD,
    WAIT,
    GROUP,
    integer(
        "cause",
        "the position of the cause in its wait, the longest first",
    ),
    text(
        "kind",
        "running, preempted, lock, …: the kinds of `paceline diagnose`",
    ),
    text("process", "the program of the thread on the path").or_null(),
    text(
        "thread",
        "the thread on the path, which would have had to go on",
    )
    .or_null(),
    TID,
    text(
        "role",
        "that thread: self, or its name with * for its numbers",
    )
    .or_null(),
    integer(
        "cause_ns",
        "the time; the causes of a wait sum to its length",
    ),
    integer(
        "beside_idle_ns",
        "for how long another CPU was idle that the thread may use",
    ),
    text("ran_instead", "what had the CPU for most of that time").or_null(),
    integer("ran_instead_ns", "for how long that had it").or_null(),
    text(
        "function",
        "the kernel's function in which the thread slept",
    )
    .or_null(),
    text("job", "the label of the job in the way").or_null(),
    integer("cpu", "the CPU that had to leave its idle state").or_null(),
    integer("idle_state", "that idle state, the lightest first").or_null(),
    CONFIDENCE,
];

const INVERSIONS: &[ColumnSpec] = &[
    TRACE,
    DEVICE,
    BUILD,
    WAIT,
    GROUP,
    text(
        "kind",
        "lock, busy_wait, preemption, …: the kinds of `paceline diagnose`",
    ),
    text("waiter", "the thread that waited"),
    text(
        "holder",
        "the thread that could have run, or ran too slowly",
    ),
    text("holder_process", "the program of that thread").or_null(),
    text("runner", "what ran instead, most of the time"),
    START,
    integer("inversion_ns", "the time of it all"),
    integer(
        "beside_idle_ns",
        "for how long another CPU was idle that the holder may use",
    ),
    CONFIDENCE,
    text(
        "remedies",
        "changes that would remove it, the best first, with commas",
    ),
];

const LOSSES: &[ColumnSpec] = &[
    TRACE,
    DEVICE,
    BUILD,
    text("loss", "the kind: malformed, gaps, …"),
    integer("count", "how many"),
];

const POINT: ColumnSpec = text("point", "the point: what follows, in one text");
const SCENARIO: ColumnSpec = text("scenario", "the name or file of the scenario");
const DIGEST: ColumnSpec = text(
    "digest",
    "of the files that are named, and of the simulator: others are other points",
);
const MACHINE: ColumnSpec = text("machine", "the simulated machine");
const POLICY: ColumnSpec = text("policy", "the kernel's policy");
const WORKERS: ColumnSpec = integer(
    "workers",
    "of the scenario's job system; null: what the scenario says",
)
.or_null();
const HINTS: ColumnSpec = column(
    "hints",
    ColumnType::Bool,
    "whether threads say what they wait for",
);
// Seeds have 64 bits, and here they are numbers for people and for ranges.
const SEED: ColumnSpec = integer("seed", "the seed; one of 2^63 or more is negative here");

const POINTS: &[ColumnSpec] = &[
    POINT,
    SCENARIO,
    DIGEST,
    MACHINE,
    POLICY,
    WORKERS,
    HINTS,
    SEED,
    text(
        "trace_hash",
        "of all events: equal for equal runs; hexadecimal",
    )
    .or_null(),
    integer("makespan_ns", "from the beginning to the end of the run").or_null(),
    integer("events", "how many events of the kernel there were").or_null(),
    integer("energy_uj", "the energy, if the machine's file says it").or_null(),
    integer("frames", "how many frames there were").or_null(),
    column("frame_mean_ns", ColumnType::Number, "the mean frame").or_null(),
    integer("frame_p50_ns", "the median frame").or_null(),
    integer("frame_p99_ns", "the 99th percentile of frames").or_null(),
    integer("frame_max_ns", "the longest frame").or_null(),
    integer("run_ns", "for how long threads ran, summed").or_null(),
    integer(
        "runnable_ns",
        "for how long threads were runnable and did not run, summed",
    )
    .or_null(),
    integer("sleep_ns", "for how long threads slept, summed").or_null(),
    integer(
        "voluntary_switches",
        "how often threads left their CPUs by themselves",
    )
    .or_null(),
    integer("involuntary_switches", "how often threads lost their CPUs").or_null(),
    ERROR,
    AGAIN,
];

const SPANS: &[ColumnSpec] = &[
    POINT,
    SCENARIO,
    DIGEST,
    MACHINE,
    POLICY,
    WORKERS,
    HINTS,
    SEED,
    text("thread", "the name of the thread"),
    text("name", "the name of what was measured"),
    integer("count", "how often it was measured"),
    column("mean_ns", ColumnType::Number, "the mean length"),
    integer("p50_ns", "the median length"),
    integer("p99_ns", "the 99th percentile of lengths"),
    integer("max_ns", "the greatest length"),
];

const CHANGES: &[ColumnSpec] = &[
    text("what", "what is compared: wait, cause or inversion"),
    PROCESS,
    text(
        "wait_kind",
        "of the wait: job, frame, slice, turn or sleep",
    ),
    GROUP,
    text("kind", "the kind of the cause or of the inversion").or_null(),
    text(
        "who",
        "of a cause the role of the thread on the path, of an inversion its holder, with * for numbers",
    )
    .or_null(),
    integer("traces_a", "how many traces of A have such waits"),
    integer("traces_b", "how many traces of B have such waits"),
    integer("waits_a", "how many such waits A has"),
    integer("waits_b", "how many such waits B has"),
    column(
        "a_ns",
        ColumnType::Number,
        "in A: the time for each wait, on average",
    )
    .or_null(),
    column("b_ns", ColumnType::Number, "the same in B").or_null(),
    column("change_ns", ColumnType::Number, "b_ns - a_ns").or_null(),
    column(
        "low_ns",
        ColumnType::Number,
        "the low end of the interval of change_ns: 95 % for this row alone; null: too few traces",
    )
    .or_null(),
    column("high_ns", ColumnType::Number, "its high end").or_null(),
    column("growth", ColumnType::Number, "b_ns / a_ns").or_null(),
    text(
        "verdict",
        "grew or shrank: by more than chance makes of all rows together; same; few: too few traces",
    ),
];

/// The columns of a table; the first one is the key.
pub(super) fn of(table: TableName) -> &'static [ColumnSpec] {
    match table {
        TableName::Traces => TRACES,
        TableName::Frames => FRAMES,
        TableName::Waits => WAITS,
        TableName::Causes => CAUSES,
        TableName::Inversions => INVERSIONS,
        TableName::Losses => LOSSES,
        TableName::Points => POINTS,
        TableName::Spans => SPANS,
        TableName::Changes => CHANGES,
    }
}
