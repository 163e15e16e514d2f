//! The kernel, QEMU and busybox, by apt from Debian, without touching the system's own state: each suite has
//! its own lists and an empty list of what is installed, below cargo's target folder.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::output;
use crate::context::Context;

/// The kernel: the suite, and the version, which is part of the packages' names.
const KERNEL_SUITE: &str = "sid";
const KERNEL: &str = "7.2.13+deb14-cloud-amd64";
const KERNEL_VERSION: &str = "7.2.13-1";
/// QEMU from 10 on: before it, virtual time is shared wrongly among several CPUs.
const QEMU_SUITE: &str = "trixie";
const QEMU_VERSION: &str = "1:10.0.13+ds-0+deb13u1";

/// Signs Debian's lists.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A kernel has to be configured with these.
const OPTIONS: &[&str] = &[
    "CONFIG_SCHED_CLASS_EXT=y",
    "CONFIG_DEBUG_INFO_BTF=y",
    "CONFIG_BPF_SYSCALL=y",
    "CONFIG_BPF_JIT=y",
];

/// What a machine is made of.
pub(super) struct Machine {
    kernel: PathBuf,
    /// The folder into which QEMU and its libraries were unpacked.
    qemu: PathBuf,
    pub(super) busybox: PathBuf,
}

/// Fetches what is not there yet.
///
/// # Errors
/// In one line: what cannot be had.
pub(super) fn obtain(context: &Context) -> Result<Machine, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("the machine is an x86-64 one that runs on Linux".to_owned());
    }
    let kernel = kernel_folder(context);
    let machine = Machine::at_its_place(context);
    if !machine.kernel.is_file() {
        let names = ["linux-binary", "linux-base"].map(|part| format!("{part}-{KERNEL}"));
        let wanted = names.map(|name| format!("{name}={KERNEL_VERSION}"));
        Suite::new(context, KERNEL_SUITE)?.unpack(&wanted, &kernel, Depth::Alone)?;
        check(&kernel)?;
    }
    if !machine.busybox.is_file() {
        let wanted = [
            format!("qemu-system-x86={QEMU_VERSION}"),
            "busybox-static".to_owned(),
        ];
        Suite::new(context, QEMU_SUITE)?.unpack(&wanted, &machine.qemu, Depth::WithLibraries)?;
    }
    Ok(machine)
}

/// Whether nothing has to be fetched.
pub(super) fn is_there(context: &Context) -> bool {
    let machine = Machine::at_its_place(context);
    machine.kernel.is_file() && machine.busybox.is_file()
}

/// Where the kernel's packages are unpacked.
fn kernel_folder(context: &Context) -> PathBuf {
    context.target.join(format!("vm/linux-{KERNEL_VERSION}"))
}

/// Refuses a kernel that cannot load a scheduler.
fn check(kernel: &Path) -> Result<(), String> {
    let name = format!("config-{KERNEL}");
    let places = [
        kernel.join("boot"),
        kernel.join(format!("usr/lib/modules/{KERNEL}")),
    ];
    let files = places
        .iter()
        .flat_map(|place| [place.join(&name), place.join("config")]);
    let Some(text) = files
        .into_iter()
        .find_map(|file| fs::read_to_string(file).ok())
    else {
        return Err(format!(
            "the kernel's packages have no {name}: they are made otherwise now"
        ));
    };
    match OPTIONS
        .iter()
        .find(|option| !text.lines().any(|line| line == **option))
    {
        None => Ok(()),
        Some(option) => Err(format!("kernel {KERNEL} is built without {option}")),
    }
}

/// Whether packages that a package depends on are wanted, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Alone,
    WithLibraries,
}

/// A suite of Debian, with a state of its own.
struct Suite<'a> {
    context: &'a Context,
    name: &'static str,
    folder: PathBuf,
}

