//! Where a broker listens: the socket's path, what is in the way there, and its folder.

use std::fs;
use std::io;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use super::client::open;
use crate::DEFAULT_PATH;
use crate::error::PATH_BYTES_MAX;

/// A socket's path, and its folder if that was made for it. Dropped, both are gone.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Empty: there is no socket.
    path: PathBuf,
    folder: Option<PathBuf>,
}

impl Place {
    /// A socket that listens at this path. One that a broker left behind is replaced; whatever else is there
    /// stays. A missing folder is made only if it is that of the default path.
    ///
    /// # Errors
    /// In one line: what is in the way, where, and what to do.
    pub(super) fn listen(path: &Path) -> io::Result<(UnixListener, Place)> {
        let failed = |what: String| io::Error::other(format!("hints: {}: {what}", path.display()));
        let bytes = path.as_os_str().as_bytes().len();
        if bytes == 0 {
            return Err(io::Error::other(
                "hints: the path of the socket is empty; name one",
            ));
        }
        if bytes > PATH_BYTES_MAX {
            return Err(failed(format!(
                "the path has {bytes} bytes, a socket's {PATH_BYTES_MAX} at most; choose a shorter one"
            )));
        }
        clear_way(path).map_err(failed)?;
        let mut place = Place::default();
        place.folder = made_folder(path).map_err(failed)?;
        let listener = UnixListener::bind(path)
            .map_err(|error| failed(format!("no socket can be made there ({error})")))?;
        path.clone_into(&mut place.path);
        // Every process may connect. It gets nothing by it but the right to talk about itself.
        fs::set_permissions(path, PermissionsExt::from_mode(0o666))
            .map_err(|error| failed(format!("the socket cannot be opened to all ({error})")))?;
        listener.set_nonblocking(true)?;
        Ok((listener, place))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves socket and folder to another process, which removes them.
    pub(super) fn leave(&mut self) -> PathBuf {
        self.folder = None;
        mem::take(&mut self.path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            _ = fs::remove_file(&self.path);
        }
        // Something else may be in it by now; then it stays.
        if let Some(folder) = &self.folder {
            _ = fs::remove_dir(folder);
        }
    }
}

/// Removes a socket at which nothing listens any more.
///
/// # Errors
/// What is in the way, and what to do.
fn clear_way(path: &Path) -> Result<(), String> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err("what is there is no socket; choose another path, or remove it".to_owned());
    }
    match open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => fs::remove_file(path)
            .map_err(|error| format!("an old socket is there, which cannot be removed ({error})")),
        // Its queue is full: something listens.
        Err(error) if error.raw_os_error() != Some(libc::EAGAIN) => Err(format!(
            "the socket of another program is there ({error}); choose another path"
        )),
        _ => Err("another broker listens there; stop it, or choose another path".to_owned()),
    }
}

/// The folder of the path, if it was made now.
///
/// # Errors
/// Why there is none, and what to do.
fn made_folder(path: &Path) -> Result<Option<PathBuf>, String> {
    let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) else {
        return Ok(None);
    };
    if folder.is_dir() {
        return Ok(None);
    }
    let shown = folder.display();
    if path != Path::new(DEFAULT_PATH) {
        return Err(format!(
            "there is no folder {shown}; make it, or choose another path"
        ));
    }
    match fs::create_dir_all(folder) {
        Ok(()) => Ok(Some(folder.to_owned())),
        Err(error) => Err(format!(
            "the folder {shown} cannot be made ({error}); run it as root, or choose another path"
        )),
    }
}
