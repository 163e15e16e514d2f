//! Tools that the stages need beyond cargo: how to find them, and how to get them.
//!
//! The stage `tools` installs; every other stage only probes what it needs and says "not available"
//! if that is missing. A missing tool fails the run only if it is marked [`Need::Always`].

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::context::{Context, host};
use crate::process::{self, Manner};
use crate::stages::Stage;
use crate::{vm, wine};

/// One thing that a stage may need.
pub(crate) struct Tool {
    /// Its name for stages and people.
    pub(crate) name: &'static str,
    need: Need,
    /// The tool it belongs to; without that one, there is no need to install this.
    part_of: Option<&'static str>,
    probe: Probe,
    install: Install,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The run fails without it.
    Always,
    /// The stages that want it are not available without it.
    Optional,
}

/// How to see that a tool is there.
enum Probe {
    /// This command line ends with exit code 0.
    Runs(&'static str),
    /// This file is in the compiler's folder (`rustc +TOOLCHAIN --print sysroot`).
    InSysroot(&'static str, &'static str),
    /// The compiler in use has the standard libraries of these targets.
    Targets(&'static [&'static str]),
    /// This function, which says what is not there.
    Asks(fn() -> Result<(), String>),
    /// The compiler's own triple is one of these.
    Host(&'static [&'static str]),
}

