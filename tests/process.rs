//! Goal: a job system is a good citizen of its process: it says so when it was left behind by a
//! fork, computes as the thread that made it does, has the names and hooks it was given, and refuses
//! settings in words.
//!
//! Method: things common to a process (forks, environment variables) are tried in a process of its own: this
//! binary once more, running one ignored test.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, Output};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::ThreadId;

use paceline::{BuildError, Builder, Context, JobSystem, ScheduleError, WORKERS_MAX, WaitError};

/// Set in processes started by [`child`].
const CHILD: &str = "PACELINE_TEST_CHILD";

/// The output of a child process, and how it ended.
pub(crate) struct Said(Output);

impl Said {
    pub(crate) fn is_success(&self) -> bool {
        self.0.status.success()
    }

    /// The line that begins with `key`, without it.
    pub(crate) fn line(&self, key: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0.stdout).into_owned();
        let found = text.split_once(key)?.1.lines().next();
        found.map(str::to_owned)
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy;
        let Output {
            status,
            stdout,
            stderr,
        } = &self.0;
        write!(f, "{status}\n{}{}", text(stdout), text(stderr))
    }
}

/// Runs one ignored test of this binary in a process of its own, with these environment variables.
pub(crate) fn child(test: &str, variables: &[(&str, &OsStr)]) -> Said {
    let this = std::env::current_exe().expect("this binary has a path");
    let output = Command::new(this)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env_remove("PACELINE_WAIT")
        .env_remove("PACELINE_WORKERS")
        .env_remove("PACELINE_CPUS")
        .env_remove("PACELINE_PLACEMENT")
        .env_remove("PACELINE_TRACE")
        .env_remove("PACELINE_STUCK")
        .env(CHILD, "1")
        .envs(variables.iter().copied())
        .output()
        .expect("this binary can be started");
    let said = Said(output);
    print!("{said}");
    assert!(
        said.0.stdout.windows(9).any(|w| w == b"running 1"),
        "{test}: no such test"
    );
    said
}

