//! What few programs have beside the three lanes: jobs with a rank, side lanes, and frames that overlap.
//!
//! It is made when the first of these comes up, and its code is reached through a table. A program that has
//! none of them carries none of it.

use event::Nanos;
use platform::{Lane, Platform};

use super::in_flight::FramesInFlight;
use super::side::SideLanes;
use crate::queues::{Fenced, Queue, RankedQueue, key_of_deadline};
use crate::store::{LaneFlags, Rank, Ticket};
use crate::work::context::Context;
use crate::work::shared::{ExtraLanes, Shared};
use crate::work::thread_slot::ThreadKind;

/// What is behind the table.
struct Extra<P: Platform> {
    /// Jobs of frames that are ahead, and behind them those with a rank.
    ranked: RankedQueue<P>,
    side: SideLanes<P>,
    frames: FramesInFlight<P>,
}

impl<P: Platform> Extra<P> {
    #[inline]
    fn take_ranked(&self, cx: &Context<'_, P>) -> Option<Ticket> {
        if self.ranked.is_empty() {
            return None;
        }
        self.ranked
            .take_best_if(cx.rank_of_newest().key(), |_| true)
    }

    /// Whether a job of a frame that is ahead is ready.
    #[inline]
    fn has_ahead(&self) -> bool {
        self.ranked.best() >= key_of_deadline(Nanos::MAX)
    }

    /// A job of a frame that is ahead.
    #[inline]
    fn take_ahead(&self, cx: &Context<'_, P>) -> Option<Ticket> {
        if !self.has_ahead() {
            return None;
        }
        let ticket = self
            .ranked
            .take_best_if(key_of_deadline(Nanos::MAX) - 1, |_| true)?;
        self.side.work_for_normal_lane(cx);
        Some(ticket)
    }
}

impl<P: Platform> ExtraLanes<P> for Extra<P> {
    fn best(&self) -> Rank {
        Rank::of_key(self.ranked.best())
    }

    fn has_work(&self) -> bool {
        !self.ranked.is_empty() || self.side.has_work()
    }

    fn len(&self) -> usize {
        self.ranked.len()
    }

    fn push(&self, job: Ticket, rank: Rank) {
        self.ranked.push(job, rank.key());
    }

    fn next(&self, cx: &Context<'_, P>) -> Option<Ticket> {
        let ticket = self
            .take_ahead(cx)
            .or_else(|| self.side.take_due(cx, !self.ranked.is_empty()))
            .or_else(|| self.take_ranked(cx))?;
        // Guests announce all tickets they make.
        if cx.thread.kind != ThreadKind::Guest {
            cx.announce_what_is_left();
        }
        Some(ticket)
    }

    fn next_if(
        &self,
        cx: &Context<'_, P>,
        wanted: &mut dyn FnMut(Ticket) -> bool,
    ) -> Option<Ticket> {
        loop {
            if self.ranked.is_empty() {
                return None;
            }
            // An invitation may outlive its loop, and would be in the way of what comes after it.
            let mut is_stale = false;
            let taken = self
                .ranked
                .take_best_if(cx.rank_of_newest().key(), |ticket| {
                    is_stale = cx.shared.slot(ticket).is_over(ticket);
                    is_stale || wanted(ticket)
                })?;
            if !is_stale {
                return Some(taken);
            }
        }
    }

    fn enqueue_by_rank(&self, cx: &Context<'_, P>, job: Ticket, queue: Queue) {
        cx.enqueue_by_rank(job, queue);
    }

    fn queue_kept(&self, cx: &Context<'_, P>) {
        if cx.rank_of_newest() != Rank::NONE {
            cx.queue_newest();
        }
    }

    fn invite(&self, cx: &Context<'_, P>, job: Ticket, rank: Rank) {
        self.ranked.push(job, rank.key());
        cx.announce_ranked(1, job);
    }

    fn take(&self, wanted: &mut dyn FnMut(Ticket) -> bool) -> Option<Ticket> {
        self.ranked.take_first_of(wanted)
    }

    fn scan(&self, look: &mut dyn FnMut(Ticket) -> bool) -> bool {
        self.ranked.scan(look)
    }

    fn next_behind(&self, cx: &Context<'_, P>) -> Option<Ticket> {
        self.side.take_any(cx)
    }

    fn enqueue(&self, cx: &Context<'_, P>, lane: LaneFlags, job: Ticket, queue: Queue) {
        let Some(tag) = lane.tag() else {
            return self.side.push(cx, lane, job);
        };
        let deadline = self.frames.deadline_in(tag);
        let key = key_of_deadline(deadline);
        if lane.is_urgent() {
            self.ranked.push(job, key);
        } else if deadline <= self.frames.due() {
            return cx.enqueue(job, queue); // The caller announces it.
        } else {
            self.side.later.push(job, key);
        }
        cx.announce_one(job);
    }

    fn is_empty_in(&self, lane: LaneFlags) -> bool {
        if lane.is_urgent() {
            return !self.has_ahead();
        }
        self.side.is_empty_in(lane)
    }

    fn scan_beside(&self, look: &mut dyn FnMut(Ticket) -> bool) -> bool {
        self.side.scan(look)
    }