/// How to get a tool.
enum Install {
    /// This command line. It changes nothing that is already there.
    Run(&'static str),
    /// These packages of Debian, if this is Debian and we may.
    Debian(&'static str),
    /// It cannot be installed.
    Not,
}

/// The toolchain of Miri and ThreadSanitizer. Installed only if there is none: whichever nightly is
/// there is as good as a newer one.
const NIGHTLY: &str = "rustup toolchain install nightly --profile minimal -c miri -c rust-src";

/// The oldest toolchain that compiles the crates: `rust-version` of the root manifest.
pub(crate) const OLDEST: &str = "Rust 1.88";

/// The standard library of a machine whose addresses have 32 bits, for that toolchain.
pub(crate) const NARROW: &str = "std for i686";

/// The standard libraries of WebAssembly.
pub(crate) const WASM: &str = "std for WebAssembly";
pub(crate) const WASM_TARGETS: &[&str] = &["wasm32-unknown-unknown", "wasm32-wasip1"];

/// What builds and runs tests with addresses of 32 bits.
pub(crate) const MULTILIB: &str = "C library of 32 bits";
pub(crate) const I686: &str = "std for i686 of the compiler in use";

/// What finds libraries for programs in C.
pub(crate) const PKG_CONFIG: &str = "pkg-config";
pub(crate) const CMAKE: &str = "cmake";

/// An installation that has said nothing for this long will not end.
const INSTALL_SILENCE: Duration = Duration::from_secs(5 * 60);

/// Every tool, in the order in which they are looked at.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        name: "cc",
        need: Need::Always,
        part_of: None,
        probe: Probe::Runs("cc --version"),
        install: Install::Debian("gcc libc6-dev"),
    },
    Tool {
        name: "rustfmt",
        need: Need::Always,
        part_of: None,
        probe: Probe::Runs("cargo fmt --version"),
        install: Install::Run("rustup component add rustfmt"),
    },
    Tool {
        name: "clippy",
        need: Need::Always,
        part_of: None,
        probe: Probe::Runs("cargo clippy --version"),
        install: Install::Run("rustup component add clippy"),
    },
    Tool {
        name: "cc",
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("cc --version"),
        install: Install::Debian("gcc libc6-dev"),
    },
    Tool {
        name: "c++",
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("c++ --version"),
        install: Install::Debian("g++ libc6-dev"),
    },
    Tool {
        name: "oneTBB",
        need: Need::Optional,
        part_of: Some("c++"),
        probe: Probe::Runs(
            "c++ -std=c++17 -fsyntax-only -x c++ -include oneapi/tbb/version.h /dev/null",
        ),
        install: Install::Debian("libtbb-dev"),
    },
    Tool {
        name: PKG_CONFIG,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("pkg-config --version"),
        install: Install::Debian("pkg-config"),
    },
    Tool {
        name: CMAKE,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("cmake --version"),
        install: Install::Debian("cmake make"),
    },
    Tool {
        name: "python3",
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("python3 -m pip --version"),
        install: Install::Debian("python3 python3-pip"),
    },
    Tool {
        name: PYTHON,
        need: Need::Optional,
        part_of: Some("python3"),
        // pip is in the archive that a venv gets it from.
        probe: Probe::Runs("python3 -m ensurepip --version"),
        install: Install::Debian("python3-venv"),
    },
    Tool {
        name: "node",
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("node --version"),
        install: Install::Debian("nodejs"),
    },
    Tool {
        name: BROWSER,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("chromium --version"),
        install: Install::Debian("chromium"),
    },
    Tool {
        name: BPF,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("clang-19 --version"),
        install: Install::Debian(
            "--no-install-recommends clang-19 libelf-dev zlib1g-dev libseccomp-dev pkg-config make",
        ),
    },
    Tool {
        name: "nightly",
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("cargo +nightly --version"),
        install: Install::Run(NIGHTLY),
    },
    Tool {
        name: "miri",
        need: Need::Optional,
        part_of: Some("nightly"),
        probe: Probe::Runs("cargo +nightly miri --version"),
        install: Install::Run("rustup component add --toolchain nightly miri"),
    },
    Tool {
        name: "rust-src",
        need: Need::Optional,
        part_of: Some("nightly"),
        probe: Probe::InSysroot("nightly", "lib/rustlib/src/rust/library/Cargo.toml"),
        install: Install::Run("rustup component add --toolchain nightly rust-src"),
    },
    Tool {
        name: OLDEST,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("cargo +1.88 --version"),
        install: Install::Run("rustup toolchain install 1.88 --profile minimal"),
    },
    Tool {
        name: NARROW,
        need: Need::Optional,
        part_of: Some(OLDEST),
        probe: Probe::InSysroot("1.88", "lib/rustlib/i686-unknown-linux-gnu/lib"),
        install: Install::Run("rustup target add --toolchain 1.88 i686-unknown-linux-gnu"),
    },
    Tool {
        name: WASM,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Targets(WASM_TARGETS),
        install: Install::Run("rustup target add wasm32-unknown-unknown wasm32-wasip1"),
    },
    Tool {
        name: wine::WINE,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("wine --version"),
        install: Install::Debian("wine wine64"),
    },
    Tool {
        name: wine::COMPILER,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("x86_64-w64-mingw32-gcc --version"),
        install: Install::Debian("gcc-mingw-w64-x86-64"),
    },
    Tool {
        name: wine::CPP,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("x86_64-w64-mingw32-g++-posix --version"),
        install: Install::Debian("g++-mingw-w64-x86-64"),
    },
    Tool {
        name: wine::STD,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Targets(&[wine::TARGET]),
        install: Install::Run("rustup target add x86_64-pc-windows-gnu"),
    },
    Tool {
        name: MULTILIB,
        need: Need::Optional,
        part_of: None,
        probe: Probe::Runs("cc -m32 -xc -include stdio.h -fsyntax-only /dev/null"),
        install: Install::Debian("gcc-multilib"),
    },
    Tool {
        name: I686,
        need: Need::Optional,
        part_of: Some(MULTILIB),
        probe: Probe::Targets(&["i686-unknown-linux-gnu"]),
        install: Install::Run("rustup target add i686-unknown-linux-gnu"),
    },
    Tool {
        name: "cargo-fuzz",
        need: Need::Optional,
        part_of: Some("nightly"),
        probe: Probe::Runs("cargo fuzz --version"),
        install: Install::Run("cargo install --locked cargo-fuzz"),
    },
    Tool {
        name: VM,
        need: Need::Optional,
        part_of: Some(BPF),
        probe: Probe::Asks(vm::prepared),
        install: Install::Not,
    },
    Tool {
        name: "a system that ThreadSanitizer knows",
        need: Need::Optional,
        part_of: None,
        probe: Probe::Host(TSAN_HOSTS),
        install: Install::Not,
    },
];

