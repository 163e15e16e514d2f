//! What a thread is at the moment: whether it is one of a pool's, and inside of which job.

use std::cell::Cell;
use std::ptr;

use paceline::Context;

use super::{Patience, Registry};

/// The calling thread.
#[derive(Debug)]
pub(crate) struct Here {
    /// The pool that it belongs to. Alive as long as it stands here.
    registry: Cell<*const Registry>,
    index: Cell<usize>,
    /// The [`Context`] of the job that runs here; null between jobs.
    context: Cell<*const ()>,
    /// The address below which little of the stack is left; 0 if that is not known.
    stack_low: Cell<usize>,
    /// What it has learnt of waits between jobs.
    patience: Patience,
}

/// So much of a stack is little. With less than 128 KiB the job system starts no further body on it; a body
/// that did not start was to be called from a little further up.
const LITTLE: usize = 192 << 10;

thread_local! {
    static HERE: Here = const {
        Here {
            registry: Cell::new(ptr::null()),
            index: Cell::new(0),
            context: Cell::new(ptr::null()),
            stack_low: Cell::new(0),
            patience: Patience::new(),
        }
    };
}

/// Puts back what a thread was.
struct Restores<'h> {
    here: &'h Here,
    registry: *const Registry,
    index: usize,
    context: *const (),
}

impl Drop for Restores<'_> {
    #[inline]
    fn drop(&mut self) {
        self.here.registry.set(self.registry);
        self.here.index.set(self.index);
        self.here.context.set(self.context);
    }
}

/// About where the stack of the calling function is.
fn address() -> usize {
    let local = 0_u8;
    &raw const local as usize
}

impl Here {
    #[inline]
    pub(crate) fn with<R>(f: impl FnOnce(&Here) -> R) -> R {
        HERE.with(f)
    }

    /// The pool that the thread belongs to.
    #[inline]
    pub(crate) fn registry(&self) -> Option<&Registry> {
        // SAFETY: the code that puts a pool here keeps it alive until it takes it away (`belong`, `enter`).
        unsafe { self.registry.get().as_ref() }
    }

    /// The context of the job that runs here.
    #[inline]
    pub(crate) fn context(&self) -> Option<&Context<'_>> {
        // SAFETY: `enter` has put it here, further down this stack, and takes it away when it returns. It
        // stays on this thread, as this value does.
        unsafe { self.context.get().cast::<Context<'_>>().as_ref() }
    }

    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.index.get()
    }

    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// This is the first function on a stack of so many bytes.
    pub(crate) fn stack_begins(&self, bytes: Option<usize>) {
        let low = bytes.map_or(0, |bytes| address().saturating_sub(bytes) + LITTLE);
        self.stack_low.set(low);
    }

    /// Whether little of its stack is left, as far as is known.
    pub(crate) fn is_deep(&self) -> bool {
        address() < self.stack_low.get()
    }

    /// Whether the thread is one of this pool's.
    #[inline]
    pub(crate) fn is_of(&self, registry: &Registry) -> bool {
        ptr::eq(self.registry.get(), registry)
    }

    /// From now on the thread belongs to this pool, or to none.
    ///
    /// # Safety
    /// The pool lives until this is called again.
    pub(crate) unsafe fn belong(&self, registry: Option<&Registry>, index: usize) {
        self.registry
            .set(registry.map_or(ptr::null(), ptr::from_ref));
        self.index.set(index);
    }

    /// Calls `f` inside of a job of this pool.
    #[inline]
    pub(crate) fn enter<R>(
        &self,
        registry: &Registry,
        context: &Context<'_>,
        f: impl FnOnce(&Here) -> R,
    ) -> R {
        let place;
        let index = if self.is_of(registry) {
            self.index()
        } else {
            place = registry.place(context);
            place.index()
        };
        let _restores = Restores {
            here: self,
            registry: self.registry.get(),
            index: self.index.get(),
            context: self.context.get(),
        };
        self.registry.set(registry);
        self.index.set(index);
        self.context.set(ptr::from_ref(context).cast());
        f(self)
    }
}
