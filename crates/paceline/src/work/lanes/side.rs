//! Side lanes: those that have a share of the workers' time beside the normal lane, and that of later frames.
//!
//! The jobs of each wait in a queue under a lock, in the order in which they became ready; those of later
//! frames in that of their deadlines.

use platform::{Padded, Platform};

use super::Context;
use super::shares::{NO_LANE, NORMAL, SHARES, Shares};
use crate::queues::{Injector, RankedQueue};
use crate::store::{LaneFlags, Ticket};

/// The side lanes.
pub(super) struct SideLanes<P: Platform> {
    /// Those with a share, by number, from 1 on.
    queues: [Padded<Injector<P>>; SHARES],
    /// That of later frames.
    pub(super) later: RankedQueue<P>,
    shares: Shares<P>,
}

impl<P: Platform> SideLanes<P> {
    /// `percents`: the share of each lane that has one; 0 where none was set.
    pub(super) fn new(percents: [u8; SHARES]) -> SideLanes<P> {
        SideLanes {
            queues: std::array::from_fn(|_| Padded(Injector::new())),
            later: RankedQueue::new(),
            shares: Shares::new(percents),
        }
    }

    fn queue(&self, lane: LaneFlags) -> &Injector<P> {
        &self.queues[lane.side_number() - 1]
    }

    /// A job of a lane with a share. The caller announces it.
    pub(super) fn push(&self, lane: LaneFlags, job: Ticket) {
        let queue = self.queue(lane);
        if queue.is_empty() {
            self.shares.begins_again(lane.side_number());
        }
        queue.push(&[job]);
    }

    pub(super) fn is_empty_in(&self, lane: LaneFlags) -> bool {
        if lane.is_later() {
            return self.later.is_empty();
        }
        self.queue(lane).is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.later.is_empty() && self.queues.iter().all(|queue| queue.is_empty())
    }

    pub(super) fn len(&self) -> usize {
        let with_share: usize = self.queues.iter().map(|queue| queue.len()).sum();
        self.later.len() + with_share
    }

    /// Calls `look` with each ticket until it returns true. Returns whether it did.
    pub(super) fn scan(&self, look: &mut dyn FnMut(Ticket) -> bool) -> bool {
        self.later.scan(look) || self.queues.iter().any(|queue| queue.scan(look))
    }

    /// The next job of a lane that has used less of its share than the normal one.
    pub(super) fn take_due(&self, cx: &Context<'_, P>) -> Option<Ticket> {
        if !self.shares.are_used() {
            return None;
        }
        let now = cx.shared.platform.now();
        let normal = self.shares.account(NORMAL);
        let due = self.least().filter(|&(_, account)| account < normal);
        let taken = due.and_then(|(lane, account)| Some((self.take_one(lane)?, lane, account)));
        cx.own(|own| {
            self.shares.charge(&mut own.share, now);
            match taken {
                Some((_, lane, account)) => self.shares.takes(&mut own.share, lane, account),
                None => self.shares.takes(&mut own.share, NORMAL, normal),
            }
        });
        taken.map(|(ticket, ..)| ticket)
    }

    /// The thread takes something else: its time is the normal lane's from now on.
    pub(super) fn work_for_normal_lane(&self, cx: &Context<'_, P>) {
        if self.shares.are_used() {
            let now = cx.shared.platform.now();
            cx.own(|own| {
                self.shares.charge(&mut own.share, now);
                self.shares.turn_to(&mut own.share, NORMAL);
            });
        }
    }

    /// The next job of any side lane, for a thread that has found nothing in the normal one.
    pub(super) fn take_any(&self, cx: &Context<'_, P>) -> Option<Ticket> {
        let later = self.later.take_best_if(0, |_| true);
        if later.is_some() || !self.shares.are_used() {
            return later;
        }
        while let Some((lane, account)) = self.least() {
            if let Some(ticket) = self.take_one(lane) {
                cx.own(|own| self.shares.takes(&mut own.share, lane, account));
                // The normal lane had no use for its share.
                self.shares.begins_again(NORMAL);
                return Some(ticket);
            }
        }
        cx.own(|own| self.shares.turn_to(&mut own.share, NO_LANE));
        None
    }

    fn take_one(&self, lane: usize) -> Option<Ticket> {
        self.queues[lane - 1].take(1).first().copied()
    }

    /// Of the lanes with a share and with work, the one with the least account.
    fn least(&self) -> Option<(usize, u64)> {
        let with_work = (1..=SHARES).filter(|&lane| !self.queues[lane - 1].is_empty());
        let accounts = with_work.map(|lane| (lane, self.shares.account(lane)));
        accounts.min_by_key(|&(_, account)| account)
    }
}