/// A Python with venvs.
pub(crate) const PYTHON: &str = "Python with venvs";

/// What compiles the part of a scheduler that runs in the kernel, and the libraries of the other part.
pub(crate) const BPF: &str = "clang for BPF";

/// A kernel and QEMU that were fetched, and a scheduler that was built: too much for a usual run to begin.
pub(crate) const VM: &str = "virtual machine";

/// Name of the row of the browser that opens pages.
pub(crate) const BROWSER: &str = "chromium";

/// Name of the last row, for the stage that needs it.
pub(crate) const TSAN_HOST: &str = "a system that ThreadSanitizer knows";

const TSAN_HOSTS: &[&str] = &[
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
];

/// The stage `tools`: looks at each tool and installs what is missing.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let mut notes = Vec::new();
    let mut failures = Vec::new();
    let wanted = |tool: &&Tool| tool.is_of_a_stage(context.all_stages);
    for tool in TOOLS.iter().filter(wanted) {
        let Err(missing) = tool.probe.look() else {
            continue;
        };
        if tool
            .part_of
            .is_some_and(|whole| self::missing(&[whole]).is_some())
        {
            notes.push(format!("no {}", tool.name));
            continue;
        }
        match tool.fetch(context) {
            Ok(line) => notes.push(format!("installed {} ({line})", tool.name)),
            Err(why) if tool.need == Need::Always => {
                failures.push(format!("{} is missing: {missing}\n{why}", tool.name));
            }
            Err(_) => notes.push(format!("no {}", tool.name)),
        }
    }
    if failures.is_empty() {
        Ok(notes.join("; "))
    } else {
        Err(failures.join("\n"))
    }
}

/// Installs what is missing of these; `Err` says in one line what cannot be had, and what to do about it.
pub(crate) fn obtain(context: &Context, needs: &[&str]) -> Result<(), String> {
    let of_these = |tool: &&Tool| needs.contains(&tool.name);
    for tool in TOOLS.iter().filter(of_these) {
        if tool.probe.look().is_err() {
            // Its output was shown, and missing tools are listed below.
            let _ = tool.fetch(context);
        }
    }
    demand(needs)
}

/// Why a stage that needs these cannot run here; `None` if it can.
pub(crate) fn missing(needs: &[&str]) -> Option<String> {
    demand_with(needs, |_| String::new()).err()
}

/// `Err` says which of these is missing, and what a person can do about it.
pub(crate) fn demand(needs: &[&str]) -> Result<(), String> {
    demand_with(needs, |tool| match tool.install {
        Install::Run(line) => format!("; install it: {line}"),
        Install::Debian(packages) => format!("; {}", by_hand(&apt_line(packages))),
        Install::Not => String::new(),
    })
}

fn demand_with(needs: &[&str], advice: impl Fn(&Tool) -> String) -> Result<(), String> {
    for need in needs {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == *need) else {
            return Err(format!("no tool `{need}` in tools.rs"));
        };
        if let Err(reason) = tool.probe.look() {
            return Err(format!("no {}: {reason}{}", tool.name, advice(tool)));
        }
    }
    Ok(())
}

fn apt_line(packages: &str) -> String {
    format!("apt-get update && apt-get install -y {packages}")
}

fn by_hand(line: &str) -> String {
    format!("install it (on Debian, as root: {line})")
}

impl Tool {
    /// Whether a stage of a usual run wants it, or one of a run of all; others are installed when their task
    /// is, or by hand.
    fn is_of_a_stage(&self, all: bool) -> bool {
        let wants =
            |stage: &Stage| stage.switch.takes_part(all) && stage.needs.contains(&self.name);
        self.need == Need::Always || crate::stages::STAGES.iter().any(wants)
    }

