//! The `paceline` command as its users meet it: exit codes, lines, files, JSON.
//!
//! Every test runs the built program and checks its exit code, output and files. Sizes are tiny: nothing here
//! measures, and nothing depends on how fast the machine is.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A run of the program.
struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Runs the program with standard output and error going to files. One that does not end is killed
/// and has no exit code.
fn paceline(arguments: &[&str]) -> Run {
    const TRIES: u32 = 6_000;
    const PAUSE: Duration = Duration::from_millis(10);
    let folder = TempDir::new().unwrap();
    let [out, err] = ["out", "err"].map(|name| folder.path().join(name));
    let mut child = command(arguments)
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .spawn()
        .unwrap();
    for _ in 0..TRIES {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    // Only one that still runs can be killed.
    let _ = child.kill();
    Run {
        code: child.wait().unwrap().code(),
        out: fs::read_to_string(out).unwrap(),
        err: fs::read_to_string(err).unwrap(),
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command
        .args(arguments)
        .env_remove("PACELINE_WAIT")
        .env_remove("PACELINE_WORKERS")
        .env_remove("PACELINE_CPUS")
        .env_remove("PACELINE_PLACEMENT")
        .env("RUST_BACKTRACE", "0");
    command
}

/// Runs a command that should succeed, and gives its standard output.
fn fine(arguments: &[&str]) -> String {
    let run = paceline(arguments);
    assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.err);
    run.out
}

fn json(arguments: &[&str]) -> Value {
    let out = fine(arguments);
    assert_eq!(out.lines().count(), 1, "one object on one line: {out}");
    serde_json::from_str(&out).unwrap()
}

fn has_keys(object: &Value, keys: &[&str]) {
    for key in keys {
        assert!(object.get(key).is_some(), "{key} is missing in {object}");
    }
}

/// The command ends with exit code 2, nothing on standard output, and one line with this part.
fn is_refused(line: &[&str], part: &str) {
    let run = paceline(line);
    assert_eq!(run.code, Some(2), "{line:?}: {}", run.err);
    assert_eq!(
        (run.out.as_str(), run.err.lines().count()),
        ("", 1),
        "{}",
        run.err
    );
    assert!(run.err.contains(part), "{line:?}: {}", run.err);
}

/// Goal: bad usage and bad input end with exit code 2, nothing on standard output, and one line that
/// says where and what to do. Method: one of each kind, and a part that the line must have.
#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let malformed = file("malformed.json", "{\"jobs\": [\n{\"label\": 7}]}");
    let cyclic = file(
        "cyclic.json",
        r#"{"jobs": [{"label": "a", "us": 1, "after": ["b"]}, {"label": "b", "us": 1, "after": ["a"]}]}"#,
    );
    let absent = folder.path().join("absent.json");
    let inside = folder.path().join("no/such/folder.png");
    for (line, part) in [
        (&["frames", "--scene", "disco"][..], "mandelbrot"),
        (&["frames", "--frames", "0"], "--frames"),
        (&["frames", "--frames", "-3"], "--frames"),
        (&["frames", "--fps", "-1"], "--fps"),
        (&["frames", "--workers", "1025"], "1024"),
        (&["frames", "--workers", "some"], "auto"),
        (&["frames", "--wait", "sometimes"], "use active"),
        (
            &["frames", "--graph", absent.to_str().unwrap()],
            "absent.json",
        ),
        (&["frames", "--graph", &malformed], "line 2"),
        (&["frames", "--graph", &cyclic], "wait for each other"),
        (&["frames", "--graph", &cyclic, "--seed", "1"], "--seed"),
        (&["frames", "--image", "x.png"], "--scene raster"),
        (&["frames", "--mesh", "x.obj"], "--scene raster"),
        (
            &["frames", "--scene", "raster", "--seed", "1"],
            "--scene graph",
        ),
        (
            &[
                "frames",
                "--scene",
                "mandelbrot",
                "--image",
                inside.to_str().unwrap(),
            ],
            "make it first",
        ),
        (&["frames", "--panic-at", "nobody"], "nobody"),
        (
            &["frames", "--background", "1", "--workers", "0"],
            "--workers",
        ),
        (&["frames", "--what"], "paceline frames --help"),
        (&["bench"], "cargo run --release -p paceline-bench --"),
        (
            &["bench", "--peers", "join", "--help"],
            "-p paceline-bench -- --peers join --help",
        ),
        (&["fly"], "paceline --help"),
    ] {
        is_refused(line, part);
    }
}

