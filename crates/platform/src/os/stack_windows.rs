//! Threads and their stacks, as Windows knows them.

use windows_sys::Win32::System::Threading::GetCurrentThreadStackLimits;

pub(super) use super::stack_none::is_current;

/// The lowest address of the calling thread's stack.
pub(super) fn end() -> Option<usize> {
    let (mut low, mut high) = (0, 0);
    // SAFETY: the call writes two numbers.
    unsafe { GetCurrentThreadStackLimits(&mut low, &mut high) };
    (low != 0).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the end is below what runs, by no more than the stack's size. Method: a thread of a known size.
    #[test]
    fn the_stack_ends_below() {
        const SIZE: usize = 1 << 20;
        let thread = std::thread::Builder::new().stack_size(SIZE);
        let thread = thread.spawn(|| {
            let local = 0_u8;
            (&raw const local as usize).checked_sub(end().expect("Windows tells"))
        });
        let room = thread
            .expect("it starts")
            .join()
            .expect("it does not panic");
        assert!(room.is_some_and(|room| room <= SIZE), "{room:?}");
    }
}
