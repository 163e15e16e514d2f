//! Jobs that one thread alone may run, such as the main thread.

use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::{Arc, Weak};

use paceline::{PinnedThread, ThreadPin};

use crate::body::pl_release;
use crate::described::{Carried, Described, must_be, or_nothing, put, read};
use crate::hooks::{Hook, calls};
use crate::status::{Answer, Refusal, call, pl_status};
use crate::system::{fresh_number, named, pl_system};

/// Names a thread that jobs are pinned to. Zero is none.
pub type pl_pin = u64;

/// Called whenever a job becomes ready that is pinned to a thread. It may be called on any thread, on several
/// at the same time, and must neither wait for jobs nor end by longjmp.
pub type pl_ready = Option<unsafe extern "C-unwind" fn(data: *mut c_void)>;

/// How a thread takes jobs that are pinned to it. Zero in a field is its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pl_pin_desc {
    /// sizeof(pl_pin_desc).
    pub size: usize,
    /// Called whenever a job of the thread becomes ready, such as to wake the loop of its window. Null:
    /// nothing is.
    pub on_ready: pl_ready,
    /// What `on_ready` is called with. It is used by any thread, so it must bear that.
    pub data: *mut c_void,
    /// Called once with the data when `on_ready` is not going to be called any more, or if the call is
    /// refused (for another reason than the description's size). Null: nothing is.
    pub release: pl_release,
}

// SAFETY: it is repr(C), begins with its size, and zero is a value of each field.
unsafe impl Described for pl_pin_desc {
    const NAME: &'static str = "pl_pin_desc";
    const FIRST_SIZE: usize = size_of::<pl_pin_desc>();
}

/// A call of pl_pin_thread that was not taken back.
struct Pinned {
    of: &'static pl_system,
    _thread: PinnedThread,
    /// The number of its hook; 0: it has none.
    hook: u64,
}

impl Pinned {
    /// What this call has named.
    fn hook(&self) -> Option<Weak<Hook>> {
        let hooks = self.of.lock(&self.of.hooks).ok()?;
        hooks.get(&self.hook).map(Arc::downgrade)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let hooks = self.of.lock(&self.of.hooks);
        let hook = hooks.map(|mut hooks| hooks.remove(&self.hook));
        drop(hook); // It may call the program.
    }
}

thread_local! {
    /// Those of this thread.
    static PINNED: RefCell<Vec<Pinned>> = const { RefCell::new(Vec::new()) };
}

impl pl_system {
    /// The thread that a job is pinned to; none for zero.
    pub(crate) fn pin(&'static self, pin: pl_pin) -> Answer<Option<ThreadPin>> {
        if pin == 0 {
            return Ok(None);
        }
        let none = || Refusal::new(pl_status::PL_UNKNOWN, format!("{pin:#x} is not a pl_pin"));
        ThreadPin::from_bits(pin).map(Some).ok_or_else(none)
    }

    fn is_pinned_here(&self) -> Answer {
        let is_here = PINNED.with(|pinned| {
            let pinned = pinned.borrow();
            pinned.iter().any(|call| std::ptr::eq(call.of, self))
        });
        let error = || Refusal::invalid("this thread has not called pl_pin_thread");
        is_here.then_some(()).ok_or_else(error)
    }
}

/// Has the calling thread run jobs whose descriptions name it (`pin`), and puts its name into `*out`: in
/// its waits outside of jobs, whether they need them or not; in a wait in the middle of a job, if that
/// needs them or is of their group (pl_group_wait); in pl_poll and in pl_run_pinned_jobs. Where there are no
/// workers, in pl_flush, too. A second call gives the same name; its `on_ready` is called instead of the
/// first one's until it is taken back. `desc` may be null. Takes a lock.
///
/// # Safety
/// `system` was made by pl_system_create. `desc` is null or points to a description whose `size` is right.
/// `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_pin_thread(
    system: *mut pl_system,
    desc: *const pl_pin_desc,
    out: *mut pl_pin,
) -> pl_status {
    let status = call(|| {
        let mut hook = None;
        if !desc.is_null() {
            let mut room = MaybeUninit::uninit();
            // SAFETY: the caller's promise.
            let desc = unsafe { read(desc, &mut room) }?;
            hook = Some(Hook {
                function: desc.on_ready,
                data: Carried(desc.data),
                release: desc.release,
            });
        }
        must_be(out, "out")?;
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let mut thread = system.js()?.try_pinned_thread()?;
        let mut number = 0;
        if let Some(hook) = hook.filter(|hook| hook.function.is_some()) {
            number = fresh_number();
            let hook = Arc::new(hook);
            thread = thread.on_ready(calls(Arc::downgrade(&hook)));
            system.lock(&system.hooks)?.insert(number, hook);
        }
        // SAFETY: the caller's promise.
        unsafe { put(out, thread.pin().to_bits()) };
        let pinned = Pinned {
            of: system,
            _thread: thread,
            hook: number,
        };
        PINNED.with(|all| all.borrow_mut().push(pinned));
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
}

/// Runs the jobs that are pinned to the calling thread and ready, as many as there are at the call, and puts
/// their number into `*out`, if that is not null. Never blocks.
///
/// # Safety
/// `system` was made by pl_system_create. `out` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_run_pinned_jobs(system: *mut pl_system, out: *mut usize) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let js = system.js()?;
        system.is_pinned_here()?;
        // The jobs may call pl_unpin_thread.
        let ran = js.try_pinned_thread()?.run_jobs();
        // SAFETY: the caller's promise.
        unsafe { put(out, ran) };
        Ok(pl_status::PL_OK)
    })
}

/// Takes one pl_pin_thread of the calling thread back. After the last one, and at the end of the thread, jobs
/// that are left are called off: waits for them say PL_CANCELLED.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_unpin_thread(system: *mut pl_system) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let was_here = system.is_pinned_here();
        let is_of = |call: &Pinned| std::ptr::eq(call.of, system);
        let last = PINNED.with(|pinned| {
            let mut pinned = pinned.borrow_mut();
            let last = pinned.iter().rposition(is_of);
            last.map(|place| pinned.remove(place))
        });
        // The hook before it is called again.
        let before = PINNED.with(|pinned| {
            let pinned = pinned.borrow();
            let mut of_system = pinned.iter().rev().filter(|call| is_of(call));
            of_system.find_map(Pinned::hook)
        });
        if let Some(before) = before.filter(|_| last.as_ref().is_some_and(|last| last.hook != 0))
            && let Ok(thread) = system.js()?.try_pinned_thread()
        {
            drop(thread.on_ready(calls(before)));
        }
        drop(last); // It may call the program.
        system.js()?;
        was_here.map(|()| pl_status::PL_OK)
    })
}