/// Whether this process was started by [`child`], and not by a run of all ignored tests.
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs `body` once on each of the `workers` threads, all at the same time.
fn on_each_worker(
    js: &JobSystem,
    workers: usize,
    body: fn(&Context<'_, platform::Os>, &Seen),
) -> Seen {
    let seen = Seen::default();
    let barrier = Arc::new(Barrier::new(workers + 1));
    let jobs = (0..workers).map(|_| {
        let (barrier, seen) = (barrier.clone(), seen.clone());
        js.schedule(move |cx| {
            barrier.wait();
            body(cx, &seen);
        })
    });
    let jobs = jobs.collect::<Vec<_>>();
    js.flush();
    // Not by a wait: that would run one of them here.
    barrier.wait();
    for &job in &jobs {
        js.wait(job);
    }
    seen
}

/// The observations of threads: thread, thread slot, a word.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(ThreadId, usize, u32)>>>);

impl Seen {
    fn note(&self, slot: usize, word: u32) {
        let me = std::thread::current().id();
        self.0.lock().expect("no panics").push((me, slot, word));
    }

    fn all(&self) -> Vec<(ThreadId, usize, u32)> {
        self.0.lock().expect("no panics").clone()
    }

    /// Thread slots by thread.
    fn slots(&self) -> BTreeMap<String, usize> {
        let all = self.all();
        let slots = all.iter().map(|(id, slot, _)| (format!("{id:?}"), *slot));
        let map = slots.collect::<BTreeMap<_, _>>();
        assert_eq!(map.len(), all.len(), "a thread was there twice");
        map
    }
}

#[cfg(unix)]
#[test]
fn the_child_of_a_fork_gets_errors() {
    let said = child("process::forks", &[]);
    assert!(said.is_success(), "{said}");
    assert_eq!(
        said.line("fork's child: ").as_deref(),
        Some("exit 0"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
#[ignore = "run by the test above in a process of its own"]
fn forks() {
    if !is_child() {
        return;
    }
    let js = Builder::new().workers(2).build().expect("it can be built");
    let finished = js.schedule(|_| ());
    js.wait(finished);
    let event = js.event("completed by the parent");
    let unfinished = js.job("held back").after(event.id()).schedule(|_| ());
    // SAFETY: the child calls what this test is about, and ends by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no fork");
    if pid == 0 {
        let verdict = in_the_forks_child(js, finished, unfinished, event);
        // SAFETY: ends this process and runs nothing else.
        unsafe { libc::_exit(verdict) };
    }
    // The child has an alarm: it ends.
    let mut status = 0;
    let ended = (0..3_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        // SAFETY: `status` is writable, `pid` our child.
        unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) == pid }
    });
    if !ended {
        println!("fork's child: hangs");
    } else if libc::WIFEXITED(status) {
        println!("fork's child: exit {}", libc::WEXITSTATUS(status));
    } else {
        println!("fork's child: signal {}", libc::WTERMSIG(status));
    }
    // The parent has lost nothing.
    assert!(!js.is_done(unfinished));
    event.complete();
    js.wait(unfinished);
    assert_eq!(js.job("after the fork").run(|_| 42).wait(), 42);
    on_each_worker(&js, 2, |cx, seen| seen.note(cx.worker(), 0));
}

/// The number of the first check that fails, or 0. Nothing is printed or asserted: some other thread
/// may have held any lock when this process was forked off.
#[cfg(unix)]
fn in_the_forks_child(
    js: JobSystem,
    finished: paceline::JobId,
    unfinished: paceline::JobId,
    event: paceline::Event,
) -> i32 {
    // SAFETY: the default action ends the process, as it should if it hangs.
    unsafe { libc::alarm(20) };
    let refused = ScheduleError::Forked;
    if !matches!(js.try_wait(finished), Err(WaitError::Forked)) {
        return 1;
    }
    if !matches!(js.try_wait(unfinished), Err(WaitError::Forked)) {
        return 2;
    }
    if js.job("x").try_schedule(|_| ()) != Err(refused.clone()) {
        return 3;
    }
    if js.job("x").try_run(|_| ()).err() != Some(refused.clone()) {
        return 4;
    }
    {
        let budget = std::time::Duration::from_millis(16);
        let (frame, _other) = (js.frame("frame", budget), js.frame("other", budget));
        if frame.job("x").try_schedule(|_| ()) != Err(refused) {
            return 6;
        }
    }
    drop(event);
    drop(js);
    // A job system of its own works.
    let own = Builder::new().workers(1).build();
    match own {
        Ok(own) if own.job("own").run(|_| 42).wait() == 42 => 0,
        _ => 5,
    }
}

#[cfg(target_arch = "x86_64")]
mod denormals {
    use std::arch::asm;
    use std::hint::black_box;

    use super::*;

    const FLUSH_TO_ZERO: u32 = 0x8000;
    const DENORMALS_ARE_ZERO: u32 = 0x0040;
    const BOTH: u32 = FLUSH_TO_ZERO | DENORMALS_ARE_ZERO;

    fn mxcsr() -> u32 {
        let mut word = 0_u32;
        // SAFETY: stores four bytes to `word`.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack)) };
        word
    }

    fn set_mxcsr(word: u32) {
        // SAFETY: loads four bytes from `word`, which has no reserved bits set; the thread computes
        // nothing with floats that it did not mean to.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack)) };
    }

    fn product(a: f32, b: f32) -> f32 {
        let mut product = black_box(a);
        // SAFETY: a multiplication of two registers; by hand, as the compiler assumes the default
        // mode.
        unsafe { asm!("mulss {}, {}", inout(xmm_reg) product, in(xmm_reg) black_box(b)) };
        product
    }

    /// Each worker's values of the two bits, and the bits of a product that is denormal.
    fn on_workers() -> Vec<(u32, f32)> {
        let js = Builder::new().workers(2).build().expect("it can be built");
        let modes = on_each_worker(&js, 2, |cx, seen| seen.note(cx.worker(), mxcsr() & BOTH));
        let products = on_each_worker(&js, 2, |cx, seen| {
            seen.note(cx.worker(), product(f32::MIN_POSITIVE, 0.5).to_bits());
        });
        assert_eq!(modes.slots(), products.slots(), "the same two threads");
        let products = products
            .all()
            .into_iter()
            .map(|seen| f32::from_bits(seen.2));
        modes
            .all()
            .into_iter()
            .map(|seen| seen.2)
            .zip(products)
            .collect()
    }

    #[test]
    fn workers_flush_denormals_if_their_maker_does() {
        let maker = std::thread::spawn(|| {
            set_mxcsr(mxcsr() | BOTH);
            on_workers()
        });
        let flushing = maker.join().expect("the maker does not panic");
        assert_eq!(flushing, [(BOTH, 0.0); 2]);
        let half = f32::from_bits(f32::MIN_POSITIVE.to_bits() / 2);
        assert_eq!(on_workers(), [(0, half); 2], "and only then");
    }
}

#[test]
fn threads_have_their_names_and_hooks() {
    const WORKERS: usize = 3;
    let (started, stopped) = (Seen::default(), Seen::default());
    let (start, stop) = (started.clone(), stopped.clone());
    let js = Builder::new()
        .workers(WORKERS)
        .thread_name(|slot| format!("{slot} is one of paceline's workers"))
        .on_thread_start(move |slot| start.note(slot, 0))
        .on_thread_stop(move |slot| stop.note(slot, 0))
        .build()
        .expect("it can be built");
    let worked = on_each_worker(&js, WORKERS, |cx, seen| seen.note(cx.worker(), 0));
    assert_eq!(started.slots(), worked.slots());
    assert_eq!(started.all().len(), WORKERS);
    assert_eq!(stopped.all(), []);
    #[cfg(target_os = "linux")]
    {
        let mut names = comms();
        names.retain(|name| name.contains("is one of"));
        names.sort();
        // Linux shows 15 bytes.
        let wanted = started
            .slots()
            .into_values()
            .collect::<std::collections::BTreeSet<_>>();
        let wanted = wanted.iter().map(|slot| format!("{slot} is one of pac"));
        let wanted = wanted.map(|name| name[..15].to_owned()).collect::<Vec<_>>();
        assert_eq!(names, wanted);
    }
    drop(js);
    assert_eq!(stopped.slots(), worked.slots());
    assert_eq!(started.all().len(), WORKERS);
}

/// The names of this process's threads.
#[cfg(target_os = "linux")]
fn comms() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("there is a /proc");
    // A thread of another test may end meanwhile.
    let comms = tasks
        .flatten()
        .map(|task| std::fs::read_to_string(task.path().join("comm")));
    comms
        .flatten()
        .map(|comm| comm.trim_end().to_owned())
        .collect()
}

