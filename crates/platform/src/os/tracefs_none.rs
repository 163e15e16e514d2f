//! Systems without tracefs.

use std::convert::Infallible;
use std::fs::File;
use std::path::Path;

use super::kept::Kept;
use crate::error::Refused;

/// There is none here.
#[derive(Debug)]
pub struct Tracefs(Infallible);

/// There is none here.
#[derive(Debug)]
pub struct Instance(Infallible);

impl Tracefs {
    /// Fails: the kernel's events are recorded through tracefs, which only Linux has.
    ///
    /// # Errors
    /// Always.
    pub fn find() -> Result<Tracefs, Refused> {
        let text = "the kernel's events are recorded through tracefs, which only Linux has";
        Err(Refused(text.to_owned()))
    }

    /// As on Linux.
    pub fn remove_stale(&self) -> usize {
        match self.0 {}
    }

    /// As on Linux.
    ///
    /// # Errors
    /// As on Linux.
    pub fn instance(self) -> Result<Instance, Refused> {
        match self.0 {}
    }
}

impl Instance {
    /// As on Linux.
    pub fn path(&self) -> &Path {
        match self.0 {}
    }

    /// As on Linux.
    ///
    /// # Errors
    /// As on Linux.
    pub fn set(&self, _file: &str, _text: &str) -> Result<(), Refused> {
        match self.0 {}
    }

    /// As on Linux.
    ///
    /// # Errors
    /// As on Linux.
    pub fn enable(&self, _event: &str, _filter: Option<&str>) -> Result<bool, Refused> {
        match self.0 {}
    }

    /// As on Linux.
    ///
    /// # Errors
    /// As on Linux.
    pub fn start(&self) -> Result<(), Refused> {
        match self.0 {}
    }

    /// As on Linux.
    ///
    /// # Errors
    /// As on Linux.
    pub fn stop(&self) -> Result<(), Refused> {
        match self.0 {}
    }

    /// As on Linux.
    ///
    /// # Errors
    /// As on Linux.
    pub fn clear(&self) -> Result<(), Refused> {
        match self.0 {}
    }

    /// As on Linux.
    ///
    /// # Errors
    /// As on Linux.
    pub fn mark(&self, _text: &str) -> Result<(), Refused> {
        match self.0 {}
    }

    /// As on Linux.
    ///
    /// # Errors
    /// As on Linux.
    pub fn text(&self) -> Result<File, Refused> {
        match self.0 {}
    }

    /// As on Linux.
    ///
    /// # Errors
    /// As on Linux.
    pub fn kept(&self) -> Result<Kept, Refused> {
        match self.0 {}
    }
}
