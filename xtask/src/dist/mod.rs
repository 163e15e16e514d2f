//! `cargo xtask dist`: an archive with what programs in C and C++ need, and programs that are built from it.
//!
//! The archive is for one target: headers, a shared and a static library, files for pkg-config and CMake,
//! examples. It can be unpacked anywhere, so the files name each other by paths relative to themselves.

mod own_symbols;
mod texts;
pub(crate) mod windows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use own_symbols::Binutils;
use texts::compatible;

use crate::context::{Context, host};
use crate::process;
use crate::tools;

/// What the check of an archive takes, as in the table of `tools.rs`.
pub(crate) const NEEDS: &[&str] = &["c++", tools::PKG_CONFIG, tools::CMAKE];

const PACKAGE: &str = "paceline-capi";
/// Its folder.
const CRATE: &str = "crates/capi";

/// How long cargo or a compiler may be silent.
const BUILD_SILENCE: Duration = Duration::from_secs(8 * 60);
const RUN_SILENCE: Duration = Duration::from_secs(30);

const STATIC_LIBRARY: &str = "libpaceline.a";

/// The options of `cargo xtask dist`.
#[derive(Args)]
#[command(after_help = "\
The archive is target/dist/paceline-VERSION-TARGET.tar.gz. It can be unpacked anywhere. With pkg-config:

  export PKG_CONFIG_PATH=FOLDER/lib/pkgconfig
  cc main.c $(pkg-config --cflags --libs paceline)

With CMake: find_package(paceline CONFIG), target paceline::paceline or paceline::static, and
-DCMAKE_PREFIX_PATH=FOLDER.")]
pub(crate) struct Options {
    /// The target to build for: a Linux one, or x86_64-pc-windows-gnu; the compiler's own, if none is named
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Build programs in C and C++ from the archive, and run them (for the compiler's own target, and by Wine
    /// for Windows)
    #[arg(long)]
    check: bool,
}

/// Makes an archive; whether the check passed.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    let built = Built {
        profile: "release",
        asked_for: options.target.clone(),
    };
    if options.check {
        let needs = match &options.target {
            None => NEEDS,
            Some(target) if target == windows::TARGET => windows::NEEDS,
            Some(target) => {
                return Err(format!(
                    "dist: --check runs programs here, and not for {target}: leave out one of the two"
                ));
            }
        };
        tools::demand(needs).map_err(|what| format!("dist: {what}"))?;
    }
    let archive = Archive::make(context, &built).map_err(|text| format!("dist: {text}"))?;
    println!("dist: {}", context.shown(&archive.file));
    if options.check {
        let checked = archive.check(context);
        let checked = checked.map_err(|text| format!("dist: {text}"))?;
        println!("dist: {checked}");
    }
    Ok(true)
}

/// Makes an archive and checks it. It is a quick one: how fast the library is does not matter here.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let built = Built {
        profile: "dev",
        asked_for: None,
    };
    Archive::make(context, &built)?.check(context)
}

/// How the libraries are built.
struct Built {
    profile: &'static str,
    /// The target, if it was named. The compiler's own is the usual one.
    asked_for: Option<String>,
}

impl Built {
    /// The libraries' folder.
    fn folder(&self, context: &Context) -> PathBuf {
        let above = match &self.asked_for {
            Some(target) => context.target.join(target),
            None => context.target.clone(),
        };
        let name = if self.profile == "dev" {
            "debug"
        } else {
            self.profile
        };
        above.join(name)
    }

    /// Builds a library of this kind, with these flags for the compiler.
    fn library(&self, context: &Context, kind: &str, flags: &[&str]) -> Result<(), String> {
        let mut cargo = context.command("cargo");
        cargo.args(["rustc", "--profile", self.profile, "-p", PACKAGE, "--lib"]);
        if let Some(target) = &self.asked_for {
            cargo.args(["--target", target]);
        }
        cargo.args(["--crate-type", kind, "--"]).args(flags);
        process::done(cargo, BUILD_SILENCE, "cargo rustc").map(drop)
    }
}

/// The systems that archives are made for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum System {
    Linux,
    Windows,
}

impl System {
    fn of(target: &str) -> Result<System, String> {
        match target {
            windows::TARGET => Ok(System::Windows),
            _ if target.contains("-linux-") => Ok(System::Linux),
            _ => Err(format!(
                "{target} is neither a Linux target nor {}; for others build crate {PACKAGE} itself \
                 (cargo build --release -p {PACKAGE} --target {target})",
                windows::TARGET
            )),
        }
    }
}

