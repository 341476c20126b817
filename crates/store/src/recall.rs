//! What is served of files, kept for the next start and recalled at it.
//!
//! ```text
//! start ─▶ recall what was served ─▶ apply it ─▶ read the files, as changes
//!                                                  │ accepted     │ held, or bad
//!                                                  ▼              ▼
//!                                          served, and kept   what was served stays
//! ```
//!
//! So a restart is to files as if the server had run all the time: the guard
//! judges what changed while it did not, and a change that was held is held.

use std::collections::{BTreeSet, hash_map::DefaultHasher};
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use trunkline::checked::{Document, Fault, Finding};
use trunkline::{Resource, TypeUrl};

use crate::embedded::{EmbeddedStore, ServedChange, ServedFile};
use crate::file::{File, FileId, FileKey, NewState};
use crate::files::{Files, ORIGIN};

/// Keeps what is served of files.
#[derive(Debug)]
pub(crate) struct Keeper {
    store: Arc<EmbeddedStore>,
    /// Files of which the store may have something else than what is served.
    due: BTreeSet<FileId>,
    /// The configured paths below which files were recalled.
    recalled_roots: BTreeSet<usize>,
    /// Why the last change could not be kept.
    pub(crate) problem: Option<Finding>,
}

impl Keeper {
    /// Makes a keeper that has recalled nothing.
    pub(crate) fn new(store: Arc<EmbeddedStore>) -> Self {
        Self {
            store,
            due: BTreeSet::new(),
            recalled_roots: BTreeSet::new(),
            problem: None,
        }
    }

    /// Records why the store cannot keep, or recall, what is served: a warning
    /// in the status of the files.
    fn report(&mut self, reason: &impl ToString) {
        let name: Arc<str> = self.store.file().display().to_string().into();
        let reason = reason.to_string();
        self.problem = Some(Finding::whole(&name, Fault::ServedNotKept { reason }));
    }
}

impl Files {
    /// Lets what is served of these files be known at the next start: it is
    /// kept in this store.
    #[must_use]
    pub fn keep_in(mut self, store: Arc<EmbeddedStore>) -> Self {
        self.keeper = Some(Keeper::new(store));
        self
    }

    /// Returns whether anything was recalled.
    pub(crate) fn is_recalled(&self) -> bool {
        let keeper = self.keeper.as_ref();
        keeper.is_some_and(|keeper| !keeper.recalled_roots.is_empty())
    }

    /// Applies what was served of the files at the last start, as far as they
    /// lie below the configured paths. Without the guard it is forgotten: no
    /// change is held then.
    pub(crate) fn recall(&mut self) {
        let Some(keeper) = &mut self.keeper else {
            return;
        };
        if !self.options.guard {
            if let Err(error) = keeper.store.forget_served_files() {
                keeper.report(&error);
            }
            return;
        }
        let served = match keeper.store.load_served_files() {
            Ok(served) => served,
            Err(error) => return keeper.report(&error),
        };
        if served.iter().all(|file| file.resources.is_empty()) {
            return;
        }

        let mut foreign = Vec::new();
        for file in served {
            let path = Path::new(&*file.name);
            let root = self.roots.iter().position(|root| path.starts_with(root));
            match root {
                Some(root) => self.propose_recalled(root, file),
                None => foreign.push(ServedChange::Removed(file.name)),
            }
        }
        self.settle();
        self.apply_recalled();
        self.forget_foreign(&foreign);
    }

    /// Makes what was served of a file its new state, as if the file had been
    /// read below this configured path.
    fn propose_recalled(&mut self, root: usize, served: ServedFile) {
        let ServedFile {
            name,
            ends_line,
            resources,
        } = served;
        let kept_hash = hash_of(&resources, ends_line);
        let document = Document::of_resources(&name, resources, ends_line);
        let file = File {
            new_state: Some(NewState::Contents(document)),
            kept_hash: Some(kept_hash),
            ..File::default()
        };
        let path = Path::new(&*name).to_owned();
        let id = FileId::new(FileKey { root, path, name });
        self.files.insert(id, file);
    }

