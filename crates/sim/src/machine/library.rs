//! The built-in machines: the files of `crates/sim/machines/`, embedded, so that a name works anywhere.

use super::{Machine, MachineError};

/// Each machine's name and file.
const LIBRARY: &[(&str, &str)] = &[
    ("apple-m1", include_str!("../../machines/apple-m1.toml")),
    (
        "core-i9-12900k",
        include_str!("../../machines/core-i9-12900k.toml"),
    ),
    (
        "galaxy-s22-exynos",
        include_str!("../../machines/galaxy-s22-exynos.toml"),
    ),
    (
        "galaxy-s22-snapdragon",
        include_str!("../../machines/galaxy-s22-snapdragon.toml"),
    ),
    ("mcu", include_str!("../../machines/mcu.toml")),
    (
        "ryzen-3950x",
        include_str!("../../machines/ryzen-3950x.toml"),
    ),
    (
        "ryzen-5800x",
        include_str!("../../machines/ryzen-5800x.toml"),
    ),
    ("thunderx2", include_str!("../../machines/thunderx2.toml")),
    ("vm-2", include_str!("../../machines/vm-2.toml")),
];

impl Machine {
    /// The names of the built-in machines, in alphabetical order.
    pub fn library() -> impl Iterator<Item = &'static str> {
        LIBRARY.iter().map(|(name, _)| *name)
    }

    /// The machine of this name.
    ///
    /// # Errors
    /// If there is none; the text names the built-in machines.
    ///
    /// ```
    /// use paceline_sim::machine::Machine;
    /// assert_eq!(Machine::named("ryzen-3950x").unwrap().cpus.len(), 32);
    /// ```
    pub fn named(name: &str) -> Result<Machine, MachineError> {
        let found = LIBRARY.iter().find(|(known, _)| *known == name);
        let Some((name, text)) = found else {
            let all: Vec<&str> = Machine::library().collect();
            let shown: String = name.chars().take(40).collect();
            return Err(MachineError(format!(
                "no machine is called {shown:?}; there are {}",
                all.join(", ")
            )));
        };
        Machine::from_toml(&format!("crates/sim/machines/{name}.toml"), text)
    }
}
