//! The data of a graph, in parts that its jobs declare: [`Resources`], and a key for each part.

use std::any::TypeId;
use std::marker::PhantomData;

use super::keys::Res;
use super::touch::Stored;
use crate::access::Place;

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
    pub fn key<T: ?Sized + 'static>(&mut self, name: &'static str) -> Res<D, T> {
        let of = TypeId::of::<T>();
        self.fields.push(Field { name, of });
        Res::new(self.fields.len() as u32 - 1, name)
    }
}

impl Field {
    /// Whether a key of this number and type leads to a field of its type. (Keys of one graph serve another
    /// one of the same data.)
    pub(super) fn fits(fields: &[Field], number: u32, of: TypeId) -> bool {
        let field = fields.get(number as usize);
        field.is_some_and(|field| field.of == of)
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }
}

/// Takes the fields of a graph's data for a run. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct Fields<'p, 'a> {
    places: &'p mut Vec<Place>,
    expected: &'p [Field],
    _data: PhantomData<&'a mut &'a ()>,
}

impl<'a> Fields<'_, 'a> {
    /// The next field. It has no example, because only [`resources!`](crate::resources) calls it.
    ///
    /// # Panics
    /// If the keys have another one in its place.
    pub fn add<T: Stored + ?Sized>(&mut self, field: &'a mut T) {
        let expected = self.expected.get(self.places.len());
        // A key leads to a field by its number alone. So the number has to lead to a field of its type.
        assert!(
            expected.is_some_and(|expected| expected.of == TypeId::of::<T>()),
            "the data of a graph has other fields than its keys: use `paceline::resources!`"
        );
        self.places.push(T::place(field));
    }
}

/// Fills in the places of `data`. They are those of the keys with these fields.
///
/// # Panics
/// If the data has other fields.
pub(super) fn places_of<D: Resources + ?Sized>(
    data: &mut D,
    expected: &[Field],
    places: &mut Vec<Place>,
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

/// Makes a struct the data of a graph: its jobs can declare each field that is named here. It implements
/// [`Resources`] and makes a struct of keys with the same field names. Fields that are not named stay out of
/// the graph's reach.
///
/// A field of many items (a `Vec<T>`, a boxed slice, an array) can be named as `[T]`: then jobs can touch
/// [items](crate::Res::at) and [parts](crate::Res::part) of it, and none can change its length in a run.
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
                $(into.add::<$of>(&mut self.$field);)*
            }
        }
    };
}
