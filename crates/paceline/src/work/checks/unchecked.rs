//! No checks.

use std::marker::PhantomData;

use platform::Platform;
use smallvec::SmallVec;

use super::NewcomerJob;
use crate::access::{AccessError, Conflicting, Declared};
use crate::store::{CallSite, Ticket};
use crate::work::Context;

pub(crate) struct NoChecks<P>(PhantomData<fn() -> P>);

/// The methods of `LockedChecks`, which explain them.
impl<P: Platform> NoChecks<P> {
    pub(crate) fn new(_: bool) -> Self {
        NoChecks(PhantomData)
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        false
    }

    pub(crate) fn schedule(
        &self,
        _: &Context<'_, P>,
        _: &NewcomerJob<'_>,
    ) -> Result<SmallVec<[Ticket; 4]>, AccessError> {
        Ok(SmallVec::new())
    }

    #[inline(always)]
    pub(crate) fn waited_for(&self, _: Ticket) {}

    #[inline(always)]
    pub(crate) fn scope_ended(&self, _: Ticket) {}

    #[inline(always)]
    pub(crate) fn add_late(&self, _: Ticket, _: Ticket) {}

    pub(crate) fn add_resource(&self, _: &'static str) -> Option<u64> {
        None
    }

    pub(crate) fn remove_resource(&self, _: u64) {}

    pub(crate) fn take(
        &self,
        _: Option<&Context<'_, P>>,
        _: &Declared,
        _: CallSite,
    ) -> Result<u64, AccessError> {
        Ok(0)
    }

    pub(crate) fn give_back(&self, _: u64, _: u64) {}

    pub(crate) fn unordered(
        &self,
        _: Option<&Context<'_, P>>,
        _: &Declared,
    ) -> Option<Conflicting> {
        None
    }
}
