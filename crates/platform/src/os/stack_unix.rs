//! Threads and their stacks, as the C library knows them.

use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;

/// Whether this is the calling thread.
pub(super) fn is_current(thread: &JoinHandle<()>) -> bool {
    // SAFETY: neither call reads through the names: they are compared. The thread was not joined, so its name
    // is not another's.
    unsafe { libc::pthread_equal(thread.as_pthread_t() as _, libc::pthread_self()) != 0 }
}

/// The lowest address of the calling thread's stack.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn end() -> Option<usize> {
    use std::mem::MaybeUninit;
    use std::ptr;

    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the call writes to the live value passed to it and nothing else.
    let known = unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) };
    if known != 0 {
        return None;
    }
    let (mut address, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the attributes were initialized by the call above, which succeeded, and are destroyed once; the
    // other two values are live.
    let found = unsafe {
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &mut address, &mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        found
    };
    (found == 0).then_some(address as usize)
}

/// The lowest address of the calling thread's stack.
#[cfg(target_vendor = "apple")]
pub(super) fn end() -> Option<usize> {
    // SAFETY: both calls ask about a thread that lives: the caller.
    let (start, size) = unsafe {
        let thread = libc::pthread_self();
        (
            libc::pthread_get_stackaddr_np(thread) as usize,
            libc::pthread_get_stacksize_np(thread),
        )
    };
    start.checked_sub(size)
}

/// The lowest address of the calling thread's stack: this system is not asked.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(super) fn end() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the stack reaches down to its end: what is above that can be used. Method: threads with stacks
    /// of known sizes call themselves until they are near the end that they were told. (A thread may have a
    /// larger stack than it was given: the C library keeps those of threads that have ended.)
    #[test]
    fn the_stack_can_be_used_down_to_its_end() {
        /// More than a frame below takes, and than what the system keeps there.
        const MARGIN: usize = 24 << 10;
        fn deep(end: usize) -> usize {
            let frame = [0_u8; 1024];
            let here = std::hint::black_box(&raw const frame) as usize;
            if here > end + MARGIN {
                1 + std::hint::black_box(deep(end))
            } else {
                1
            }
        }
        for kib in [128, 1024] {
            let builder = std::thread::Builder::new().stack_size(kib << 10);
            let thread = builder
                .spawn(|| end().map(deep))
                .expect("it can be started");
            if let Some(frames) = thread.join().expect("it ends") {
                assert!((kib - 32) / 2 <= frames, "{frames} frames in {kib} KiB");
            }
        }
    }

    /// Goal: a thread knows itself. Method: it is handed its own handle, and the main thread looks at it,
    /// too.
    #[test]
    fn a_thread_knows_itself() {
        let (send, receive) = std::sync::mpsc::channel::<JoinHandle<()>>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let own = receive.recv().expect("it is sent");
            tell.send(is_current(&own)).expect("it is awaited");
        });
        assert!(!is_current(&thread));
        send.send(thread).expect("it is awaited");
        assert!(told.recv().expect("it is sent"));
    }
}