    /// Installs the tool and returns the command line that did it, or what a person has to do.
    fn fetch(&self, context: &Context) -> Result<String, String> {
        let line = match self.install {
            Install::Run(line) => line.to_owned(),
            Install::Not => return Err("it cannot be installed".to_owned()),
            Install::Debian(packages) => {
                let line = apt_line(packages);
                if !may_use_apt() {
                    return Err(by_hand(&line));
                }
                line
            }
        };
        println!("tools: installing {}: {line}", self.name);
        let mut command = context.command("sh");
        command
            .args(["-c", &line])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("RUST_BACKTRACE", "0");
        let manner = Manner {
            silence: INSTALL_SILENCE,
            stream: false,
            apart: false,
        };
        let outcome = process::run(command, manner);
        match outcome.failure.or_else(|| self.probe.look().err()) {
            None => Ok(line),
            Some(why) => {
                // Said now: for an optional tool the client's own words would not be seen later.
                println!("tools: that failed: {why}\n{}", outcome.output.trim_end());
                Err(format!("`{line}` failed: {why}"))
            }
        }
    }
}

impl Probe {
    /// `Err` says what is missing, in the words of the command that was asked.
    fn look(&self) -> Result<(), String> {
        match self {
            Probe::Runs(line) => output_of(line).map(|_| ()),
            Probe::Asks(function) => function(),
            Probe::InSysroot(toolchain, file) => {
                let sysroot = output_of(&format!("rustc +{toolchain} --print sysroot"))?;
                let path = Path::new(sysroot.trim()).join(file);
                if path.exists() {
                    Ok(())
                } else {
                    Err(format!("no {file} in {toolchain}"))
                }
            }
            Probe::Targets(targets) => {
                let sysroot = output_of("rustc --print sysroot")?;
                let libraries = Path::new(sysroot.trim()).join("lib/rustlib");
                let has = |target: &&&str| libraries.join(target).join("lib").exists();
                match targets.iter().find(|target| !has(target)) {
                    None => Ok(()),
                    Some(target) => Err(format!("no standard library for {target}")),
                }
            }
            Probe::Host(known) => {
                let host = host()?;
                if known.contains(&host.as_str()) {
                    Ok(())
                } else {
                    Err(format!("not {host}"))
                }
            }
        }
    }
}

/// Standard output of a short command; `Err` is one line that says why there is none.
fn output_of(line: &str) -> Result<String, String> {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program} does not start: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let reason = errors
        .lines()
        .find(|line| line.contains("error"))
        .or(errors.lines().next());
    let plain = |text: &str| text.trim().trim_start_matches("error: ").to_owned();
    Err(reason.map_or_else(|| output.status.to_string(), plain))
}

fn may_use_apt() -> bool {
    output_of("id -u").is_ok_and(|id| id.trim() == "0") && output_of("apt-get --version").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a thing that was not prepared is missing, in the words of the answer. Method: both answers.
    #[test]
    fn what_was_not_prepared_is_missing() {
        assert!(Probe::Asks(|| Ok(())).look().is_ok());
        let why = Probe::Asks(|| Err("it was not built".to_owned())).look();
        assert_eq!(why.unwrap_err(), "it was not built");
    }

    /// A stage can only need what the table knows.
    #[test]
    fn every_need_of_a_stage_is_in_the_table() {
        for stage in crate::stages::STAGES {
            for need in stage.needs {
                assert!(
                    TOOLS.iter().any(|tool| tool.name == *need),
                    "{}: {need}",
                    stage.name
                );
            }
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let why = Probe::Runs("no-such-program-anywhere --version")
            .look()
            .unwrap_err();
        assert!(
            why.starts_with("no-such-program-anywhere does not start"),
            "{why}"
        );
    }

    #[test]
    fn a_failing_probe_gives_the_words_of_the_program() {
        let why = Probe::Runs("rustc --no-such-option").look().unwrap_err();
        assert!(why.contains("no-such-option"), "{why}");
    }

    #[test]
    fn an_unknown_tool_is_missing() {
        assert!(missing(&["philosopher's stone"]).is_some());
        assert_eq!(missing(&[]), None);
    }

    /// Goal: a missing tool is reported with the way to get it. Method: a tool whose probe fails.
    #[test]
    fn a_missing_tool_comes_with_advice() {
        let advice = by_hand(&apt_line("libtbb-dev"));
        let line = "apt-get update && apt-get install -y libtbb-dev";
        assert_eq!(advice, format!("install it (on Debian, as root: {line})"));
    }
}
