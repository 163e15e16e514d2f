//! The supplement of a recording: see `supplement.rs` of the crate.

use std::io;

use event::{Event, KernelEvent, KernelEventKind};
use prost::Message;

use super::numbers::FileNumbers;
use super::packets::Packets;
use super::tracks::WrittenTracks;
use crate::supplement::{
    BATCH, CpuEntry, JobBatch, LONGEST, Lost, SlotEntry, Supplement, SupplementHead, ThreadEntry,
    labels,
};
use crate::{Loss, Recording, Wakers};

/// More CPUs than any machine has: longer lists are not written.
const MOST_CPUS: usize = 1 << 14;

/// More threads of a recorded program than this are not written: the message would be too long.
const MOST_RECORDED: usize = 1 << 16;

/// The supplement in the first packet of a file.
pub(super) fn head(recording: &Recording, kernel: &[KernelEvent]) -> Supplement {
    // Our reader counts these itself.
    let is_gap = |event: &&KernelEvent| matches!(event.what, KernelEventKind::Lost { .. });
    let gaps = kernel.iter().filter(is_gap).count() as u64;
    let losses = recording.losses.iter().map(|(loss, count)| match loss {
        Loss::Gaps => (loss, count.saturating_sub(gaps)),
        _ => (loss, count),
    });
    let losses = losses
        .filter(|(_, count)| *count > 0)
        .map(|(loss, count)| Lost {
            word: loss.word().to_owned(),
            count,
        });
    let recorded = recording.origin.recorded.iter();
    Supplement {
        head: Some(SupplementHead {
            pictures: Vec::new(),
            clock: Some(recording.origin.clock.name().to_owned()),
            wakers: Some(match recording.origin.wakers {
                Wakers::Unknown => 0,
                Wakers::Queued => 1,
                Wakers::Decided => 2,
            }),
            is_unmarked: recording.origin.is_unmarked,
            recorder: recording.origin.recorder,
            recorded: recorded.take(MOST_RECORDED).copied().collect(),
        }),
        losses: losses.collect(),
        ..Supplement::default()
    }
}

/// Writes the facts about threads, CPUs, thread slots and labels, and the job system's events, which are in
/// the order of their times.
pub(super) fn write(
    recording: &Recording,
    events: &[Event],
    tracks: &WrittenTracks<'_>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let mut part = Supplement::default();
    for task in FileNumbers::tasks(recording) {
        part.threads.push(thread(tracks, task));
        if part.threads.len().is_multiple_of(64) && part.encoded_len() > LONGEST / 4 {
            packets.supplement(std::mem::take(&mut part))?;
        }
    }
    let cpus = recording.cpus.iter().take(MOST_CPUS);
    part.cpus = cpus
        .map(|facts| CpuEntry {
            cpu: facts.cpu.0,
            capacity: facts.capacity,
            max_khz: facts.max_khz,
        })
        .collect();
    let slots: Vec<SlotEntry> = recording
        .slots
        .iter()
        .map(|(slot, task)| SlotEntry {
            slot: *slot,
            tid: tracks.tid(*task) as u32,
        })
        .collect();
    if part != Supplement::default() {
        packets.supplement(part)?;
    }
    for slots in slots.chunks(LONGEST / 64) {
        packets.supplement(Supplement {
            slots: slots.to_vec(),
            ..Supplement::default()
        })?;
    }
    for labels in labels(&recording.labels) {
        packets.supplement(Supplement {
            labels,
            ..Supplement::default()
        })?;
    }
    for events in events.chunks(BATCH) {
        packets.supplement(Supplement {
            jobs: Some(JobBatch::of(events)),
            ..Supplement::default()
        })?;
    }
    Ok(())
}

fn thread(tracks: &WrittenTracks<'_>, task: event::Task) -> ThreadEntry {
    let thread = tracks.people.thread(task);
    let allowed = thread.and_then(|thread| thread.allowed.as_ref());
    let allowed = allowed.filter(|allowed| allowed.len() <= MOST_CPUS);
    ThreadEntry {
        tid: tracks.tid(task) as u32,
        priority: tracks.priority(task),
        has_allowed: allowed.is_some(),
        allowed: allowed.into_iter().flatten().map(|cpu| cpu.0).collect(),
        task: task.0,
        is_alone: tracks.people.process(task).is_none(),
    }
}
