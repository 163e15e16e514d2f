//! The facts of a file about the machine and the programs on it.

use std::collections::BTreeMap;

use super::bundles::Bundles;
use super::tracks::NamedThread;
use super::wire::{Fields, Packed, Row, Value};

/// The facts so far.
#[derive(Default)]
pub(super) struct FileFacts {
    /// The kernel's release.
    pub(super) release: Option<String>,
    pub(super) people: Vec<NamedThread>,
    /// Capacity and highest frequency by CPU.
    pub(super) cpus: BTreeMap<u32, (Option<u32>, Option<u32>)>,
}

impl FileFacts {
    /// `SystemInfo`: the kernel and the machine.
    pub(super) fn system(&mut self, message: &[u8], bundles: &mut Bundles) -> Option<()> {
        let name = Row::of(message)?.bytes(1);
        let name = Row::of(name)?;
        if name.has(3) {
            self.release = Some(String::from_utf8_lossy(name.bytes(3)).into_owned());
        }
        if name.has(4) {
            bundles.machine(name.bytes(4));
        }
        Some(())
    }

    /// `CpuInfo`: one message for each CPU, in the order of their numbers.
    pub(super) fn cpus(&mut self, message: &[u8]) -> Option<()> {
        let mut fields = Fields::of(message);
        let cpus = (&mut fields).filter(|(field, _)| *field == 1);
        for (number, (_, cpu)) in (0..).zip(cpus) {
            let mut max = None;
            let mut capacity = None;
            let mut fields = Fields::of(cpu.bytes());
            for (field, value) in &mut fields {
                match (field, value) {
                    (2, Value::Number(khz)) => max = max.max(u32::try_from(khz).ok()),
                    (2, Value::Bytes(packed)) => {
                        let most = Packed(packed)
                            .filter_map(|khz| u32::try_from(khz).ok())
                            .max();
                        max = max.max(most);
                    }
                    (3, Value::Number(number)) => capacity = u32::try_from(number).ok(),
                    _ => {}
                }
            }
            if fields.is_broken() {
                return None;
            }
            self.cpus.insert(number, (capacity, max));
        }
        (!fields.is_broken()).then_some(())
    }

    /// `ProcessTree`: names of processes and threads.
    pub(super) fn tree(&mut self, message: &[u8]) -> Option<()> {
        let mut fields = Fields::of(message);
        for (field, value) in &mut fields {
            match (field, value) {
                (1, Value::Bytes(process)) => self.process(process)?,
                (2, Value::Bytes(thread)) => {
                    let row = Row::of(thread)?;
                    self.people.push(NamedThread {
                        pid: row.number(3) as u32,
                        tid: row.number(1) as u32,
                        thread: row.bytes(2).to_vec(),
                        process: Vec::new(),
                    });
                }
                _ => {}
            }
        }
        (!fields.is_broken()).then_some(())
    }

    fn process(&mut self, message: &[u8]) -> Option<()> {
        let pid = Row::of(message)?.number(1) as u32;
        let mut words = Fields::of(message).filter(|(field, _)| *field == 3);
        let command = words.next().map_or(&[][..], |(_, word)| word.bytes());
        let end = command
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(command.len());
        // Its first thread has its number.
        self.people.push(NamedThread {
            pid,
            tid: pid,
            thread: Vec::new(),
            process: command[..end].to_vec(),
        });
        Some(())
    }

    /// `ThreadDescriptor`: process and thread.
    pub(super) fn thread(&mut self, message: &[u8]) -> Option<(u32, u32)> {
        let row = Row::of(message)?;
        let (pid, tid) = (row.number(1) as u32, row.number(2) as u32);
        self.people.push(NamedThread {
            pid,
            tid,
            thread: row.bytes(5).to_vec(),
            process: Vec::new(),
        });
        Some((pid, tid))
    }
}
