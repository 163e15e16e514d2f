//! Tokens: work that the program calls off.

use paceline::CancelToken;

use crate::described::{must_be, or_nothing, put};
use crate::status::{Answer, Refusal, call, pl_status};
use crate::system::{fresh_number, named, pl_system};

/// The number of a token. Nothing else of the process has it, ever, but jobs. Zero is none.
pub type pl_token = u64;

impl pl_system {
    /// The token with this number; none for zero.
    #[inline]
    pub(crate) fn token(&'static self, token: pl_token) -> Answer<Option<CancelToken>> {
        self.js()?;
        if token == 0 {
            return Ok(None);
        }
        self.made_token(token).map(Some)
    }

    fn made_token(&'static self, token: pl_token) -> Answer<CancelToken> {
        let known = self.lock(&self.tokens)?.get(&token).cloned();
        known.ok_or_else(|| {
            Refusal::new(
                pl_status::PL_UNKNOWN,
                format!("{token} is not a token of this job system, or was destroyed"),
            )
        })
    }

    /// The same for a call that needs one.
    fn needed_token(&'static self, token: pl_token) -> Answer<CancelToken> {
        let none = || Refusal::invalid("0 is no token: make one with pl_token_create");
        self.token(token)?.ok_or_else(none)
    }
}

/// Makes a token, with which jobs can be called off (`token` in their descriptions). `parent` is 0, or a
/// token with which this one is cancelled, too. Destroy it with pl_token_destroy. Takes a lock and allocates.
///
/// # Safety
/// `system` was made by pl_system_create. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_token_create(
    system: *mut pl_system,
    parent: pl_token,
    out: *mut pl_token,
) -> pl_status {
    let status = call(|| {
        must_be(out, "out")?;
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let parent = system.token(parent)?;
        let made = parent.map_or_else(CancelToken::new, |parent| parent.child());
        let number = fresh_number();
        system.lock(&system.tokens)?.insert(number, made);
        // SAFETY: the caller's promise.
        unsafe { put(out, number) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
}

/// Cancels a token. Its jobs that have not begun do not begin: waits for them say PL_CANCELLED, once the jobs
/// and events that they come after are over. Those that run may ask pl_token_is_cancelled. It cannot be taken
/// back; a second call does nothing. Takes a lock.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_token_cancel(system: *mut pl_system, token: pl_token) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system.needed_token(token)?.cancel();
        Ok(pl_status::PL_OK)
    })
}

/// Whether a token was cancelled, or one that it was made from: 1 or 0 into `*out`. Takes a lock.
///
/// # Safety
/// `system` was made by pl_system_create. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_token_is_cancelled(
    system: *mut pl_system,
    token: pl_token,
    out: *mut i32,
) -> pl_status {
    call(|| {
        must_be(out, "out")?;
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let is_cancelled = system.needed_token(token)?.is_cancelled();
        // SAFETY: the caller's promise.
        unsafe { put(out, i32::from(is_cancelled)) };
        Ok(pl_status::PL_OK)
    })
}

/// Forgets a token. Nothing is called off by that; jobs that have it keep it. PL_UNKNOWN if there is none.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_token_destroy(system: *mut pl_system, token: pl_token) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system.needed_token(token)?;
        system.lock(&system.tokens)?.remove(&token);
        Ok(pl_status::PL_OK)
    })
}
