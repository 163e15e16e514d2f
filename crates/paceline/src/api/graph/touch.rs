//! What keys stand for: the data that a job touches, and the references that its body gets.

use std::any::TypeId;
use std::ops::Range;
use std::ptr::NonNull;

use super::items::Items;
use super::keys::{Res, ResEach, ResItem, ResPart};
use crate::access::{Access, AccessKind, Declared, DeclaredAccess, Place, Places};

/// What a field of a graph's data can be: a value, or a slice. It has no example, because programs do not
/// name it.
#[doc(hidden)]
pub trait Stored: 'static {
    fn place(&mut self) -> Place;

    fn at(place: Place) -> NonNull<Self>;
}

impl<T: 'static> Stored for T {
    fn place(&mut self) -> Place {
        Place {
            at: NonNull::from(self).cast(),
            len: 1,
        }
    }

    fn at(place: Place) -> NonNull<T> {
        place.at.cast()
    }
}

impl<T: 'static> Stored for [T] {
    fn place(&mut self) -> Place {
        Place {
            len: self.len(),
            at: NonNull::from(self).cast(),
        }
    }

    fn at(place: Place) -> NonNull<[T]> {
        NonNull::slice_from_raw_parts(place.at.cast(), place.len)
    }
}

/// A key. It has no example, because programs do not name it.
#[doc(hidden)]
pub trait OfField {
    /// The number of the field, and its type.
    fn field(&self) -> (u32, TypeId);
}

/// A key that leads to one reference: to a field, an item, or a part. It has no example, because programs do
/// not name it.
#[doc(hidden)]
pub trait FieldKey: OfField {
    type Of: ?Sized + 'static;

    /// The items of the field; all of them is [`Declared::WHOLE`].
    fn part(&self) -> Range<usize>;

    /// # Safety
    /// The place is the field's in a run, and it has these items (`BuiltGraph::places`).
    unsafe fn locate(&self, place: Place) -> NonNull<Self::Of>;
}

impl<D: ?Sized, T: ?Sized + 'static> OfField for Res<D, T> {
    fn field(&self) -> (u32, TypeId) {
        (self.number(), TypeId::of::<T>())
    }
}

impl<D: ?Sized, T: 'static> OfField for ResItem<D, T> {
    fn field(&self) -> (u32, TypeId) {
        self.of.field()
    }
}

impl<D: ?Sized, T: 'static> OfField for ResPart<D, T> {
    fn field(&self) -> (u32, TypeId) {
        self.of.field()
    }
}

impl<D: ?Sized, T: 'static> OfField for ResEach<D, T> {
    fn field(&self) -> (u32, TypeId) {
        self.of.field()
    }
}

impl<D: ?Sized, T: Stored + ?Sized> FieldKey for Res<D, T> {
    type Of = T;

    fn part(&self) -> Range<usize> {
        Declared::WHOLE
    }

    unsafe fn locate(&self, place: Place) -> NonNull<T> {
        T::at(place)
    }
}

impl<D: ?Sized, T: 'static> FieldKey for ResItem<D, T> {
    type Of = T;

    fn part(&self) -> Range<usize> {
        item(self.index)
    }

    unsafe fn locate(&self, place: Place) -> NonNull<T> {
        debug_assert!(self.index < place.len);
        // SAFETY: the caller's promise.
        unsafe { place.at.cast::<T>().add(self.index) }
    }
}

impl<D: ?Sized, T: 'static> FieldKey for ResPart<D, T> {
    type Of = [T];

    fn part(&self) -> Range<usize> {
        self.start..self.end
    }

    unsafe fn locate(&self, place: Place) -> NonNull<[T]> {
        debug_assert!(self.start <= self.end && self.end <= place.len);
        // SAFETY: the caller's promise.
        let first = unsafe { place.at.cast::<T>().add(self.start) };
        NonNull::slice_from_raw_parts(first, self.end - self.start)
    }
}

/// What jobs can declare that they read. It has no example, because programs do not name it.
#[doc(hidden)]
pub trait Readable<D: ?Sized>: OfField {
    type Access: Access;

    fn read(self) -> Self::Access;
}

/// What jobs can declare that they write. It has no example, because programs do not name it.
#[doc(hidden)]
pub trait Writable<D: ?Sized>: OfField {
    type Access: Access;

