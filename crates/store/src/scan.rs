//! Finds files, and those that changed.
//!
//! In a directory, and in those below it, files count by their names; hidden
//! ones do not. A mounted ConfigMap fits in with that: its files are links
//! through `..data`, which is hidden, to a directory that is hidden too, and a
//! link to a file is a file.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use trunkline::checked::{Fault, Finding};

use crate::links::Links;
use crate::mailbox::Touched;

/// The maximum of files of all paths together.
const MAX_FILES: usize = 100_000;
/// The maximum of directories inside each other.
const MAX_DEPTH: usize = 32;
/// The extensions of the files that count in a directory.
const EXTENSIONS: [&str; 4] = ["yaml", "yml", "json", "pb"];

/// Two equal stamps mean equal contents, as far as can be told without reading
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    identity: Identity,
}

/// Identifies a file or directory, whatever its name, and its last change.
pub(crate) type Identity = (u64, u64, i64, i64);

/// Returns the device, the inode and the time of the last change of a file or
/// directory.
#[cfg(unix)]
fn identity(meta: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec())
}

/// Returns nothing that tells a file from another: the system has no such
/// numbers.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> Identity {
    (0, 0, 0, 0)
}

/// Returns the device and the inode of what a path leads to; `None` if that
/// does not exist or cannot be looked at.
pub(crate) fn directory_identity(path: &Path) -> Option<(u64, u64)> {
    let (device, inode, ..) = identity(&fs::metadata(path).ok()?);
    Some((device, inode))
}

/// Returns the identity of a directory, on systems where it has one.
fn known_identity(path: &Path) -> Option<(u64, u64)> {
    directory_identity(path).filter(|identity| *identity != (0, 0))
}

impl Stamp {
    /// Takes the stamp of the file that a path leads to; `None` if there is
    /// none.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|meta| Self::of(&meta))
    }

    /// Takes the stamp of a file from its metadata, without reading the file.
    fn of(meta: &Metadata) -> Self {
        Self {
            len: meta.len(),
            modified: meta.modified().ok(),
            identity: identity(meta),
        }
    }
}

/// A file that was found.
pub(crate) struct FoundFile {
    /// The index of the path that led to it.
    pub(crate) root: usize,
    pub(crate) path: PathBuf,
    /// The absolute path, as the system tells of changes at it: of the file
    /// that a link leads to.
    pub(crate) real: PathBuf,
    pub(crate) stamp: Stamp,
}

impl FoundFile {
    /// Returns when the system last told of a change of the path, or of the file
    /// that a link leads to; `None` if it told of no change.
    pub(crate) fn last_touch(&self, touches: &Touched) -> Option<Instant> {
        let path_touch = touches.get(&absolute(&self.path));
        path_touch.max(touches.get(&self.real)).copied()
    }
}

/// Directories to watch.
#[derive(Default)]
pub(crate) struct Places {
    /// Any change in them may matter.
    file_dirs: BTreeSet<PathBuf>,
    /// A configured path may appear there or be replaced.
    parent_dirs: BTreeSet<PathBuf>,
    /// Entries that decide where attachments are, and what is in them.
    attachment_entries: BTreeSet<PathBuf>,
    /// The directories of these entries that are in no other set.
    attachment_dirs: BTreeSet<PathBuf>,
}

impl Places {
    /// Adds a directory in which any change may matter.
    fn add_file_dir(&mut self, dir: &Path) {
        self.file_dirs.insert(absolute(dir));
    }

    /// Adds a directory in which a configured path may appear or be replaced.
    fn add_parent_dir(&mut self, dir: &Path) {
        self.parent_dirs.insert(absolute(dir));
    }

