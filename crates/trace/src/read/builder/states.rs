//! Why a task stopped running, as kernels write it: letters, or bits whose meaning depends on the kernel.

use event::Left;

use crate::layout::{Layout, UNINTERRUPTIBLE};

const SLEEPS: u64 = 0x01 | 0x04 | 0x08;
const ENDED: u64 = 0x10 | 0x20;

/// The meaning of bits.
///
/// Up to 0x20 they mean the same everywhere. 0x40 is a dead task before 4.14 and a parked one since; 0x80 and
/// 0x100 stand beside others (wake-kill, waking) before 4.14, and for idle and preempted since. Bits above
/// them say that the task was preempted, or come with a bit that says why it could not have continued.
pub(crate) fn from_bits(bits: u64, layout: Layout) -> Left {
    let is_old = match layout {
        Layout::Unknown => bits & !0x1ff != 0,
        Layout::From4_14 => false,
        Layout::Before4_8 | Layout::From4_8 => true,
    };
    let is_only_0x400 = layout != Layout::From4_14 && bits == 0x400;
    if bits & ENDED != 0 || bits & 0x40 != 0 && is_old {
        Left::Dead
    } else if bits & layout.preempted() != 0 || is_only_0x400 {
        Left::Preempted
    } else if bits & UNINTERRUPTIBLE != 0 {
        Left::Blocked
    } else if bits & (SLEEPS | 0x40 | 0x80) != 0 || bits & 0x200 != 0 {
        Left::Sleeping
    } else {
        Left::Runnable
    }
}

/// The meaning of letters, such as `S`, `R+` or `D|K`; none if they are not the kernel's.
pub(crate) fn from_letters(letters: &[u8]) -> Option<Left> {
    let (mut sleeps, mut blocked, mut ended) = (false, false, false);
    let (mut runnable, mut preempted) = (false, false);
    for letter in letters {
        match letter {
            b'R' | b'W' => runnable = true,
            b'+' => preempted = true,
            b'S' | b'T' | b't' | b'P' | b'I' => sleeps = true,
            b'D' => blocked = true,
            b'X' | b'Z' | b'x' => ended = true,
            b'K' | b'N' | b'|' => {}
            _ => return None,
        }
    }
    match () {
        () if letters.is_empty() => None,
        () if preempted => Some(Left::Preempted),
        () if runnable => Some(Left::Runnable),
        () if ended => Some(Left::Dead),
        () if blocked => Some(Left::Blocked),
        () if sleeps => Some(Left::Sleeping),
        () => Some(Left::Blocked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each kernel's bits have the meanings in its source. Method: the rows of the three layouts, the
    /// different ones first.
    #[test]
    fn bits_by_kernel() {
        let all = [Layout::Before4_8, Layout::From4_8, Layout::From4_14];
        let (dead, asleep) = (Left::Dead, Left::Sleeping);
        let (ready, preempted) = (Left::Runnable, Left::Preempted);
        for (bits, wanted) in [
            (0x40, [dead, dead, asleep]),
            (0x100, [ready, ready, preempted]),
            (0x800, [preempted, ready, ready]),
            (0x1000, [ready, preempted, ready]),
            (0x01, [asleep; 3]),
            (0x02, [Left::Blocked; 3]),
            (0x82, [Left::Blocked; 3]),
            (0x10, [dead; 3]),
            (0x20, [dead; 3]),
            (0x00, [ready; 3]),
            (0x80, [asleep; 3]),
        ] {
            let got = all.map(|layout| from_bits(bits, layout));
            assert_eq!(got, wanted, "{bits:#x}");
        }
        assert_eq!(from_bits(0x400, Layout::Before4_8), preempted, "before 4.2");
        assert_eq!(
            from_bits(0x101, Layout::From4_14),
            preempted,
            "S when preempted"
        );
        assert_eq!(from_bits(0x801, Layout::Before4_8), preempted);
        assert_eq!(from_bits(0x40, Layout::Unknown), asleep);
        assert_eq!(from_bits(0x1001, Layout::Unknown), preempted);
    }

    /// Goal: bits that are written for a kernel are read as they were meant. Method: each state, each layout.
    #[test]
    fn bits_are_read_back() {
        let old = [Layout::Unknown, Layout::Before4_8];
        for layout in old.into_iter().chain([Layout::From4_8, Layout::From4_14]) {
            for left in [
                Left::Runnable,
                Left::Sleeping,
                Left::Blocked,
                Left::Dead,
                Left::Preempted,
            ] {
                assert_eq!(from_bits(layout.bits(left), layout), left, "{layout:?}");
            }
        }
    }

    /// Goal: letters have the meanings of the kernel's decoder, joined ones too. Method: one of each kind.
    #[test]
    fn letters() {
        for (text, wanted) in [
            ("R", Some(Left::Runnable)),
            ("R+", Some(Left::Preempted)),
            ("S+", Some(Left::Preempted)),
            ("S", Some(Left::Sleeping)),
            ("I", Some(Left::Sleeping)),
            ("D", Some(Left::Blocked)),
            ("D|K", Some(Left::Blocked)),
            ("D|N", Some(Left::Blocked)),
            ("x", Some(Left::Dead)),
            ("Z", Some(Left::Dead)),
            ("", None),
            ("Q", None),
            ("12", None),
        ] {
            assert_eq!(from_letters(text.as_bytes()), wanted, "{text}");
        }
    }
}
