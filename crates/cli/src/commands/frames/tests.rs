//! Options become a plan, and contradictions are found.

use std::path::Path;

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: FramesArguments,
}

fn options(line: &[&str]) -> Result<Options, Failure> {
    let line = Line::try_parse_from([&["frames"], line].concat()).unwrap_or_else(|e| panic!("{e}"));
    line.arguments.options()
}

fn refused(line: &[&str]) -> String {
    match options(line) {
        Err(Failure::Usage(text)) => text,
        other => panic!("{line:?}: {other:?}"),
    }
}

/// Goal: without options the plan is source 001's frame at 60 Hz for five seconds. Method: look at the plan
/// of no option at all.
#[test]
fn the_default_is_five_seconds_of_source_001() {
    let options = options(&[]).unwrap();
    let FrameContent::Graph(graph) = &options.scene else {
        panic!("{options:?}");
    };
    assert_eq!(
        (graph.jobs().len(), graph.jobs()[0].cost),
        (500, Nanos(500))
    );
    assert_eq!((options.frames, options.workers), (300, Workers::Auto));
    let period = options.period.unwrap();
    assert_eq!(period.as_micros(), 16_666);
    assert!(period * options.frames < Duration::from_secs(6));
}

/// Goal: every option arrives. Method: all that go together.
#[test]
fn every_option_is_converted() {
    let line = [
        "--frames",
        "7",
        "--fps",
        "0",
        "--workers",
        "3",
        "--load",
        "2",
        "--background",
        "4",
        "--piece-us",
        "1.5",
        "--seed",
        "9",
        "--wait",
        "20us",
        "--trace",
        "t.pftrace",
        "--panic-at",
        "single 0",
    ];
    let options = options(&line).unwrap();
    let FrameContent::Graph(graph) = &options.scene else {
        panic!("{options:?}");
    };
    assert_eq!(graph.jobs()[0].cost, Nanos(1_500));
    assert_eq!(graph.about().name, "generated-9");
    assert_eq!((options.frames, options.period), (7, None));
    assert_eq!(options.workers, Workers::Count(3));
    assert_eq!((options.load, options.background), (2, 4));
    assert_eq!(
        options.wait,
        Some(WaitPolicy::For(Duration::from_micros(20)))
    );
    assert_eq!(options.trace.as_deref(), Some(Path::new("t.pftrace")));
    assert_eq!(options.panic_at.as_deref(), Some("single 0"));
}

/// Goal: options that contradict each other are refused with one line that names them. Method: each
/// pair.
#[test]
fn contradictions_are_refused() {
    for (line, part) in [
        (
            &["--scene", "mandelbrot", "--graph", "gitoxide-build"][..],
            "--graph",
        ),
        (&["--scene", "mandelbrot", "--seed", "2"], "--seed"),
        (
            &["--graph", "gitoxide-build", "--piece-us", "2"],
            "--piece-us",
        ),
        (
            &["--scene", "raster", "--graph", "gitoxide-build"],
            "--graph",
        ),
        (&["--scene", "raster", "--piece-us", "1"], "--piece-us"),
        (&["--mesh", "x.obj"], "--mesh"),
        (&["--scene", "mandelbrot", "--mesh", "x.obj"], "--mesh"),
        (
            &["--scene", "raster", "--mesh", "no/such.obj"],
            "no/such.obj",
        ),
        (&["--image", "x.png"], "--scene mandelbrot"),
        (&["--background", "1", "--workers", "0"], "--workers 1"),
        (&["--graph", "no-such-graph"], "gitoxide-build"),
        (
            &["--record-costs", "no/such/folder/x.toml"],
            "make it first",
        ),
    ] {
        let text = refused(line);
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
    }
}
