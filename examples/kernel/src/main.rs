//! Frames whose main thread waits for a job that a worker has begun, beside hogs that keep all CPUs busy:
//! what `cargo xtask vm` measures schedulers with.
//!
//! A frame is due every 16.7 ms. The main thread makes a job, computes for a while, blocks until a worker
//! has begun the job, and waits for it. The job takes 8 ms of CPU time, which is more than the worker's
//! share of a busy machine. So the worker loses its CPU to a hog in the middle of it, and the main thread,
//! which hardly computes, waits for the hog. A frame's time is from the moment at which it was due to the
//! end of the wait. Frames that the one before has run into are dropped, so that delays do not add up.
//!
//! Work is counted in blocks of arithmetic, and `calibrate` says how many hogs do in a millisecond on each
//! CPU if nothing else runs. Nothing in a frame reads a CPU clock: that makes the kernel charge the thread.
//!
//! Exit codes: 0 fine, 1 it could not run, 2 bad usage.
#![forbid(unsafe_code)]

mod hogs;
mod idle;
mod run;
mod work;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// Measure a scheduler with frames that wait for a preempted worker.
#[derive(Parser)]
#[command(name = "frame-bench", max_term_width = 100)]
struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run frames, and print their times in one line.
    Run(RunOptions),
    /// Print how many blocks so many hogs do in a millisecond on each CPU.
    Calibrate {
        /// How many hogs, at least as many as CPUs
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
        hogs: u32,
    },
    /// Compute with so many threads, and say how much for each line on standard input.
    Hogs {
        /// How many threads
        #[arg(value_name = "N")]
        count: u32,
    },
    /// Have threads that begin, wait for each other and end, for some seconds.
    Crowd {
        /// How many at a time
        #[arg(long, value_name = "N", default_value_t = 1000)]
        threads: u32,
        /// For how long
        #[arg(long, value_name = "SECONDS", default_value_t = 3)]
        seconds: u64,
    },
}

/// The scene.
#[derive(Args, Clone)]
struct RunOptions {
    /// The first word of the line of results
    #[arg(long, value_name = "WORD", default_value = "frames")]
    label: String,
    /// How many frames are due
    #[arg(long, value_name = "N", default_value_t = 375)]
    frames: u32,
    /// From one frame to the next, in microseconds
    #[arg(long, value_name = "US", default_value_t = 16_667)]
    period: u64,
    /// How long after a full second the first frame begins, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0)]
    phase: u64,
    /// How long the main thread computes in a frame, in microseconds
    #[arg(long, value_name = "US", default_value_t = 1_000)]
    main: u64,
    /// How long its job does, in microseconds
    #[arg(long, value_name = "US", default_value_t = 8_000)]
    job: u64,
    /// How many threads of another process compute meanwhile
    #[arg(long, value_name = "N", default_value_t = 8)]
    hogs: u32,
    /// How many workers; as many as the job system finds right if it is not said
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// How many blocks of arithmetic take a millisecond (`calibrate`)
    #[arg(long, value_name = "N")]
    blocks: u64,
    /// Say what the threads wait for, to a scheduler that listens
    #[arg(long)]
    hints: bool,
    /// Print the time of each frame, in microseconds
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let done = match Options::parse().task {
        Task::Run(options) => run::run(&options),
        Task::Calibrate { hogs } => run::calibrate(hogs),
        Task::Hogs { count } => hogs::serve(count),
        Task::Crowd { threads, seconds } => run::crowd(threads, seconds),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("frame-bench: {message}");
            ExitCode::from(1)
        }
    }
}
