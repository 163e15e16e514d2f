//! Systems on which no scheduler could listen.

use std::path::Path;
use std::sync::Arc;

use platform::Os;

use crate::error::{ConnectError, ConnectErrorKind};
use crate::page::Page;

/// Gets no page: hints take Linux, with addresses of 64 bits.
///
/// # Errors
/// Always.
pub fn connect(path: &Path) -> Result<Arc<Page<Os>>, ConnectError> {
    Err(ConnectError::new(path, ConnectErrorKind::Unsupported))
}
