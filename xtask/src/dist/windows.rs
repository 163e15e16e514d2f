//! What an archive for Windows has in place of one for Linux: a library to load, with an import library for
//! mingw, and the list of its functions, of which other linkers make theirs. It has no static library: Rust's
//! own names would have to be hidden in it (`own_symbols.rs`), and `ld -r` for Windows refuses objects with
//! thread-local data.
//!
//! Its check compiles programs by mingw and runs them by Wine.

use std::fs;
use std::path::Path;

use super::own_symbols::{Binutils, OURS};
use super::{Archive, BUILD_SILENCE, Built, RUN_SILENCE, System, at, prints, text_of};
use crate::context::Context;
use crate::process;
use crate::{tools, wine};

/// The target that archives are made for.
pub(super) const TARGET: &str = wine::TARGET;

/// What a check takes, as in the table of `tools.rs`.
pub(crate) const NEEDS: &[&str] = &[
    wine::WINE,
    wine::STD,
    wine::COMPILER,
    wine::CPP,
    tools::CMAKE,
];

const DLL: &str = "paceline.dll";
const IMPORTS: &str = "libpaceline.dll.a";

/// Builds the library, under the name that programs load.
pub(super) fn libraries(context: &Context, built: &Built, to: &Path) -> Result<(), String> {
    let (lib, bin) = (to.join("lib"), to.join("bin"));
    for folder in [&lib, &bin] {
        fs::create_dir_all(folder).map_err(|error| at(folder, error))?;
    }
    built.library(context, "cdylib", &["-Cstrip=debuginfo"])?;
    let folder = built.folder(context);
    let made = folder.join("paceline_c.dll");
    fs::copy(&made, bin.join(DLL)).map_err(|error| at(&made, error))?;
    let binutils = Binutils::of(context, Some(TARGET))?;
    let mut names = binutils.defined(&folder.join("libpaceline_c.dll.a"))?;
    names.retain(|name| name.starts_with(OURS));
    names.sort_unstable();
    if names.is_empty() {
        return Err(format!("{} offers no {OURS} function", made.display()));
    }
    let list = lib.join("paceline.def");
    let text = format!("LIBRARY {DLL}\nEXPORTS\n    {}\n", names.join("\n    "));
    fs::write(&list, text).map_err(|error| at(&list, error))?;
    let mut import = binutils.tool("dlltool")?;
    import.arg("--input-def").arg(&list);
    import.arg("--output-lib").arg(lib.join(IMPORTS));
    process::done(import, BUILD_SILENCE, "dlltool").map(drop)
}

pub(super) fn pkg_config_file(version: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         Name: paceline\n\
         Description: a job system for programs with deadlines\n\
         Version: {version}\n\
         Cflags: -I${{prefix}}/include\n\
         Libs: -L${{prefix}}/lib -lpaceline\n"
    )
}

pub(super) fn cmake_file() -> String {
    format!(
        "get_filename_component(paceline_folder \"${{CMAKE_CURRENT_LIST_DIR}}/../../..\" ABSOLUTE)\n\
         if(NOT TARGET paceline::paceline)\n\
         \x20 add_library(paceline::paceline SHARED IMPORTED)\n\
         \x20 set_target_properties(paceline::paceline PROPERTIES\n\
         \x20   IMPORTED_LOCATION \"${{paceline_folder}}/bin/{DLL}\"\n\
         \x20   IMPORTED_IMPLIB \"${{paceline_folder}}/lib/{IMPORTS}\"\n\
         \x20   INTERFACE_INCLUDE_DIRECTORIES \"${{paceline_folder}}/include\")\n\
         endif()\n"
    )
}

/// A project in C and C++ that finds the archive by CMake.
const CMAKE_PROJECT: &str = "\
cmake_minimum_required(VERSION 3.16)
project(stranger C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(paceline 0.1 CONFIG REQUIRED)
set(examples ${paceline_folder}/share/paceline/examples)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${paceline_folder}/bin)
add_executable(in_c ${examples}/first.c)
target_link_libraries(in_c paceline::paceline)
add_executable(in_cpp ${examples}/first.cpp)
target_link_libraries(in_cpp paceline::paceline -static)
";

/// Builds programs from the unpacked archive `there`, as its README says and by CMake, and runs them.
pub(super) fn check(
    context: &Context,
    archive: &Archive,
    place: &Path,
    there: &Path,
) -> Result<String, String> {
    wine::prepare(context)?;
    super::as_the_readme_says(context, System::Windows, there)?;
    with_cmake(context, place, there)?;
    let examples = there.join("share/paceline/examples");
    for (program, example) in [
        ("first.exe", "first.c"),
        ("first_cpp.exe", "first.cpp"),
        ("in_c.exe", "first.c"),
        ("in_cpp.exe", "first.cpp"),
    ] {
        let expected = text_of(&examples.join(format!("{example}.out")))?;
        let run = wine::command(context, &there.join("bin").join(program));
        prints(run, program, there, &expected)?;
    }
    let file = &archive.file;
    let size = fs::metadata(file).map_err(|error| at(file, error))?;
    Ok(format!(
        "{} ({} kB): programs in C and C++ as its README says, and by CMake, run by Wine",
        archive.name,
        size.len() / 1000
    ))
}

fn with_cmake(context: &Context, place: &Path, there: &Path) -> Result<(), String> {
    let project = place.join("project");
    fs::create_dir_all(&project).map_err(|error| at(&project, error))?;
    let file = project.join("CMakeLists.txt");
    fs::write(&file, CMAKE_PROJECT).map_err(|error| at(&file, error))?;
    let built = place.join("built");
    let mut configure = context.command("cmake");
    configure.arg("-S").arg(&project).arg("-B").arg(&built);
    // The archive is outside of the folders that CMake looks in for other systems.
    configure.args([
        "-DCMAKE_SYSTEM_NAME=Windows",
        "-DCMAKE_C_COMPILER=x86_64-w64-mingw32-gcc",
        "-DCMAKE_CXX_COMPILER=x86_64-w64-mingw32-g++-posix",
    ]);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", there.display()));
    process::done(configure, BUILD_SILENCE, "cmake")?;
    let mut build = context.command("cmake");
    build.arg("--build").arg(&built);
    process::done(build, RUN_SILENCE, "cmake --build").map(drop)
}

/// Makes an archive for Windows and checks it. It is a quick one: how fast the library is does not matter
/// here.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let built = Built {
        profile: "dev",
        asked_for: Some(TARGET.to_owned()),
    };
    Archive::make(context, &built)?.check(context)
}
