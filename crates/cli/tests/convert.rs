//! `paceline convert` as its users meet it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::read::MultiGzDecoder;
use serde_json::Value;
use tempfile::TempDir;

fn paceline(arguments: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.arg("convert").args(arguments).output().unwrap()
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/traces")
        .join(name)
}

fn read(path: &Path) -> trace::Recording {
    trace::read::read(fs::File::open(path).unwrap(), "converted").unwrap()
}

/// Goal: the front page's example is one. Method: the line is there, and runs, its output in another folder.
#[test]
fn the_readmes_example_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let input = "testdata/traces/local-spin.ftrace.txt.gz";
    let readme = fs::read_to_string(root.join("docs/lab.md")).unwrap();
    assert!(readme.contains(&format!(
        "cargo run --release -- convert {input} spin.pftrace\n"
    )));
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("spin.pftrace");
    let run = paceline(&[&root.join(input), &out]);
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert!(
        read(&out)
            .threads
            .iter()
            .any(|thread| thread.name == "ui-main")
    );
}

/// Goal: a trace of each family becomes a Perfetto trace with the same content. Method: ftrace's text,
/// Chrome's JSON and Perfetto's own; the numbers of `--json` are compared with those of the file when it is
/// read again, and with the recording of the original.
#[test]
fn traces_of_every_family_are_converted() {
    let folder = TempDir::new().unwrap();
    for name in [
        "local-pathfinder-nopi.ftrace.txt.gz",
        "catapult-chrome-flow.json.gz",
        "ms-galaxy-s20.perfetto-trace.gz",
    ] {
        let (input, out) = (example(name), folder.path().join("out.pftrace"));
        let output = paceline(&[&input, &out, Path::new("--json")]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {text}");
        let json: Value = serde_json::from_str(&text).unwrap();
        let (before, after) = (read(&input), read(&out));
        assert_eq!(json["in"], input.to_str().unwrap());
        assert_eq!(json["out"], out.to_str().unwrap());
        assert_eq!(json["format"], before.origin.format);
        let events = before.kernel.len() + before.marks.len();
        let values = before.counters.iter().map(|counter| counter.values.len());
        assert_eq!(json["events"], events + values.sum::<usize>());
        for (loss, count) in before.losses.iter() {
            assert!(
                json["losses"][loss.word()].as_u64() >= Some(count),
                "{name}: {json}"
            );
        }
        assert_eq!(after.origin.format, "perfetto");
        assert_eq!(after.origin.wakers, before.origin.wakers);
        assert_eq!(after.kernel.len(), before.kernel.len(), "{name}");
        let tids = |recording: &trace::Recording| {
            let mut tids: Vec<_> = recording
                .threads
                .iter()
                .filter_map(|thread| thread.tid)
                .collect();
            tids.sort_unstable();
            tids.dedup();
            tids
        };
        let kept = tids(&after);
        assert!(
            tids(&before)
                .iter()
                .all(|tid| kept.binary_search(tid).is_ok()),
            "{name}"
        );
    }
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing is left behind: {files:?}");
}

/// Goal: a name that ends in .gz makes a packed file, and a person gets the result in lines. Method: the file
/// is unpacked and compared with one that is not packed.
#[test]
fn gz_is_packed() {
    let folder = TempDir::new().unwrap();
    let input = example("tracecompass-desktop-critical-path.ftrace.txt");
    let [plain, packed] = ["a.pftrace", "a.pftrace.gz"].map(|name| folder.path().join(name));
    let output = paceline(&[&input, &plain]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().next().unwrap().ends_with("events"), "{text}");
    assert_eq!(paceline(&[&input, &packed]).status.code(), Some(0));
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(fs::File::open(&packed).unwrap())
        .read_to_end(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked, fs::read(&plain).unwrap());
}

/// Goal: an impossible conversion is one line: exit code 2 for an input that is missing, no trace, or another
/// program's binary (with the command that makes text of it), and for an output that can never be; 1 for a
/// file that cannot be written. The output stays as it was. Method: one of each.
#[test]
fn what_cannot_be_done_is_one_line() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("noise"), [7u8, 200, 3, 9, 250, 1]).unwrap();
    fs::write(at("json"), "{\"a\": 1}").unwrap();
    fs::write(at("kept"), "kept").unwrap();
    let dat = example("lisa-juno-rtapp.trace.dat.gz");
    for (input, out, part) in [
        (at("missing"), at("kept"), "missing"),
        (at("noise"), at("kept"), "noise"),
        (at("json"), at("kept"), "traceEvents"),
        (dat, at("kept"), "trace-cmd report"),
        (at("json"), at("no/out"), "make it first"),
        (at("json"), "-".into(), "/dev/stdout"),
        ("-".into(), at("kept"), "/dev/stdin"),
        (at("json"), folder.path().to_owned(), "is a folder"),
    ] {
        let output = paceline(&[&input, &out]);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.contains(part), "{line}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(fs::read(at("kept")).unwrap(), b"kept");
}

/// Goal: a disk that takes nothing is exit code 1 and one line. Method: an output in a folder of the
/// kernel's, which takes no files.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_cannot_be_written_is_exit_code_1() {
    let input = example("tracecompass-desktop-critical-path.ftrace.txt");
    let output = paceline(&[&input, Path::new("/proc/out.pftrace")]);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains("/proc/out.pftrace"), "{line}");
}

/// Goal: a pipe is written as it is, and no file takes the place of the link to it. Method: the trace goes to
/// standard output, by the name that it has in the folder of devices; so does the line about it, behind it.
#[test]
#[cfg(target_os = "linux")]
fn a_pipe_is_written_to() {
    let folder = TempDir::new().unwrap();
    let plain = folder.path().join("a.pftrace");
    let input = example("tracecompass-desktop-critical-path.ftrace.txt");
    assert_eq!(paceline(&[&input, &plain]).status.code(), Some(0));
    let piped = paceline(&[&input, Path::new("/dev/stdout")]);
    assert_eq!(piped.status.code(), Some(0));
    assert!(piped.stdout.starts_with(&fs::read(&plain).unwrap()));
    let device = fs::symlink_metadata("/dev/stdout").unwrap();
    assert!(device.is_symlink());
}
