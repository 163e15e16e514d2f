//! What runs in the machine: scripts for busybox's shell.
//!
//! A line that begins with `result` has the frames of one run, one with `check` says whether something that
//! has to happen did. The rest is talk.

/// How many frames a run has.
const FRAMES: u32 = 250;

/// A second scene, with a job that is within the worker's share: what is behind a label for it, and its
/// options.
pub(super) const SHORTER: &str = ",5ms";
const SHORTER_OPTIONS: &str = "--job 5000";

/// The ticks of the machine's kernel are this far apart.
const TICK_MICROS: u32 = 4_000;

/// The last line of a script that came to its end.
pub(super) const END: &str = "vm: the end";

/// What the results of the kernel's own scheduler are called, and those of an idle machine.
pub(super) const BASE: &str = "eevdf";
pub(super) const IDLE: &str = "idle";

/// The policy with and without what programs say.
pub(super) const UNTOLD: &str = "waitfor";
pub(super) const TOLD: &str = "waitfor+hints";

/// One scheduler: what its results are called, its options, whether frames say what they wait for, and
/// whether it is measured in the second scene, too.
struct Scheduler {
    label: &'static str,
    options: &'static str,
    hints: bool,
    shorter: bool,
}

const SCHEDULERS: &[Scheduler] = &[
    Scheduler {
        label: "rustland-pre333",
        options: "--policy rustland-pre333",
        hints: false,
        shorter: false,
    },
    Scheduler {
        label: "rustland-333",
        options: "--policy rustland-333",
        hints: false,
        shorter: false,
    },
    Scheduler {
        label: UNTOLD,
        options: "--policy waitfor",
        hints: false,
        shorter: true,
    },
    Scheduler {
        label: TOLD,
        options: "--policy waitfor --hints",
        hints: true,
        shorter: true,
    },
    Scheduler {
        label: "waitfor+hints,no-kicks",
        options: "--policy waitfor --hints --kicks false",
        hints: true,
        shorter: false,
    },
    Scheduler {
        label: "waitfor+hints,core",
        options: "--policy waitfor --hints --bpf core",
        hints: true,
        shorter: false,
    },
];

/// Loading and unloading, and what has to be so then.
const TOOLS: &str = r#"
S=0
state() { cat /sys/kernel/sched_ext/state; }
check() { # NAME CONDITION...
    name=$1; shift
    if "$@"; then echo "check $name ok"; return; fi
    echo "check $name FAILED: $(tail -n 3 /tmp/log | tr '\n' ' ')"
}
becomes() { # STATE, within 15 s
    for i in $(seq 150); do [ "$(state)" = $1 ] && return 0; sleep 0.1; done; return 1
}
loaded() { # it is in charge, and says so
    becomes enabled || return 1
    for i in $(seq 150); do grep -q 'is scheduling' /tmp/log && return 0; sleep 0.1; done; return 1
}
hundredths() { cut -d' ' -f1 /proc/uptime | tr -d .; } # seconds since the boot, times 100
load() {
    local began=$(hundredths)
    paceline-scx "$@" >/tmp/log 2>&1 & S=$!; check "load:$LABEL" loaded
    echo "vm: loading $LABEL took $((10 * ($(hundredths) - began))) ms"; sleep 8
}
ended() { wait $S; [ $? = $1 ]; }
unload() {
    kill -INT $S; check "exit-code:$LABEL" ended 0
    check "unload:$LABEL" becomes disabled; grep rounds /tmp/log | tail -n 1; sleep 4
}
frames() {
    frame-bench run --label "$LABEL" --blocks $B --hogs $H --frames $F "$@" ||
        echo "check frames:$LABEL FAILED: exit code $?"
}
idle() { frame-bench run --label idle --blocks $B --hogs 0 --frames 100; }
H=$((2 * $(nproc)))
"#;

/// Waits until the kernel is done with what it does after it has booted, and finds out how fast it is.
const SETTLE: &str = r#"
sleep 20
B=$(frame-bench calibrate --hogs $H)
echo "vm: $B blocks a millisecond"
sleep 5
"#;

/// Schedulers and programs that are stopped and killed.
const FAULTS: &str = r#"
LABEL=stopped; load --policy waitfor --hints
sleep 60 | frame-bench hogs $H & sleep 1
kill -STOP $S
check stopped:kernel-takes-over becomes disabled
kill -CONT $S; check stopped:exit-code ended 1
check stopped:message grep -q 'threw the scheduler out' /tmp/log
killall frame-bench sleep; sleep 2
LABEL=killed; load --policy waitfor --hints
kill -KILL $S; check killed:kernel-takes-over becomes disabled
check killed:exit-code ended 137
LABEL=terminated; load --policy rustland-333
kill -TERM $S; check terminated:exit-code ended 0
check terminated:kernel-takes-over becomes disabled
LABEL=hints; load --policy waitfor --hints
second() {
    paceline-scx --policy waitfor >/tmp/log2 2>&1
    [ $? = 1 ] && grep -q 'another scheduler' /tmp/log2
}
check second-scheduler:refused second
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    LABEL=x frames --hints >/dev/null 2>&1 & A=$!
    sleep 0.$((50 + i * 3)); sleep 1; kill -KILL $A; wait $A
done
check program-killed:scheduler-goes-on [ "$(state)" = enabled ]
frame-bench crowd --threads 1000 --seconds 3
check thousand-threads:scheduler-goes-on [ "$(state)" = enabled ]
LABEL=after-faults; frames --hints
unload
LABEL=eevdf-after-faults; frames
"#;