    /// Adds the directories of attachments, and of the links on their way. A
    /// system watches a directory only once, whatever paths lead to it: a
    /// directory that is watched by another path notifies by that path.
    pub(crate) fn add_attachments<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) {
        let mut links = Links::default();
        paths.for_each(|path| links.add(path));
        let directories = links.entries.iter().filter_map(|entry| entry.parent());
        let directories: BTreeSet<&Path> = directories.collect();
        if directories.is_empty() {
            return;
        }

        let identify = |dir: &PathBuf| Some((known_identity(dir)?, dir.clone()));
        let watched: HashMap<_, _> = self.all().filter_map(identify).collect();
        for dir in directories {
            match known_identity(dir).and_then(|identity| watched.get(&identity)) {
                Some(watched_path) => drop(self.file_dirs.insert(watched_path.clone())),
                None => drop(self.attachment_dirs.insert(dir.to_owned())),
            }
        }
        self.attachment_entries = links.entries;
    }

    /// Returns all directories to watch.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        let configured = self.file_dirs.iter().chain(&self.parent_dirs);
        configured.chain(&self.attachment_dirs)
    }

    /// Returns whether a change at this path can concern a file. It can if the
    /// path is a directory with files or lies in one, or if a configured path
    /// of `roots`, an attachment, or a link to one is the path or lies below
    /// it.
    pub(crate) fn concerns_file(&self, path: &Path, roots: &[PathBuf]) -> bool {
        let has_files = |dir: &Path| self.file_dirs.contains(dir);
        let leads_to = |root: &PathBuf| absolute(root).starts_with(path);
        let is_near_files = has_files(path) || path.parent().is_some_and(has_files);
        // The first entry from the path on lies below it, if any does.
        let mut later_entries = self.attachment_entries.range(path.to_owned()..);
        let is_attached = later_entries
            .next()
            .is_some_and(|entry| entry.starts_with(path));
        is_near_files || is_attached || roots.iter().any(leads_to)
    }
}

/// The result of a scan.
#[derive(Default)]
pub(crate) struct Scan {
    /// Files in the order of the paths, then by name.
    pub(crate) files: Vec<FoundFile>,
    pub(crate) places: Places,
    /// Paths that could not be read. Nothing is known of files below.
    pub(crate) failures: Vec<(PathBuf, Fault)>,
    /// Files that are open for writing, by real path.
    pub(crate) open: HashSet<PathBuf>,
    /// The files of this scan by real path: a file that is reached twice counts once.
    scanned: HashSet<PathBuf>,
}

/// Scans all configured paths, each a file or a directory. A path that does not
/// exist or cannot be read is a failure, and the others are scanned all the
/// same.
pub(crate) fn scan(roots: &[PathBuf]) -> Scan {
    let mut scan = Scan::default();
    for (root, path) in roots.iter().enumerate() {
        let parent = existing_parent(path);

        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                scan.places.add_parent_dir(&parent);
                scan.add_directory(root, path, 0);
            }
            Ok(meta) => {
                // Any link in a chain of links may change.
                scan.places.add_file_dir(&parent);
                scan.add_file(root, path.clone(), &meta);
            }
            Err(error) => {
                scan.places.add_parent_dir(&parent);
                scan.add_failure(path, &error);
            }
        }
    }

    scan
}

/// Finds the files at some paths. Of a directory, these are the files that
/// [`Files`](crate::Files) would read. The order is that of the paths, then by
/// name.
///
/// # Errors
/// Paths that do not exist or cannot be read.
pub fn find_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Vec<Finding>> {
    let Scan {
        files, failures, ..
    } = scan(paths);
    if failures.is_empty() {
        return Ok(files.into_iter().map(|file| file.path).collect());
    }
    let findings = failures.into_iter().map(|(path, fault)| {
        let name = path.display().to_string().into();
        Finding::whole(&name, fault)
    });
    Err(findings.collect())
}

impl Scan {
    /// Records that a path could not be read.
    fn add_failure(&mut self, path: &Path, error: &io::Error) {
        self.failures.push((path.to_owned(), Fault::of_path(error)));
    }

