//! The file of the audit log: appended to, private, and followed when it is
//! rotated.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The mode of a file that is made: it says who changed what.
const PRIVATE: u32 = 0o600;
/// The right of everybody to read a file.
const READABLE_BY_ALL: u32 = 0o004;

/// The file at a path.
#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    file: File,
    /// Whether the last write may have left a part of a line.
    is_torn: bool,
}

impl AuditFile {
    /// Opens the file at a path to append to it. Makes the file if it does not
    /// exist.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: open(path)?,
            path: path.to_owned(),
            is_torn: false,
        })
    }

    /// Appends lines. If the file was rotated, and its path has another file or
    /// none, opens the file at the path first. With `durable`, the lines are on
    /// the disk when this returns.
    ///
    /// # Errors
    /// The lines were not written, or only a part of them.
    pub(super) fn append(&mut self, lines: &[u8], durable: bool) -> io::Result<()> {
        if !self.is_at_path() {
            *self = Self::open(&self.path)?;
        }
        if self.is_torn {
            self.file.write_all(b"\n")?;
            self.is_torn = false;
        }

        // A failed write may leave half a line.
        self.is_torn = true;
        self.file.write_all(lines)?;
        self.is_torn = false;

        match durable {
            true => sync(&self.file),
            false => Ok(()),
        }
    }

    /// Returns whether the file at the path is still the one that is open.
    fn is_at_path(&self) -> bool {
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let at_path = fs::metadata(&self.path).map(identity);
        let open = self.file.metadata().map(identity);
        matches!((at_path, open), (Ok(at_path), Ok(open)) if at_path == open)
    }
}

/// Opens a file to append to, and warns if every user of the machine can read
/// the file.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(PRIVATE).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.mode() & READABLE_BY_ALL != 0 {
        tracing::warn!(
            file = %path.display(),
            "everybody on this machine can read the audit log; `chmod 600` it"
        );
    }
    Ok(file)
}

/// Waits until a file is on the disk. A pipe or a device has none, which is no
/// error.
fn sync(file: &File) -> io::Result<()> {
    match file.sync_data() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_private_and_followed_when_it_is_rotated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let mut file = AuditFile::open(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        file.append(b"1\n", true).unwrap();
        let old = dir.path().join("audit.log.1");
        fs::rename(&path, &old).unwrap();
        file.append(b"2\n", false).unwrap();
        // As logrotate makes a new one.
        fs::rename(&path, dir.path().join("audit.log.2")).unwrap();
        fs::write(&path, "").unwrap();
        file.append(b"3\n", false).unwrap();
        fs::remove_file(&path).unwrap();
        file.append(b"4\n", false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "4\n");
        assert_eq!(fs::read_to_string(&old).unwrap(), "1\n");
        let mode = fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_disk_that_is_full_is_an_error_and_a_pipe_needs_no_disk() {
        let mut full = AuditFile::open(Path::new("/dev/full")).unwrap();
        let error = full.append(b"1\n", true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let mut null = AuditFile::open(Path::new("/dev/null")).unwrap();
        null.append(b"1\n", true).unwrap();
    }
}
