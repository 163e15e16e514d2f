//! The data of a graph, in parts that its jobs declare: [`Resources`], and a key for each part.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::access::{Access, AccessKind, Declared, DeclaredAccess, Places};

/// Data whose fields a graph's jobs read and write. [`resources!`](crate::resources) implements it for a
/// struct; a program needs no other implementation. `()` is for graphs without data.
///
/// ```
/// struct World {
///     speeds: Vec<f32>,
///     positions: Vec<f32>,
/// }
/// paceline::resources! { World: WorldKeys { speeds: Vec<f32>, positions: Vec<f32> } }
///
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// let travel = graph.job("travel").reads(w.speeds).writes(w.positions);
/// travel.for_each(|(speed, position)| *position += speed);
/// let mut graph = graph.build();
/// let mut world = World { speeds: vec![2.0; 100], positions: vec![0.0; 100] };
/// for _ in 0..3 {
///     graph.run(&mut world);
/// }
/// assert_eq!(world.positions[99], 6.0);
/// ```
pub trait Resources {
    /// A key for each field, under the field's name.
    type Keys;

    #[doc(hidden)]
    fn keys(maker: &mut KeyMaker<Self>) -> Self::Keys;

    #[doc(hidden)]
    fn split<'a>(&'a mut self, into: &mut Fields<'_, 'a>);
}

impl Resources for () {
    type Keys = ();

    fn keys(_: &mut KeyMaker<()>) {}

    fn split<'a>(&'a mut self, _: &mut Fields<'_, 'a>) {}
}

/// The key of a field of `D`, of type `T`: what jobs declare. From [`JobSystem::graph_of`].
///
/// ```
/// struct World {
///     score: u32,
/// }
/// paceline::resources! { World: Keys { score: u32 } }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// let score: paceline::Res<World, u32> = w.score;
/// graph.job("win").writes(score).run(|_, score| *score += 1);
/// let mut world = World { score: 41 };
/// graph.build().run(&mut world);
/// assert_eq!(world.score, 42);
/// ```
///
/// [`JobSystem::graph_of`]: crate::JobSystem::graph_of
pub struct Res<D: ?Sized, T> {
    number: u32,
    _of: PhantomData<fn(&D) -> T>,
}

impl<D: ?Sized, T> Clone for Res<D, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: ?Sized, T> Copy for Res<D, T> {}

impl<D: ?Sized, T> fmt::Debug for Res<D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Res({}, {})", self.number, std::any::type_name::<T>())
    }
}

/// A field, as keys and data must agree about it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    name: &'static str,
    of: TypeId,
}

/// Makes the keys of a graph's data. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct KeyMaker<D: ?Sized> {
    fields: Vec<Field>,
    _of: PhantomData<fn(&D)>,
}

impl<D: ?Sized> KeyMaker<D> {
    pub(super) fn new() -> Self {
        KeyMaker {
            fields: Vec::new(),
            _of: PhantomData,
        }
    }

    pub(super) fn into_fields(self) -> Vec<Field> {
        self.fields
    }

    /// The key of the next field. It has no example, because only [`resources!`](crate::resources) calls it.
    pub fn key<T: 'static>(&mut self, name: &'static str) -> Res<D, T> {
        self.fields.push(Field {
            name,
            of: TypeId::of::<T>(),
        });
        Res {
            number: self.fields.len() as u32 - 1,
            _of: PhantomData,
        }
    }
}

impl Field {
    /// Whether the key leads to a field of its type. (Keys of one graph serve another one of the same data.)
    pub(super) fn fits<D: ?Sized, T: 'static>(fields: &[Field], key: Res<D, T>) -> bool {
        let field = fields.get(key.number as usize);
        field.is_some_and(|field| field.of == TypeId::of::<T>())
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }
}

/// Takes the fields of a graph's data for a run. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct Fields<'p, 'a> {
    places: &'p mut Vec<Option<NonNull<()>>>,
    expected: &'p [Field],
    _data: PhantomData<&'a mut &'a ()>,
}

