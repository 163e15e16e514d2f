//! Arbitrary bytes for each parser and reader: no input may make one panic, hang, or take memory without
//! bound.
//!
//! The last one is no reader: its bytes are calls of C in any order.
//!
//! `fuzz/` has a program for each that a fuzzer feeds; the test `corpus` feeds them the files committed in
//! `fuzz/corpus/`. Both call the functions here. They also check every input that was understood, such as
//! that a graph reads back as it was written.
#![deny(unsafe_code)]

mod misuse;

/// The guide to traces: its programs are doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/trace.md")]
struct TraceGuide;

use event::Task;
use platform::topology::detect::{Tree, detect, limits as limits_of};
use platform::{Atomic, Memory, Os, Plan};
use sim::Machine;
use sim::scenario::Scenario;
use trace::explain::{Selection, explain};
use trace::timeline::{Options, Timeline};
use workload::graph::JobGraph;
use workload::raster::Mesh;

/// The program on the front page, which belongs to no crate.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct FrontPage;

/// Those of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/first-frame.md")]
struct FirstFrame;

/// Those of the guide to graphs.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/graphs.md")]
struct GraphsGuide;

/// Those of the guide to lanes.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/lanes.md")]
struct LanesGuide;

/// Those of the guide for those who come from another library.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/coming-from.md")]
struct ComingFromGuide;

/// Those of the guide to safety.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/safety.md")]
struct SafetyGuide;

/// A parser or reader, with its check.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name: of its program in `fuzz/fuzz_targets`, and of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Its input.
    pub reads: &'static str,
    /// Gives it these bytes.
    ///
    /// # Panics
    /// If something is wrong with the parser: that is its purpose.
    pub feed: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "machine",
        reads: "machines as TOML",
        feed: machine,
    },
    Target {
        name: "scenario",
        reads: "scenarios as TOML",
        feed: scenario,
    },
    Target {
        name: "rtapp",
        reads: "scenarios as rt-app's JSON",
        feed: rtapp,
    },
    Target {
        name: "graph",
        reads: "job graphs as JSON",
        feed: graph,
    },
    Target {
        name: "mesh",
        reads: "meshes as Wavefront OBJ",
        feed: mesh,
    },
    Target {
        name: "ftrace",
        reads: "ftrace text, as tracefs and atrace give it",
        feed: ftrace,
    },
    Target {
        name: "systrace",
        reads: "systrace pages",
        feed: systrace,
    },
    Target {
        name: "perf_script",
        reads: "the output of perf script",
        feed: perf_script,
    },
    Target {
        name: "trace_cmd",
        reads: "the output of trace-cmd report, both forms",
        feed: trace_cmd,
    },
    Target {
        name: "perfetto",
        reads: "Perfetto's protobuf",
        feed: perfetto,
    },
    Target {
        name: "chrome",
        reads: "Chrome's JSON",
        feed: chrome,
    },
    Target {
        name: "packed",
        reads: "gzip and zlib around any of them",
        feed: packed,
    },
    Target {
        name: "topology",
        reads: "files of sysfs, procfs and control groups",
        feed: topology,
    },
    Target {
        name: "hint_page",
        reads: "pages of hints, as other processes may leave them",
        feed: hint_page,
    },
    Target {
        name: "misuse",
        reads: "calls of C in any order, as bytes",
        feed: misuse,
    },
];

/// Makes these calls of C, and compares what they return with a model.
pub fn misuse(bytes: &[u8]) {
    misuse::run(bytes);
}

/// Reads a machine, and asks it a simulator's questions.
pub fn machine(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Machine::from_toml("fuzzed", text) {
        Ok(machine) => {
            assert!(
                machine.topology().effective_parallelism() > 0,
                "a machine has CPUs"
            );
        }
        Err(error) => one_line(&error.to_string()),
    }
}

/// Reads a scenario, and asks it a simulator's questions.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    look_at_scenario(Scenario::parse("fuzzed", text));
}

/// Reads a scenario of rt-app.
pub fn rtapp(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    look_at_scenario(Scenario::from_rt_app("fuzzed", text));
}

fn look_at_scenario(read: Result<Scenario, sim::scenario::BadScenario>) {
    match read {
        Ok(scenario) => {
            scenario.plan();
            scenario.highest_cpu();
        }
        Err(error) => one_line(&error.to_string()),
    }
}

