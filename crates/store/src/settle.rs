//! Decides which files can be served together.
//!
//! Every file that changed is a candidate, and so is one that was turned down
//! before: the file that it contradicted may be gone. All of them are tried at
//! once, so that a resource can move from one file to another. A candidate that
//! is turned down leaves its last good state in place, and that may turn down
//! another.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use trunkline::checked::{Clash, Document, Fault, Finding, Index, MOST_FINDINGS, Place};
use trunkline::{Name, Reference, TypeUrl, kind};

use crate::file::{File, FileId, NewState};
use crate::options::Dangling;

/// Problems by file.
type Problems = BTreeMap<FileId, Vec<Finding>>;

/// The result of settling.
pub(crate) struct Settled {
    /// Candidates that were turned down, and why.
    pub(crate) rejected: Problems,
    /// Dangling references of the served resources.
    pub(crate) dangling: Problems,
}

/// Replaces files in the index by their candidates, as far as they fit
/// together, and removes those that are gone. The others keep their last good
/// states, and are returned with the reasons. `all_known` is false if a path
/// could not be scanned, so that nothing is known of the files below it.
pub(crate) fn settle(
    index: &mut Index<FileId>,
    files: &BTreeMap<FileId, File>,
    all_known: bool,
    dangling: Dangling,
) -> Settled {
    let mut settling = Settling {
        index,
        files,
        rejected: Problems::new(),
    };
    // To find the file at fault takes all dangling references; else a few of
    // each file will do.
    let most = match dangling {
        Dangling::Warn => MOST_FINDINGS,
        Dangling::Refuse => usize::MAX,
    };

    settling.try_candidates();
    let mut found = settling.find_dangling(all_known, most);
    // A file that is turned down may leave other references dangling.
    while dangling == Dangling::Refuse && settling.reject_dangling(&found) {
        found = settling.find_dangling(all_known, most);
    }
    Settled {
        rejected: settling.rejected,
        dangling: problems_by_file(found),
    }
}

/// Sorts dangling references by the file that has them; of each file, the first
/// [`MOST_FINDINGS`] are kept.
fn problems_by_file(found: Vec<DanglingReference>) -> Problems {
    let mut by_file = Problems::new();
    for reference in found {
        let problems = by_file.entry(reference.file).or_default();
        if problems.len() < MOST_FINDINGS {
            problems.push(reference.problem);
        }
    }
    by_file
}

struct Settling<'a> {
    /// The resources of the files as they will be served.
    index: &'a mut Index<FileId>,
    files: &'a BTreeMap<FileId, File>,
    /// Candidates that were turned down so far.
    rejected: Problems,
}

/// A reference to a resource that no file has.
struct DanglingReference {
    /// The file with the reference.
    file: FileId,
    problem: Finding,
    to: Reference,
}

