//! Calls that no careful program makes: null pointers, numbers of nothing, sizes that are wrong, a job system
//! that has ended. Each is a status, and the program's data are released once, whatever happens.

use std::ffi::{CStr, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use paceline_c::pl_status::*;
use paceline_c::*;
use proptest::prelude::*;

/// Counts what was given to the library and not released yet.
struct Account(AtomicUsize);

unsafe extern "C-unwind" fn release(data: *mut c_void) {
    // SAFETY: `data` was made of an Arc by `Account::charge`, and comes back once.
    drop(unsafe { Arc::from_raw(data.cast::<Account>()) });
}

unsafe extern "C-unwind" fn body(context: *mut pl_context, data: *mut c_void) {
    // SAFETY: `release` has not been called yet.
    let account = unsafe { &*data.cast::<Account>() };
    if account.0.fetch_add(1, Ordering::Relaxed) % 5 == 4 {
        // SAFETY: the context of this body.
        unsafe { pl_fail(context, c"every fifth".as_ptr()) };
    }
}

unsafe extern "C-unwind" fn ready(data: *mut c_void) {
    // SAFETY: as for `body`.
    let account = unsafe { &*data.cast::<Account>() };
    account.0.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C-unwind" fn piece(
    context: *mut pl_context,
    begin: usize,
    _end: usize,
    data: *mut c_void,
) {
    if begin == 0 {
        // SAFETY: as for `body`.
        unsafe { body(context, data) };
    }
}

/// What is done, to which job system and which jobs: numbers of places in the lists of those that there are.
#[derive(Clone, Debug)]
enum Step {
    Create {
        workers: u32,
    },
    Destroy(u8),
    Schedule {
        system: u8,
        after: [u8; 2],
        size: Size,
        lane: u32,
        token: u64,
        pin: u64,
        frame: u64,
        group: u64,
    },
    Loop {
        system: u8,
        after: u8,
        count: usize,
        in_place: bool,
    },
    Combine {
        system: u8,
        jobs: [u8; 2],
    },
    AddDependency {
        system: u8,
        job: u8,
        before: u8,
    },
    AddCompleter {
        system: u8,
        event: u8,
        job: u8,
    },
    Event {
        system: u8,
        count: usize,
    },
    Complete {
        system: u8,
        event: u8,
    },
    Abandon {
        system: u8,
        event: u8,
    },
    Wait {
        system: u8,
        job: u8,
        time: u64,
    },
    Token {
        system: u8,
        parent: u64,
    },
    Cancel {
        system: u8,
        token: u64,
    },
    DestroyToken {
        system: u8,
        token: u64,
    },
    Frame {
        system: u8,
        budget: u64,
    },
    EndFrame {
        system: u8,
        frame: u64,
    },
    Group(u8),
    DestroyGroup {
        system: u8,
        group: u64,
    },
    WaitInGroup {
        system: u8,
        group: u64,
        job: u8,
        time: u64,
    },
    PinThread(u8),
    UnpinThread(u8),
    RunPinned(u8),
    Ask(u8),
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Right,
    Zero,
    Longer,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![8 => Just(Size::Right), 1 => Just(Size::Zero), 1 => Just(Size::Longer)];
    let lane = prop_oneof![8 => 0..8_u32, 1 => any::<u32>()];
    let time = prop_oneof![3 => Just(0), 1 => 1..20_000_u64];
    let token = || prop_oneof![3 => Just(0), 3 => 1..4_u64, 1 => any::<u64>()];
    // Some are that of this thread in one of the job systems.
    let pin = prop_oneof![5 => Just(0), 4 => any::<u8>().prop_map(u64::from), 1 => any::<u64>()];
    let frame = || prop_oneof![6 => Just(0), 3 => 1..4_u64, 1 => any::<u64>()];
    let byte = any::<u8>;
    let step = prop_oneof![
        1 => (0..3_u32).prop_map(|workers| Step::Create { workers }),
        1 => byte().prop_map(Step::Destroy),
        8 => (byte(), any::<[u8; 2]>(), size, lane, (token(), pin, frame(), frame())).prop_map(
            |(system, after, size, lane, (token, pin, frame, group))| {
                Step::Schedule { system, after, size, lane, token, pin, frame, group }
            }
        ),
        2 => byte().prop_map(Step::Group),
        1 => (byte(), frame()).prop_map(|(system, group)| Step::DestroyGroup { system, group }),
        3 => (byte(), frame(), byte(), 0..20_000_u64).prop_map(|(system, group, job, time)| {
            Step::WaitInGroup { system, group, job, time }
        }),
        1 => byte().prop_map(Step::PinThread),
        1 => byte().prop_map(Step::UnpinThread),
        2 => byte().prop_map(Step::RunPinned),
        3 => (byte(), byte(), 0..50_usize, any::<bool>()).prop_map(
            |(system, after, count, in_place)| Step::Loop { system, after, count, in_place }
        ),
        1 => (byte(), any::<[u8; 2]>()).prop_map(|(system, jobs)| Step::Combine { system, jobs }),
        2 => any::<[u8; 3]>().prop_map(|[system, job, before]| {
            Step::AddDependency { system, job, before }
        }),
        2 => (byte(), 0..3_usize).prop_map(|(system, count)| Step::Event { system, count }),
        3 => (byte(), byte()).prop_map(|(system, event)| Step::Complete { system, event }),
        1 => (byte(), byte()).prop_map(|(system, event)| Step::Abandon { system, event }),
        2 => (byte(), byte(), byte())
            .prop_map(|(system, event, job)| Step::AddCompleter { system, event, job }),
        4 => (byte(), byte(), time).prop_map(|(system, job, time)| Step::Wait { system, job, time }),
        2 => (byte(), token()).prop_map(|(system, parent)| Step::Token { system, parent }),
        1 => (byte(), token()).prop_map(|(system, token)| Step::Cancel { system, token }),
        1 => (byte(), token()).prop_map(|(system, token)| Step::DestroyToken { system, token }),
        1 => (byte(), any::<u64>()).prop_map(|(system, budget)| Step::Frame { system, budget }),
        1 => (byte(), 0..4_u64).prop_map(|(system, frame)| Step::EndFrame { system, frame }),
        1 => byte().prop_map(Step::Ask),
    ];
    prop::collection::vec(step, 1..60)
}

/// A program that makes these calls.
struct Program {
    account: Arc<Account>,
    /// Each with whether it lives. The first is null.
    systems: Vec<(*mut pl_system, bool)>,
    /// Numbers of jobs of any of them, and of nothing.
    jobs: Vec<pl_job>,
    /// Names of this thread, and of nothing.
    pins: Vec<pl_pin>,
}

impl Program {
    fn new() -> Program {
        Program {
            account: Arc::new(Account(AtomicUsize::new(0))),
            systems: vec![(null_mut(), false)],
            jobs: vec![0, 1, u64::MAX, 0x1_0000_0000],
            pins: vec![0, 1, u64::MAX],
        }
    }

    fn system(&self, number: u8) -> (*mut pl_system, bool) {
        self.systems[usize::from(number) % self.systems.len()]
    }

    fn job(&self, number: u8) -> pl_job {
        self.jobs[usize::from(number) % self.jobs.len()]
    }

    /// Data for a body, which the library owes a release of.
    fn charge(&self) -> *mut c_void {
        Arc::into_raw(Arc::clone(&self.account)).cast_mut().cast()
    }

    /// What every call of a job system has to say: a status that fits, and a sentence.
    fn judge(&self, system: (*mut pl_system, bool), status: pl_status) {
        match system {
            (pointer, _) if pointer.is_null() => assert_eq!(status, PL_INVALID),
            (_, false) => assert_eq!(status, PL_DESTROYED),
            (_, true) => assert_ne!(status, PL_DESTROYED),
        }
        assert_ne!(status, PL_INTERNAL, "{}", last_error());
        assert!(matches!(status, PL_OK | PL_TIMEOUT) || !last_error().is_empty());
    }

    fn schedule(
        &mut self,
        system: u8,
        after: [u8; 2],
        size: Size,
        (lane, token, pin, frame, group): (u32, u64, u64, u64, u64),
    ) {
        let system = self.system(system);
        let after = after.map(|number| self.job(number));
        let whole = size_of::<pl_job_desc>();
        // SAFETY: zero is a value of each field.
        let mut longer: [pl_job_desc; 2] = unsafe { zeroed() };
        longer[0] = pl_job_desc {
            size: match size {
                Size::Right => whole,
                Size::Zero => 0,
                Size::Longer => whole + 8,
            },
            name: c"random".as_ptr(),
            body: Some(body),
            data: match size {
                Size::Zero => null_mut(),
                Size::Right | Size::Longer => self.charge(),
            },
            data_size: 0,
            release: Some(release),
            after: after.as_ptr(),
            after_count: after.len(),
            lane,
            quiet: 0,
            token,
            pin: self.pins[pin as usize % self.pins.len()],
            frame,
            group,
            site: null(),
        };
        let mut job = 0;
        // SAFETY: the description is as long as its size says; all pointers are of this function.
        let status = unsafe { pl_schedule(system.0, longer.as_ptr(), &mut job) };
        if matches!(size, Size::Zero) {
            assert_eq!(status, PL_INVALID, "a size of 0 is refused first");
            return;
        }
        self.judge(system, status);
        assert_eq!(status == PL_OK, job != 0);
        self.jobs.push(job);
    }

    fn run_loop(&mut self, system: u8, after: u8, count: usize, in_place: bool) {
        let system = self.system(system);
        let after = [self.job(after)];
        let desc = pl_loop_desc {
            size: size_of::<pl_loop_desc>(),
            name: null(),
            body: Some(piece),
            data: self.charge(),
            data_size: 0,
            release: Some(release),
            count,
            grain: 0,
            after: after.as_ptr(),
            after_count: usize::from(!in_place),
            lane: 0,
            quiet: 0,
            token: 0,
            frame: 0,
            group: 0,
            site: null(),
        };
        let mut job = 0;
        // SAFETY: the description is right; all pointers are of this function.
        let status = unsafe {
            if in_place {
                pl_parallel_for(system.0, &desc)
            } else {
                pl_schedule_for(system.0, &desc, &mut job)
            }
        };
        self.judge(system, status);
        self.jobs.push(job);
    }

    fn combine(&mut self, system: u8, jobs: [u8; 2]) {
        let (system, jobs) = (self.system(system), jobs.map(|number| self.job(number)));
        let mut job = 0;
        // SAFETY: the array has as many numbers.
        let status = unsafe { pl_combine(system.0, jobs.as_ptr(), 2, &mut job) };
        self.judge(system, status);
        self.jobs.push(job);
    }

    fn event(&mut self, system: u8, count: usize) {
        let mut event = 0;
        // SAFETY: the job system is null or was made; the name is a literal.
        self.call(system, |system| unsafe {
            pl_event_create(system, c"event".as_ptr(), count, &mut event)
        });
        self.jobs.push(event);
    }

    /// A step with a token.
    fn token_step(&mut self, step: &Step) {
        match *step {
            Step::Token { system, parent } => {
                let mut token = 0;
                // SAFETY: the job system is null or was made.
                self.call(system, |system| unsafe {
                    pl_token_create(system, parent, &mut token)
                });
            }
            Step::Cancel { system, token } => {
                let mut is = 0;
                // SAFETY: the job system is null or was made.
                self.call(system, |system| unsafe { pl_token_cancel(system, token) });
                // SAFETY: the job system is null or was made.
                self.call(system, |system| unsafe {
                    pl_token_is_cancelled(system, token, &mut is)
                });
            }
            Step::DestroyToken { system, token } => {
                // SAFETY: the job system is null or was made.
                self.call(system, |system| unsafe { pl_token_destroy(system, token) });
            }
            _ => unreachable!("it is no step with a token"),
        }
    }

    /// A step with a frame.
    fn frame_step(&mut self, step: &Step) {
        match *step {
            Step::Frame { system, budget } => {
                let mut frame = 0;
                // SAFETY: the job system is null or was made; null is a name.
                self.call(system, |system| unsafe {
                    pl_frame_begin(system, null(), budget, &mut frame)
                });
            }
            Step::EndFrame { system, frame } => {
                // SAFETY: as above.
                self.call(system, |system| unsafe { pl_frame_end(system, frame) });
            }
            _ => unreachable!("it is no step with a frame"),
        }
    }

    /// A step with a group.
    fn group_step(&mut self, step: &Step) {
        match *step {
            Step::Group(system) => {
                let mut group = 0;
                // SAFETY: the job system is null or was made; null is a name.
                self.call(system, |system| unsafe {
                    pl_group_create(system, null(), &mut group)
                });
            }
            Step::DestroyGroup { system, group } => {
                // SAFETY: as above.
                self.call(system, |system| unsafe { pl_group_destroy(system, group) });
            }
            Step::WaitInGroup {
                system,
                group,
                job,
                time,
            } => {
                let job = self.job(job);
                // SAFETY: as above.
                self.call(system, |system| unsafe {
                    pl_group_wait_timeout(system, group, job, time)
                });
            }
            _ => unreachable!("it is no step with a group"),
        }
    }

    /// A step that says what one job has to do with another.
    fn edge_step(&mut self, step: &Step) {
        match *step {
            Step::AddDependency {
                system,
                job,
                before,
            } => {
                let (job, before) = (self.job(job), self.job(before));
                // SAFETY: the job system is null or was made.
                self.call(system, |system| unsafe {
                    pl_add_dependency(system, job, before)
                });
            }
            Step::AddCompleter { system, event, job } => {
                let (event, job) = (self.job(event), self.job(job));
                // SAFETY: as there.
                self.call(system, |system| unsafe {
                    pl_add_completer(system, event, job)
                });
            }
            _ => unreachable!("it is no step with two jobs"),
        }
    }

    /// A step with jobs of this thread alone.
    fn pin_step(&mut self, step: &Step) {
        match *step {
            Step::PinThread(system) => {
                let desc = pl_pin_desc {
                    size: size_of::<pl_pin_desc>(),
                    on_ready: Some(ready),
                    data: self.charge(),
                    release: Some(release),
                };
                let mut pin = 0;
                // SAFETY: the job system is null or was made; the description is right.
                self.call(system, |system| unsafe {
                    pl_pin_thread(system, &desc, &mut pin)
                });
                self.pins.push(pin);
            }
            Step::UnpinThread(system) => {
                // SAFETY: as above.
                self.call(system, |system| unsafe { pl_unpin_thread(system) });
            }
            Step::RunPinned(system) => {
                // SAFETY: as above; a null count is allowed.
                self.call(system, |system| unsafe {
                    pl_run_pinned_jobs(system, null_mut())
                });
            }
            _ => unreachable!("it is no step with a pin"),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Create { workers } => self.create(workers),
            Step::Destroy(system) => self.destroy(system),
            Step::AddCompleter { .. } | Step::AddDependency { .. } => self.edge_step(step),
            Step::Schedule {
                system,
                after,
                size,
                lane,
                token,
                pin,
                frame,
                group,
            } => self.schedule(system, after, size, (lane, token, pin, frame, group)),
            Step::Loop {
                system,
                after,
                count,
                in_place,
            } => {
                self.run_loop(system, after, count, in_place);
            }
            Step::Combine { system, jobs } => self.combine(system, jobs),
            Step::Event { system, count } => self.event(system, count),
            Step::Complete { system, event } => {
                let event = self.job(event);
                // SAFETY: as above.
                self.call(system, |system| unsafe { pl_event_complete(system, event) });
            }
            Step::Abandon { system, event } => {
                let event = self.job(event);
                // SAFETY: as above.
                self.call(system, |system| unsafe { pl_event_abandon(system, event) });
            }
            Step::Wait { system, job, time } => {
                let job = self.job(job);
                // SAFETY: as above.
                self.call(system, |system| unsafe {
                    pl_wait_timeout(system, job, time)
                });
            }
            Step::Token { .. } | Step::Cancel { .. } | Step::DestroyToken { .. } => {
                self.token_step(step);
            }
            Step::Frame { .. } | Step::EndFrame { .. } => self.frame_step(step),
            Step::Group(_) | Step::DestroyGroup { .. } | Step::WaitInGroup { .. } => {
                self.group_step(step);
            }
            Step::PinThread(_) | Step::UnpinThread(_) | Step::RunPinned(_) => self.pin_step(step),
            Step::Ask(system) => {
                let mut needed = 0;
                // SAFETY: as above; null is a buffer.
                self.call(system, |system| unsafe {
                    pl_report(system, null_mut(), 0, &mut needed)
                });
            }
        }
    }

    fn call(&self, system: u8, make: impl FnOnce(*mut pl_system) -> pl_status) {
        let system = self.system(system);
        let status = make(system.0);
        self.judge(system, status);
    }

    fn create(&mut self, workers: u32) {
        let desc = pl_system_desc {
            size: size_of::<pl_system_desc>(),
            workers,
            no_workers: u32::from(workers == 0),
            // SAFETY: zero is a value of each field.
            ..unsafe { zeroed() }
        };
        let mut system = null_mut();
        // SAFETY: the description is right.
        let status = unsafe { pl_system_create(&desc, &mut system) };
        assert_eq!(status, PL_OK, "{}", last_error());
        self.systems.push((system, true));
    }

    fn destroy(&mut self, number: u8) {
        let at = usize::from(number) % self.systems.len();
        let (system, lives) = self.systems[at];
        // SAFETY: null, or made; this is the only thread that calls.
        let status = unsafe { pl_system_destroy(system) };
        let expected = if lives || system.is_null() {
            PL_OK
        } else {
            PL_DESTROYED
        };
        assert_eq!(status, expected, "{}", last_error());
        self.systems[at].1 = false;
    }
}

fn last_error() -> String {
    // SAFETY: never null, and valid until the next call.
    let text = unsafe { CStr::from_ptr(pl_last_error()) };
    text.to_string_lossy().into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Goal: no order of calls does harm. Method: random calls with right and wrong arguments to job systems
    /// that live, have ended, or are null; each status fits, and at the end all data were released once.
    #[test]
    fn any_order_of_calls_is_a_status(steps in steps()) {
        let mut program = Program::new();
        program.create(1);
        for step in &steps {
            program.step(step);
        }
        for system in 0..program.systems.len() {
            program.destroy(system as u8);
        }
        prop_assert_eq!(Arc::strong_count(&program.account), 1, "each body was released once");
    }
}

/// Goal: what a pointer cannot be is refused before anything happens. Method: each pointer that must be
/// there.
#[test]
fn null_pointers_are_refused() {
    // SAFETY: what is null is what is tested.
    unsafe {
        assert_eq!(pl_system_create(null(), null_mut()), PL_INVALID);
        let mut system = null_mut();
        assert_eq!(pl_system_create(null(), &mut system), PL_OK);
        assert_eq!(pl_schedule(system, null(), null_mut()), PL_INVALID);
        assert_eq!(pl_combine(system, null(), 2, &mut 0), PL_INVALID);
        assert_eq!(pl_combine(system, null(), 0, null_mut()), PL_INVALID);
        assert_eq!(pl_is_done(system, 1, null_mut()), PL_INVALID);
        assert_eq!(pl_stat(system, null(), &mut 0), PL_INVALID);
        assert_eq!(pl_stat(system, c"no such".as_ptr(), &mut 0), PL_UNKNOWN);
        assert_eq!(pl_trace_start(system, null()), PL_INVALID);
        assert_eq!(
            pl_trace_start(system, c"no/such/folder/f".as_ptr()),
            PL_REFUSED
        );
        assert_eq!(pl_trace_finish(system, null_mut(), null_mut()), PL_TOO_LATE);
        assert_eq!(pl_fail(null_mut(), null()), PL_INVALID);
        assert_eq!(pl_context_worker(null()), usize::MAX);
        assert!(pl_context_system(null()).is_null());
        assert_eq!(pl_system_destroy(system), PL_OK);
        assert_eq!(pl_system_destroy(system), PL_DESTROYED);
        assert_eq!(pl_system_destroy(null_mut()), PL_OK);
        let not_one = [0_u64; 64];
        assert_eq!(pl_flush(not_one.as_ptr().cast_mut().cast()), PL_INVALID);
    }
}

unsafe extern "C-unwind" fn fails_in_latin_1(context: *mut pl_context, _: *mut c_void) {
    // SAFETY: the context of this body.
    assert_eq!(unsafe { pl_fail(context, c"caf\xe9".as_ptr()) }, PL_OK);
}

/// Goal: a failure is one whatever its text, and a call that is refused leaves no number of something else.
/// Method: a reason that is not UTF-8; places that had a number before.
#[test]
fn a_failure_needs_no_utf_8_and_a_refusal_leaves_nothing() {
    // SAFETY: zero is a value of each field; what is wrong is a status.
    unsafe {
        let mut system = null_mut();
        assert_eq!(pl_system_create(null(), &mut system), PL_OK);
        let mut desc: pl_job_desc = zeroed();
        desc.size = size_of::<pl_job_desc>();
        desc.body = Some(fails_in_latin_1);
        let mut job = 0;
        assert_eq!(pl_schedule(system, &desc, &mut job), PL_OK);
        assert_eq!(pl_wait(system, job), PL_FAILED);
        let why = last_error();
        assert!(why.contains("caf\u{fffd}"), "{why}");
        desc.size = 1;
        assert_eq!(pl_schedule(system, &desc, &mut job), PL_INVALID);
        assert_eq!(job, 0);
        let mut token = 5;
        assert_eq!(pl_token_create(system, 77, &mut token), PL_UNKNOWN);
        assert_eq!(token, 0);
        let mut other = system;
        let mut desc: pl_system_desc = zeroed();
        desc.size = 1;
        assert_eq!(pl_system_create(&desc, &mut other), PL_INVALID);
        assert!(other.is_null());
        assert_eq!(pl_system_destroy(system), PL_OK);
    }
}

/// Goal: a setting that cannot be is said with its name. Method: one of each kind.
#[test]
fn settings_are_checked() {
    // SAFETY: zero is a value of each field.
    let mut desc: pl_system_desc = unsafe { zeroed() };
    desc.size = size_of::<pl_system_desc>();
    let mut system = null_mut();
    let mut refused = |desc: &pl_system_desc, word: &str| {
        // SAFETY: the description is right.
        assert_eq!(unsafe { pl_system_create(desc, &mut system) }, PL_SETTING);
        assert!(
            system.is_null() && last_error().contains(word),
            "{}",
            last_error()
        );
    };
    refused(
        &pl_system_desc {
            workers: 5000,
            ..desc
        },
        "workers must be between",
    );
    refused(
        &pl_system_desc {
            wait_policy: c"soon".as_ptr(),
            ..desc
        },
        "soon",
    );
    refused(
        &pl_system_desc {
            shares_at_most: [0, 5000, 0, 0, 0],
            ..desc
        },
        "shares_at_most must be between",
    );
    refused(
        &pl_system_desc {
            max_spares: 961,
            ..desc
        },
        "max_spares must be between",
    );
    refused(
        &pl_system_desc {
            workers: 2,
            no_workers: 1,
            ..desc
        },
        "2 workers and sets no_workers",
    );
    refused(
        &pl_system_desc {
            max_spares: 3,
            no_spares: 1,
            ..desc
        },
        "3 spares and sets no_spares",
    );
}

struct InWait {
    system: *mut pl_system,
    job: pl_job,
}

unsafe extern "C-unwind" fn waits(_: *mut pl_context, data: *mut c_void) {
    // SAFETY: the test's, which outlives the job.
    let InWait { system, job } = unsafe { &*data.cast() };
    // SAFETY: a job system and one of its jobs.
    assert_eq!(unsafe { pl_wait(*system, *job) }, PL_OK);
}

/// Goal: a report is about the program, and not about this library. Method: one of a job that waits for an
/// event.
#[test]
fn reports_have_no_places_of_the_library() {
    // SAFETY: zero is a value of each field; what is named lives.
    unsafe {
        let mut desc: pl_system_desc = zeroed();
        desc.size = size_of::<pl_system_desc>();
        desc.workers = 1;
        let mut system = null_mut();
        assert_eq!(pl_system_create(&desc, &mut system), PL_OK);
        let mut gate = 0;
        assert_eq!(
            pl_event_create(system, c"gate".as_ptr(), 1, &mut gate),
            PL_OK
        );
        let mut data = InWait { system, job: gate };
        let mut desc: pl_job_desc = zeroed();
        desc.size = size_of::<pl_job_desc>();
        desc.body = Some(waits);
        desc.data = (&raw mut data).cast();
        let mut job = 0;
        assert_eq!(pl_schedule(system, &desc, &mut job), PL_OK);
        assert_eq!(pl_flush(system), PL_OK);
        let mut text = vec![0; 1 << 14];
        let report = loop {
            assert_eq!(
                pl_report(system, text.as_mut_ptr(), text.len(), null_mut()),
                PL_OK
            );
            let report = CStr::from_ptr(text.as_ptr()).to_str().unwrap().to_owned();
            // Of a wait that has just begun nothing is known.
            if report.contains(" ms in '") || report.contains(" s in '") {
                break report;
            }
        };
        assert!(
            report.contains("for 'gate'") && !report.contains(".rs:"),
            "{report}"
        );
        assert_eq!(pl_event_complete(system, gate), PL_OK);
        assert_eq!(pl_wait(system, job), PL_OK);
        assert_eq!(pl_system_destroy(system), PL_OK);
    }
}

/// Goal: what another job system has made is told from what this one has made. Method: a thing of each kind
/// of the one, after some jobs of both, in each call of the other that takes one.
#[test]
fn numbers_of_another_job_system_are_unknown() {
    let mut systems = [null_mut(); 5];
    let mut jobs = [0; 5];
    for (system, job) in systems.iter_mut().zip(&mut jobs) {
        // SAFETY: null is a description; the second one is right.
        unsafe {
            assert_eq!(pl_system_create(null(), system), PL_OK);
            for _ in 0..100 {
                let status = pl_event_create(*system, null(), 1, job);
                assert_eq!(status, PL_OK);
                assert_eq!(pl_event_complete(*system, *job), PL_OK);
            }
            assert_eq!(pl_wait(*system, *job), PL_OK);
        }
    }
    for (&owner, &job) in systems.iter().zip(&jobs) {
        let (mut token, mut group, mut frame, mut graph, mut pin) = (0, 0, 0, 0, 0);
        // SAFETY: null is a name and a description.
        unsafe {
            assert_eq!(pl_token_create(owner, 0, &mut token), PL_OK);
            assert_eq!(pl_group_create(owner, null(), &mut group), PL_OK);
            assert_eq!(pl_frame_begin(owner, null(), 1, &mut frame), PL_OK);
            assert_eq!(pl_graph_create(owner, null(), &mut graph), PL_OK);
            assert_eq!(pl_pin_thread(owner, null(), &mut pin), PL_OK);
        }
        for &other in systems.iter().filter(|&&other| other != owner) {
            // SAFETY: zero is a value of each field.
            let mut plain: pl_job_desc = unsafe { zeroed() };
            plain.size = size_of::<pl_job_desc>();
            plain.body = Some(idle);
            let with: [fn(&mut pl_job_desc, &u64); 5] = [
                |desc, number| (desc.after, desc.after_count) = (number, 1),
                |desc, &number| desc.token = number,
                |desc, &number| desc.group = number,
                |desc, &number| desc.frame = number,
                |desc, &number| desc.pin = number,
            ];
            for (set, number) in with.iter().zip([&job, &token, &group, &frame, &pin]) {
                let mut desc = plain;
                set(&mut desc, number);
                // SAFETY: the description is right but for that number.
                let status = unsafe { pl_schedule(other, &desc, null_mut()) };
                assert_eq!(status, PL_UNKNOWN, "{}", last_error());
            }
            // SAFETY: the job system was made.
            unsafe {
                assert_eq!(pl_wait(other, job), PL_UNKNOWN);
                assert_eq!(pl_event_complete(other, job), PL_UNKNOWN);
                assert_eq!(pl_token_cancel(other, token), PL_UNKNOWN);
                assert_eq!(pl_token_cancel(owner, group), PL_UNKNOWN, "no token");
                assert_eq!(pl_frame_end(other, frame), PL_UNKNOWN);
                assert_eq!(pl_group_destroy(other, group), PL_UNKNOWN);
                assert_eq!(pl_graph_build(other, graph), PL_UNKNOWN);
            }
        }
    }
    for system in systems {
        // SAFETY: this is the only thread that calls.
        unsafe {
            assert_eq!(pl_unpin_thread(system), PL_OK);
            assert_eq!(pl_system_destroy(system), PL_OK);
        }
    }
}

unsafe extern "C-unwind" fn idle(_: *mut pl_context, _: *mut c_void) {}

/// Goal: programs that were compiled with the first header run, whatever is in the padding behind its last
/// field. Method: the size that it had, with every byte behind it set, as C may leave padding; then the same
/// bytes as part of the description are settings that cannot be.
#[cfg(target_pointer_width = "64")]
#[test]
fn the_first_size_of_a_systems_description_is_understood() {
    const FIRST: usize = 64;
    // SAFETY: zero is a value of each field.
    let mut desc: pl_system_desc = unsafe { zeroed() };
    desc.workers = 1;
    let end_of_shares = std::mem::offset_of!(pl_system_desc, shares) + 5;
    let behind = size_of::<pl_system_desc>() - end_of_shares;
    // SAFETY: these bytes are of the description, and any are a number.
    unsafe {
        let first = (&raw mut desc).cast::<u8>().add(end_of_shares);
        first.write_bytes(0xff, behind);
    }
    let mut system = null_mut();
    for (size, expected) in [(FIRST, PL_OK), (size_of::<pl_system_desc>(), PL_SETTING)] {
        desc.size = size;
        // SAFETY: it has as many bytes.
        let status = unsafe { pl_system_create(&desc, &mut system) };
        assert_eq!(status, expected, "{size} bytes: {}", last_error());
    }
    // SAFETY: it was made.
    assert_eq!(unsafe { pl_system_destroy(system) }, PL_OK);
}

unsafe extern "C-unwind" fn nothing(_: *mut pl_context, _: usize, _: usize, _: *mut c_void) {}

/// Goal: a call of one thread too many is a status that says so, and no failure inside. Method: a job system
/// for one thread, which has called; each call that needs a place, by another thread.
#[test]
fn a_thread_too_many_is_told() {
    // SAFETY: zero is a value of each field.
    let mut desc: pl_system_desc = unsafe { zeroed() };
    desc.size = size_of::<pl_system_desc>();
    desc.max_threads = 1;
    let mut system = null_mut();
    // SAFETY: the description is right.
    unsafe {
        assert_eq!(pl_system_create(&desc, &mut system), PL_OK);
        assert_eq!(pl_flush(system), PL_OK);
    }
    let system = system as usize;
    let other = std::thread::spawn(move || {
        let system = system as *mut pl_system;
        // SAFETY: zero is a value of each field.
        let mut whole: pl_loop_desc = unsafe { zeroed() };
        whole.size = size_of::<pl_loop_desc>();
        whole.count = 10;
        whole.body = Some(nothing);
        let calls: [(&str, &dyn Fn() -> pl_status); 6] = [
            // SAFETY: the job system lives, and all else is null or of this thread.
            ("pl_flush", &|| unsafe { pl_flush(system) }),
            // SAFETY: the job system lives, and all else is null or of this thread.
            ("pl_poll", &|| unsafe { pl_poll(system, null_mut()) }),
            // SAFETY: the job system lives, and all else is null or of this thread.
            ("pl_pump", &|| unsafe { pl_pump(system, 0, null_mut()) }),
            // SAFETY: the job system lives, and all else is null or of this thread.
            ("pl_warm_up", &|| unsafe { pl_warm_up(system, 10) }),
            // SAFETY: the job system lives, and all else is null or of this thread.
            ("pl_parallel_for", &|| unsafe {
                pl_parallel_for(system, &whole)
            }),
            // SAFETY: the job system lives, and all else is null or of this thread.
            ("pl_event_create", &|| unsafe {
                pl_event_create(system, null(), 1, &mut 0)
            }),
        ];
        for (name, call) in calls {
            assert_eq!(call(), PL_TOO_MANY_THREADS, "{name}: {}", last_error());
            assert!(
                last_error().contains("max_threads"),
                "{name}: {}",
                last_error()
            );
        }
        // SAFETY: as above.
        unsafe {
            let mut frame = 0;
            assert_eq!(
                pl_frame_begin(system, null(), 1, &mut frame),
                PL_OK,
                "{}",
                last_error()
            );
            assert_eq!(pl_frame_end(system, frame), PL_OK);
            assert_eq!(pl_counter(system, c"a".as_ptr(), 1), PL_OK);
        }
    });
    other.join().unwrap();
    // SAFETY: the job system lives, and no other thread calls it.
    let ended = unsafe { pl_system_destroy(system as *mut pl_system) };
    assert_eq!(ended, PL_OK);
}
