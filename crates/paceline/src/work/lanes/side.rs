//! Side lanes: those that have a share of the workers' time beside the normal lane, and that of later frames.
//!
//! The jobs of each wait in a queue under a lock, in the order in which they became ready; those of later
//! frames in that of their deadlines.

use platform::{Padded, Platform};

use super::Context;
use super::caps::ShareCaps;
use super::shares::{NO_LANE, NORMAL, SHARES, ShareSetting, Shares};
use super::state::BackgroundPlace;
use crate::queues::{Injector, RankedQueue};
use crate::store::{LaneFlags, Ticket};
use crate::work::thread_slot::ThreadKind;

/// The side lanes.
pub(super) struct SideLanes<P: Platform> {
    /// Those with a share, by number, from 1 on.
    queues: [Padded<Injector<P>>; SHARES],
    /// That of later frames.
    pub(super) later: RankedQueue<P>,
    shares: Shares<P>,
    caps: ShareCaps<P>,
}

impl<P: Platform> SideLanes<P> {
    pub(super) fn new(settings: [ShareSetting; SHARES]) -> SideLanes<P> {
        SideLanes {
            queues: std::array::from_fn(|_| Padded(Injector::new())),
            later: RankedQueue::new(),
            shares: Shares::new(settings),
            caps: ShareCaps::new(settings.map(|setting| setting.most)),
        }
    }

    fn queue(&self, lane: LaneFlags) -> &Injector<P> {
        &self.queues[lane.side_number() - 1]
    }

    /// A job of a lane with a share: queues and announces it.
    pub(super) fn push(&self, cx: &Context<'_, P>, lane: LaneFlags, job: Ticket) {
        let (queue, number) = (self.queue(lane), lane.side_number());
        if queue.is_empty() {
            self.shares.begins_again(number);
        }
        cx.shared.push_to(queue, &[job]);
        if self.caps.is_limited(number) {
            cx.announce_in_lane(job, || self.has_work_in(number));
        } else {
            cx.announce_one(job);
        }
    }

    /// Whether there is a job in this lane that a further worker may take.
    fn has_work_in(&self, lane: usize) -> bool {
        !self.queues[lane - 1].is_empty() && self.caps.has_place(lane)
    }

    /// The calling thread leaves its place in this lane, if it is one.
    fn announce_place(&self, cx: &Context<'_, P>, lane: usize) {
        if lane != NO_LANE {
            cx.own(|own| own.place = BackgroundPlace::None);
            self.leave(cx, lane);
        }
    }

    fn leave(&self, cx: &Context<'_, P>, lane: usize) {
        self.caps.leave(lane);
        cx.announce_in_lane(Ticket::NONE, || self.has_work_in(lane));
    }

    /// The thread, which has a place in a limited lane, rests in the middle of a job, or goes on with it.
    pub(super) fn rests(&self, cx: &Context<'_, P>, rests: bool) {
        if rests {
            let lane = cx.own(|own| own.share.vacates());
            self.announce_place(cx, lane);
        } else if let Some(lane) = cx.own(|own| own.share.goes_on()) {
            cx.own(|own| own.place = BackgroundPlace::InShare);
            self.caps.take_back(lane);
        }
    }

    pub(super) fn is_empty_in(&self, lane: LaneFlags) -> bool {
        if lane.is_later() {
            return self.later.is_empty();
        }
        self.queue(lane).is_empty()
    }

    /// Whether there is a job that a further worker may take.
    pub(super) fn has_work(&self) -> bool {
        !self.later.is_empty() || (1..=SHARES).any(|lane| self.has_work_in(lane))
    }

    pub(super) fn len(&self) -> usize {
        let with_share: usize = self.queues.iter().map(|queue| queue.len()).sum();
        self.later.len() + with_share
    }

    /// Calls `look` with each ticket until it returns true. Returns whether it did.
    pub(super) fn scan(&self, look: &mut dyn FnMut(Ticket) -> bool) -> bool {
        self.later.scan(look) || self.queues.iter().any(|queue| queue.scan(look))
    }

