//! Goal: a real CPU that goes offline in the middle of frames, and comes back, costs no job and no result;
//! the workers go and come back with it. A quota that the process is given is noticed within a second of use.
//! Method: as root, on CPU 1 and a control group of our own. A binary of its own with one test, which does
//! one thing after the other: all of the machine feels it. A guardian process restores everything if this one
//! is killed. Where it is not permitted the test says so and asks nothing.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use paceline::{Builder, Grain, JobSystem};
use platform::os::guardian::Guardian;
use platform::{Machine, Os};

/// More than any step needs: nothing here is timed but what is documented.
const LONG: Duration = Duration::from_secs(60);
const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

/// One frame of 60 jobs and a loop, at 200 a second. True if all of it ran, once.
fn frame(js: &JobSystem, number: u64) -> bool {
    let frame = js.frame("frame", Duration::from_millis(16));
    let sum = Arc::new(AtomicU64::new(0));
    let jobs: Vec<_> = (1..=60)
        .map(|job| {
            let sum = sum.clone();
            frame.schedule(move |_| {
                (0..2_000).for_each(|i| _ = std::hint::black_box(i));
                sum.fetch_add(number * job, Relaxed);
            })
        })
        .collect();
    let looped = AtomicU64::new(0);
    js.parallel_for(0..100, Grain::Items(1), |part, _| {
        looped.fetch_add(part.len() as u64, Relaxed);
    });
    for &job in &jobs {
        js.wait(job);
    }
    std::thread::sleep(Duration::from_millis(5));
    sum.load(Relaxed) == number * 60 * 61 / 2 && looped.load(Relaxed) == 100
}

/// Frames until `wanted` holds; how long that took.
fn frames_until(js: &JobSystem, number: &mut u64, wanted: impl Fn(&JobSystem) -> bool) -> Duration {
    let begin = Instant::now();
    while !wanted(js) {
        *number += 1;
        assert!(frame(js, *number), "frame {number}: a job is lost");
        assert!(begin.elapsed() < LONG, "it was never noticed");
    }
    begin.elapsed()
}

#[test]
fn a_real_machine_changes() {
    for (what, done) in [
        ("a CPU that goes offline", a_cpu_goes_and_comes_back()),
        ("a quota", a_quota_is_noticed()),
    ] {
        match done {
            Ok(()) => println!("{what}: tried"),
            Err(why) => println!("{what}: not tried: {why}"),
        }
    }
}

fn a_cpu_goes_and_comes_back() -> Result<(), String> {
    let refused = |error: std::io::Error| format!("{ONLINE}: {error}");
    let set = |online: &str| fs::write(ONLINE, online).map_err(refused);
    let was = fs::read_to_string(ONLINE).map_err(refused)?;
    if was.trim() != "1" || !Os.limits().usable().contains(1) {
        return Err("CPU 1 is not ours to take".into());
    }
    set("1")?;
    let guardian = Guardian::new(&format!("echo 1 > {ONLINE}"), Path::new("/"));
    let _guardian = guardian.map_err(|error| error.to_string())?;
    let cpus = Os.limits().usable().len();
    // One for each CPU, so that one fewer shows on a machine of two.
    let js = Builder::new().workers(cpus).build().expect("threads");
    let mut number = 0;
    for _ in 0..2 {
        set("0")?;
        frames_until(&js, &mut number, |js| js.workers() < cpus);
        assert_eq!(js.limits().usable().len(), cpus - 1);
        set("1")?;
        frames_until(&js, &mut number, |js| js.workers() == cpus);
    }
    let stats = js.stats();
    assert_eq!((stats.frames, stats.resizes), (number, 4));
    println!("{number} frames, {} looks", stats.looks);
    Ok(())
}

/// A control group of this process, until it is dropped.
struct Group {
    folder: String,
    root: &'static str,
    _guardian: Guardian,
}

impl Group {
    /// A group with `runtime` microseconds of CPU time in each 100 000, of either version of control groups.
    fn new(runtime: u64) -> Result<Group, String> {
        let id = std::process::id();
        let tries = [
            (
                "/sys/fs/cgroup/cpu",
                "cpu.cfs_quota_us",
                format!("{runtime}"),
            ),
            ("/sys/fs/cgroup", "cpu.max", format!("{runtime} 100000")),
        ];
        let mut why = String::new();
        for (root, file, quota) in tries {
            let folder = format!("{root}/paceline-test-{id}");
            if let Err(error) = fs::create_dir(&folder) {
                why = format!("{folder}: {error}");
                continue;
            }
            let tidy = format!(
                "cat {folder}/cgroup.procs | while read p; do echo $p > {root}/cgroup.procs; done; \
                 rmdir {folder}"
            );
            let guardian = Guardian::new(&tidy, Path::new("/"));
            let group = Group {
                root,
                _guardian: guardian.map_err(|error| error.to_string())?,
                folder,
            };
            let enter = fs::write(format!("{}/{file}", group.folder), quota)
                .and_then(|()| fs::write(format!("{}/cgroup.procs", group.folder), id.to_string()));
            match enter {
                Ok(()) => return Ok(group),
                Err(error) => why = format!("{}: {error}", group.folder),
            }
        }
        Err(why)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Back to where it was; the guardian, which is dropped next, does the rest.
        let id = std::process::id().to_string();
        let _ = fs::write(format!("{}/cgroup.procs", self.root), id);
    }
}

fn a_quota_is_noticed() -> Result<(), String> {
    if Os.limits().quota.is_some() {
        return Err("there is one already".into());
    }
    let js = Builder::new().workers(2).build().expect("threads");
    let mut number = 0;
    assert!(frame(&js, number));
    let group = Group::new(150_000)?;
    let looks = js.stats().looks;
    let took = frames_until(&js, &mut number, |js| js.limits().quota.is_some());
    let quota = js.limits().quota.expect("it was seen");
    assert_eq!(quota.cpus(), 1.5);
    println!("one and a half CPUs were noticed after {took:?} of frames");
    // A look is due each second of use. The first one may have been at it when the quota was set.
    assert!(js.stats().looks - looks <= 2, "{looks} looks before");
    drop(group);
    frames_until(&js, &mut number, |js| js.limits().quota.is_none());
    Ok(())
}
