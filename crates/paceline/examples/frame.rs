//! A frame: jobs with dependencies, a wait that helps, a deadline.
#![forbid(unsafe_code)]
use std::time::Duration;

use paceline::{JobId, JobSystem};

fn main() {
    let js = JobSystem::new();
    for _ in 0..3 {
        let frame = js.frame("update", Duration::from_secs(10));
        let input = frame.job("input").schedule(|_| ());
        let systems: Vec<JobId> = ["physics", "animation", "audio"]
            .into_iter()
            .map(|name| frame.job(name).after(input).schedule(|_| ()))
            .collect();
        let cull = frame.job("cull").after_all(&systems).run(|_| 42);
        println!("frame {}: {} objects visible", frame.number(), cull.wait());
    }
    let stats = js.stats();
    println!(
        "{} frames, {} missed, {} jobs",
        stats.frames, stats.frames_missed, stats.jobs
    );
    assert_eq!(stats.jobs, 15);
}
