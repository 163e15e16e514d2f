//! What a call says about how it went.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sites;
use paceline::{BuildError, GraphError, PlanError, ScheduleError, TraceError, WaitError};

/// How a call went. Zero is success. pl_last_error() has a sentence for each other one.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum pl_status {
    /// It was done.
    PL_OK = 0,
    /// The time was over before the job was.
    PL_TIMEOUT = 1,
    /// The job's body failed: it called pl_fail.
    PL_FAILED = 2,
    /// The job never ran, because one that it depends on failed.
    PL_CANCELLED = 3,
    /// The wait could never end: the job needs the one that waits.
    PL_DEADLOCK = 4,
    /// The event went away without being completed.
    PL_ABANDONED = 5,
    /// The job failed so long ago that the reason is forgotten. When more than 4096 others have failed since,
    /// it may be forgotten that it failed: then waits say PL_OK, and jobs after it run.
    PL_FORGOTTEN = 6,
    /// As many jobs are live as the job system may have (max_jobs), or a graph has as many as it may.
    PL_FULL = 7,
    /// As many threads have called as the job system may have (max_threads).
    PL_TOO_MANY_THREADS = 8,
    /// There is no room for a further dependency.
    PL_TOO_MANY_EDGES = 9,
    /// The job is ready or has started, the event is complete, the graph is built: it is too late for this.
    PL_TOO_LATE = 10,
    /// The dependency would close a circle, or the graph has one.
    PL_CYCLE = 11,
    /// The job system has ended.
    PL_DESTROYED = 12,
    /// This process is the child of a fork; the workers stayed with the parent.
    PL_FORKED = 13,
    /// No job, frame, token, group or graph of this job system has this number, or no job of this graph.
    PL_UNKNOWN = 14,
    /// An argument cannot be: a null pointer, a wrong size, a text that is not UTF-8.
    PL_INVALID = 15,
    /// The operating system refused a thread, a signal or a file.
    PL_REFUSED = 16,
    /// A setting of the builder, or of the environment, cannot be.
    PL_SETTING = 17,
    /// Waits in jobs are nested deeper than the thread's stack bears, as pl_last_error() then says. If it
    /// says something else, that is a mistake in this library: please report it.
    PL_INTERNAL = 18,
    /// The graph is running, or is in another call at this moment.
    PL_BUSY = 19,
}

use pl_status::*;

/// A call that did not do what it was asked for. It is one pointer, so that answers come back in registers.
#[derive(Debug)]
pub(crate) struct Refusal(Box<(pl_status, String)>);

/// What the inside of a call returns.
pub(crate) type Answer<T = ()> = Result<T, Refusal>;

impl Refusal {
    pub(crate) fn new(status: pl_status, text: impl Into<String>) -> Refusal {
        Refusal(Box::new((status, text.into())))
    }

    pub(crate) fn status(&self) -> pl_status {
        self.0.0
    }

