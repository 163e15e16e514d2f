//! The bits that say why a task stopped running, whose meaning depends on the kernel.

use event::Left;

/// The bits of `prev_state` in kernels of some age (`include/linux/sched.h` of each).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Unknown: bits that differ are read as the newest kernels have them, unless another bit tells.
    #[default]
    Unknown,
    /// Before 4.8.
    Before4_8,
    /// 4.8 to 4.13.
    From4_8,
    /// 4.14 and later.
    From4_14,
}

impl Layout {
    /// The bits that say that the task was put aside in the midst of the kernel's code.
    pub(crate) fn preempted(self) -> u64 {
        match self {
            Layout::Unknown => 0x1900,
            Layout::Before4_8 => 0x800,
            Layout::From4_8 => 0x1000,
            Layout::From4_14 => 0x100,
        }
    }

    /// The bits that such a kernel writes of a task that stops. If the kernel is not known, those of the
    /// oldest ones: so Perfetto reads them.
    pub(crate) fn bits(self, left: Left) -> u64 {
        match (left, self) {
            (Left::Runnable, _) => 0,
            (Left::Sleeping, _) => 0x01,
            (Left::Blocked, _) => UNINTERRUPTIBLE,
            (Left::Dead, _) => 0x10,
            (Left::Preempted, Layout::Unknown) => Layout::Before4_8.preempted(),
            (Left::Preempted, _) => self.preempted(),
        }
    }

    /// The layout of a kernel, by its release, such as "4.19.113-android".
    pub(crate) fn of(release: &str) -> Layout {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => match (major, minor) {
                version if version >= (4_u32, 14_u32) => Layout::From4_14,
                version if version >= (4, 8) => Layout::From4_8,
                _ => Layout::Before4_8,
            },
            _ => Layout::Unknown,
        }
    }
}

pub(crate) const UNINTERRUPTIBLE: u64 = 0x02;

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a release tells the layout. Method: the releases around each border.
    #[test]
    fn layout_by_release() {
        let layouts = [
            "3.10.40",
            "4.7.9",
            "4.8.0-rc1",
            "4.13",
            "4.14.1-android",
            "6.18.0",
            "",
        ];
        let wanted = [
            Layout::Before4_8,
            Layout::Before4_8,
            Layout::From4_8,
            Layout::From4_8,
            Layout::From4_14,
            Layout::From4_14,
            Layout::Unknown,
        ];
        assert_eq!(layouts.map(Layout::of), wanted);
    }
}
