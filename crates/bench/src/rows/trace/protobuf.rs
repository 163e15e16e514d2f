//! A trace as Perfetto records it, with a message for each event.
//!
//! The numbers are those of `protos/perfetto/trace/trace_packet.proto` and `…/ftrace/ftrace_event.proto`.

use std::io::{self, Write};

use super::events::{Event, Events, What};

/// The number of events in a bundle, which is one emptied buffer of a CPU.
const BUNDLE: usize = 64;
const CPUS: u32 = 8;

/// Writes at least `least` bytes. Returns the number of scheduler events.
pub(super) fn write(out: &mut dyn Write, least: u64) -> io::Result<u64> {
    let (mut bytes, mut scheduled) = (0, 0);
    let mut bundles = [const { Vec::new() }; CPUS as usize];
    let mut counts = [0; CPUS as usize];
    for event in Events::new() {
        let cpu = event.cpu as usize;
        scheduled += u64::from(matches!(
            event.what,
            What::Switch { .. } | What::Waking { .. }
        ));
        block(&mut bundles[cpu], 2, &ftrace_event(&event));
        counts[cpu] += 1;
        if counts[cpu] == BUNDLE {
            bytes += packet(out, event.cpu, &bundles[cpu])?;
            bundles[cpu].clear();
            counts[cpu] = 0;
        }
        if bytes >= least {
            break;
        }
    }
    for (cpu, bundle) in bundles
        .iter()
        .enumerate()
        .filter(|(_, bundle)| !bundle.is_empty())
    {
        packet(out, cpu as u32, bundle)?;
    }
    Ok(scheduled)
}

/// Writes a bundle of one CPU as a packet. Returns its length.
fn packet(out: &mut dyn Write, cpu: u32, events: &[u8]) -> io::Result<u64> {
    let (mut bundle, mut packet, mut framed) = (Vec::new(), Vec::new(), Vec::new());
    number(&mut bundle, 1, cpu.into());
    bundle.extend_from_slice(events);
    block(&mut packet, 1, &bundle);
    number(&mut packet, 10, 1);
    block(&mut framed, 1, &packet);
    out.write_all(&framed)?;
    Ok(framed.len() as u64)
}

fn ftrace_event(event: &Event) -> Vec<u8> {
    let Event {
        ns, cpu, current, ..
    } = *event;
    let mut message = Vec::new();
    number(&mut message, 1, ns);
    number(&mut message, 2, current.tid().into());
    let mut inner = Vec::new();
    let field = match &event.what {
        What::Switch { next, sleeps } => {
            let state = u64::from(current.tid() != 0 && *sleeps);
            block(&mut inner, 1, current.name(cpu).as_bytes());
            number(&mut inner, 2, current.tid().into());
            number(&mut inner, 3, current.priority().into());
            number(&mut inner, 4, state);
            block(&mut inner, 5, next.name(cpu).as_bytes());
            number(&mut inner, 6, next.tid().into());
            number(&mut inner, 7, next.priority().into());
            4
        }
        What::Waking { woken } => {
            block(&mut inner, 1, woken.name(cpu).as_bytes());
            number(&mut inner, 2, woken.tid().into());
            number(&mut inner, 3, woken.priority().into());
            number(&mut inner, 4, 1);
            number(&mut inner, 5, cpu.into());
            20
        }
        What::Begin { slice } => {
            let marker = format!("B|{}|part {slice}\n", current.tgid());
            block(&mut inner, 2, marker.as_bytes());
            3
        }
        What::End => {
            block(&mut inner, 2, format!("E|{}\n", current.tgid()).as_bytes());
            3
        }
    };
    block(&mut message, field, &inner);
    message
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn block(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
