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

use crate::file::{File, FileId, Wish};
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
/// together. `all_known` is false if a path could not be scanned, so that
/// nothing is known of the files below it.
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
    // To find the file at fault takes all of them; else a few of each file will
    // do.
    let most = match dangling {
        Dangling::Warn => MOST_FINDINGS,
        Dangling::Refuse => usize::MAX,
    };
    settling.try_all();
    let mut found = settling.find_dangling(all_known, most);
    while dangling == Dangling::Refuse && settling.reject_dangling(&found) {
        found = settling.find_dangling(all_known, most);
    }
    Settled {
        rejected: settling.rejected,
        dangling: problems_by_file(found),
    }
}

/// Sorts dangling references by file, of each as many as are kept.
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
    fn try_all(&mut self) {
        let wishes = || self.files.iter().filter(|(_, file)| file.wish.is_some());
        for (id, file) in wishes() {
            if file.served.is_some() {
                self.index.remove(id);
            }
        }
        let mut candidates: Vec<_> = wishes()
            .filter_map(|(id, file)| Some((file.lost, id, file.candidate()?)))
            .collect();
        // A file that is served comes before one that was turned down.
        candidates.sort_by_key(|(lost, id, _)| (*lost, *id));
        let mut rejected = Vec::new();
        for (_, id, parsed) in candidates {
            if let Err(clash) = self.index.insert(id, parsed) {
                self.rejected.insert(id.clone(), clash.findings);
                rejected.push(id.clone());
            }
        }
        self.restore(rejected);
    }

    /// Puts the last good states of files back, whose candidates were turned
    /// down. Candidates that contradict these are turned down as well: served
    /// resources stay.
    fn restore(&mut self, mut rejected: Vec<FileId>) {
        while let Some(id) = rejected.pop() {
            let Some(served) = self.files.get(&id).and_then(|file| file.served.as_ref()) else {
                continue;
            };
            let Err(clash) = self.index.insert(&id, served) else {
                continue;
            };
            let evicted = self.evict(clash);
            // It was in the index before, so nothing else contradicts it.
            let _ = self.index.insert(&id, served);
            for (other, parsed) in evicted {
                if let Err(clash) = self.index.insert(&other, &parsed) {
                    self.rejected.insert(other.clone(), clash.findings);
                    rejected.push(other);
                }
            }
        }
    }

    /// Removes the candidates of a contradiction from the index, and returns
    /// them.
    fn evict(&mut self, clash: Clash<FileId>) -> Vec<(FileId, Arc<Document>)> {
        let mut evicted = Vec::new();
        for other in clash.with {
            let file = self.files.get(&other);
            if let Some(parsed) = file.and_then(File::candidate)
                && !self.rejected.contains_key(&other)
            {
                self.index.remove(&other);
                evicted.push((other, Arc::clone(parsed)));
            }
        }
        evicted
    }

    /// Whether the file is about to change: it has a new state, which was not
    /// turned down.
    fn will_change(&self, id: &FileId) -> bool {
        let wish = self.files.get(id).and_then(|file| file.wish.as_ref());
        wish.is_some() && !self.rejected.contains_key(id)
    }

    /// Returns the contents of a file that will be served; `None` if it has
    /// none, or will be removed.
    fn settled(&self, id: &FileId) -> Option<&Arc<Document>> {
        let file = self.files.get(id)?;
        match (&file.wish, self.will_change(id)) {
            (Some(Wish::New(parsed)), true) => Some(parsed),
            (Some(Wish::Gone), true) => None,
            _ => file.served.as_ref(),
        }
    }

    /// Finds dangling references, at most `most` of each file. As long as the
    /// contents of some file are not known, none can be told.
    fn find_dangling(&self, all_known: bool, most: usize) -> Vec<DanglingReference> {
        let is_gone = |file: &File| matches!(file.wish, Some(Wish::Gone));
        let is_known = |(id, file): (&FileId, &File)| is_gone(file) || self.settled(id).is_some();
        if !all_known || !self.files.iter().all(is_known) {
            return Vec::new();
        }
        let ids = self.files.keys();
        let settled = ids.filter_map(|id| Some((id, self.settled(id)?)));
        let found = settled.flat_map(|(id, parsed)| self.dangling_of(id, parsed).take(most));
        found.collect()
    }

    /// Finds the dangling references of one file.
    fn dangling_of<'f>(
        &'f self,
        id: &'f FileId,
        parsed: &'f Document,
    ) -> impl Iterator<Item = DanglingReference> + 'f {
        let references = parsed.items.iter().flat_map(|item| {
            let all = item.resource.facts().references.iter();
            all.map(move |to| (item, to))
        });
        let dangling = references.filter(move |(_, to)| self.dangles(to));
        dangling.map(move |(item, to)| {
            let fault = Fault::Dangling {
                type_url: to.type_url.clone(),
                name: to.name.clone(),
            };
            DanglingReference {
                file: id.clone(),
                problem: parsed.finding(item, fault),
                to: to.clone(),
            }
        })
    }

    /// Whether a reference is to a resource that no file has, and that one
    /// should have: [`Dangling`] says which types are checked.
    fn dangles(&self, to: &Reference) -> bool {
        let is_checked = [kind::RDS, kind::CDS].contains(&to.type_url.as_str())
            || self.index.has_type(&to.type_url);
        // A whole collection may be empty.
        let is_collection = to.name.as_str().ends_with('*');
        is_checked && !is_collection && !self.index.answers(&to.type_url, &to.name)
    }

    /// Turns down the files that made references dangle: the file with the
    /// reference if it changes, or else the file that removes the resource.
    /// Returns whether there was one.
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
        let any = !ids.is_empty();
        self.rejected.append(&mut rejected);
        self.restore(ids);
        any
    }

    /// Returns the served names of the files that are about to change, each
    /// with its file: if a name dangles, that file removes it.
    fn removers(&self) -> HashMap<(TypeUrl, Name), &FileId> {
        let changing = self.files.iter().filter(|(id, _)| self.will_change(id));
        let mut removers = HashMap::new();
        for (id, file) in changing {
            for item in file.served.iter().flat_map(|served| &served.items) {
                let own = std::iter::once(&item.resource.name);
                for name in own.chain(&item.resource.aliases) {
                    removers.insert((item.type_url.clone(), name.clone()), id);
                }
            }
        }
        removers
    }
}

/// Reports a file that would remove a resource to which the reference at `by`
/// leads.
fn still_needed(remover: &FileId, to: &Reference, by: &Place) -> Finding {
    let fault = Fault::StillNeeded {
        type_url: to.type_url.clone(),
        name: to.name.clone(),
        by: by.clone(),
    };
    Finding::whole(&remover.name, fault)
}