impl<'a> Fields<'_, 'a> {
    /// The next field. It has no example, because only [`resources!`](crate::resources) calls it.
    ///
    /// # Panics
    /// If the keys have another one in its place.
    pub fn add<T: 'static>(&mut self, field: &'a mut T) {
        let expected = self.expected.get(self.places.len());
        // A key leads to a field by its number alone. So the number has to lead to a field of its type.
        assert!(
            expected.is_some_and(|expected| expected.of == TypeId::of::<T>()),
            "the data of a graph has other fields than its keys: use `paceline::resources!`"
        );
        self.places.push(Some(NonNull::from(field).cast()));
    }
}

/// Fills in the places of `data`. They are those of the keys with these fields.
///
/// # Panics
/// If the data has other fields.
pub(super) fn places_of<D: Resources + ?Sized>(
    data: &mut D,
    expected: &[Field],
    places: &mut Vec<Option<NonNull<()>>>,
) {
    places.clear();
    let mut fields = Fields {
        places,
        expected,
        _data: PhantomData,
    };
    data.split(&mut fields);
    assert!(
        places.len() == expected.len(),
        "the data of a graph has fewer fields than its keys: use `paceline::resources!`"
    );
}

/// A job reads the field. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct ReadsField<D: ?Sized, T>(pub(super) Res<D, T>);

/// A job writes the field. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct WritesField<D: ?Sized, T>(pub(super) Res<D, T>);

fn declared(number: u32, kind: AccessKind) -> DeclaredAccess {
    DeclaredAccess(Declared {
        resource: u64::from(number),
        kind,
        part: 0..usize::MAX,
    })
}

/// The place of a field.
fn place<T>(places: Places<'_>, number: u32) -> NonNull<T> {
    let place = places.0.get(number as usize).copied().flatten();
    place.expect("a run has a place for each key").cast()
}

// SAFETY: it only reads.
unsafe impl<D: ?Sized + 'static, T: Sync + 'static> Access for ReadsField<D, T> {
    type Item<'a> = &'a T;

    fn declared(&self) -> DeclaredAccess {
        declared(self.0.number, AccessKind::Reads)
    }

    unsafe fn item<'a>(&'a self, places: Places<'a>) -> &'a T {
        // SAFETY: `Fields::add` has put a `&mut T` there, which lives as long as the run; nothing writes for
        // `'a` (the caller's promise).
        unsafe { place::<T>(places, self.0.number).as_ref() }
    }
}

// SAFETY: it says that it writes.
unsafe impl<D: ?Sized + 'static, T: Send + 'static> Access for WritesField<D, T> {
    type Item<'a> = &'a mut T;

    fn declared(&self) -> DeclaredAccess {
        declared(self.0.number, AccessKind::Writes)
    }

    unsafe fn item<'a>(&'a self, places: Places<'a>) -> &'a mut T {
        // SAFETY: as above, and nothing else touches it for `'a`.
        unsafe { place::<T>(places, self.0.number).as_mut() }
    }
}

/// Makes a struct the data of a graph: its jobs can declare each field that is named here. It implements
/// [`Resources`] and makes a struct of keys with the same field names. Fields that are not named stay out of
/// the graph's reach.
///
/// ```
/// struct World {
///     names: Vec<String>,
///     longest: usize,
/// }
/// paceline::resources! {
///     World: WorldKeys { names: Vec<String>, longest: usize }
/// }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("measure");
/// graph.job("longest").reads(w.names).writes(w.longest).run(|_cx, (names, longest)| {
///     *longest = names.iter().map(String::len).max().unwrap_or(0);
/// });
/// let mut world = World { names: vec!["one".into(), "three".into()], longest: 0 };
/// graph.build().run(&mut world);
/// assert_eq!(world.longest, 5);
/// ```
#[macro_export]
macro_rules! resources {
    ($vis:vis $data:ident : $keys:ident { $($field:ident : $of:ty),* $(,)? }) => {
        /// The keys of a graph's data.
        #[derive(Clone, Copy)]
        #[allow(dead_code)]
        $vis struct $keys {
            $(pub $field: $crate::Res<$data, $of>,)*
        }

        impl $crate::Resources for $data {
            type Keys = $keys;

            fn keys(maker: &mut $crate::KeyMaker<Self>) -> $keys {
                $keys { $($field: maker.key(stringify!($field)),)* }
            }

            fn split<'a>(&'a mut self, into: &mut $crate::Fields<'_, 'a>) {
                $(into.add(&mut self.$field);)*
            }
        }
    };
}
