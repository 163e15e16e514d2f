//! Spans and values that a program puts into the recording of its job system.

use std::marker::PhantomData;
use std::panic::Location;

use event::EventKind;
use platform::{Os, Platform};

use crate::store::{Label, Name, Ticket};
use crate::work::{Context, Shared};

/// A stretch of the program's own on the track of its thread, from
/// [`JobSystem::span`](crate::JobSystem::span) or [`Context::span`](crate::Context::span) until it is
/// dropped. It stays on its thread. Where nothing is recorded when it begins it is empty.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let file = std::env::temp_dir().join(format!("paceline-doc-span-{}.pftrace", std::process::id()));
/// let trace = js.start_trace(&file)?;
/// {
///     let _span = js.span("load level");
///     js.wait(js.job("textures").schedule(|cx| {
///         let _span = cx.span("decode");
///     }));
/// }
/// trace.finish()?;
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), paceline::TraceError>(())
/// ```
#[must_use = "a span ends when it is dropped"]
pub struct Span<'a, P: Platform = Os> {
    /// None: nothing was recorded.
    _begun: Option<Begun<'a, P>>,
    _stays_on_its_thread: PhantomData<*const ()>,
}

/// A span that has begun. It has no context: a thread may keep it for longer than its slot.
struct Begun<'a, P: Platform> {
    shared: &'a Shared<P>,
    label: u64,
}

impl<'a, P: Platform> Span<'a, P> {
    const NONE: Self = Span {
        _begun: None,
        _stays_on_its_thread: PhantomData,
    };

    /// A span on this thread, whose context has to be looked up.
    #[inline]
    #[track_caller]
    pub(super) fn outside(shared: &'a Shared<P>, name: impl Into<Name>) -> Self {
        if !shared.is_recording() {
            return Span::NONE;
        }
        let label = label(name);
        let context = shared.context();
        context.map_or(Span::NONE, |context| Span::begin(&context, label))
    }

    #[inline]
    #[track_caller]
    pub(super) fn inside(context: &Context<'a, P>, name: impl Into<Name>) -> Self {
        if !context.shared.is_recording() {
            return Span::NONE;
        }
        Span::begin(context, label(name))
    }

    #[cold]
    fn begin(context: &Context<'a, P>, label: Label) -> Self {
        let label = context.graph().label_number(&label).into();
        context.record(EventKind::SpanBegin, Ticket::NONE, label);
        let shared = context.shared;
        Span {
            _begun: Some(Begun { shared, label }),
            _stays_on_its_thread: PhantomData,
        }
    }
}

impl<P: Platform> Drop for Begun<'_, P> {
    #[cold]
    fn drop(&mut self) {
        if let Ok(context) = self.shared.context() {
            context.record(EventKind::SpanEnd, Ticket::NONE, self.label);
        }
    }
}

/// Records a value.
#[cold]
pub(super) fn count<P: Platform>(context: &Context<'_, P>, label: Label, value: i64) {
    let number = context.graph().label_number(&label);
    context.record(EventKind::Counter, Ticket(number.into()), value as u64);
}

#[track_caller]
pub(super) fn label(name: impl Into<Name>) -> Label {
    Label {
        name: name.into().as_str(),
        site: Location::caller(),
    }
}