    fn len_beside(&self) -> usize {
        self.side.len()
    }

    fn work_for_normal_lane(&self, cx: &Context<'_, P>) {
        self.side.work_for_normal_lane(cx);
    }

    fn rests(&self, cx: &Context<'_, P>, rests: bool) {
        self.side.rests(cx, rests);
    }

    fn frame_begins(&self, number: u64, deadline: Nanos) {
        self.frames.begin(number, deadline);
    }

    fn frame_ends(&self, cx: Option<&Context<'_, P>>, number: u64) {
        self.frames.end(number);
        if let Some(cx) = cx {
            let above = key_of_deadline(self.frames.due()) - 1;
            let due = || self.side.later.take_best_if(above, |_| true);
            cx.queue_as_normal(std::iter::from_fn(due).collect());
        }
    }

    fn lane_of_frame(&self, frame: u64) -> LaneFlags {
        self.frames.lane_of(frame)
    }

    fn deadline_of(&self, lane: LaneFlags) -> Option<Nanos> {
        self.frames.deadline_of(lane)
    }
}

impl<P: Platform> Shared<P> {
    /// The extra lanes, if there ever were any.
    #[inline]
    pub(crate) fn extra_lanes(&self) -> Option<&dyn ExtraLanes<P>> {
        self.extra.get().map(|extra| &**extra)
    }

    /// The same; makes them if need be.
    pub(crate) fn make_extra_lanes(&self) -> &dyn ExtraLanes<P> {
        if self.extra.get().is_none() {
            let extra = Extra {
                ranked: RankedQueue::new(),
                side: SideLanes::new(self.lanes.shares),
                frames: FramesInFlight::new(),
            };
            // Another thread may have been faster.
            _ = self.extra.set(Box::new(extra));
        }
        match self.extra.get() {
            Some(extra) => &**extra,
            None => unreachable!("they were just made"),
        }
    }

    /// Jobs of this lane are going to be made.
    pub(crate) fn note_lane(&self, lane: Lane) {
        if LaneFlags::from(lane).side_number() == 0 {
            return self.lanes.note_use(lane);
        }
        self.make_extra_lanes();
        self.lanes.note_use(Lane::Background); // Waits raise jobs out of it.
        self.note_extra();
    }

    /// Jobs with a rank, or of a lane with a share, are going to be made.
    fn note_extra(&self) {
        self.note_some_before_own();
        self.lanes.note_extra();
    }

    /// A frame with this number begins. Not in a fork's child, where another thread may hold the lock for
    /// ever: nor are the other calls about frames.
    pub(crate) fn frame_begins(&self, number: u64, deadline: Nanos) {
        if self.is_forked() {
            return;
        }
        self.make_extra_lanes().frame_begins(number, deadline);
    }

    /// It ends.
    pub(crate) fn frame_ends(&self, cx: Option<&Context<'_, P>>, number: u64) {
        if self.is_forked() {
            return;
        }
        self.make_extra_lanes().frame_ends(cx, number);
    }

    /// The lane of the normal jobs of a frame, one of which is going to be made.
    pub(crate) fn lane_of_frame(&self, frame: u64) -> LaneFlags {
        if self.is_forked() {
            return LaneFlags::NORMAL;
        }
        let lane = self.make_extra_lanes().lane_of_frame(frame);
        if lane.is_later() {
            self.lanes.note_use(Lane::Background); // Waits raise jobs out of it.
        } else if lane != LaneFlags::NORMAL {
            self.lanes.note_use(Lane::Frame);
        }
        lane
    }
}

impl<P: Platform> Context<'_, P> {
    /// The extra lanes, if there ever were any.
    #[inline]
    pub(crate) fn extra_lanes(&self) -> Option<&dyn ExtraLanes<P>> {
        self.shared.extra_lanes()
    }

    /// The deadline of a job with these flags: its frame's, or if it has none that of the frames' jobs in
    /// whose lane a wait has raised it.
    pub(crate) fn deadline_of(&self, flags: u32) -> Option<Nanos> {
        let extra = self.extra_lanes()?;
        let own = extra.deadline_of(LaneFlags::made_in(flags));
        own.or_else(|| extra.deadline_of(LaneFlags::of(flags)))
    }

    /// Jobs with a rank are going to be made.
    pub(crate) fn note_ranks(&self) {
        self.shared.make_extra_lanes();
        self.shared.note_extra();
    }

    /// A job of a side lane is ready: queues and announces it.
    pub(crate) fn enqueue_beside(&self, lane: LaneFlags, job: Ticket, queue: Queue) {
        match self.extra_lanes() {
            Some(extra) => extra.enqueue(self, lane, job, queue),
            None => unreachable!("they were made before the job"),
        }
    }

    /// Jobs that were of later frames are not any more.
    fn queue_as_normal(&self, jobs: Vec<Ticket>) {
        if jobs.is_empty() {
            return;
        }
        self.shared.push_to(&self.shared.injector, &jobs);
        if let Some(now) = self.shared.idle.after_publish::<Fenced>() {
            self.notify_idle(now, jobs.len() as u32, &|| self.alert_all());
        }
    }
}
