//! Reads all files once: nothing is watched, and nothing waited for.

use std::sync::Arc;

use trunkline::checked::{Fault, Finding, locate_references};
use trunkline::{Resource, TypeUrl};
use trunkline_proto::text::Format;

use crate::file::{FileId, FileKey};
use crate::files::{Files, ORIGIN};
use crate::mailbox::Touched;
use crate::read::read_text;
use crate::scan::scan;

/// The resources of files, read once.
#[derive(Debug)]
pub struct Loaded {
    /// The resources of good files.
    pub resources: Vec<(TypeUrl, Arc<Resource>)>,
    /// The number of files.
    pub files: usize,
    /// The names of the files, and of paths that cannot be read, as findings
    /// have them: in the order of the configured paths, then by path.
    pub paths: Vec<Arc<str>>,
    /// All mistakes, in the order of the files and their lines.
    pub errors: Vec<Finding>,
    /// All warnings, in the same order.
    pub warnings: Vec<Finding>,
}

impl Files {
    /// Reads all files, once, and does not wait for one that looks half
    /// written: that one is bad. The mistakes of bad files come with the
    /// resources of the good ones.
    pub fn load(&mut self) -> Loaded {
        let roots = self.roots.clone();
        let last_try = true;
        self.refresh(&mut |_| scan(&roots), &Touched::new(), last_try);
        self.loaded_now()
    }

    /// Loads all files together with a text in YAML or JSON that is in no file,
    /// such as standard input. Findings have `name` as its file. Relative paths
    /// in its secrets start from the current directory.
    pub fn load_with_text(&mut self, name: &str, text: &[u8]) -> Loaded {
        let roots = self.roots.clone();
        let last_try = true;
        self.scan_until_stable(&mut |_| scan(&roots), &Touched::new(), last_try);

        let key = FileKey {
            root: roots.len(),
            path: name.into(),
            name: name.into(),
        };
        let outcome = read_text(&key.name, text, &self.options.text);
        let id = FileId::new(key);
        self.files.entry(Arc::clone(&id)).or_default();
        self.note_read(&id, Some(outcome), last_try);

        self.settle();
        if let (Some(file), Ok(text)) = (self.files.get_mut(&id), str::from_utf8(text)) {
            locate_references(Format::Yaml, text, &mut file.dangling);
            locate_references(Format::Yaml, text, &mut file.errors);
        }
        if self.is_all_good() {
            self.apply_first();
        }
        self.loaded_now()
    }

    /// Returns the names of all files, and of paths that could not be scanned,
    /// in the order of the configured paths.
    fn paths_in_order(&self) -> Vec<Arc<str>> {
        let files = self.files.keys();
        let files = files.map(|id| (id.root, Arc::clone(&id.name)));
        let failures = self.failures.iter().map(|(path, (finding, _))| {
            let root = self.roots.iter().position(|root| path.starts_with(root));
            let root = root.unwrap_or(self.roots.len());
            (root, Arc::clone(&finding.place.file))
        });
        let mut paths: Vec<(usize, Arc<str>)> = files.chain(failures).collect();
        paths.sort_by_key(|(root, _)| *root);
        paths.into_iter().map(|(_, name)| name).collect()
    }

    /// Returns the finding of a fault of a loaded resource, at its place in its
    /// file. Returns `None` if the resource was not loaded.
    #[must_use]
    pub fn finding(
        &self,
        type_url: &TypeUrl,
        resource: &Resource,
        fault: Fault,
    ) -> Option<Finding> {
        self.target
            .read(|set| set.finding(type_url, resource, fault))
    }

    /// Returns the resources of good files, with all findings.
    fn loaded_now(&self) -> Loaded {
        let status = self.status();
        Loaded {
            resources: self.target.read(|set| set.resources(ORIGIN)),
            files: self.files.len(),
            paths: self.paths_in_order(),
            errors: status.errors().cloned().collect(),
            warnings: status.warnings().cloned().collect(),
        }
    }
}
