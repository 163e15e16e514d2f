//! Tests of the reader and the writer.

use proptest::prelude::*;

use super::*;
use crate::graph::Generator;

fn read(json: &str) -> Result<JobGraph, String> {
    JobGraph::from_json(json.as_bytes(), "F.json").map_err(|error| error.to_string())
}

const SMALL: Generator = Generator {
    seed: 0,
    jobs: 12,
    parallel_fraction: 0.5,
    pieces: 1..=100,
    deps: 0..=10,
    sync_every: 3,
    piece: Nanos(1_000),
};

fn generated(generator: Generator) -> JobGraph {
    generator.generate().unwrap()
}

fn labels(graph: &JobGraph) -> Vec<&str> {
    graph
        .jobs()
        .iter()
        .map(|node| node.label.as_str())
        .collect()
}

/// Goal: the example at the top of the module means what the text says. Method: read it, look at
/// every field.
#[test]
fn the_documented_example_is_read() {
    let graph = read(
        r#"{
          "name": "editor", "source": "s", "unit": "u", "scale": "x",
          "jobs": [
            {"label": "input", "us": 40},
            {"label": "physics", "pieces": 64, "us": 12.5, "after": ["input"]},
            {"label": "draw", "ns": 800000, "after": ["physics", 0]}
          ],
          "syncs": [{"after": "draw", "wait_for": "physics"}]
        }"#,
    )
    .unwrap();
    let node = |label: &str, kind, nanos, deps: &[u32]| Node {
        label: label.to_owned(),
        kind,
        cost: Nanos(nanos),
        deps: deps.to_vec(),
    };
    assert_eq!(
        graph.jobs(),
        [
            node("input", Kind::Single, 40_000, &[]),
            node("physics", Kind::Parallel { pieces: 64 }, 12_500, &[0]),
            node("draw", Kind::Single, 800_000, &[0, 1]),
        ]
    );
    assert_eq!(
        graph.syncs(),
        [SyncPoint {
            after: 2,
            wait_for: 1
        }]
    );
    assert_eq!(
        (graph.about().name.as_str(), graph.about().scale.as_str()),
        ("editor", "x")
    );
}

/// Goal: the example in the error message is itself a graph. Method: read it.
#[test]
fn the_example_of_the_message_is_read() {
    let json = EXAMPLE.strip_prefix("a graph looks like ").unwrap();
    assert_eq!(labels(&read(json).unwrap()), ["a", "b"]);
}

/// Goal: jobs may stand in any order and keep it where they can. Method: a file whose first job
/// waits for its last, with bystanders between them; positions refer to the file's order.
#[test]
fn jobs_are_put_in_order_and_otherwise_stay() {
    let graph = read(
        r#"{"jobs": [
            {"label": "end", "us": 1, "after": ["start", 2]},
            {"label": "x", "us": 1},
            {"label": "middle", "us": 1, "after": [4]},
            {"label": "y", "us": 1},
            {"label": "start", "us": 1}
        ]}"#,
    )
    .unwrap();
    assert_eq!(labels(&graph), ["x", "y", "start", "middle", "end"]);
    assert_eq!(graph.jobs()[4].deps, [2, 3]);
}

