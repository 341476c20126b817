//! Where a path can come to lead elsewhere: at each link on its way, at its end,
//! and where it breaks off.
//!
//! A mounted Secret of Kubernetes is two links, `tls.crt` to `..data/tls.crt`
//! and `..data` to a directory that changes. Either may be replaced, and any
//! directory above may be a link as well.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::scan::absolute;

/// The maximum of links on the way of one path, as many as Linux follows.
const MOST_LINKS: usize = 40;

/// The entries of directories that decide where some paths lead.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Real paths, but for their last part, which may be a link or not exist.
    pub(crate) entries: BTreeSet<PathBuf>,
    /// Where directories lead, by their paths: most paths share one.
    real_dirs: HashMap<PathBuf, Option<PathBuf>>,
}

impl Links {
    /// Adds the entries that decide where a path leads: each link on its way,
    /// and its end or the place where it breaks off.
    pub(crate) fn add(&mut self, path: &Path) {
        let path = absolute(path);
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return;
        };

        let real = match self.real_dirs.get(directory) {
            Some(real) => real.clone(),
            None => {
                let real = self.follow(PathBuf::new(), directory);
                self.real_dirs.insert(directory.to_owned(), real.clone());
                real
            }
        };
        // For a missing directory, `follow` has added the entry where it breaks
        // off.
        let Some(real) = real else { return };
        if let Some(end) = self.follow(real, Path::new(name)) {
            self.entries.insert(end);
        }
    }

    /// Follows a path from a directory without links in its own path, and adds
    /// each link on the way. Returns the end of the path. Returns `None` if the
    /// path breaks off, and adds the entry where it does.
    fn follow(&mut self, dir: PathBuf, path: &Path) -> Option<PathBuf> {
        let mut link_count = 0;
        let mut real = dir;
        let mut steps = steps_reversed(path);
        while let Some(step) = steps.pop() {
            let entry = match step {
                Step::Root(root) => {
                    real = root;
                    continue;
                }
                Step::Up => {
                    real.pop();
                    continue;
                }
                Step::Down(name) => real.join(name),
            };

            let is_link = fs::symlink_metadata(&entry).map(|meta| meta.is_symlink());
            match is_link {
                Ok(false) => real = entry,
                Ok(true) if link_count < MOST_LINKS => {
                    link_count += 1;
                    let target = fs::read_link(&entry);
                    self.entries.insert(entry);
                    steps.extend(steps_reversed(&target.ok()?));
                }
                _ => {
                    self.entries.insert(entry);
                    return None;
                }
            }
        }
        Some(real)
    }
}

/// One step of a path.
enum Step {
    Root(PathBuf),
    Up,
    Down(OsString),
}

/// Returns the steps of a path, the last one first.
fn steps_reversed(path: &Path) -> Vec<Step> {
    let steps = path.components().rev().filter_map(|part| match part {
        Component::Prefix(_) | Component::RootDir => Some(Step::Root(part.as_os_str().into())),
        Component::CurDir => None,
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
    });
    steps.collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns the entries of one path, from a directory with the links of a
    /// mount.
    fn entries(path: &str) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("mount/..1")).unwrap();
        fs::write(at("mount/..1/tls.crt"), "").unwrap();
        symlink("..1", at("mount/..data")).unwrap();
        symlink("..data/tls.crt", at("mount/tls.crt")).unwrap();
        fs::create_dir(at("conf")).unwrap();
        symlink(at("mount"), at("conf/certs")).unwrap();
        symlink("circle", at("circle")).unwrap();

        let mut links = Links::default();
        links.add(&at(path));
        let entries = links.entries.iter().map(|entry| {
            let entry = entry.strip_prefix(&root).unwrap();
            entry.to_str().unwrap().to_owned()
        });
        entries.collect()
    }

    #[test]
    fn every_link_on_the_way_counts() {
        let mounted = ["mount/..1/tls.crt", "mount/..data", "mount/tls.crt"];
        assert_eq!(entries("mount/tls.crt"), mounted);
        assert_eq!(entries("conf/../mount/./tls.crt"), mounted);
        let linked = [&["conf/certs"][..], &mounted].concat();
        assert_eq!(entries("conf/certs/tls.crt"), linked);
    }

    #[test]
    fn a_path_that_breaks_off_is_awaited_where_it_does() {
        assert_eq!(entries("conf/none"), ["conf/none"]);
        assert_eq!(entries("conf/none/tls.crt"), ["conf/none"]);
        assert_eq!(entries("conf/certs/a/b"), ["conf/certs", "mount/a"]);
        assert_eq!(entries("circle"), ["circle"]);
    }
}
