//! The messages of Perfetto's format, as far as they are written: names, numbers and types are those of
//! `protos/perfetto/trace` in Perfetto's repository. Everything is optional there, as in all of protobuf's
//! second syntax.

use prost::{Message, Oneof};

use crate::supplement::Supplement;

/// A file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(super) packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub(super) ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "6")]
    pub(super) clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(super) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(super) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "45")]
    pub(super) system_info: Option<SystemInfo>,
    #[prost(uint32, optional, tag = "58")]
    pub(super) timestamp_clock_id: Option<u32>,
    #[prost(bool, optional, tag = "87")]
    pub(super) first_packet_on_sequence: Option<bool>,
    /// Our own field; Perfetto skips it.
    #[prost(message, optional, tag = "20606")]
    pub(super) supplement: Option<Supplement>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) utsname: Option<Utsname>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Utsname {
    #[prost(string, optional, tag = "1")]
    pub(super) sysname: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) release: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<SnapshotClock>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) primary_trace_clock: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SnapshotClock {
    #[prost(uint32, optional, tag = "1")]
    pub(super) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(super) counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(super) process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(super) tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    pub(super) thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    pub(super) unit_name: Option<String>,
}

/// One beginning, end, instant or value on one track.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub(super) category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "Type", optional, tag = "9")]
    pub(super) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub(super) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub(super) counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(super) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(super) terminating_flow_ids: Vec<u64>,
}

/// The type of a [`TrackEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Type {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub(super) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub(super) string_value: Option<String>,
}

/// Words that later packets of the same sequence refer to by number.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub(super) event_categories: Vec<InternedName>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub(super) debug_annotation_names: Vec<InternedName>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedName {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
}

/// Kernel events of one CPU, in the order of their times.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event: Vec<FtraceEvent>,
    /// Events of this CPU are missing before these.
    #[prost(bool, optional, tag = "3")]
    pub(super) lost_events: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(super) timestamp: Option<u64>,
    /// The thread that the event happened on; of a wake-up, the waker.
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    /// Bits: 8 in a hard interrupt, 16 in a soft one.
    #[prost(uint32, optional, tag = "5")]
    pub(super) common_flags: Option<u32>,
    #[prost(
        oneof = "Ftrace",
        tags = "4, 11, 13, 18, 19, 20, 24, 25, 36, 37, 327, 329, 330, 353, 491"
    )]
    pub(super) event: Option<Ftrace>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Ftrace {
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    #[prost(message, tag = "11")]
    CpuFrequency(CpuState),
    #[prost(message, tag = "12")]
    CpuFrequencyLimits(CpuFrequencyLimits),
    #[prost(message, tag = "13")]
    CpuIdle(CpuState),
    #[prost(message, tag = "18")]
    SchedBlockedReason(SchedBlockedReason),
    #[prost(message, tag = "19")]
    SchedCpuHotplug(SchedCpuHotplug),
    #[prost(message, tag = "20")]
    SchedWaking(SchedWaking),
    #[prost(message, tag = "24")]
    SoftirqEntry(Softirq),
    #[prost(message, tag = "25")]
    SoftirqExit(Softirq),
    #[prost(message, tag = "36")]
    IrqHandlerEntry(IrqHandlerEntry),
    #[prost(message, tag = "37")]
    IrqHandlerExit(IrqHandlerExit),
    #[prost(message, tag = "327")]
    Generic(GenericFtraceEvent),
    #[prost(message, tag = "329")]
    SysEnter(SysEnter),
    #[prost(message, tag = "330")]
    SysExit(SysExit),
    #[prost(message, tag = "353")]
    SchedPiSetprio(SchedPiSetprio),
    #[prost(message, tag = "491")]
    SchedMigrateTask(SchedMigrateTask),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedSwitch {
    #[prost(string, optional, tag = "1")]
    pub(super) prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(super) prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub(super) prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(super) next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    pub(super) next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub(super) next_prio: Option<i32>,
}

/// Of `cpu_frequency` (kHz) and of `cpu_idle` (the idle state).
#[derive(Clone, PartialEq, Message)]
pub(super) struct CpuFrequencyLimits {
    #[prost(uint32, optional, tag = "2")]
    pub(super) max_freq: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub(super) cpu_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CpuState {
    #[prost(uint32, optional, tag = "1")]
    pub(super) state: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) cpu_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedCpuHotplug {
    #[prost(int32, optional, tag = "1")]
    pub(super) affected_cpu: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(super) error: Option<i32>,
    /// 0: offline.
    #[prost(int32, optional, tag = "3")]
    pub(super) status: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedWaking {
    #[prost(string, optional, tag = "1")]
    pub(super) comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(super) success: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) target_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedPiSetprio {
    #[prost(string, optional, tag = "1")]
    pub(super) comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(super) newprio: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) oldprio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(super) pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedMigrateTask {
    #[prost(string, optional, tag = "1")]
    pub(super) comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(super) orig_cpu: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) dest_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedBlockedReason {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(uint32, optional, tag = "3")]
    pub(super) io_wait: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Softirq {
    #[prost(uint32, optional, tag = "1")]
    pub(super) vec: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct IrqHandlerEntry {
    #[prost(int32, optional, tag = "1")]
    pub(super) irq: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct IrqHandlerExit {
    #[prost(int32, optional, tag = "1")]
    pub(super) irq: Option<i32>,
    /// 1: the sleep was because of this device.
    #[prost(int32, optional, tag = "2")]
    pub(super) ret: Option<i32>,
}

/// An event of a kind without a message in the format.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GenericFtraceEvent {
    #[prost(string, optional, tag = "1")]
    pub(super) event_name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub(super) field: Vec<GenericField>,
}

/// A value of it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GenericField {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) uint_value: Option<u64>,
}

/// A system call begins.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SysEnter {
    #[prost(int64, optional, tag = "1")]
    pub(super) id: Option<i64>,
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub(super) args: Vec<u64>,
}

/// It ends.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SysExit {
    #[prost(int64, optional, tag = "1")]
    pub(super) id: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub(super) ret: Option<i64>,
}
