//! How urgent work is.

use std::fmt;

/// How urgent work is. Work of the frame lane goes first, then that of the normal lane and of those that have
/// a share beside it, then the background.
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
    /// Work that has a share of the workers' time beside the normal lane: `Builder::shares` says how much.
    Share1,
    /// As [`Share1`](Lane::Share1).
    Share2,
    /// As [`Share1`](Lane::Share1).
    Share3,
    /// As [`Share1`](Lane::Share1).
    Share4,
    /// As [`Share1`](Lane::Share1).
    Share5,
    /// Work without a deadline. It has what others leave, and a turn now and then.
    Background,
}

impl Lane {
    /// The lanes with a share of the workers' time.
    ///
    /// ```
    /// use paceline_platform::Lane;
    /// assert_eq!(Lane::SHARES[0], Lane::Share1);
    /// ```
    pub const SHARES: [Lane; 5] = [
        Lane::Share1,
        Lane::Share2,
        Lane::Share3,
        Lane::Share4,
        Lane::Share5,
    ];
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lane::Frame => "frame",
            Lane::Normal => "normal",
            Lane::Share1 => "share 1",
            Lane::Share2 => "share 2",
            Lane::Share3 => "share 3",
            Lane::Share4 => "share 4",
            Lane::Share5 => "share 5",
            Lane::Background => "background",
        })
    }
}
