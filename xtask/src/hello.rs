//! How much a first program grows by the job system without its default features: bytes, which are the same
//! on a busy machine. (How long it takes to build is not checked here.)

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::context::Context;
use crate::process;

/// How many bytes the job system may add to a program. The empty program is built by the same compiler, so
/// its own size does not count. (It was 250 000 before there were lanes, raises, a limit to the background,
/// and tokens, which are 19 000: each of them is a part of every wait and of every search for work.)
const BYTES_MAX: u64 = 270_000;

/// What the folder of the checkout is called in the programs. The binary holds the names of source files, for
/// the messages of panics: without this, a checkout in a longer folder would make a larger program.
const ROOT_NAME: &str = "/paceline";

/// How long a build may be silent.
const SILENCE: Duration = Duration::from_secs(5 * 60);

/// A program, and its dependencies.
struct Hello {
    name: &'static str,
    main: &'static str,
    uses_paceline: bool,
}

const EMPTY: Hello = Hello {
    name: "empty",
    main: "fn main() {}\n",
    uses_paceline: false,
};

const HELLO: Hello = Hello {
    name: "hello",
    main: "fn main() {\n    let js = paceline::JobSystem::new();\n    \
           let (a, b) = js.join(|_| \"hello\", |_| \"world\");\n    println!(\"{a}, {b}\");\n}\n",
    uses_paceline: true,
};

/// Builds both programs and compares them.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let (empty, hello) = (bytes(context, &EMPTY)?, bytes(context, &HELLO)?);
    let added = hello.saturating_sub(empty);
    if added > BYTES_MAX {
        return Err(format!(
            "the job system without default features adds {added} bytes to a program, at most {BYTES_MAX}: \
             look at `nm --size-sort`, or change the bound and say why"
        ));
    }
    Ok(format!("{added} bytes of {BYTES_MAX}"))
}

/// The size of the program's stripped binary.
fn bytes(context: &Context, program: &Hello) -> Result<u64, String> {
    let folder = context.target.join("hello").join(program.name);
    let needs = if program.uses_paceline {
        format!(
            "paceline = {{ path = {:?}, default-features = false }}\n",
            context.root.join("crates/paceline")
        )
    } else {
        String::new()
    };
    let manifest = format!(
        "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{needs}\n\
         [profile.release]\nstrip = true\n\n[workspace]\n",
        program.name
    );
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(&folder.join("src/main.rs"), program.main)?;
    let mut command = context.command("cargo");
    command.args(["build", "--release"]).current_dir(&folder);
    command.env("CARGO_TARGET_DIR", folder.join("target"));
    let renamed = format!("--remap-path-prefix={}={ROOT_NAME}", context.root.display());
    command.env("CARGO_ENCODED_RUSTFLAGS", renamed);
    process::done(command, SILENCE, "cargo build")?;
    let binary = folder.join("target/release").join(program.name);
    let file = binary.with_extension(std::env::consts::EXE_EXTENSION);
    let data = fs::metadata(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(data.len())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}