impl Suite<'_> {
    /// Its lists are fetched.
    fn new<'a>(context: &'a Context, name: &'static str) -> Result<Suite<'a>, String> {
        let folder = context.target.join("vm/apt").join(name);
        let failed = |error| format!("{}: {error}", folder.display());
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part)).map_err(failed)?;
        }
        let place = folder.display();
        let source = format!(
            "deb [signed-by={KEYRING}] {} {name} main\n",
            archive(context)?
        );
        let settings = format!(
            "Dir::Etc::SourceList \"{place}/sources.list\";\n\
             Dir::Etc::SourceParts \"/dev/null\";\n\
             Dir::State::Lists \"{place}/lists\";\n\
             Dir::State::status \"{place}/status\";\n\
             Dir::Cache \"{place}/cache\";\n\
             APT::Sandbox::User \"\";\n\
             APT::Install-Recommends \"false\";\n"
        );
        for (file, text) in [
            ("sources.list", source.as_str()),
            ("apt.conf", &settings),
            ("status", ""),
        ] {
            fs::write(folder.join(file), text).map_err(failed)?;
        }
        let suite = Suite {
            context,
            name,
            folder: folder.clone(),
        };
        println!("vm: reading the lists of Debian's {name}");
        output(suite.apt(&["update", "-qq"]), "apt-get update")?;
        Ok(suite)
    }

    fn apt(&self, words: &[&str]) -> Command {
        let mut command = self.context.command("apt-get");
        command
            .args(words)
            .env("APT_CONFIG", self.folder.join("apt.conf"))
            .env("DEBIAN_FRONTEND", "noninteractive")
            .current_dir(&self.folder);
        command
    }

    /// Downloads the packages and unpacks them into the folder.
    fn unpack(&self, wanted: &[String], into: &Path, depth: Depth) -> Result<(), String> {
        println!(
            "vm: fetching {} from Debian's {}",
            wanted.join(" "),
            self.name
        );
        let words: &[&str] = match depth {
            Depth::Alone => &["download", "-qq"],
            Depth::WithLibraries => &["install", "-qq", "-y", "--download-only"],
        };
        let mut command = self.apt(words);
        let archives = self.folder.join("cache/archives");
        command.args(wanted).current_dir(&archives);
        output(command, "apt-get").map_err(|why| self.gone(wanted, &why))?;
        let failed = |error| format!("{}: {error}", archives.display());
        // Half of it, if an earlier attempt was stopped.
        let _ = fs::remove_dir_all(into);
        fs::create_dir_all(into).map_err(failed)?;
        for file in fs::read_dir(&archives).map_err(failed)?.flatten() {
            let path = file.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                let mut unpack = self.context.command("dpkg-deb");
                unpack.arg("-x").arg(&path).arg(into);
                output(unpack, "dpkg-deb")?;
            }
        }
        Ok(())
    }

    /// The archive moves on; a newer version is another experiment.
    fn gone(&self, wanted: &[String], why: &str) -> String {
        format!(
            "Debian's {} does not give {}: {why}. If that version is gone, `apt-cache policy` there names \
             the newer one: put it into xtask/src/vm/fetch.rs and take the figures anew",
            self.name,
            wanted.join(" ")
        )
    }
}

/// Where this system gets Debian from.
fn archive(context: &Context) -> Result<String, String> {
    let mut command = context.command("apt-get");
    command.args(["indextargets", "--format", "$(REPO_URI)"]);
    command.args(["Created-By: Packages", "Component: main"]);
    let text = output(command, "apt-get indextargets")?;
    let mut addresses: Vec<&str> = text.lines().collect();
    addresses.retain(|address| !address.contains("security"));
    addresses.sort_unstable();
    let first = addresses.first().copied().map(str::to_owned);
    first.ok_or_else(|| "apt knows no archive of Debian".to_owned())
}

impl Machine {
    /// It may not have been fetched.
    fn at_its_place(context: &Context) -> Machine {
        let version = QEMU_VERSION.replace(':', "-");
        let qemu = context.target.join(format!("vm/qemu-{version}"));
        Machine {
            kernel: kernel_folder(context).join(format!("usr/lib/modules/{KERNEL}/vmlinuz")),
            busybox: qemu.join("usr/bin/busybox"),
            qemu,
        }
    }

    /// QEMU as it counts instructions, to which CPUs and a first program are added.
    pub(super) fn qemu(&self, context: &Context) -> Command {
        let libraries = libraries(&self.qemu);
        let mut command = context.command(self.qemu.join("usr/lib64/ld-linux-x86-64.so.2"));
        command
            .arg("--library-path")
            .arg(libraries.join(":"))
            .arg(self.qemu.join("usr/bin/qemu-system-x86_64"));
        for data in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(self.qemu.join(data));
        }
        command
            .args([
                "-accel",
                "tcg,thread=single",
                "-icount",
                "shift=0,sleep=off",
            ])
            .args(["-cpu", "qemu64,-rdrand", "-m", "1G"])
            .args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"])
            .args([
                "-nodefaults",
                "-display",
                "none",
                "-serial",
                "stdio",
                "-no-reboot",
            ])
            .args(["-append", "console=ttyS0 quiet panic=-1 nokaslr"])
            .arg("-kernel")
            .arg(&self.kernel);
        command
    }
}

/// All folders with libraries.
fn libraries(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = vec![folder.join("usr/lib")];
    while let Some(folder) = ahead.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut has = false;
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ahead.push(entry.path());
            } else {
                has |= name.contains(".so");
            }
        }
        if has {
            found.push(folder.display().to_string());
        }
    }
    found.sort_unstable();
    found
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let qemu = QEMU_VERSION.split([':', '+']).nth(1).unwrap_or_default();
        write!(
            f,
            "Linux {KERNEL_VERSION} of Debian (cloud, HZ 250), QEMU {qemu} counting instructions (icount, \
             shift 0)"
        )
    }
}