impl Settling<'_> {
    /// Inserts all candidates in place of the files' last good states, turns
    /// down those that contradict another, and puts their last good states
    /// back.
    fn try_candidates(&mut self) {
        let changing = || {
            self.files
                .iter()
                .filter(|(_, file)| file.new_state.is_some())
        };
        for (id, file) in changing() {
            if file.served.is_some() {
                self.index.remove(id);
            }
        }

        let mut candidates: Vec<_> = changing()
            .filter_map(|(id, file)| Some((file.was_turned_down, id, file.candidate()?)))
            .collect();
        // The first of two that contradict each other wins: a file that was
        // turned down before comes last.
        candidates.sort_by_key(|(was_turned_down, id, _)| (*was_turned_down, *id));

        let mut rejected = Vec::new();
        for (_, id, document) in candidates {
            if let Err(clash) = self.index.insert(id, document) {
                self.rejected.insert(id.clone(), clash.findings);
                rejected.push(id.clone());
            }
        }
        self.restore(rejected);
    }

    /// Puts back the last good states of files whose candidates were turned
    /// down. Served resources stay, so a candidate that contradicts them is
    /// turned down as well, and its own last good state put back in turn. This
    /// ends, because a candidate is turned down once.
    fn restore(&mut self, mut rejected: Vec<FileId>) {
        while let Some(id) = rejected.pop() {
            let Some(served) = self.files.get(&id).and_then(|file| file.served.as_ref()) else {
                continue;
            };
            let Err(clash) = self.index.insert(&id, served) else {
                continue;
            };

            let evicted = self.evict(clash);
            // The served states were in the index together, so nothing else
            // contradicts this one.
            let _ = self.index.insert(&id, served);

            // An evicted candidate is tried again, which tells why it is turned
            // down.
            for (other, document) in evicted {
                if let Err(clash) = self.index.insert(&other, &document) {
                    self.rejected.insert(other.clone(), clash.findings);
                    rejected.push(other);
                }
            }
        }
    }

    /// Removes the candidates of a contradiction from the index, and returns
    /// them with their files. Last good states in it stay.
    fn evict(&mut self, clash: Clash<FileId>) -> Vec<(FileId, Arc<Document>)> {
        let mut evicted = Vec::new();
        for other in clash.with {
            let file = self.files.get(&other);
            if let Some(document) = file.and_then(File::candidate)
                && !self.rejected.contains_key(&other)
            {
                self.index.remove(&other);
                evicted.push((other, Arc::clone(document)));
            }
        }
        evicted
    }

    /// Returns whether a file is about to change: it has a new state, which was
    /// not turned down.
    fn will_change(&self, id: &FileId) -> bool {
        let new_state = self.files.get(id).and_then(|file| file.new_state.as_ref());
        new_state.is_some() && !self.rejected.contains_key(id)
    }

    /// Returns the contents of a file that will be served; `None` if it has
    /// none, or will be removed.
    fn settled_document(&self, id: &FileId) -> Option<&Arc<Document>> {
        let file = self.files.get(id)?;
        if !self.will_change(id) {
            return file.served.as_ref();
        }
        file.candidate()
    }

    /// Finds dangling references, at most `most` of each file. As long as the
    /// contents of some file are not known, there are none: that file may have
    /// the resource.
    fn find_dangling(&self, all_known: bool, most: usize) -> Vec<DanglingReference> {
        let is_gone = |file: &File| matches!(file.new_state, Some(NewState::Removed));
        let is_known =
            |(id, file): (&FileId, &File)| is_gone(file) || self.settled_document(id).is_some();
        if !all_known || !self.files.iter().all(is_known) {
            return Vec::new();
        }

        let mut found = Vec::new();
        for id in self.files.keys() {
            if let Some(document) = self.settled_document(id) {
                found.extend(self.dangling_of(id, document).take(most));
            }
        }
        found
    }

    /// Finds the dangling references of one file, which will have this
    /// document.
    fn dangling_of<'f>(
        &'f self,
        id: &'f FileId,
        document: &'f Document,
    ) -> impl Iterator<Item = DanglingReference> + 'f {
        let references = document.items.iter().flat_map(|item| {
            let references = item.resource.facts().references.iter();
            references.map(move |to| (item, to))
        });
        let dangling = references.filter(move |(_, to)| self.is_dangling(to));

        dangling.map(move |(item, to)| {
            let fault = Fault::Dangling {
                type_url: to.type_url.clone(),
                name: to.name.clone(),
            };
            DanglingReference {
                file: id.clone(),
                problem: document.finding(item, fault),
                to: to.clone(),
            }
        })
    }

    /// Returns whether a reference is to a resource that no file has, and that
    /// one should have. Routes and clusters always should be there; another
    /// type may come from another server, unless the files have some of it.
    fn is_dangling(&self, to: &Reference) -> bool {
        let is_checked = [kind::RDS, kind::CDS].contains(&to.type_url.as_str())
            || self.index.has_type(&to.type_url);
        // A whole collection may be empty.
        let is_collection = to.name.as_str().ends_with('*');
        is_checked && !is_collection && !self.index.answers(&to.type_url, &to.name)
    }

    /// Turns down the files that made references dangle: the file with the
    /// reference if it changes, or else the file that removes the resource.
    /// Their last good states are put back. Returns whether there was such a
    /// file.
    fn reject_dangling(&mut self, found: &[DanglingReference]) -> bool {
        let removers = self.removers();
        let mut rejected = Problems::new();
        for DanglingReference { file, problem, to } in found {
            let remover = removers.get(&(to.type_url.clone(), to.name.clone()));
            if self.will_change(file) {
                let problems = rejected.entry(file.clone()).or_default();
                problems.push(problem.clone());
            } else if let Some(remover) = remover {
                let problems = rejected.entry((*remover).clone()).or_default();
                problems.push(still_needed(remover, to, &problem.place));
            }
        }

        for (id, problems) in &mut rejected {
            problems.truncate(MOST_FINDINGS);
            if self.files.get(id).and_then(File::candidate).is_some() {
                self.index.remove(id);
            }
        }

        let ids: Vec<_> = rejected.keys().cloned().collect();
        let any_rejected = !ids.is_empty();
        self.rejected.append(&mut rejected);
        self.restore(ids);
        any_rejected
    }

    /// Returns the names and aliases that are served by the files which are
    /// about to change, each with its file: if a reference to one dangles, that
    /// file removes the resource.
    fn removers(&self) -> HashMap<(TypeUrl, Name), &FileId> {
        let changing = self.files.iter().filter(|(id, _)| self.will_change(id));
        let mut removers = HashMap::new();
        for (id, file) in changing {
            for item in file.served.iter().flat_map(|served| &served.items) {
                let own_name = std::iter::once(&item.resource.name);
                for name in own_name.chain(&item.resource.aliases) {
                    removers.insert((item.type_url.clone(), name.clone()), id);
                }
            }
        }
        removers
    }
}

/// Makes the finding about a file that would remove a resource to which the
/// reference at `by` leads.
fn still_needed(remover: &FileId, to: &Reference, by: &Place) -> Finding {
    let fault = Fault::StillNeeded {
        type_url: to.type_url.clone(),
        name: to.name.clone(),
        by: by.clone(),
    };
    Finding::whole(&remover.name, fault)
}