    fn write(self) -> Self::Access;
}

/// Keys of one reference can be read, and can be written.
macro_rules! touchable {
    ($([$key:ident of $of:ty, with T: $($bound:tt)+])+) => {$(
        impl<D: ?Sized + 'static, T: $($bound)+ + Sync> Readable<D> for $key<D, $of> {
            type Access = ReadsField<Self>;

            fn read(self) -> ReadsField<Self> {
                ReadsField(self)
            }
        }

        impl<D: ?Sized + 'static, T: $($bound)+ + Send> Writable<D> for $key<D, $of> {
            type Access = WritesField<Self>;

            fn write(self) -> WritesField<Self> {
                WritesField(self)
            }
        }
    )+};
}

touchable! {
    [Res of T, with T: Stored + ?Sized]
    [ResItem of T, with T: 'static]
    [ResPart of T, with T: 'static]
}

impl<D: ?Sized + 'static, T: Sync + 'static> Readable<D> for ResEach<D, T> {
    type Access = ReadsEach<D, T>;

    fn read(self) -> ReadsEach<D, T> {
        ReadsEach(self)
    }
}

/// A job reads what the key leads to. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct ReadsField<K>(K);

/// A job writes what the key leads to. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct WritesField<K>(K);

/// A job reads some items. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct ReadsEach<D: ?Sized, T>(ResEach<D, T>);

/// The part that is one item. The item `usize::MAX`, which no slice has, is refused as a part that ends
/// before it begins.
fn item(index: usize) -> Range<usize> {
    index..index.wrapping_add(1)
}

fn declared((number, _): (u32, TypeId), kind: AccessKind, part: Range<usize>) -> DeclaredAccess {
    DeclaredAccess(Declared {
        resource: u64::from(number),
        kind,
        part,
    })
}

/// The place of a field. Keys and data agree about its type (`GraphBuilder::check`, `Fields::add`).
fn place_of((number, _): (u32, TypeId), places: Places<'_>) -> Place {
    places.0[number as usize]
}

// SAFETY: it only reads.
unsafe impl<K: FieldKey> Access for ReadsField<K>
where
    K::Of: Sync,
{
    type Item<'a>
        = &'a K::Of
    where
        K: 'a;

    fn each(&self, visit: &mut dyn FnMut(DeclaredAccess)) {
        visit(declared(self.0.field(), AccessKind::Reads, self.0.part()));
    }

    unsafe fn item<'a>(&'a self, places: Places<'a>) -> &'a K::Of {
        // SAFETY: `Fields::add` made the place of a `&mut`, which lives as long as the run; nothing writes
        // what the key declares for `'a` (the caller's promise).
        unsafe { self.0.locate(place_of(self.0.field(), places)).as_ref() }
    }
}

// SAFETY: it says that it writes.
unsafe impl<K: FieldKey> Access for WritesField<K>
where
    K::Of: Send,
{
    type Item<'a>
        = &'a mut K::Of
    where
        K: 'a;

    fn each(&self, visit: &mut dyn FnMut(DeclaredAccess)) {
        visit(declared(self.0.field(), AccessKind::Writes, self.0.part()));
    }

    unsafe fn item<'a>(&'a self, places: Places<'a>) -> &'a mut K::Of {
        // SAFETY: as above, and nothing else touches it for `'a`.
        unsafe { self.0.locate(place_of(self.0.field(), places)).as_mut() }
    }
}

// SAFETY: it only reads, and only these items.
unsafe impl<D: ?Sized, T: Sync + 'static> Access for ReadsEach<D, T> {
    type Item<'a>
        = Items<'a, T>
    where
        D: 'a;

    fn each(&self, visit: &mut dyn FnMut(DeclaredAccess)) {
        let field = self.0.of.field();
        for &index in &self.0.items {
            visit(declared(field, AccessKind::Reads, item(index)));
        }
    }

    unsafe fn item<'a>(&'a self, places: Places<'a>) -> Items<'a, T> {
        let ResEach { of, items } = &self.0;
        let all = place_of(of.field(), places);
        debug_assert!(items.iter().all(|&item| item < all.len));
        // SAFETY: there are such items (`BuiltGraph::places`), and nothing writes them for `'a` (the caller's
        // promise).
        unsafe { Items::new(all.at.cast(), items) }
    }
}