/// An archive that was made.
struct Archive {
    system: System,
    file: PathBuf,
    /// Its name without endings, which is the name of the folder in it.
    name: String,
    /// The folder that it was made of.
    folder: PathBuf,
}

impl Archive {
    fn make(context: &Context, built: &Built) -> Result<Archive, String> {
        let target = match &built.asked_for {
            Some(target) => target.clone(),
            None => host()?,
        };
        let system = System::of(&target)?;
        let version = version(context)?;
        let name = format!("paceline-{version}-{target}");
        let above = context.target.join("dist");
        let folder = above.join(&name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| at(&folder, error))?;
        }
        match system {
            System::Linux => libraries(context, built, &version, &folder.join("lib"))?,
            System::Windows => windows::libraries(context, built, &folder)?,
        }
        texts::write_all(context, system, &version, &folder)?;
        let file = above.join(format!("{name}.tar.gz"));
        let mut pack = context.command("tar");
        pack.arg("-C").arg(&above).arg("-czf").arg(&file).arg(&name);
        process::done(pack, RUN_SILENCE, "tar")?;
        Ok(Archive {
            system,
            file,
            name,
            folder,
        })
    }

    /// Unpacks it elsewhere, and builds and runs programs there that know the archive alone.
    fn check(&self, context: &Context) -> Result<String, String> {
        let place = context.target.join("dist/check");
        if place.exists() {
            fs::remove_dir_all(&place).map_err(|error| at(&place, error))?;
        }
        fs::create_dir_all(&place).map_err(|error| at(&place, error))?;
        let mut unpack = context.command("tar");
        unpack.arg("-C").arg(&place).arg("-xzf").arg(&self.file);
        process::done(unpack, RUN_SILENCE, "tar")?;
        let there = place.join(&self.name);
        match self.system {
            System::Linux => self.check_here(context, &place, &there),
            System::Windows => windows::check(context, self, &place, &there),
        }
    }

    /// The check of an archive for this machine.
    fn check_here(&self, context: &Context, place: &Path, there: &Path) -> Result<String, String> {
        let binutils = Binutils::of(context, None)?;
        own_symbols::check(&binutils.defined(&there.join("lib").join(STATIC_LIBRARY))?)?;
        let example = there.join("share/paceline/examples/first.c");
        let expected = text_of(&example.with_extension("c.out"))?;
        for (linked, more) in [("shared", &[][..]), ("static", &["--static"])] {
            let program = place.join(linked);
            compile(context, there, &example, more, &program)?;
            prints(loading(context, &program, there), linked, there, &expected)?;
        }
        with_cmake(context, place, there)?;
        as_the_readme_says(context, System::Linux, there)?;
        let size = fs::metadata(&self.file).map_err(|error| at(&self.file, error))?;
        let kilobytes = size.len() / 1000;
        let folder = self.folder.join("lib/libpaceline.so");
        let shared = fs::metadata(&folder).map_err(|error| at(&folder, error))?;
        Ok(format!(
            "{} ({kilobytes} kB, its shared library {} kB): programs by pkg-config, shared and static, by \
             CMake, and as its README says, run",
            self.name,
            shared.len() / 1000
        ))
    }
}

/// The version of the libraries.
fn version(context: &Context) -> Result<String, String> {
    let packages = &context.metadata.packages;
    let package = packages.iter().find(|package| *package.name == PACKAGE);
    let package = package.ok_or_else(|| format!("there is no crate {PACKAGE}"))?;
    Ok(package.version.to_string())
}

/// Builds both libraries, under the names that linkers look for.
fn libraries(context: &Context, built: &Built, version: &str, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| at(to, error))?;
    let soname = format!("libpaceline.so.{}", compatible(version));
    let folder = built.folder(context);
    let copy = |from: &str, name: &str| {
        let (from, to) = (folder.join(from), to.join(name));
        fs::copy(&from, &to)
            .map(drop)
            .map_err(|error| at(&from, error))
    };
    let binutils = Binutils::of(context, built.asked_for.as_deref())?;
    built.library(context, "staticlib", &[])?;
    let archive = to.join(STATIC_LIBRARY);
    binutils.with_own_symbols_only(&folder.join("libpaceline_c.a"), &archive)?;
    let named = format!("-Clink-arg=-Wl,-soname,{soname}");
    built.library(context, "cdylib", &[&named, "-Cstrip=debuginfo"])?;
    copy("libpaceline_c.so", &soname)?;
    let mut link = context.command("ln");
    link.arg("-s").arg(&soname).arg(to.join("libpaceline.so"));
    process::done(link, RUN_SILENCE, "ln").map(drop)
}