    /// The next job of a lane that has used less of its share than the normal one. `others`: there are jobs
    /// with a rank.
    pub(super) fn take_due(&self, cx: &Context<'_, P>, others: bool) -> Option<Ticket> {
        if !self.shares.are_used() {
            return None;
        }
        let now = cx.shared.platform.now();
        let normal = self.shares.account(NORMAL);
        let due = self.least(cx).filter(|&(_, account)| account < normal);
        cx.own(|own| self.shares.charge(&mut own.share, now));
        let taken = due.and_then(|(lane, account)| self.take_one(cx, lane, account));
        let taken = taken.or_else(|| self.goes_on_alone(cx, others));
        if taken.is_none() {
            let left = cx.own(|own| self.shares.takes(&mut own.share, NORMAL, normal));
            self.announce_place(cx, left);
        }
        taken
    }

    /// For a thread that has a place in a lane that is not due: if it sees no normal job it stays with the
    /// side lanes. If it left its place to look for one, it would wake another worker at each job.
    fn goes_on_alone(&self, cx: &Context<'_, P>, others: bool) -> Option<Ticket> {
        let has_place = cx.own(|own| own.share.has_place());
        if !has_place || others || !self.later.is_empty() || cx.sees_normal_job() {
            return None;
        }
        self.take_any(cx)
    }

    /// The thread takes something else: its time is the normal lane's from now on.
    pub(super) fn work_for_normal_lane(&self, cx: &Context<'_, P>) {
        if self.shares.are_used() {
            let now = cx.shared.platform.now();
            let left = cx.own(|own| {
                self.shares.charge(&mut own.share, now);
                self.shares.turn_to(&mut own.share, NORMAL)
            });
            self.announce_place(cx, left);
        }
    }

    /// The next job of any side lane, for a thread that has found nothing in the normal one.
    pub(super) fn take_any(&self, cx: &Context<'_, P>) -> Option<Ticket> {
        let later = self.later.take_best_if(0, |_| true);
        if later.is_some() || !self.shares.are_used() {
            return later;
        }
        while let Some((lane, account)) = self.least(cx) {
            if let Some(ticket) = self.take_one(cx, lane, account) {
                // The normal lane had no use for its share.
                self.shares.begins_again(NORMAL);
                return Some(ticket);
            }
        }
        let left = cx.own(|own| self.shares.turn_to(&mut own.share, NO_LANE));
        self.announce_place(cx, left);
        None
    }

    /// Takes a job of this lane, which has this account. A worker takes a place in it first, if its places
    /// are limited.
    fn take_one(&self, cx: &Context<'_, P>, lane: usize, account: u64) -> Option<Ticket> {
        let is_limited = self.caps.is_limited(lane) && cx.thread.kind != ThreadKind::Guest;
        let has_one = cx.own(|own| own.share.has_place_in(lane));
        let takes = is_limited && !has_one;
        if takes && !self.caps.take(lane) {
            return None;
        }
        let ticket = self.queues[lane - 1].take(1).first().copied();
        if ticket.is_some() {
            let left = cx.own(|own| self.shares.takes(&mut own.share, lane, account));
            self.announce_place(cx, left);
            if takes {
                cx.own(|own| {
                    own.share.takes_place();
                    own.place = BackgroundPlace::InShare;
                });
            }
        } else if takes {
            self.leave(cx, lane);
        }
        ticket
    }

    /// Of the lanes with a share, with work, and with a place for this thread, the one with the least
    /// account.
    fn least(&self, cx: &Context<'_, P>) -> Option<(usize, u64)> {
        let is_guest = cx.thread.kind == ThreadKind::Guest;
        let share = cx.own(|own| own.share);
        let may_take = |&lane: &usize| {
            let has_place = self.caps.has_place(lane) || is_guest || share.has_place_in(lane);
            has_place && !self.queues[lane - 1].is_empty()
        };
        let with_work = (1..=SHARES).filter(may_take);
        let accounts = with_work.map(|lane| (lane, self.shares.account(lane)));
        accounts.min_by_key(|&(_, account)| account)
    }
}
