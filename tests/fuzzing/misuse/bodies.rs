//! The bodies of the jobs, which note in a log what becomes of them.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::rc::Rc;

use capi::{pl_context, pl_fail, pl_last_error};

/// What has happened to a body. The number is its job's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Happened {
    Ran(usize),
    Released(usize),
    /// A node of a graph: the graph's number and its own.
    NodeRan(usize, usize),
    NodeReleased(usize, usize),
}

pub(super) type Log = Rc<RefCell<Vec<Happened>>>;

/// The data of a body. All of it happens on one thread: the job systems have no workers.
pub(super) struct Data {
    ran: Happened,
    released: Happened,
    fails: bool,
    log: Log,
}

impl Data {
    pub(super) fn of_job(log: &Log, job: usize, fails: bool) -> *mut c_void {
        Data::boxed(log, (Happened::Ran(job), Happened::Released(job)), fails)
    }

    pub(super) fn of_node(log: &Log, graph: usize, node: usize) -> *mut c_void {
        let ran = Happened::NodeRan(graph, node);
        Data::boxed(log, (ran, Happened::NodeReleased(graph, node)), false)
    }

    fn boxed(log: &Log, (ran, released): (Happened, Happened), fails: bool) -> *mut c_void {
        let log = Rc::clone(log);
        Box::into_raw(Box::new(Data {
            ran,
            released,
            fails,
            log,
        }))
        .cast()
    }
}

pub(super) unsafe extern "C-unwind" fn body(context: *mut pl_context, data: *mut c_void) {
    // SAFETY: a box of `Data::boxed`, which `release` has not taken yet.
    let data = unsafe { &*data.cast::<Data>() };
    data.log.borrow_mut().push(data.ran);
    if data.fails {
        // SAFETY: the context of this body.
        unsafe { pl_fail(context, c"as planned".as_ptr()) };
    }
}

pub(super) unsafe extern "C-unwind" fn part(
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

pub(super) unsafe extern "C-unwind" fn release(data: *mut c_void) {
    // SAFETY: as for `body`; it comes back once.
    let data = unsafe { Box::from_raw(data.cast::<Data>()) };
    data.log.borrow_mut().push(data.released);
}

pub(super) fn last_error() -> String {
    // SAFETY: never null, and valid until the next call.
    let text = unsafe { CStr::from_ptr(pl_last_error()) };
    text.to_string_lossy().into_owned()
}