/// Goal: a mesh that cannot be drawn is bad input: exit code 2, and one line with the file, the line if
/// there is one, and what to do. Method: one of each kind.
#[test]
fn bad_meshes_are_one_line_and_exit_code_2() {
    let folder = TempDir::new().unwrap();
    let points = "v 0 0 0\nv 1 0 0\nv 0 1 0\n";
    for (name, text, parts) in [
        ("face.obj", "f 1 2 x\n", &["line 4", "f 1 2 3"][..]),
        (
            "number.obj",
            "v 1 two 3\nf 1 2 3\n",
            &["line 4", "v 0 1.5 -2"],
        ),
        ("index.obj", "f 1 2 3\nf 1 2 4\n", &["line 5", "not there"]),
        ("relative.obj", "f -1 -2 -4\n", &["line 4", "not there"]),
        ("nan.obj", "v nan 0 0\nf 1 2 4\n", &["line 4", "finite"]),
        (
            "infinite.obj",
            "v 0 0 1e99\nf 1 2 4\n",
            &["line 4", "finite"],
        ),
        ("empty.obj", "", &["no triangles"]),
        ("lines.obj", "l 1 2\nf 1 2\n", &["no triangles"]),
        ("point.obj", "v 0 0 0\nv 0 0 0\nf 1 4 5\n", &["the same"]),
        ("binary.obj", "\u{0}\u{1}glTF\u{2}", &["no triangles"]),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, format!("{points}{text}")).unwrap();
        refused_mesh(&path, &[parts, &["--mesh", name]].concat());
    }
    refused_mesh(&folder.path().join("absent.obj"), &["absent.obj"]);
    refused_mesh(folder.path(), &["--mesh"]);
    let bytes = folder.path().join("bytes.obj");
    fs::write(&bytes, b"v 0 0 0\n\xff\xfe\n").unwrap();
    refused_mesh(&bytes, &["line 2", "not text"]);
    for (name, bytes) in [
        ("text.obj", &b"\x00\x01glTF\x02\n"[..]),
        ("elf.obj", b"\x7fELF\xff\xfe\n"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        refused_mesh(&path, &["no Wavefront OBJ", name]);
    }
    // As long as no mesh may be, and empty on the disk.
    let huge = folder.path().join("huge.obj");
    File::create(&huge).unwrap().set_len(300 << 20).unwrap();
    refused_mesh(&huge, &["256 MiB"]);
}

fn refused_mesh(path: &Path, parts: &[&str]) {
    let run = paceline(&[
        "frames",
        "--scene",
        "raster",
        "--mesh",
        path.to_str().unwrap(),
    ]);
    let Run { code, out, err } = run;
    assert_eq!(
        (code, out.as_str(), err.lines().count()),
        (Some(2), "", 1),
        "{err}"
    );
    for part in parts {
        assert!(err.contains(part), "{part} is missing in {err}");
    }
}

/// Goal: bad settings in the environment are bad input, too. Method: an unknown wait policy.
#[test]
fn a_bad_environment_is_bad_input() {
    let mut command = command(&["frames", "--frames", "1"]);
    let run = command.env("PACELINE_WAIT", "sometimes").output().unwrap();
    let err = String::from_utf8(run.stderr).unwrap();
    assert_eq!(
        (run.status.code(), err.lines().count()),
        (Some(2), 1),
        "{err}"
    );
    assert!(err.contains("PACELINE_WAIT"), "{err}");
}

/// Goal: the program alone shows its commands, the most useful first; each has a help text that fits
/// 80 columns. Method: run it so.
#[test]
fn help_is_data_and_fits() {
    let alone = fine(&[]);
    let [frames, simulate, convert] =
        ["\n  frames ", "\n  simulate ", "\n  convert "].map(|name| alone.find(name).unwrap());
    assert!(frames < simulate && simulate < convert);
    assert!(!alone.contains("\n  bench "), "it is elsewhere: {alone}");
    for line in [
        &["--help"][..],
        &["frames", "--help"],
        &["experiment", "--help"],
        &["simulate", "--help"],
        &["frames", "-h"],
    ] {
        let help = fine(line);
        let wide = help.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{line:?}");
        assert!(help.contains("Usage: paceline"), "{help}");
    }
}