    /// Adds the files in a directory and below it. A directory that was reached
    /// before or is too deep is left out, and one that cannot be listed is a
    /// failure. `root` is the index of the configured path, and `depth` the
    /// number of directories from there.
    fn add_directory(&mut self, root: usize, path: &Path, depth: usize) {
        let outcome = real_path(path).and_then(|real| Ok((real, list_visible(path)?)));
        let (real, paths) = match outcome {
            Ok(listing) => listing,
            // A directory that was just removed is ignored, unless it is a
            // configured path.
            Err(error) if error.kind() == io::ErrorKind::NotFound && depth > 0 => return,
            Err(error) => return self.add_failure(path, &error),
        };

        // Links may lead in a circle.
        if depth > MAX_DEPTH || !self.scanned.insert(real) {
            return;
        }

        self.places.add_file_dir(path);
        for path in paths {
            match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() => self.add_directory(root, &path, depth + 1),
                Ok(meta) if meta.is_file() && has_extension(&path) => {
                    self.add_file(root, path, &meta)
                }
                // Other kinds do not count, nor does a dangling link.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if has_extension(&path) => self.add_failure(&path, &error),
                Err(_) => {}
            }
        }
    }

    /// Adds a file, unless it was reached before. The first file beyond
    /// [`MAX_FILES`] is a failure, and later ones are ignored.
    fn add_file(&mut self, root: usize, path: PathBuf, meta: &Metadata) {
        if self.files.len() >= MAX_FILES {
            let fault = Fault::TooManyFiles { max: MAX_FILES };
            let is_reported = self.failures.iter().any(|(_, reported)| *reported == fault);
            if !is_reported {
                self.failures.push((path, fault));
            }
            return;
        }

        let real = real_path(&path).unwrap_or_else(|_| absolute(&path));
        // A change of a link's target is an event of the target's directory.
        if let Some(dir) = real.parent() {
            self.places.add_file_dir(dir);
        }
        if !self.scanned.insert(real.clone()) {
            return;
        }

        let stamp = Stamp::of(meta);
        self.files.push(FoundFile {
            root,
            path,
            real,
            stamp,
        });
    }
}

/// Returns the absolute path, as notifications have it: links are not resolved.
/// A path that cannot be made absolute, for there is no current directory, is
/// returned as it is.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the absolute path with all links resolved.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Lists the entries of a directory that are not hidden, in the order of their
/// names.
fn list_visible(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns whether a file in a directory counts: it has one of [`EXTENSIONS`],
/// in upper or lower case.
fn has_extension(path: &Path) -> bool {
    let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else {
        return false;
    };
    let mut extensions = EXTENSIONS.iter();
    extensions.any(|extensions| extension.eq_ignore_ascii_case(extensions))
}

/// Returns the nearest existing directory above a path: the directory in which
/// the path, or one that leads to it, will appear. For a relative path this may
/// be the current directory.
fn existing_parent(path: &Path) -> PathBuf {
    let current = Path::new(".");
    let ancestors = path.ancestors().skip(1);
    // The last ancestor of a relative path is empty.
    let mut ancestors = ancestors.map(|dir| {
        if dir.as_os_str().is_empty() {
            current
        } else {
            dir
        }
    });
    let existing = ancestors.find(|dir| dir.is_dir());
    existing.unwrap_or(current).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_is_known_as_the_system_tells_of_it() {
        let roots = [PathBuf::from("src")];
        let places = scan(&roots).places;
        let told = std::env::current_dir().unwrap().join("src");
        assert!(places.concerns_file(&told, &roots));
        assert!(places.concerns_file(&told.join("a.yaml"), &roots));
        assert!(!places.concerns_file(&told.with_file_name("other"), &roots));
    }

    #[test]
    fn names_say_what_counts() {
        for name in ["a.yaml", "a.yml", "a.json", "a.PB"] {
            assert!(has_extension(Path::new(name)), "{name}");
        }
        for name in ["a", "yaml", "a.yaml~", "a.yaml.swp", "a.pb_text"] {
            assert!(!has_extension(Path::new(name)), "{name}");
        }
    }
}
