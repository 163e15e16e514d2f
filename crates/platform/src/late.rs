//! A value that is put in later than its place is made.

use std::sync::OnceLock;

/// A place for a value that is put in once, by any thread, and then stays.
///
/// To look costs one load and a branch that is nearly always the same. It is no part of
/// [`Memory`](crate::Memory): no simulation charges for it and no model explores it. So it is for values that
/// a thread may see late, such as the recorder of a job system.
///
/// ```
/// use paceline_platform::Late;
/// let place = Late::empty();
/// assert_eq!(place.get(), None);
/// assert_eq!(place.set(1), Ok(()));
/// assert_eq!(place.set(2), Err(2));
/// assert_eq!(place.get(), Some(&1));
/// ```
#[derive(Debug)]
pub struct Late<T>(OnceLock<T>);

impl<T> Late<T> {
    /// An empty place.
    pub const fn empty() -> Late<T> {
        Late(OnceLock::new())
    }

    /// The value, if it is there.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Puts the value in. Blocks while another thread puts one in.
    ///
    /// # Errors
    /// The value comes back if there is one already.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.0.set(value)
    }
}

impl<T> From<Option<T>> for Late<T> {
    fn from(value: Option<T>) -> Late<T> {
        Late(value.map_or_else(OnceLock::new, OnceLock::from))
    }
}
