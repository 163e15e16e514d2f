//! Wakers that act when they are cloned, called or dropped.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, RawWaker, RawWakerVTable, Waker};
use std::thread;

use paceline::{Job, JobSystem};
use platform::Platform;

use super::Kind;
use super::world::World;
use crate::support::ledger::Token;

pub(super) fn is_of_futures(kind: Kind) -> bool {
    matches!(kind, Kind::WakerClone | Kind::WakerWake | Kind::WakerDrop)
}

/// Whether the future is to have its waker before anything happens.
pub(super) fn is_polled_before(kind: Kind) -> bool {
    matches!(kind, Kind::WakerWake | Kind::WakerDrop)
}

/// The data behind a waker.
struct Waking<P: Platform> {
    world: Arc<World<P>>,
    _token: Token,
}

impl<P: Platform> Waking<P> {
    const TABLE: &'static RawWakerVTable =
        &RawWakerVTable::new(clone::<P>, wake::<P>, wake_by_ref::<P>, drop_waker::<P>);

    fn act_as(&self, kind: Kind) {
        if self.world.cell.kind == kind && !thread::panicking() {
            self.world.act(None);
        }
    }
}

fn raw<P: Platform>(waking: Arc<Waking<P>>) -> RawWaker {
    RawWaker::new(Arc::into_raw(waking).cast(), Waking::<P>::TABLE)
}

/// # Safety
/// `data` is from `raw` for this platform, and its share is kept.
unsafe fn clone<P: Platform>(data: *const ()) -> RawWaker {
    // SAFETY: the caller's promise; the share is not given up here.
    let waking = ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<Waking<P>>()) });
    waking.act_as(Kind::WakerClone);
    raw(Arc::clone(&waking))
}

/// # Safety
/// As for `clone`, but the share is given up.
unsafe fn wake<P: Platform>(data: *const ()) {
    // SAFETY: the caller's promise.
    let waking = unsafe { Arc::from_raw(data.cast::<Waking<P>>()) };
    waking.act_as(Kind::WakerWake);
}

/// # Safety
/// As for `clone`.
unsafe fn wake_by_ref<P: Platform>(data: *const ()) {
    // SAFETY: the caller's promise; the share is not given up here.
    let waking = ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<Waking<P>>()) });
    waking.act_as(Kind::WakerWake);
}

/// # Safety
/// As for `clone`, but the share is given up.
unsafe fn drop_waker<P: Platform>(data: *const ()) {
    // SAFETY: the caller's promise.
    let waking = unsafe { Arc::from_raw(data.cast::<Waking<P>>()) };
    waking.act_as(Kind::WakerDrop);
}

fn poll_with(future: &mut Job<()>, waker: &Waker) -> thread::Result<bool> {
    let mut task = Task::from_waker(waker);
    let poll = AssertUnwindSafe(|| Pin::new(future).poll(&mut task).is_pending());
    catch_unwind(poll)
}

/// Polls with a waker that acts. Whether it is pending; or a panic, which may come from the waker: it is the
/// caller's own.
pub(super) fn poll<P: Platform>(
    world: &Arc<World<P>>,
    future: &mut Job<()>,
) -> thread::Result<bool> {
    let waking = Arc::new(Waking {
        world: Arc::clone(world),
        _token: world.token(),
    });
    // Our own share goes without acting.
    let own = Arc::clone(&waking);
    // SAFETY: the functions of the table do what a waker's must, for the pointer that `raw` makes.
    let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw(waking)) });
    let polled = poll_with(future, &waker);
    // SAFETY: the share that `raw` was given, which the waker does not give up any more.
    unsafe { Arc::decrement_strong_count(Arc::as_ptr(&own)) };
    polled
}

/// The runtime clones or drops the waker on this thread.
pub(super) fn use_here<P: Platform>(world: &Arc<World<P>>, future: &mut Job<()>) {
    _ = match world.cell.kind {
        Kind::WakerClone => poll(world, future),
        // In place of the one that it has.
        _ => poll_with(future, Waker::noop()),
    };
}

/// The same in a job. The future stays there.
pub(super) fn use_on_a_worker<P: Platform>(
    world: &Arc<World<P>>,
    js: &JobSystem<P>,
    future: &mut Option<Job<()>>,
) {
    let mut future = future.take().expect("it is used once");
    let theirs = Arc::clone(world);
    js.job("uses a future").schedule(move |_| {
        if theirs.cell.kind == Kind::WakerClone {
            _ = poll(&theirs, &mut future);
        }
        _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
    });
    js.flush();
}