    pub(crate) fn text(&self) -> &str {
        &self.0.1
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Refusal {
        Refusal::new(PL_INVALID, text)
    }
}

impl From<ScheduleError> for Refusal {
    fn from(error: ScheduleError) -> Refusal {
        let status = match &error {
            ScheduleError::Full { .. } => PL_FULL,
            ScheduleError::TooManyThreads { .. } => PL_TOO_MANY_THREADS,
            ScheduleError::TooManyEdges => PL_TOO_MANY_EDGES,
            ScheduleError::Foreign { .. } | ScheduleError::NoSuchThread => PL_UNKNOWN,
            ScheduleError::Forked => PL_FORKED,
            ScheduleError::ShutDown => PL_DESTROYED,
            _ => PL_INVALID,
        };
        let text = match &error {
            ScheduleError::NoSuchThread => {
                "the thread that the job is pinned to has called pl_unpin_thread or ended, or is of another \
                 job system"
                    .to_owned()
            }
            _ => told(&error),
        };
        Refusal::new(status, text)
    }
}

impl From<WaitError> for Refusal {
    fn from(error: WaitError) -> Refusal {
        let status = match error {
            WaitError::Refused(error) => return error.into(),
            WaitError::Panicked { .. } => PL_FAILED,
            WaitError::Cancelled { .. } | WaitError::CalledOff { .. } => PL_CANCELLED,
            WaitError::Deadlock { .. } => PL_DEADLOCK,
            WaitError::Abandoned { .. } => PL_ABANDONED,
            WaitError::Forgotten => PL_FORGOTTEN,
            WaitError::Foreign { .. } => PL_UNKNOWN,
            WaitError::Forked => PL_FORKED,
            WaitError::ShutDown => PL_DESTROYED,
            _ => PL_INTERNAL,
        };
        Refusal::new(status, failure(&error).unwrap_or_else(|| told(&error)))
    }
}

/// What C calls a failure is a panic in Rust.
fn failure(error: &WaitError) -> Option<String> {
    match error {
        WaitError::Panicked { label, message, .. } => {
            let site = sites::of(label.name);
            Some(format!("job '{}'{site} failed: {message}", label.name))
        }
        WaitError::Cancelled {
            label,
            cause,
            message: Some(message),
            ..
        } => {
            let (site, other) = (sites::of(label.name), sites::of(cause.name));
            Some(format!(
                "job '{}'{site} was cancelled, because '{}'{other} failed: {message}",
                label.name, cause.name
            ))
        }
        _ => None,
    }
}

impl From<GraphError> for Refusal {
    fn from(error: GraphError) -> Refusal {
        let status = match &error {
            GraphError::TooLate { .. } => PL_TOO_LATE,
            GraphError::Cycle { .. } => PL_CYCLE,
            GraphError::TooManyEdges => PL_TOO_MANY_EDGES,
            GraphError::Foreign { .. } => PL_UNKNOWN,
            _ => PL_INVALID,
        };
        let text = told(&error);
        // The job's id is a word of Rust.
        let without_id = match &error {
            GraphError::TooLate { id, label: None } | GraphError::NoEvent { id } => {
                text.strip_prefix(&format!("{id:?}"))
            }
            _ => None,
        };
        let text = without_id.map_or(text.clone(), |rest| format!("the job{rest}"));
        Refusal::new(status, text)
    }
}

impl From<PlanError> for Refusal {
    fn from(error: PlanError) -> Refusal {
        let status = match &error {
            PlanError::Cycle { .. } => PL_CYCLE,
            PlanError::UnknownName { .. } | PlanError::OtherGraph { .. } => PL_UNKNOWN,
            PlanError::TooLarge { .. } | PlanError::TooManyDeclare { .. } => PL_FULL,
            _ => PL_INVALID,
        };
        Refusal::new(status, told(&error))
    }
}

impl From<BuildError> for Refusal {
    fn from(error: BuildError) -> Refusal {
        let status = match &error {
            BuildError::Thread(_) | BuildError::Signal(_) => PL_REFUSED,
            BuildError::Forked => PL_FORKED,
            _ => PL_SETTING,
        };
        Refusal::new(status, told(&error))
    }
}

impl From<TraceError> for Refusal {
    fn from(error: TraceError) -> Refusal {
        Refusal::new(PL_REFUSED, told(&error))
    }
}

/// The text of an error or a report, without the places in this library: a program in C has not called
/// from there.
pub(crate) fn told(text: &dyn fmt::Display) -> String {
    without_own_places(&text.to_string())
}

/// The folder of these files, as places have it.
const OWN_FOLDER: &str = {
    let file = file!();
    let end = file.len() - "status.rs".len();
    let (folder, _) = file.split_at(end);
    folder
};

/// Takes out the places of these files: what stands in brackets and begins with [`OWN_FOLDER`], with the
/// space before it, and what comes after "at". Behind a name in quotes the place of the program comes
/// instead of the brackets, if it is known.
fn without_own_places(text: &str) -> String {
    let called = format!(" at {OWN_FOLDER}");
    let text = without(
        text,
        &called,
        |place| place.find([' ', '\n']),
        |_| String::new(),
    );
    let made = format!(" ({OWN_FOLDER}");
    let behind_bracket = |place: &str| place.find(')').map(|end| end + 1);
    without(&text, &made, behind_bracket, |before| {
        let before = before.strip_suffix('\'');
        let name = before.and_then(|text| text.rsplit('\'').next());
        name.map(sites::of).unwrap_or_default()
    })
}

/// The text without all that begins with `opening` and lasts until where `end` finds its end; what has no end
/// stays. `instead` is asked, with the text before, what comes in its place.
fn without(
    text: &str,
    opening: &str,
    end: impl Fn(&str) -> Option<usize>,
    instead: impl Fn(&str) -> String,
) -> String {
    let mut rest = text;
    let mut told = String::with_capacity(text.len());
    while let Some((before, place)) = rest.find(opening).map(|begin| rest.split_at(begin)) {
        let inside = &place[opening.len()..];
        let Some(end) = end(inside) else {
            break;
        };
        told.push_str(before);
        told.push_str(&instead(before));
        rest = &inside[end..];
    }
    told.push_str(rest);
    told
}

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
    static LAST_AT: RefCell<CString> = RefCell::default();
}

