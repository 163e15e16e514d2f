//! The pool of threads that belong to none.

use std::sync::{Arc, OnceLock};

use paceline::JobSystem;

use super::{Here, Registry, ThreadSpawn};
use crate::builder::ThreadPoolBuilder;
use crate::error::{ErrorKind, ThreadPoolBuildError};

/// `None`: it could not be built. It is not tried again.
static GLOBAL: OnceLock<Option<Arc<Registry>>> = OnceLock::new();

/// The global pool, with default settings if it is not there yet.
pub(crate) fn global_registry() -> &'static Arc<Registry> {
    let registry = match GLOBAL.get() {
        Some(registry) => registry.as_ref(),
        None => match set(build_default) {
            Ok(registry) => Some(registry),
            Err(error) => GLOBAL
                .get()
                .and_then(Option::as_ref)
                .or_else(|| panic!("The global thread pool has not been initialized: {error}")),
        },
    };
    registry.expect("The global thread pool has not been initialized.")
}

/// Makes the global pool.
///
/// # Errors
/// If it is there, or cannot be built.
pub(crate) fn init_global_registry<S: ThreadSpawn>(
    builder: ThreadPoolBuilder<S>,
) -> Result<&'static Arc<Registry>, ThreadPoolBuildError> {
    set(|| Registry::build(builder))
}

/// The global pool is on this job system.
///
/// # Errors
/// If there is one.
pub(crate) fn adopt(system: Arc<JobSystem>) -> Result<(), ThreadPoolBuildError> {
    set(|| Ok(Registry::on(system))).map(drop)
}

fn set(
    make: impl FnOnce() -> Result<Arc<Registry>, ThreadPoolBuildError>,
) -> Result<&'static Arc<Registry>, ThreadPoolBuildError> {
    let mut failed = Some(ThreadPoolBuildError::new(
        ErrorKind::GlobalPoolAlreadyInitialized,
    ));
    let registry = GLOBAL.get_or_init(|| match make() {
        Ok(registry) => {
            failed = None;
            Some(registry)
        }
        Err(error) => {
            failed = Some(error);
            None
        }
    });
    match (failed, registry) {
        (None, Some(registry)) => Ok(registry),
        (Some(error), _) => Err(error),
        (None, None) => unreachable!("it was made"),
    }
}

/// Where there are no threads at all, the calling one is the pool.
fn build_default() -> Result<Arc<Registry>, ThreadPoolBuildError> {
    let built = Registry::build(ThreadPoolBuilder::new());
    let unsupported = matches!(&built, Err(error) if error.is_unsupported());
    if unsupported && Here::with(|here| here.registry().is_none()) {
        let alone = ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        let alone = Registry::build(alone);
        if alone.is_ok() {
            return alone;
        }
    }
    built
}