/// All schedulers in so many phases, that many milliseconds later, and faults if wanted.
pub(super) fn measure(phases: u32, later: u32, faults: bool) -> String {
    let (seconds, millis) = (later / 1_000, later % 1_000);
    let mut script = format!("{TOOLS}F={FRAMES}\nsleep {seconds}.{millis:03}\n{SETTLE}");
    let offsets: Vec<String> = (0..phases)
        .map(|phase| (phase * TICK_MICROS / phases).to_string())
        .collect();
    let offsets = offsets.join(" ");
    let scene = |label: &str, options: &str| {
        format!("LABEL={label}\nfor P in {offsets}; do sleep 2; frames --phase $P{options}; done\n")
    };
    let scenes = |label: &str, hints: bool, shorter: bool| {
        let hints = if hints { " --hints" } else { "" };
        let second = format!("{label}{SHORTER}");
        let second = shorter.then(|| scene(&second, &format!("{hints} {SHORTER_OPTIONS}")));
        scene(label, hints) + &second.unwrap_or_default()
    };
    script += &format!("idle\n{}", scenes(BASE, false, true));
    for it in SCHEDULERS {
        let (label, options) = (it.label, it.options);
        let scenes = scenes(label, it.hints, it.shorter);
        script += &format!("LABEL={label}; load {options}\nidle\n{scenes}unload\n");
    }
    // The machine is as it was.
    script += &scenes(&format!("{BASE}-again"), false, false);
    if faults {
        script += FAULTS;
    }
    script + &format!("dmesg | grep -iE 'stall|warn|BUG:' | head\necho '{END}'\n")
}

/// An experiment of `paceline`, run where it is; what it found is one line.
const EXPERIMENT: &str = r#"
experiment() { # NAME SECONDS OPTIONS...
    name=$1; sleep $2; shift 2
    if paceline experiment $name --real --json "$@" >/tmp/found 2>/tmp/errors; then
        printf 'findings %s %s %s\n' $LABEL $name "$(tr -d '\n' </tmp/found)"
        echo "check $name:$LABEL ok"
    else
        echo "check $name:$LABEL FAILED: exit code $?: $(tail -n 1 /tmp/errors)"
    fi
}
"#;

/// A sign of life, since a run may be silent for long on a busy machine.
const ALIVE: &str = "(while sleep 30; do echo vm: $(cut -d' ' -f1 /proc/uptime) s; done) &\n";

/// These experiments under Linux's own scheduler and under each policy, so many times.
pub(super) fn experiments(names: &[String], phases: u32, later: u32, quick: bool) -> String {
    let (seconds, millis) = (later / 1_000, later % 1_000);
    let options = if quick { " --quick" } else { "" };
    let offsets: Vec<String> = (0..phases)
        .map(|phase| format!("2.{:06}", phase * TICK_MICROS / phases))
        .collect();
    let runs: String = names
        .iter()
        .map(|name| {
            let offsets = offsets.join(" ");
            format!("for P in {offsets}; do experiment {name} $P{options}; done\n")
        })
        .collect();
    let mut script = format!("{TOOLS}{EXPERIMENT}{ALIVE}sleep {seconds}.{millis:03}\nsleep 20\n");
    script += &format!("LABEL={BASE}\n{runs}");
    // Programs say nothing of their waits in an experiment.
    for it in SCHEDULERS.iter().filter(|it| !it.hints) {
        script += &format!("LABEL={}; load {}\n{runs}unload\n", it.label, it.options);
    }
    script + &format!("echo '{END}'\n")
}

/// One scheduler for three seconds.
pub(super) fn smoke() -> String {
    let run = "LABEL=waitfor; load --policy waitfor --hints\nframes --hints\nunload\n";
    format!(
        "{TOOLS}F=125\nsleep 5\nB=$(frame-bench calibrate --hogs $H)\nLABEL={BASE}; frames\n{run}\
         echo '{END}'\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each experiment is run under each scheduler, in each phase, and quickly only if that is wanted.
    /// Method: the script of two experiments in two phases.
    #[test]
    fn experiments_run_under_each_scheduler() {
        let names = ["a", "b"].map(str::to_owned);
        let script = experiments(&names, 2, 0, false);
        for name in names {
            let runs = format!("for P in 2.000000 2.002000; do experiment {name} $P; done\n");
            // Linux's own scheduler, and three policies.
            assert_eq!(script.matches(&runs).count(), 4, "{script}");
        }
        assert_eq!(script.matches("\nunload\n").count(), 3);
        assert!(!script.contains("hints\n"), "{script}");
        let quick = experiments(&["a".to_owned()], 1, 0, true);
        assert_eq!(
            quick.matches("experiment a $P --quick;").count(),
            4,
            "{quick}"
        );
    }

    /// Goal: phases lie evenly within a tick, and each scheduler is loaded, run and unloaded. Method: the
    /// script of two phases.
    #[test]
    fn each_scheduler_runs_in_each_phase() {
        let script = measure(2, 0, false);
        let shorter = SCHEDULERS.iter().filter(|it| it.shorter).count();
        let scenes = script.matches("for P in 0 2000; do").count();
        // The kernel's own scheduler, before in both scenes and again behind.
        assert_eq!(scenes, SCHEDULERS.len() + shorter + 3);
        assert_eq!(script.matches("\nunload\n").count(), SCHEDULERS.len());
        assert!(!script.contains("-KILL"));
        assert!(measure(2, 0, true).contains("-KILL"));
        assert!(script.ends_with(&format!("{END}'\n")));
    }
}
