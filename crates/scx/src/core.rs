//! [`Core`]: what is used of `scx_rustland_core` and of our BPF part.
//!
//! A trait, so that messages can come from a file as well.

use event::Nanos;

/// A task became ready: `QueuedTask` without its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The thread's number in the kernel.
    pub tid: i32,
    /// Where it was queued.
    pub cpu: i32,
    /// On how many CPUs it may run.
    pub allowed: u64,
    /// Why it was queued; flags of the kernel.
    pub flags: u64,
    /// When it had a CPU last, in ns: from here …
    pub start: u64,
    /// … to here. Both 0: never.
    pub stop: u64,
    /// How long it has run since it slept last, in ns.
    pub exec_runtime: u64,
    /// 100 for nice 0.
    pub weight: u64,
    /// That of the last answer for it.
    pub vtime: u64,
    /// How often it has been queued.
    pub enq_cnt: u64,
}

/// It may run: `DispatchedTask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The thread's number in the kernel.
    pub tid: i32,
    /// Where; `None`: on any CPU.
    pub cpu: Option<i32>,
    /// Those of the message, and [`PREEMPT`].
    pub flags: u64,
    /// For how long, in ns.
    pub slice: u64,
    /// Its place among those that wait for the same CPU.
    pub vtime: u64,
    /// That of the message.
    pub enq_cnt: u64,
}

/// The kernel's `SCX_ENQ_WAKEUP`: the task slept.
pub const WAKEUP: u64 = 1;
/// The kernel's `SCX_ENQ_PREEMPT`: what runs there stops for it.
pub const PREEMPT: u64 = 1 << 32;

/// The kernel's side.
pub trait Core {
    /// The time.
    fn now(&self) -> Nanos;

    /// The oldest message.
    fn next(&mut self) -> Option<Message>;

    /// Lets a task run.
    fn answer(&mut self, answer: &Answer);

    /// Which CPUs have nothing to run, by number; and how many tasks wait for any CPU.
    fn look(&mut self, wanting: &mut Vec<bool>) -> usize;

    /// How many CPUs are online.
    fn online(&mut self) -> usize;

    /// On how many CPUs a task runs, this process apart.
    fn running(&mut self) -> usize;

    /// Whether the thread may use the CPU. Asked only for threads that may not use all.
    fn may_use(&self, tid: i32, cpu: u32) -> bool;

    /// Whether there is a thread of this number.
    fn is_there(&self, tid: i32) -> bool;
}