/// Runs the inside of a call: keeps the sentence of a refusal for [`pl_last_error`], and turns a panic, which
/// would be a mistake of this library, into one.
#[inline]
pub(crate) fn call(inside: impl FnOnce() -> Answer<pl_status>) -> pl_status {
    match catch_unwind(AssertUnwindSafe(inside)) {
        Ok(Ok(status)) => status,
        Ok(Err(refusal)) => refused(&refusal),
        Err(payload) => refused(&Refusal::new(PL_INTERNAL, text_of(&*payload))),
    }
}

#[cold]
fn refused(refusal: &Refusal) -> pl_status {
    keep(refusal.text());
    refusal.status()
}

/// The text of a panic.
pub(crate) fn text_of(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a failure without a text").to_owned()
}

fn keep(text: &str) {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    let text = CString::new(bytes).unwrap_or_default();
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = Some(text));
}

/// A sentence about the last call of this thread that returned something other than PL_OK or PL_TIMEOUT:
/// what, which job, what to do. Empty if there was none. It is valid until the next such call of this
/// thread. Never null. Free.
#[unsafe(no_mangle)]
pub extern "C" fn pl_last_error() -> *const c_char {
    let text = LAST.try_with(|last| last.borrow().as_ref().map(|text| text.as_ptr()));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

/// As pl_last_error, behind a place in the program, the one of the call that failed: PL_LAST_ERROR() in C.
/// It is valid until the next call of this function on this thread.
///
/// # Safety
/// `file` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_last_error_at(file: *const c_char, line: u32) -> *const c_char {
    if file.is_null() {
        return pl_last_error();
    }
    // SAFETY: the caller's promise.
    let file = unsafe { CStr::from_ptr(file) }.to_bytes();
    let text = LAST_AT.try_with(|last_at| {
        let mut text = file.to_vec();
        text.extend(format!(":{line}: ").bytes());
        // SAFETY: it is never null, and stays until the next call that fails.
        text.extend_from_slice(unsafe { CStr::from_ptr(pl_last_error()) }.to_bytes());
        let mut kept = last_at.borrow_mut();
        *kept = CString::new(text).unwrap_or_default();
        kept.as_ptr()
    });
    text.unwrap_or(c"".as_ptr())
}