/// Goal: `frames --json` is one object with the documented keys, whose numbers agree with each
/// other. Method: five frames.
#[test]
fn frames_as_json() {
    let line = [
        "frames",
        "--frames",
        "5",
        "--fps",
        "0",
        "--piece-us",
        "0.2",
        "--workers",
        "2",
        "--json",
    ];
    let report = json(&line);
    has_keys(
        &report,
        &[
            "scene",
            "graph",
            "workers",
            "frames",
            "frame_ns",
            "missed",
            "cpu_ns_per_frame",
            "jobs_per_frame",
            "serial_ns",
            "speedup",
            "stats",
            "waits",
            "inversions",
            "checksum",
            "trace",
            "quiet",
            "noise",
            "machine",
        ],
    );
    has_keys(&report["frame_ns"], &["mean", "p50", "p99", "max"]);
    has_keys(
        &report["machine"],
        &["model", "cpus", "kernel", "boot_flags"],
    );
    assert_eq!(
        (&report["scene"], &report["workers"]),
        (&"graph".into(), &2.into())
    );
    assert_eq!(
        (&report["frames"], &report["jobs_per_frame"]),
        (&5.into(), &500.into())
    );
    assert_eq!(
        (&report["stats"]["frames"], &report["missed"]),
        (&5.into(), &0.into())
    );
    assert_eq!(report["inversions"], Value::Null);
    let number = |value: &Value| value.as_u64().unwrap();
    assert!(number(&report["frame_ns"]["p50"]) <= number(&report["frame_ns"]["max"]));
    assert!(number(&report["stats"]["jobs"]) >= 5 * 500);
    let waits = report["waits"].as_array().unwrap();
    let lengths: Vec<u64> = waits
        .iter()
        .map(|wait| number(&wait["duration_ns"]))
        .collect();
    assert_eq!(waits.len(), 10);
    assert!(lengths.is_sorted_by(|a, b| a >= b), "{lengths:?}");
    for wait in waits {
        has_keys(wait, &["thread", "name", "frame", "start_ns"]);
    }
}

/// Goal: the result of a frame depends on the graph and on nothing else. Method: the same frames with no
/// worker, with two, and beside other work have one checksum; another seed has another.
#[test]
fn checksums_depend_on_the_graph_alone() {
    let checksum = |more: &[&str]| {
        let line = [
            "frames",
            "--frames",
            "3",
            "--fps",
            "500",
            "--piece-us",
            "0.1",
            "--json",
        ];
        json(&[&line, more].concat())["checksum"].clone()
    };
    let alone = checksum(&["--workers", "0"]);
    assert_eq!(alone, checksum(&["--workers", "2", "--wait", "passive"]));
    assert_eq!(
        alone,
        checksum(&["--workers", "1", "--load", "2", "--background", "3"])
    );
    assert_ne!(alone, checksum(&["--seed", "2"]));
}

/// Goal: people get tables with what they ask for first. Method: words that must be there; a graph from a
/// file and one by name.
#[test]
fn frames_for_people() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tiny.json");
    let graph = r#"{"name": "tiny", "jobs": [
        {"label": "a", "us": 20}, {"label": "b", "us": 5, "after": ["a"]}
    ]}"#;
    fs::write(&path, graph).unwrap();
    let out = fine(&["frames", "--graph", path.to_str().unwrap(), "--frames", "4"]);
    for word in [
        "tiny",
        "2 jobs",
        "p99",
        "speed-up",
        "missed",
        "steals",
        "longest waits",
        "Linux",
    ] {
        let is_linux_only = word == "Linux" && !cfg!(target_os = "linux");
        assert!(
            is_linux_only || out.contains(word),
            "{word} is missing in\n{out}"
        );
    }
    let out = fine(&["frames", "--graph", "gitoxide-build", "--frames", "1"]);
    assert!(out.contains("gitoxide-build"), "{out}");
}

/// Goal: a picture of the Mandelbrot set is drawn. Method: decode the file: size, a point inside the
/// set is black, one far outside is not, and the picture is the same above and below.
#[test]
fn mandelbrot_writes_a_picture() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("m.png");
    let image = path.to_str().unwrap();
    let line = [
        "frames",
        "--scene",
        "mandelbrot",
        "--frames",
        "2",
        "--fps",
        "0",
        "--json",
    ];
    let report = json(&[&line[..], &["--image", image]].concat());
    assert_eq!(report["scene"], "mandelbrot");
    let reader = std::io::BufReader::new(File::open(&path).unwrap());
    let mut reader = png::Decoder::new(reader).read_info().unwrap();
    let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut rgb).unwrap();
    let (width, height) = (info.width as usize, info.height as usize);
    assert_eq!(
        (info.color_type, rgb.len()),
        (png::ColorType::Rgb, 3 * width * height)
    );
    let point = |x: usize, y: usize| &rgb[3 * (y * width + x)..][..3];
    assert_eq!(point(width / 2, height / 2), [0, 0, 0]);
    assert_ne!(point(0, 0), [0, 0, 0]);
    assert!((0..width).all(|x| point(x, 0) == point(x, height - 1)));
}