    /// Applies the files that were recalled, and records the configured paths
    /// of which there are any. If the server refuses them, since they
    /// contradict other contents by now, it is as if nothing had been recalled.
    fn apply_recalled(&mut self) {
        self.files.retain(|_, file| file.served.is_some());
        let names: Vec<&Arc<str>> = self.files.keys().map(|id| &id.name).collect();
        if names.is_empty() {
            return;
        }

        if let Err(error) = self.target.apply_first(&names) {
            for file in self.files.values_mut() {
                file.new_state = Some(NewState::Removed);
            }
            self.settle();
            if let Some(keeper) = &mut self.keeper {
                keeper.report(&error);
            }
            return;
        }

        if let Some(keeper) = &mut self.keeper {
            keeper.recalled_roots = self.files.keys().map(|id| id.root).collect();
        }
    }

    /// Forgets files that no configured path leads to any more.
    fn forget_foreign(&mut self, foreign: &[ServedChange]) {
        let Some(keeper) = self.keeper.as_mut().filter(|_| !foreign.is_empty()) else {
            return;
        };
        if let Err(error) = keeper.store.keep_served_files(foreign) {
            keeper.report(&error);
        }
    }

    /// Returns whether the server may serve what is known of all files: below a
    /// path of which files were recalled, what is served of it; below another
    /// one, files that are all good.
    pub(crate) fn is_servable(&self) -> bool {
        let no_roots = BTreeSet::new();
        let keeper = self.keeper.as_ref();
        let recalled = keeper.map_or(&no_roots, |keeper| &keeper.recalled_roots);
        let is_good = |file: &File| self.errors(file).is_empty() && file.served.is_some();
        let mut files = self.files.iter();
        let mut failed_paths = self.failures.keys();
        files.all(|(id, file)| recalled.contains(&id.root) || is_good(file))
            && failed_paths.all(|path| {
                let root = self.roots.iter().position(|root| path.starts_with(root));
                root.is_some_and(|root| recalled.contains(&root))
            })
    }

    /// Keeps what is served of these files in the store, where that is not what
    /// the store has; and of files that could not be kept before. If the store
    /// fails, that is reported, and the files are due with the next call.
    pub(crate) fn keep_served(&mut self, ids: &[FileId]) {
        let Some(keeper) = self.keeper.as_mut().filter(|_| self.options.guard) else {
            return;
        };
        keeper.due.extend(ids.iter().cloned());

        let mut changes = Vec::new();
        let mut hashes = Vec::new();
        for id in &keeper.due {
            let Some(file) = self.files.get(id) else {
                changes.push(ServedChange::Removed(Arc::clone(&id.name)));
                continue;
            };
            // A path that is no text could not be found by its name.
            if file.served.is_none() || Path::new(&*id.name) != id.path {
                continue;
            }

            let target = &self.target;
            let resources = target.read(|set| set.resources_of_file(ORIGIN, id.root, &id.name));
            let hash = hash_of(&resources, file.ends_line);
            if file.kept_hash != Some(hash) {
                hashes.push((FileId::clone(id), hash));
                changes.push(ServedChange::Served(ServedFile {
                    name: Arc::clone(&id.name),
                    ends_line: file.ends_line,
                    resources,
                }));
            }
        }

        if !changes.is_empty()
            && let Err(error) = keeper.store.keep_served_files(&changes)
        {
            return keeper.report(&error);
        }

        keeper.due.clear();
        keeper.problem = None;
        for (id, hash) in hashes {
            if let Some(file) = self.files.get_mut(&id) {
                file.kept_hash = Some(hash);
            }
        }
    }
}

/// Returns a hash of the served resources of a file, whatever their order: equal hashes mean that the store need not be written.
fn hash_of(resources: &[(TypeUrl, Arc<Resource>)], ends_line: bool) -> u64 {
    let hashes = resources.iter().map(|(type_url, resource)| {
        let mut hasher = DefaultHasher::new();
        type_url.hash(&mut hasher);
        resource.fingerprint().hash(&mut hasher);
        resource.ttl.hash(&mut hasher);
        for alias in &*resource.aliases {
            alias.hash(&mut hasher);
        }
        hasher.finish()
    });
    hashes.fold(ends_line.into(), u64::wrapping_add)
}
