//! What a thread is called by when a job becomes ready that only it can run.

use std::ffi::c_void;
use std::sync::Weak;

use crate::described::Carried;

/// A function of the program's, called with its data.
type Called = Option<unsafe extern "C-unwind" fn(data: *mut c_void)>;

/// The function and the data that a thread is called by. Its job system owns it.
pub(crate) struct Hook {
    pub(crate) function: Called,
    pub(crate) data: Carried,
    pub(crate) release: Called,
}

impl Hook {
    fn call(&self) {
        if let Some(function) = self.function {
            // SAFETY: what pl_pin_thread demands of the function and its data.
            unsafe { function(self.data.0) };
        }
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as above; it is called once.
            unsafe { release(self.data.0) };
        }
    }
}

/// What calls a hook that has not been released.
pub(crate) fn calls(hook: Weak<Hook>) -> impl Fn() {
    move || {
        if let Some(hook) = hook.upgrade() {
            hook.call();
        }
    }
}