/// Goal: each mistake in a job is named with the file, the job, and what to do. Method: one file per
/// mistake; the words a person needs must be in the line.
#[test]
fn mistakes_in_a_job_are_named() {
    assert_named(&[
        ("", &["EOF", "a graph looks like"]),
        ("[1]", &["invalid", "a graph looks like"]),
        ("\u{feff}{}", &["line 1"]),
        (r#"{"jobs": []}"#, &["no jobs"]),
        (
            r#"{"jobs": [{"label": "a", "us": 1, "afer": []}]}"#,
            &["afer", "after", "line 1"],
        ),
        (r#"{"jobs": [{"us": 1}]}"#, &["label", "line 1"]),
        (
            r#"{"jobs": [{"label": "", "us": 1}]}"#,
            &["job 0", "1 to 200 bytes"],
        ),
        (
            r#"{"jobs": [{"label": "a\nb", "us": 1}]}"#,
            &["job 0", "control"],
        ),
        (
            r#"{"jobs": [{"label": "a"}]}"#,
            &["\"a\"", "\"us\" or \"ns\""],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": 1, "ns": 1}]}"#,
            &["\"a\"", "once"],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": -1}]}"#,
            &["\"a\"", "-1 us: give 0 to 60000000"],
        ),
        (r#"{"jobs": [{"label": "a", "us": NaN}]}"#, &["line 1"]),
        (r#"{"jobs": [{"label": "a", "us": 1e999}]}"#, &["line 1"]),
        (
            r#"{"jobs": [{"label": "a", "ns": 1e300}]}"#,
            &["\"a\"", "0 to 60000000000"],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": 1, "pieces": 0}]}"#,
            &["\"a\"", "no pieces"],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": 1, "pieces": -4}]}"#,
            &["-4", "line 1"],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": 1, "pieces": 4294967295}]}"#,
            &["pieces are too many"],
        ),
    ]);
}

/// Goal: each mistake between jobs is named, too. Method: as above.
#[test]
fn mistakes_between_jobs_are_named() {
    assert_named(&[
        (
            r#"{"jobs": [{"label": "a", "us": 1, "after": ["b"]}]}"#,
            &["\"a\"", "no job called \"b\""],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": 1, "after": [7]}]}"#,
            &["\"a\"", "no job 7", "1 jobs"],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": 1, "after": [-1]}]}"#,
            &["-1", "label of a job"],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": 1, "after": ["a"]}]}"#,
            &["\"a\"", "waits for itself"],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": 1}, {"label": "a", "us": 1}]}"#,
            &["jobs 0 and 1", "\"a\""],
        ),
        (
            r#"{"jobs": [{"label": "z", "us": 1, "after": [1]},
                {"label": "a", "us": 1, "after": [2]},
                {"label": "b", "us": 1, "after": [3]}, {"label": "c", "us": 1, "after": [1]}]}"#,
            &["\"a\" after \"b\" after \"c\" after \"a\"", "remove one"],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": 1}, {"label": "b", "us": 1}],
                "syncs": [{"after": "a", "wait_for": "b"}]}"#,
            &["sync point", "\"a\"", "\"b\"", "for ever"],
        ),
        (
            r#"{"jobs": [{"label": "a", "us": 1}], "syncs": [{"after": "a", "wait_for": 9}]}"#,
            &["sync point 0", "no job 9"],
        ),
    ]);
}

/// Each file is refused with one line that has these words.
fn assert_named(cases: &[(&str, &[&str])]) {
    for (json, words) in cases {
        let error = read(json).expect_err(json);
        assert!(
            error.starts_with("F.json: ") && !error.contains('\n'),
            "{json}\n{error}"
        );
        for word in *words {
            assert!(
                error.contains(word),
                "{word:?} is missing for {json}\n{error}"
            );
        }
    }
}

/// Goal: a file that is not there, and a cycle of many long labels, give one line of bounded
/// length. Method: both.
#[test]
fn errors_stay_short() {
    let error = JobGraph::load(Path::new("no/such/file.json"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("no/such/file.json: cannot read the file"),
        "{error}"
    );
    let long = "x".repeat(150);
    let job = |i: u32| {
        format!(
            r#"{{"label": "{long}{i}", "us": 1, "after": [{}]}}"#,
            (i + 1) % 50
        )
    };
    let jobs: Vec<_> = (0..50).map(job).collect();
    let error = read(&format!(r#"{{"jobs": [{}]}}"#, jobs.join(","))).unwrap_err();
    assert!(error.chars().count() <= 600, "{error}");
}

/// Goal: a graph far beyond the limits is refused, and the largest allowed chain is read. Method:
/// chains of `MAX_JOBS` and one more.
#[test]
fn the_limits_are_those_of_the_graph() {
    let chain = |count: usize| {
        let job = |i: usize| match i {
            0 => r#"{"label":"0","us":1}"#.to_owned(),
            _ => format!(r#"{{"label":"{i}","us":1,"after":[{}]}}"#, i - 1),
        };
        format!(
            r#"{{"jobs": [{}]}}"#,
            (0..count).map(job).collect::<Vec<_>>().join(",")
        )
    };
    let graph = read(&chain(MAX_JOBS)).unwrap();
    assert_eq!(graph.measure().span, Nanos::from_micros(MAX_JOBS as u64));
    assert!(read(&chain(MAX_JOBS + 1)).unwrap_err().contains("too many"));
}

proptest! {
    /// Goal: a written graph reads back as the same one. Method: generated graphs with costs of any number of
    /// nanoseconds and labels that need escaping.
    #[test]
    fn written_graphs_read_back(
        seed: u64, jobs in 1u32..40, nanos in 0u64..5_000_000, odd in ".{0,9}",
    ) {
        let graph = generated(Generator { seed, jobs, piece: Nanos(nanos), ..SMALL });
        let odd: String = odd.chars().filter(|c| !c.is_control()).collect();
        let mut nodes = graph.jobs().to_vec();
        for node in &mut nodes {
            node.label = format!("{odd}{} \"\\", node.label);
        }
        let graph = JobGraph::new(graph.about().clone(), nodes, graph.syncs().to_vec()).unwrap();
        prop_assert_eq!(read(&graph.to_json()), Ok(graph));
    }

    /// Goal: the order of the jobs in a file does not matter. Method: the lines of a written graph,
    /// shuffled: the same jobs with the same dependencies (by label) come out.
    #[test]
    fn shuffled_files_hold_the_same_graph(seed: u64, shuffle: u64) {
        let graph = generated(Generator { seed, jobs: 30, sync_every: 0, ..SMALL });
        let json = graph.to_json();
        let (head, rest) = json.split_once("\"jobs\": [\n").unwrap();
        let (jobs, tail) = rest.split_once("\n  ]").unwrap();
        let mut jobs: Vec<_> = jobs.split(",\n").collect();
        let mut random = crate::Random::new(shuffle);
        for i in (1..jobs.len()).rev() {
            jobs.swap(i, random.below(i as u64 + 1) as usize);
        }
        let jobs = jobs.join(",\n");
        let shuffled = read(&format!("{head}\"jobs\": [\n{jobs}\n  ]{tail}")).unwrap();
        let by_label = |graph: &JobGraph| {
            let label = |&dep: &u32| graph.jobs()[dep as usize].label.clone();
            let mut nodes: Vec<_> = graph.jobs().iter().map(|node| {
                let mut deps: Vec<_> = node.deps.iter().map(label).collect();
                deps.sort();
                (node.label.clone(), node.kind, node.cost, deps)
            }).collect();
            nodes.sort_by(|a, b| a.0.cmp(&b.0));
            nodes
        };
        prop_assert_eq!(by_label(&shuffled), by_label(&graph));
        prop_assert_eq!(shuffled.measure(), graph.measure());
    }

    /// Goal: no input makes the reader panic, and an error is always one line. Method: a written
    /// graph with bytes overwritten, cut out and doubled at random.
    #[test]
    fn damaged_files_never_panic(seed: u64, damages in 1usize..12) {
        let graph = generated(Generator { seed, ..SMALL });
        let mut bytes = graph.to_json().into_bytes();
        let mut random = crate::Random::new(seed);
        for _ in 0..damages {
            let at = random.below(bytes.len() as u64) as usize;
            let len = random.below(9).min((bytes.len() - at) as u64) as usize;
            match random.below(4) {
                0 => bytes[at] = random.next_u64() as u8,
                // Characters that mean something in JSON get further than random ones.
                1 => bytes[at] = b"{}[],:\"0123456789-.eE\\u"[random.below(23) as usize],
                2 => drop(bytes.drain(at..at + len)),
                _ => { let copy = bytes[at..at + len].to_vec(); bytes.splice(at..at, copy); }
            }
            if bytes.is_empty() { break; }
        }
        if let Err(error) = JobGraph::from_json(&bytes, "F.json") {
            let line = error.to_string();
            prop_assert!(line.starts_with("F.json: "), "{}", line);
            prop_assert!(!line.contains(char::is_control), "{}", line);
        }
    }
}
