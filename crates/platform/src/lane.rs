//! How urgent work is.

use std::fmt;

/// How urgent work is: the most urgent lane comes first.
///
/// ```
/// use paceline_platform::Lane;
/// assert_eq!(Lane::default(), Lane::Normal);
/// assert_eq!(Lane::Frame.to_string(), "frame");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Lane {
    /// The little that a frame hangs on. It goes before all else.
    Frame,
    /// Everything, unless something else is said.
    #[default]
    Normal,
    /// Work without a deadline. It has what others leave, and a turn now and then.
    Background,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lane::Frame => "frame",
            Lane::Normal => "normal",
            Lane::Background => "background",
        })
    }
}
