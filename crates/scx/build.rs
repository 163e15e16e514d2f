//! Compiles the BPF part: the core's, with ours around it (`src/bpf/paceline.bpf.c`).
//!
//! The builders write to the current folder and tell cargo to watch what they wrote. So they work in a
//! process of their own, in cargo's output folder, and cargo hears only what this file says.

#[cfg(feature = "load")]
mod bpf {
    use std::env;
    use std::error::Error;
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    /// Set for the process that builds.
    const INNER: &str = "PACELINE_SCX_BUILD";

    pub(super) fn main() -> Result<(), Box<dyn Error>> {
        let source = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("src/bpf/paceline.bpf.c");
        let folder = PathBuf::from(env::var("OUT_DIR")?).join("core");
        if env::var_os(INNER).is_some() {
            scx_rustland_core::RustLandBuilder::new()?.build()?;
            let source = source.to_str().ok_or("the folder's name is no text")?;
            scx_cargo::BpfBuilder::new()?
                .enable_intf("intf.h", "bpf_intf.rs")
                .enable_skel(source, "bpf")
                .add_include_path(folder.to_str().ok_or("the folder's name is no text")?)
                .build()?;
            return Ok(());
        }
        println!("cargo::rerun-if-changed=build.rs");
        println!("cargo::rerun-if-changed={}", source.display());
        println!("cargo::rerun-if-env-changed=BPF_CLANG");
        fs::create_dir_all(folder.join("src"))?;
        let mut inner = Command::new(env::current_exe()?);
        inner.current_dir(&folder).env(INNER, "1");
        let output = inner.output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("the BPF part does not compile:\n{said}").into())
    }
}

#[cfg(feature = "load")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    bpf::main()
}

#[cfg(not(feature = "load"))]
fn main() {}
