//! A thread on the path that ran: for how much longer than on the largest CPU at its highest frequency.

use event::{Cpu, Nanos};

use super::instead::shares;
use super::speed::{frequency, limit};
use super::walk::{PathFrame, Walk};
use super::{CauseKind, InversionKind, Segment, Who};
use crate::timeline::Lane;

impl Walk<'_, '_> {
    pub(super) fn running(&mut self, thread: u32, frame: PathFrame, cpu: Cpu, low: Nanos) {
        let Some(lane) = self.ground.timeline.lane(cpu) else {
            return self.emit(Some(thread), CauseKind::Running, low, frame.confidence);
        };
        let earlier = lane
            .interrupts
            .partition_point(|(begin, _)| *begin < self.time);
        let earlier = earlier.checked_sub(1).map(|at| lane.interrupts[at]);
        let mut low = low;
        match earlier {
            Some((begin, end)) if end >= self.time => {
                let kind = CauseKind::Interrupted;
                return self.emit(Some(thread), kind, low.max(begin), frame.confidence);
            }
            Some((_, end)) => low = low.max(end),
            None => {}
        }
        let (khz, since) = frequency(lane, self.time);
        let (limit, limit_since) = limit(lane, self.time);
        low = low.max(since).max(limit_since);
        let (job, kind, since) = self.body(thread, frame);
        low = low.max(since);
        if kind == CauseKind::Running {
            let speeds = &self.ground.speeds;
            let lost = speeds.lost(lane, khz, limit, self.time - low);
            if lost.small_core > Nanos::ZERO {
                self.slow(thread, frame, lane, self.time - lost.small_core, job);
            }
            let by_frequency = [
                (
                    lost.limit,
                    CauseKind::FrequencyLimit,
                    InversionKind::FrequencyLimit,
                ),
                (
                    lost.low_frequency,
                    CauseKind::LowFrequency,
                    InversionKind::LowFrequency,
                ),
            ];
            for (lost, kind, inversion) in by_frequency {
                let confidence = frame.confidence.max(self.ground.speeds.confidence);
                let before = self.segments.len();
                self.emit_job(Some(thread), kind, self.time - lost, confidence, job);
                if let Some(new) = self.segments.get_mut(before) {
                    new.inversion = Some(inversion);
                }
            }
        }
        self.emit_job(Some(thread), kind, low, frame.confidence, job);
    }

    /// The time lost by a small CPU. It is spread over the whole run; here it is put at its end.
    fn slow(&mut self, thread: u32, frame: PathFrame, lane: &Lane, from: Nanos, job: Option<u64>) {
        let ground = self.ground;
        let (allowed, told) = self.allowed(thread, self.time);
        let speeds = &ground.speeds;
        let lanes = &ground.timeline.lanes;
        let larger = |at: &&u32| {
            let other = &lanes[**at as usize];
            speeds.capacity(other) > speeds.capacity(lane) && other.is_online(self.time - Nanos(1))
        };
        let larger: Vec<u32> = allowed.iter().filter(larger).copied().collect();
        // A large CPU at a low frequency is no better place.
        let own = speeds.now(lane, self.time);
        let mut faster = larger.clone();
        faster.retain(|at| speeds.now(&lanes[*at as usize], self.time) > own);
        let ran_on = |some: &[u32]| {
            let online = vec![true; some.len()];
            shares(ground.timeline, thread, some, &online, (from, self.time))
        };
        let mut confidence = frame.confidence.max(ground.speeds.confidence);
        let mut inversion = None;
        let mut by = Vec::new();
        if !larger.is_empty() {
            confidence = confidence.max(told);
            by = ran_on(&larger);
        }
        if !faster.is_empty() {
            let off_path = |who: Who| match who {
                Who::Task(task) => !self.on_path(task),
                who => who == Who::Idle,
            };
            if ran_on(&faster).iter().any(|share| off_path(share.who)) {
                inversion = Some(InversionKind::Placement);
            }
        }
        self.segments.push(Segment {
            begin: from,
            end: self.time,
            thread: Some(ground.timeline.task(thread)),
            kind: CauseKind::SmallCore,
            by,
            beside_idle: false,
            exit: None,
            function: None,
            job,
            confidence,
            inversion,
        });
        self.time = from;
    }
}
