//! What jobs declare of shared data: all of it, or a part of a slice.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use platform::{Os, Platform};

use super::{Data, Shared};
use crate::access::{
    Access, AccessKind, Declared, DeclaredAccess, Holder, Keeper, Places, Taken, Who,
};
use crate::store::Ticket;
use crate::work;

/// Data that a job can declare to read: `&Shared<T>`, or a [`Part`] of a shared slice. Several threads may
/// read it at a time, so `T` is `Sync`. Programs need no implementation of their own.
///
/// It has no example, because that of [`Shared`] shows it.
#[diagnostic::on_unimplemented(
    message = "a job cannot declare that it reads `{Self}`",
    label = "not shared data that several threads may read",
    note = "`reads` takes `&Shared<T>`, which `share` makes, or a part of a shared slice, \
            `heights.part(0..50)`; and `T: Sync`"
)]
pub trait ReadAccess<P: Platform>: OfJobSystem<P> {
    #[doc(hidden)]
    type Reads: Access;

    #[doc(hidden)]
    fn reads(self) -> Self::Reads;
}

/// Data that a job can declare to change: `&Shared<T>`, or a [`Part`] of a shared slice. Programs need no
/// implementation of their own.
///
/// It has no example, because that of [`Shared`] shows it.
#[diagnostic::on_unimplemented(
    message = "a job cannot declare that it writes `{Self}`",
    label = "not shared data",
    note = "`writes` takes `&Shared<T>`, which `share` makes, or a part of a shared slice, \
            `heights.part(0..50)`"
)]
pub trait WriteAccess<P: Platform>: OfJobSystem<P> {
    #[doc(hidden)]
    type Writes: Access;

    #[doc(hidden)]
    fn writes(self) -> Self::Writes;
}

/// Data of a job system. It has no example, because programs do not name it.
#[doc(hidden)]
pub trait OfJobSystem<P: Platform> {
    /// Whether it belongs to this job system; and its name.
    fn belongs_to(&self, jobs: JobsOf<'_, P>) -> (bool, &'static str);
}

/// A job system. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct JobsOf<'a, P: Platform>(pub(super) &'a work::Shared<P>);

/// A part of a shared slice, from [`Shared::part`].
///
/// ```
/// let js = paceline::JobSystem::new();
/// let heights = js.share_slice("heights", vec![1.0; 100]);
/// let halves = [0..50, 50..100].map(|part| {
///     js.job("half").writes(heights.part(part)).schedule(|_cx, half| half.fill(2.0))
/// });
/// js.wait(js.combine(halves));
/// assert!(heights.read().iter().all(|&height| height == 2.0));
/// ```
#[must_use = "declare it"]
pub struct Part<'a, T, P: Platform = Os> {
    of: &'a Shared<[T], P>,
    range: Range<usize>,
}

impl<T, P: Platform> Shared<[T], P> {
    /// The number of items.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// assert_eq!(js.share_slice("heights", vec![1.0; 100]).len(), 100);
    /// ```
    pub fn len(&self) -> usize {
        self.data.value.len()
    }

    /// Whether there are no items.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// assert!(js.share_slice("nothing", Vec::<u8>::new()).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These items, for a job to declare. Jobs that declare disjoint parts may run side by side.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let heights = js.share_slice("heights", vec![1.0; 100]);
    /// let first = js.job("first").reads(heights.part(0..10)).run(|_cx, first| first.len());
    /// assert_eq!(first.wait(), 10);
    /// ```
    ///
    /// # Panics
    /// If there are no such items, as for a slice.
    #[track_caller]
    pub fn part(&self, range: Range<usize>) -> Part<'_, T, P> {
        let len = self.len();
        match self.try_part(range.clone()) {
            Some(part) => part,
            None => panic!("'{}' has {len} items, and no part {range:?}", self.name()),
        }
    }

    /// As [`part`](Shared::part); `None` if there are no such items.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let heights = js.share_slice("heights", vec![1.0; 100]);
    /// assert!(heights.try_part(50..101).is_none());
    /// ```
    pub fn try_part(&self, range: Range<usize>) -> Option<Part<'_, T, P>> {
        let exists = range.start <= range.end && range.end <= self.len();
        exists.then_some(Part { of: self, range })
    }
}

/// All of the data, read. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct ReadsShared<T: ?Sized, P: Platform>(Arc<Data<T, P>>);

/// All of the data, written. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct WritesShared<T: ?Sized, P: Platform>(Arc<Data<T, P>>);

/// A part, read. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct ReadsPart<T, P: Platform>(HeldPart<T, P>);

/// A part, written. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct WritesPart<T, P: Platform>(HeldPart<T, P>);

struct HeldPart<T, P: Platform> {
    data: Arc<Data<[T], P>>,
    /// Within the slice.
    range: Range<usize>,
}

