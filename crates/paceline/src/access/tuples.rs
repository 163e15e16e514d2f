//! Tuples of accesses.

use super::{Access, Declared, Keeper, Places};

/// The accesses of a job: none to eight. The body gets nothing (`()`) for none, the reference itself for one,
/// and a tuple for more. Programs need no implementation of their own. It has no example, because programs do
/// not name it.
///
/// # Safety
/// As for [`Access`], for each.
#[doc(hidden)]
pub unsafe trait Accesses {
    /// The references that the body gets.
    type Items<'a>
    where
        Self: 'a;

    /// Calls `visit` with each.
    fn each(&self, visit: &mut dyn FnMut(super::DeclaredAccess));

    /// Calls `visit` with what keeps others from each, until it returns false.
    fn each_keeper(&self, visit: &mut dyn FnMut(&dyn Keeper) -> bool);

    /// # Safety
    /// As for [`Access::item`], for each; no two of them are of one resource's same part, unless both read.
    unsafe fn items<'a>(&'a self, places: Places<'a>) -> Self::Items<'a>;
}

/// One access more. It has no example, because programs do not name it.
#[doc(hidden)]
pub trait And<A: Access>: Accesses {
    type With: Accesses;

    fn and(self, access: A) -> Self::With;
}

// SAFETY: there are none.
unsafe impl Accesses for () {
    type Items<'a> = ();

    fn each(&self, _: &mut dyn FnMut(super::DeclaredAccess)) {}

    fn each_keeper(&self, _: &mut dyn FnMut(&dyn Keeper) -> bool) {}

    unsafe fn items<'a>(&'a self, _: Places<'a>) {}
}

impl<A: Access> And<A> for () {
    type With = (A,);

    fn and(self, access: A) -> (A,) {
        (access,)
    }
}

// SAFETY: it is the one access.
unsafe impl<A: Access> Accesses for (A,) {
    type Items<'a>
        = A::Item<'a>
    where
        Self: 'a;

    fn each(&self, visit: &mut dyn FnMut(super::DeclaredAccess)) {
        self.0.each(visit);
    }

    fn each_keeper(&self, visit: &mut dyn FnMut(&dyn Keeper) -> bool) {
        _ = self.0.keeper().is_none_or(visit);
    }

    unsafe fn items<'a>(&'a self, places: Places<'a>) -> A::Item<'a> {
        // SAFETY: the caller's promise.
        unsafe { self.0.item(places) }
    }
}

macro_rules! tuples {
    ($($name:ident $place:tt),+; ) => { tuples!(@accesses $($name $place),+); };
    ($($name:ident $place:tt),+; $next:ident $at:tt $(, $later:ident $later_at:tt)*) => {
        tuples!(@accesses $($name $place),+);
        tuples!(@and $($name $place),+; $next);
        tuples!($($name $place,)+ $next $at; $($later $later_at),*);
    };
    (@accesses $one:ident 0) => {};
    (@accesses $($name:ident $place:tt),+) => {
        // SAFETY: as for one, for each.
        unsafe impl<$($name: Access),+> Accesses for ($($name,)+) {
            type Items<'a> = ($($name::Item<'a>,)+) where Self: 'a;

            fn each(&self, visit: &mut dyn FnMut(super::DeclaredAccess)) {
                $(self.$place.each(visit);)+
            }

            fn each_keeper(&self, visit: &mut dyn FnMut(&dyn Keeper) -> bool) {
                _ = true $(&& self.$place.keeper().is_none_or(&mut *visit))+;
            }

            unsafe fn items<'a>(&'a self, places: Places<'a>) -> Self::Items<'a> {
                // SAFETY: the caller's promise.
                unsafe { ($(self.$place.item(places),)+) }
            }
        }
    };
    (@and $($name:ident $place:tt),+; $next:ident) => {
        impl<$($name: Access,)+ $next: Access> And<$next> for ($($name,)+) {
            type With = ($($name,)+ $next);

            fn and(self, access: $next) -> Self::With {
                ($(self.$place,)+ access)
            }
        }
    };
}

tuples!(A 0; B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// The declared accesses, as data.
pub(crate) fn declared<A: Accesses>(accesses: &A) -> Vec<Declared> {
    let mut all = Vec::new();
    accesses.each(&mut |declared| all.push(declared.0));
    all
}