/// Compiles a program by what pkg-config says of the archive.
fn compile(
    context: &Context,
    there: &Path,
    source: &Path,
    more: &[&str],
    program: &Path,
) -> Result<(), String> {
    let mut ask = context.command("pkg-config");
    ask.env("PKG_CONFIG_PATH", there.join("lib/pkgconfig"));
    ask.args(more).args(["--cflags", "--libs", "paceline"]);
    let flags = process::done(ask, RUN_SILENCE, "pkg-config")?;
    let mut compile = context.command("cc");
    compile.args(["-std=c99", "-Wall", "-Werror"]).arg("-o");
    compile.arg(program).arg(source);
    for flag in flags.split_whitespace() {
        // pkg-config says which libraries, and leaves it to the linker which kind of them.
        match (flag, more.is_empty()) {
            ("-lpaceline", false) => compile.arg("-l:libpaceline.a"),
            _ => compile.arg(flag),
        };
    }
    process::done(compile, BUILD_SILENCE, "cc").map(drop)
}

/// A project in C and C++ that finds the archive by CMake.
const CMAKE_PROJECT: &str = "\
cmake_minimum_required(VERSION 3.16)
project(stranger C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(paceline 0.1 CONFIG REQUIRED)
set(examples ${paceline_folder}/share/paceline/examples)
add_executable(in_c ${examples}/first.c)
target_link_libraries(in_c paceline::static)
add_executable(in_cpp ${examples}/first.cpp)
target_link_libraries(in_cpp paceline::paceline)
add_executable(in_cpp_static ${examples}/first.cpp)
target_link_libraries(in_cpp_static paceline::static)
";

fn with_cmake(context: &Context, place: &Path, there: &Path) -> Result<(), String> {
    let project = place.join("project");
    fs::create_dir_all(&project).map_err(|error| at(&project, error))?;
    let file = project.join("CMakeLists.txt");
    fs::write(&file, CMAKE_PROJECT).map_err(|error| at(&file, error))?;
    let built = place.join("built");
    let mut configure = context.command("cmake");
    configure.arg("-S").arg(&project).arg("-B").arg(&built);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", there.display()));
    process::done(configure, BUILD_SILENCE, "cmake")?;
    let mut build = context.command("cmake");
    build.arg("--build").arg(&built);
    process::done(build, BUILD_SILENCE, "cmake --build")?;
    let programs = [
        ("in_c", "first.c"),
        ("in_cpp", "first.cpp"),
        ("in_cpp_static", "first.cpp"),
    ];
    for (program, example) in programs {
        let example = there.join("share/paceline/examples").join(example);
        let mut beside = example.into_os_string();
        beside.push(".out");
        let expected = text_of(Path::new(&beside))?;
        let run = loading(context, &built.join(program), there);
        prints(run, program, there, &expected)?;
    }
    Ok(())
}

/// Does what the archive's README says, in the archive.
fn as_the_readme_says(context: &Context, system: System, there: &Path) -> Result<(), String> {
    let blocks = texts::commands_of_readme(system);
    if blocks.is_empty() {
        return Err("the archive's README has no commands".to_owned());
    }
    for block in blocks {
        let mut shell = context.command("sh");
        shell.current_dir(there).args(["-e", "-c", block]);
        process::done(shell, BUILD_SILENCE, "a command of the archive's README")?;
    }
    Ok(())
}

/// A program, with the archive's shared library where the system's loader looks.
fn loading(context: &Context, program: &Path, there: &Path) -> Command {
    let mut run = context.command(program);
    run.env("LD_LIBRARY_PATH", there.join("lib"));
    run
}

/// Runs a program that was built from the archive `there`.
fn prints(run: Command, program: &str, there: &Path, expected: &str) -> Result<(), String> {
    let printed = process::done(
        run,
        RUN_SILENCE,
        "a program that was built from the archive",
    )?;
    // CMake gives the compiler whole paths, which programs show as call sites.
    let sources = there.join("share/paceline/examples");
    let printed = printed.replace(&format!("{}/", sources.display()), "");
    let printed = printed.replace("share/paceline/examples/", "");
    let printed = printed.replace('\r', "");
    if printed.trim_end() == expected.trim_end() {
        return Ok(());
    }
    Err(format!("{program} printed\n{printed}\nand not\n{expected}"))
}

fn text_of(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| at(path, error))
}

fn at(path: &Path, error: std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