impl<T, P: Platform> HeldPart<T, P> {
    fn items(&self) -> NonNull<[T]> {
        let first = self.data.value.cast::<T>();
        // SAFETY: the range is within the slice (`Shared::try_part`).
        let first = unsafe { first.add(self.range.start) };
        NonNull::slice_from_raw_parts(first, self.range.len())
    }
}

impl<T: ?Sized, P: Platform> OfJobSystem<P> for &Shared<T, P> {
    fn belongs_to(&self, jobs: JobsOf<'_, P>) -> (bool, &'static str) {
        self.data.belongs_to(jobs.0)
    }
}

impl<T: ?Sized + Sync, P: Platform> ReadAccess<P> for &Shared<T, P> {
    type Reads = ReadsShared<T, P>;

    fn reads(self) -> ReadsShared<T, P> {
        ReadsShared(self.data.clone())
    }
}

impl<T: ?Sized + Send, P: Platform> WriteAccess<P> for &Shared<T, P> {
    type Writes = WritesShared<T, P>;

    fn writes(self) -> WritesShared<T, P> {
        WritesShared(self.data.clone())
    }
}

impl<T, P: Platform> OfJobSystem<P> for Part<'_, T, P> {
    fn belongs_to(&self, jobs: JobsOf<'_, P>) -> (bool, &'static str) {
        self.of.data.belongs_to(jobs.0)
    }
}

impl<T: Sync, P: Platform> ReadAccess<P> for Part<'_, T, P> {
    type Reads = ReadsPart<T, P>;

    fn reads(self) -> ReadsPart<T, P> {
        ReadsPart(self.held())
    }
}

impl<T: Send, P: Platform> WriteAccess<P> for Part<'_, T, P> {
    type Writes = WritesPart<T, P>;

    fn writes(self) -> WritesPart<T, P> {
        WritesPart(self.held())
    }
}

impl<T, P: Platform> Part<'_, T, P> {
    fn held(self) -> HeldPart<T, P> {
        HeldPart {
            data: self.of.data.clone(),
            range: self.range,
        }
    }
}

impl<T: ?Sized, P: Platform> Data<T, P> {
    fn belongs_to(&self, jobs: &work::Shared<P>) -> (bool, &'static str) {
        (std::ptr::eq(self.jobs.as_ptr(), jobs), self.name)
    }

    /// Puts a job into the list of holders.
    fn take_for(&self, access: Declared, by: u64) -> Result<(), Taken> {
        let taken = self.take(&access, Who::Job(Ticket(by)));
        taken.map_err(|holder: Holder| Taken {
            resource: self.name,
            holder,
            refused: access,
        })
    }
}

macro_rules! access {
    ($name:ident<$T:ident $(: ?$sized:ident)?>, $kind:ident, $bound:ident, $item:ty,
     |$this:ident| $data:expr, $range:expr, $reference:expr) => {
        // SAFETY: it says what it does; the reference leads to the data, or to the part, that is declared.
        unsafe impl<$T: $(?$sized +)? $bound, P: Platform> Access for $name<$T, P> {
            type Item<'a>
                = $item
            where
                Self: 'a;

            fn each(&self, visit: &mut dyn FnMut(DeclaredAccess)) {
                visit(DeclaredAccess(self.declared()));
            }

            unsafe fn item<'a>(&'a self, _: Places<'a>) -> $item {
                let $this = self;
                // SAFETY: the pointer is to the data, which lives as long as `self`. For `'a` nobody else
                // touches it, unless both read (the caller's promise).
                unsafe { $reference }
            }

            fn keeper(&self) -> Option<&dyn Keeper> {
                Some(self)
            }
        }

        impl<$T: $(?$sized)?, P: Platform> $name<$T, P> {
            fn declared(&self) -> Declared {
                let $this = self;
                $data.declared(AccessKind::$kind, $range)
            }
        }

        impl<$T: $(?$sized +)? $bound, P: Platform> Keeper for $name<$T, P> {
            fn name(&self) -> &'static str {
                let $this = self;
                $data.name
            }

            fn take(&self, by: u64) -> Result<(), Taken> {
                let $this = self;
                $data.take_for(self.declared(), by)
            }

            fn give_back(&self, by: u64) {
                let $this = self;
                $data.give_back(&self.declared(), Who::Job(Ticket(by)));
            }
        }
    };
}

access!(ReadsShared<T: ?Sized>, Reads, Sync, &'a T,
    |this| this.0, Declared::WHOLE, this.0.value.as_ref());
access!(WritesShared<T: ?Sized>, Writes, Send, &'a mut T,
    |this| this.0, Declared::WHOLE, &mut *this.0.value.as_ptr());
access!(
    ReadsPart<T>,
    Reads,
    Sync,
    &'a [T],
    |this| this.0.data,
    this.0.range.clone(),
    this.0.items().as_ref()
);
access!(
    WritesPart<T>,
    Writes,
    Send,
    &'a mut [T],
    |this| this.0.data,
    this.0.range.clone(),
    &mut *this.0.items().as_ptr()
);