/// Goal: scene raster culls boxes behind its statues and draws them. Method: the built-in mesh, and one from
/// a file with faces of all kinds: keys and counts, the words for people, and a picture with both colours in
/// it.
#[test]
fn raster_culls_and_writes_a_picture() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (mesh, image, costs) = (path("p.obj"), path("r.png"), path("c.toml"));
    let obj = "v -1 0 -1\nv 1 0 -1\nv 1 0 1\nv -1 0 1\nv 0 2 0\nvn 0 1 0\n\
               f 1//1 2//1 3//1 4//1\nf -4 -5 5\nf 3 2 5\nf 4 3 5\nf 1 4 -1\n";
    fs::write(&mesh, obj).unwrap();
    let line = ["frames", "--scene", "raster", "--frames", "3", "--fps", "0"];
    let more = [
        "--json",
        "--workers",
        "2",
        "--background",
        "1",
        "--load",
        "1",
    ];
    let report = json(&[&line[..], &more, &["--record-costs", &costs]].concat());
    assert_eq!(report["scene"], "raster");
    assert_eq!(report["graph"], Value::Null);
    let jobs = report["jobs_per_frame"].as_u64().unwrap();
    assert!(report["stats"]["jobs"].as_u64().unwrap() >= 3 * jobs);
    let alone = json(&[&line[..], &["--json", "--workers", "0"]].concat());
    assert_eq!(alone["checksum"], report["checksum"]);
    let costs: toml::Table = fs::read_to_string(costs).unwrap().parse().unwrap();
    let counts = costs["label"].as_array().unwrap().iter();
    let counts: i64 = counts
        .map(|label| label["count"].as_integer().unwrap())
        .sum();
    assert!(counts >= 3 * jobs as i64, "every body is counted: {counts}");

    let out = fine(&[&line[..], &["--mesh", &mesh, "--image", &image]].concat());
    for word in [
        "occlusion culling",
        "4096 boxes",
        "640x360",
        "triangles",
        "culled (",
        "tiles",
    ] {
        assert!(out.contains(word), "{word} is missing in\n{out}");
    }
    let reader = std::io::BufReader::new(File::open(&image).unwrap());
    let mut reader = png::Decoder::new(reader).read_info().unwrap();
    let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut rgb).unwrap();
    let count = |is: fn(&[u8]) -> bool| rgb.chunks_exact(3).filter(|pixel| is(pixel)).count();
    let (green, red) = (
        count(|p| p[1] > 200 && p[0] < 120),
        count(|p| p[0] > 120 && p[1] < 100),
    );
    assert!(green > 500 && red > 200, "{green} green, {red} red");
}

/// Goal: recorded costs are TOML in which every body of every frame is counted once. Method: three
/// frames of a graph of a single and a parallel job.
#[test]
fn costs_are_recorded() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (graph, costs) = (path("g.json"), path("c.toml"));
    let text = r#"{"jobs": [
        {"label": "one", "us": 30}, {"label": "many", "pieces": 40, "us": 2, "after": ["one"]}
    ]}"#;
    fs::write(&graph, text).unwrap();
    fine(&[
        "frames",
        "--graph",
        &graph,
        "--frames",
        "3",
        "--fps",
        "0",
        "--record-costs",
        &costs,
    ]);
    let costs: toml::Table = fs::read_to_string(&costs).unwrap().parse().unwrap();
    assert_eq!(costs["format"].as_integer(), Some(1));
    let labels = costs["label"].as_array().unwrap();
    let number = |label: usize, key: &str| labels[label][key].as_integer().unwrap();
    assert_eq!(labels[0]["name"].as_str(), Some("one"));
    assert_eq!((number(0, "count"), number(1, "count")), (3, 120));
    assert!(number(0, "p50_ns") > number(1, "p50_ns"));
    let counts = labels[1]["counts"].as_array().unwrap().iter();
    assert_eq!(counts.map(|n| n.as_integer().unwrap()).sum::<i64>(), 120);
}

