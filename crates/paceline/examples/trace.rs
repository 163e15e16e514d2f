//! A trace of the program's own: jobs, frames, a span and a counter in one file.
#![forbid(unsafe_code)]
use std::time::Duration;

use paceline::{JobSystem, TraceError};

fn main() -> Result<(), TraceError> {
    let file = std::env::temp_dir().join(format!("paceline-trace-{}.pftrace", std::process::id()));
    let js = JobSystem::new();
    let trace = js.start_trace(&file)?;
    {
        let _span = js.span("load level");
        js.wait(js.job("textures").schedule(|_| ()));
    }
    for visible in [120, 80, 95] {
        let frame = js.frame("update", Duration::from_millis(16));
        let physics = frame.job("physics").schedule(|_| ());
        js.wait(frame.job("draw").after(physics).schedule(|_| ()));
        js.counter("visible", visible);
    }
    let traced = trace.finish()?;
    println!("lost {} events", traced.lost);
    assert!(traced.events > 0);
    // Keep the file and drag it into https://ui.perfetto.dev, or run `paceline diagnose` on it.
    std::fs::remove_file(&file).map_err(|why| TraceError::File { path: file, why })
}