#[test]
fn paceline_wait_is_read_and_checked() {
    let try_with = |value: &OsStr| {
        let said = child("process::builds", &[("PACELINE_WAIT", value)]);
        assert!(said.is_success(), "{said}");
        said.line("build: ").unwrap_or_else(|| panic!("{said}"))
    };
    for good in ["active", "passive", "adaptive", "20us"] {
        assert_eq!(try_with(good.as_ref()), "ran", "{good}");
    }
    for bad in ["sometimes", "20", ""] {
        let error = format!(
            "PACELINE_WAIT: '{bad}' is no wait policy: \
             use active, passive, adaptive, or a time such as 500ns, 20us, 2ms"
        );
        assert_eq!(try_with(bad.as_ref()), error);
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let error = try_with(OsStr::from_bytes(b"act\xffive"));
        assert!(error.starts_with("PACELINE_WAIT: '"), "{error}");
    }
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn builds() {
    if !is_child() {
        return;
    }
    match Builder::new().workers(1).build() {
        Ok(js) => {
            js.job("job").run(|_| ()).wait();
            println!("build: ran");
        }
        Err(error @ BuildError::Environment(_)) => {
            assert_eq!(error.to_string().lines().count(), 1);
            println!("build: {error}");
        }
        Err(error) => panic!("another error: {error}"),
    }
}

#[test]
fn settings_out_of_range_are_refused_in_words() {
    let refusal = |builder: Builder| match builder.build() {
        Err(error @ BuildError::OutOfRange { .. }) => error.to_string(),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("it was built"),
    };
    assert_eq!(
        refusal(Builder::new().workers(WORKERS_MAX + 1)),
        "workers must be between 0 and 1024, not 1025"
    );
    assert_eq!(
        refusal(Builder::new().max_jobs(0)),
        "max_jobs must be between 1 and 8388608, not 0"
    );
    assert_eq!(
        refusal(Builder::new().queue_capacity(3)),
        "queue_capacity (a power of two) must be between 2 and 4096, not 3"
    );
    assert_eq!(
        refusal(Builder::new().max_threads(0)),
        "max_threads must be between 1 and 2048, not 0"
    );
}