/// Goal: `--trace` writes a trace of every frame with the program's own words, and says how much is in it.
/// Method: three frames of a small graph; all names are looked for in the file's bytes, whose form the
/// tests of crate `trace` look after; without the option nothing is said.
#[test]
fn frames_are_traced() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (graph, file) = (path("g.json"), path("t.pftrace"));
    let text = r#"{"jobs": [
        {"label": "first of all", "us": 30}, {"label": "second", "us": 2, "after": ["first of all"]}
    ]}"#;
    fs::write(&graph, text).unwrap();
    let line = [
        "--graph",
        &graph,
        "--frames",
        "3",
        "--fps",
        "0",
        "--workers",
        "1",
    ];
    let report = json(&[&["frames", "--json", "--trace", &file], &line[..]].concat());
    let bytes = fs::read(&file).unwrap();
    let trace = &report["trace"];
    assert_eq!(trace["bytes"].as_u64(), Some(bytes.len() as u64));
    assert_eq!(trace["lost"], 0);
    // Each job is made, ready, begun, ended and completed in each frame.
    assert!(trace["events"].as_u64().unwrap() >= 3 * 2 * 5);
    let has = |word: &str| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    for word in [
        "first of all",
        "second",
        "main",
        "paceline frames",
        "ready jobs",
        "frame 0",
        "frame 2",
    ] {
        assert!(has(word), "{word}");
    }
    assert!(!has("frame 3"));
    let untraced = json(&[&["frames", "--json"], &line[..]].concat());
    assert_eq!(untraced["trace"], Value::Null);
}

/// Goal: a job that panics ends the command with exit code 1 and its label, and nothing hangs.
/// Method: a single job, a parallel one, a tile; with and without workers, and with work beside.
#[test]
fn a_panicking_job_is_named() {
    for (label, line) in [
        ("single 0", &["--workers", "0"][..]),
        ("single 0", &["--workers", "2"]),
        ("parallel 220 x30", &["--workers", "1"]),
        (
            "single 0",
            &["--workers", "1", "--background", "2", "--load", "1"],
        ),
        ("tile", &["--scene", "mandelbrot"]),
        ("raster", &["--scene", "raster", "--workers", "2"]),
        ("plan", &["--scene", "raster", "--workers", "0"]),
    ] {
        let line = [&["frames", "--frames", "3", "--panic-at", label], line].concat();
        let run = paceline(&line);
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(1), ""),
            "{line:?}: {}",
            run.err
        );
        let last = run.err.lines().last().unwrap();
        assert!(
            last.starts_with("paceline: frame 0") && last.contains(label),
            "{last}"
        );
    }
}

/// Goal: the report lists the help asked of the kernel, and refusals stop nothing; it also has what other
/// threads did to the run. Method: a niceness that every process may have, and one that is refused as a
/// value.
#[test]
fn frames_ask_the_kernel_for_help() {
    let arguments = [
        "frames",
        "--frames",
        "3",
        "--fps",
        "0",
        "--os-help",
        "nice=19,rr=99",
    ];
    let report = json(&[&arguments[..], &["--json"]].concat());
    let help = report["os_help"].as_array().unwrap();
    let asked: Vec<&Value> = help.iter().map(|one| &one["asked"]).collect();
    assert_eq!(asked, ["nice 19", "SCHED_RR 99"]);
    for one in help {
        assert_eq!(
            one["granted"],
            one["why"].as_str().unwrap().is_empty(),
            "{one}"
        );
    }
    let decisions = report["interference"]["decisions"].as_array();
    assert_eq!(decisions.map(Vec::len), Some(0), "three frames are too few");
    assert!(report["stats"]["waited_ns"].is_u64());
    assert!(fine(&arguments).contains("help of the kernel"));
    let refused = paceline(&["frames", "--os-help", "fifo"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("uclamp"), "{}", refused.err);
}

/// Goal: a reader that goes away is success, without a word. Method: close the pipe before the
/// program writes.
#[test]
fn a_broken_pipe_is_success() {
    for line in [
        &["frames", "--help"][..],
        &["frames", "--frames", "1", "--json"],
    ] {
        let mut child = command(line)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let run = child.wait_with_output().unwrap();
        let err = String::from_utf8(run.stderr).unwrap();
        assert_eq!((run.status.code(), err.as_str()), (Some(0), ""), "{line:?}");
    }
}