/// Reads the files of a machine, and plans workers for it. Each file follows a line with `=` and its path;
/// one whose path has `->` in it is a link.
pub fn topology(bytes: &[u8]) {
    let mut tree = Tree::default();
    let text = String::from_utf8_lossy(bytes);
    for file in text.split("\n=") {
        let (path, text) = file.split_once('\n').unwrap_or((file, ""));
        match path.split_once("->") {
            Some((path, target)) => tree.link(path, target),
            None => tree.put(path.trim_start_matches('='), text),
        }
    }
    let machine = detect(&tree);
    let limits = machine.limits();
    let (usable, workers) = (limits.usable(), machine.effective_parallelism());
    assert!(workers >= 1 && workers <= usable.len(), "{limits:?}");
    assert!(machine.fast(&usable).is_subset(&usable));
    assert_eq!(&limits_of(&tree), limits, "the same files say the same");
    let classes: usize = machine.classes().iter().map(|class| class.cpus.len()).sum();
    assert_eq!(classes, limits.online.len(), "each CPU has one class");
    let plan = Plan::new(&machine, limits, workers);
    assert_eq!(plan.workers.len(), workers);
}

/// Reads a graph; one that is understood reads back as it is written.
pub fn graph(bytes: &[u8]) {
    match JobGraph::from_json(bytes, "fuzzed") {
        Ok(graph) => {
            let again = JobGraph::from_json(graph.to_json().as_bytes(), "written");
            assert_eq!(again.as_ref(), Ok(&graph));
        }
        Err(error) => one_line(&error.to_string()),
    }
}

/// Reads a mesh; its triangles have corners.
pub fn mesh(bytes: &[u8]) {
    match Mesh::from_obj(bytes, "fuzzed") {
        Ok(mesh) => {
            let points = mesh.positions().len() as u32;
            let mut corners = mesh.triangles().iter().flatten();
            assert!(corners.all(|&corner| corner < points));
        }
        Err(error) => one_line(&error.to_string()),
    }
}

/// Feeds the readers of traces with what begins like ftrace's text.
pub fn ftrace(bytes: &[u8]) {
    trace(bytes);
}

/// Feeds the readers of traces with what begins like a page.
pub fn systrace(bytes: &[u8]) {
    trace(bytes);
}

/// Feeds the readers of traces with what begins like perf's text.
pub fn perf_script(bytes: &[u8]) {
    trace(bytes);
}

/// Feeds the readers of traces with what begins like trace-cmd's text.
pub fn trace_cmd(bytes: &[u8]) {
    trace(bytes);
}

/// Feeds the readers of traces with what begins like a packet.
pub fn perfetto(bytes: &[u8]) {
    trace(bytes);
}

/// Feeds the readers of traces with what begins like JSON.
pub fn chrome(bytes: &[u8]) {
    trace(bytes);
}

/// Feeds the readers of traces with packed bytes.
pub fn packed(bytes: &[u8]) {
    trace(bytes);
}

/// Reads a trace of whatever format it is; if it is understood it is explained, and the causes of every wait
/// sum to its length. Each format has a target of its own, so that it has a corpus of its own.
fn trace(bytes: &[u8]) {
    let recording = match trace::read::read(bytes, "fuzzed") {
        Ok(recording) => recording,
        Err(error) => return one_line(&error.to_string()),
    };
    let timeline = Timeline::new(recording, &Options::default());
    let selection = Selection {
        limit: 20,
        ..Selection::default()
    };
    for wait in explain(&timeline, &selection).waits {
        assert_eq!(wait.sum(), wait.length(), "{wait:?}");
    }
}

/// Reads a page of hints. Whatever is in it, what comes out is bounded, and of the page's process.
pub fn hint_page(bytes: &[u8]) {
    const PROCESS: u32 = 40;
    let words = bytes.chunks_exact(8).map(|word| {
        let word = word.try_into().expect("eight bytes");
        <Os as Memory>::AtomicU64::new(u64::from_le_bytes(word))
    });
    let words: Vec<_> = words.collect();
    let process_of = |thread: Task| match thread.0 {
        1..20 => Some(PROCESS),
        20..30 => Some(PROCESS + 1),
        _ => None,
    };
    let mut entries = 0;
    let skipped = hint::read_page::<Os>(PROCESS, &words, &process_of, &mut |entry| {
        entries += 1;
        assert!(entry.waits_for.len() <= hint::WAITS_MAX, "{entry:?}");
        assert!(!entry.waits_for.contains(&entry.thread), "{entry:?}");
        let mut threads = entry.waits_for.iter().chain([&entry.thread]);
        let is_ours = |&thread| process_of(thread) == Some(PROCESS);
        assert!(threads.all(is_ours), "{entry:?}");
    });
    let slots = words.len() / hint::LINE_WORDS;
    let slots_seen = entries + skipped.changing + skipped.malformed;
    assert!(slots_seen <= slots.max(1) as u64, "{skipped:?}");
}

/// Errors are one line, whatever the input had in it.
fn one_line(error: &str) {
    let breaks = |c: char| c == '\n' || c == '\r';
    assert!(!error.is_empty() && !error.contains(breaks), "{error:?}");
}

#[cfg(test)]
mod tests;
