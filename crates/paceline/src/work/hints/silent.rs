//! No hints.

use event::Nanos;

use crate::hooks::Hooks;
use crate::store::{LaneFlags, Ticket};

#[derive(Default)]
pub(crate) struct NoHintSetting;

pub(crate) struct NoHints;

/// What a thread has said.
pub(crate) struct NothingSaid;

/// The threads that run what a wait needs: there are none.
pub(crate) enum NoneRunning {}

/// The methods of `HintSetting`, `HintLocal` and `ToldHints`, which explain them.
impl NoHintSetting {
    #[inline(always)]
    pub(crate) fn open(self, _: bool, _: usize) -> NoHints {
        NoHints
    }
}

impl NothingSaid {
    pub(crate) const fn new() -> NothingSaid {
        NothingSaid
    }

    #[inline(always)]
    pub(crate) fn begin_wait(&mut self, running: NoneRunning) {
        match running {}
    }

    #[inline(always)]
    pub(crate) fn end_wait(&mut self) {}
}

impl NoHints {
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn take_hook(&mut self, _: &mut Hooks) {}

    #[inline(always)]
    pub(crate) fn hook_is_ours(&self) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn explain(&self) -> Option<String> {
        None
    }

    #[inline(always)]
    pub(crate) fn arrive(&self, _: &mut NothingSaid, _: u32, _: u64) {}

    #[inline(always)]
    pub(crate) fn depart(&self, _: &mut NothingSaid, _: u32) {}

    #[inline(always)]
    pub(crate) fn body_begins(
        &self,
        _: &mut NothingSaid,
        _: u32,
        _: (Ticket, LaneFlags, Option<Nanos>),
    ) {
    }

    #[inline(always)]
    pub(crate) fn body_has_ended(&self, _: &mut NothingSaid, _: u32) {}

    #[inline(always)]
    pub(crate) fn running(&self, _: u32, _: &dyn Fn(Ticket) -> bool) -> Option<NoneRunning> {
        None
    }
}