/// The name of a status, such as "PL_OK"; "unknown status" for a number that is none. It is valid for ever.
/// Free.
#[unsafe(no_mangle)]
pub extern "C" fn pl_status_name(status: u32) -> *const c_char {
    let name = match status {
        0 => c"PL_OK",
        1 => c"PL_TIMEOUT",
        2 => c"PL_FAILED",
        3 => c"PL_CANCELLED",
        4 => c"PL_DEADLOCK",
        5 => c"PL_ABANDONED",
        6 => c"PL_FORGOTTEN",
        7 => c"PL_FULL",
        8 => c"PL_TOO_MANY_THREADS",
        9 => c"PL_TOO_MANY_EDGES",
        10 => c"PL_TOO_LATE",
        11 => c"PL_CYCLE",
        12 => c"PL_DESTROYED",
        13 => c"PL_FORKED",
        14 => c"PL_UNKNOWN",
        15 => c"PL_INVALID",
        16 => c"PL_REFUSED",
        17 => c"PL_SETTING",
        18 => c"PL_INTERNAL",
        19 => c"PL_BUSY",
        _ => c"unknown status",
    };
    name.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: texts name the program's jobs and not the files of this library. Method: a place of it, one of
    /// another program, one that does not end.
    #[test]
    fn own_places_are_left_out() {
        let own =
            format!("'draw' ({OWN_FOLDER}jobs.rs:12) waits for 'load' ({OWN_FOLDER}jobs.rs:12)");
        assert_eq!(without_own_places(&own), "'draw' waits for 'load'");
        let other = "'draw' (game.rs:12) (x)";
        assert_eq!(without_own_places(other), other);
        let waits = format!("'draw' at {OWN_FOLDER}waits.rs:23 for 'load' at game.rs:7");
        assert_eq!(without_own_places(&waits), "'draw' for 'load' at game.rs:7");
        let open = format!("a ({OWN_FOLDER}");
        assert_eq!(without_own_places(&open), open);
    }

    /// Goal: where the program has told its own places, they are there instead, as many as fit. Method: names
    /// of one place and of too many; a text that is no name.
    #[test]
    fn places_of_the_program_are_told() {
        sites::add("sow", ("farm.c", 3));
        for line in 1..9 {
            sites::add("reap", ("farm.c", line));
            sites::add("reap", ("farm.c", line));
        }
        let own = |name: &str| format!("{name} ({OWN_FOLDER}jobs.rs:12)");
        let text = format!("{}, then {}, {}", own("'sow'"), own("'reap'"), own("sow"));
        let four = "farm.c:1 or farm.c:2 or farm.c:3 or farm.c:4";
        let told = format!("'sow' (farm.c:3), then 'reap' ({four}), sow");
        assert_eq!(without_own_places(&text), told);
    }

    /// Goal: texts have no words of Rust. Method: errors whose texts for Rust have some.
    #[test]
    fn texts_are_for_programs_in_c() {
        let js = paceline::Builder::new().workers(0).build().unwrap();
        let (over, gate) = (js.schedule(|_| ()), js.event("gate"));
        let other = js.job("other").after(&gate).schedule(|_| ());
        js.wait(over);
        let late = Refusal::from(js.add_dependency(over, other).unwrap_err());
        let start = "the job is already over; ";
        assert!(late.text().starts_with(start), "{late:?}");
        let body = Refusal::from(js.add_completer(other, over).unwrap_err());
        assert_eq!(
            body.text(),
            "the job is no event or latch, so no job completes it"
        );
        let pinned = Refusal::from(ScheduleError::NoSuchThread);
        assert!(pinned.text().contains("pl_unpin_thread"), "{pinned:?}");
    }

    /// Goal: each status has its name. Method: those that there are, as Rust writes them, and one past them.
    #[test]
    fn statuses_have_names() {
        let name = |status: u32| {
            // SAFETY: a literal.
            let name = unsafe { std::ffi::CStr::from_ptr(pl_status_name(status)) };
            name.to_str().unwrap()
        };
        assert_eq!(name(PL_OK as u32), format!("{PL_OK:?}"));
        assert_eq!(name(PL_CYCLE as u32), format!("{PL_CYCLE:?}"));
        assert_eq!(name(PL_INTERNAL as u32), format!("{PL_INTERNAL:?}"));
        assert_eq!(name(PL_BUSY as u32), format!("{PL_BUSY:?}"));
        assert_eq!(name(PL_BUSY as u32 + 1), "unknown status");
    }
}
