//! `/proc/cpuinfo`: which CPUs there are and what they call themselves.

use std::collections::BTreeMap;

use crate::CpuSet;
use crate::topology::cpuset::CPUS_MAX;

/// Which core an Arm CPU is: its maker's number and that of the part. Its variant and revision are left out,
/// since equal cores differ in them (as in Snapdragon X Elite).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Core {
    implementer: u8,
    part: u16,
}

impl Core {
    /// From the register MIDR_EL1 (Arm ARM, D19.2): bits 31 to 24 and 15 to 4.
    pub(super) fn from_register(midr: u64) -> Core {
        Core {
            implementer: (midr >> 24) as u8,
            part: (midr >> 4) as u16 & 0xfff,
        }
    }

    /// What it can do at a frequency, compared with other cores: in-order cores do about half of what the
    /// others do (device trees' `capacity-dmips-mhz` say 485 of 1024 for an A53 beside an A72, 530 for an A55
    /// beside an A76).
    pub(super) fn weight(self) -> u64 {
        if self.is_in_order() { 5 } else { 10 }
    }

    fn is_in_order(self) -> bool {
        const ARM: u8 = 0x41;
        const QUALCOMM: u8 = 0x51;
        match self.implementer {
            // A5, A7, A32, A53, A35, A55, A65, A34, A510, A520, A320.
            ARM => matches!(
                self.part,
                0xc05
                    | 0xc07
                    | 0xd01
                    | 0xd02
                    | 0xd03
                    | 0xd04
                    | 0xd05
                    | 0xd46
                    | 0xd80
                    | 0xd88
                    | 0xd8f
            ),
            // Kryo Silver, made of A53 and A55.
            QUALCOMM => matches!(self.part, 0x801 | 0x803 | 0x805),
            _ => false,
        }
    }
}

/// What the file says.
#[derive(Default, Debug)]
pub(super) struct CpuInfo {
    /// CPUs with a `processor` line.
    pub(super) cpus: CpuSet,
    /// Arm cores, where the CPU's own block names them.
    pub(super) cores: BTreeMap<u32, Core>,
    /// What the processor calls itself.
    pub(super) model: Option<String>,
}

impl CpuInfo {
    /// Reads the file. Blocks end with an empty line. A block that names no CPU or several names no core
    /// either. Kernels before 3.18 on Arm print one core, at the end: that of the CPU which printed the
    /// file, and the file does not say which CPU that was.
    pub(super) fn read(text: &str) -> CpuInfo {
        let mut info = CpuInfo::default();
        let mut block = Block::default();
        for line in text.lines().chain([""]) {
            match line.split_once(':') {
                Some((key, value)) => block.line(&mut info, key.trim(), value.trim()),
                None if line.trim().is_empty() => {
                    let block = std::mem::take(&mut block);
                    if let (Some(cpu), Some(implementer), Some(part), false) =
                        (block.cpu, block.implementer, block.part, block.several)
                    {
                        info.cores.insert(cpu, Core { implementer, part });
                    }
                }
                None => {}
            }
        }
        info
    }
}

#[derive(Default)]
struct Block {
    cpu: Option<u32>,
    several: bool,
    implementer: Option<u8>,
    part: Option<u16>,
}

impl Block {
    fn line(&mut self, info: &mut CpuInfo, key: &str, value: &str) {
        let hex = |text: &str| u16::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        match key {
            // s390 has "processor 0: version = FF, ...".
            key if key.starts_with("processor") => {
                let number = key["processor".len()..].trim();
                let number = if number.is_empty() { value } else { number };
                if let Some(cpu) = number.parse().ok().filter(|&cpu: &u32| cpu < CPUS_MAX) {
                    info.cpus.insert(cpu);
                    self.several |= self.cpu.is_some();
                    self.cpu = Some(cpu);
                }
            }
            "CPU implementer" => self.implementer = hex(value).and_then(|n| n.try_into().ok()),
            "CPU part" => self.part = hex(value),
            _ => {}
        }
        let is_model = [
            "model name",
            "Model Name",
            "Hardware",
            "cpu model",
            "cpu",
            "uarch",
        ];
        if info.model.is_none() && !value.is_empty() && is_model.contains(&key) {
            info.model = Some(value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: CPUs, cores and the model are found in what different kernels print, and nothing is invented.
    /// Method: the forms of x86, of Arm new and old, of s390; and a line that is too large.
    #[test]
    fn forms_of_cpuinfo() {
        let x86 = CpuInfo::read("processor\t: 0\nmodel name\t: Fast 9000\n\nprocessor\t: 1\n");
        assert_eq!(x86.cpus.to_string(), "0-1");
        assert_eq!(x86.model.as_deref(), Some("Fast 9000"));
        let block = |cpu, part| {
            format!("processor\t: {cpu}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n")
        };
        let arm = CpuInfo::read(&(block(0, "0xd05") + &block(4, "0xd0b") + "Hardware\t: Q\n"));
        assert_eq!(arm.cpus.to_string(), "0,4");
        assert_eq!(arm.cores[&0], Core::from_register(0x412f_d050));
        assert_eq!((arm.cores[&0].weight(), arm.cores[&4].weight()), (5, 10));
        let old = "Processor\t: v7\nprocessor\t: 0\n\nprocessor\t: 1\n\n\
                   CPU implementer\t: 0x41\nCPU part\t: 0xc09\n";
        assert!(CpuInfo::read(old).cores.is_empty());
        assert_eq!(CpuInfo::read(old).cpus.to_string(), "0-1");
        let s390 =
            "processor 0: version = FF,  identification = 0133E8\nprocessor 1: version = FF\n";
        assert_eq!(CpuInfo::read(s390).cpus.to_string(), "0-1");
        assert!(CpuInfo::read("processor : 4294967295").cpus.is_empty());
    }
}
