//! Decides which files can be served together.
//!
//! Every file that changed is a candidate, and so is one that was turned down
//! before: the file that it contradicted may be gone. All of them are tried at
//! once, so that a resource can move from one file to another. A candidate that
//! is turned down leaves its last good state in place, and that may turn down
//! another.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use trunkline::{Name, Reference, TypeUrl, kind};

use crate::file::{File, FileId, Wish};
use crate::index::{Clash, Index};
use crate::item::Parsed;
use crate::options::Dangling;
use crate::problem::{Fault, MOST, Place, Problem};

/// By file.
type Problems = BTreeMap<FileId, Vec<Problem>>;

/// The result of settling.
pub(crate) struct Settled {
    /// Candidates that were turned down, and why.
    pub(crate) rejected: Problems,
    /// Dangling references of the served resources.
    pub(crate) dangling: Problems,
}

/// Replaces files in the index by their candidates, as far as they fit
/// together.
pub(crate) fn settle(
    index: &mut Index,
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
        Dangling::Warn => MOST,
        Dangling::Refuse => usize::MAX,
    };
    settling.try_all();
    let mut found = settling.dangling(all_known, most);
    while dangling == Dangling::Refuse && settling.refuse(&found) {
        found = settling.dangling(all_known, most);
    }
    let mut by_file = Problems::new();
    for loose in found {
        let problems = by_file.entry(loose.file).or_default();
        if problems.len() < MOST {
            problems.push(loose.problem);
        }
    }
    Settled {
        rejected: settling.rejected,
        dangling: by_file,
    }
}

struct Settling<'a> {
    index: &'a mut Index,
    files: &'a BTreeMap<FileId, File>,
    rejected: Problems,
}

/// A dangling reference.
struct Loose {
    file: FileId,
    problem: Problem,
    to: Reference,
}

impl Settling<'_> {
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
        let mut down = Vec::new();
        for (_, id, parsed) in candidates {
            if let Err(clash) = self.index.insert(id, parsed) {
                self.rejected.insert(id.clone(), clash.problems);
                down.push(id.clone());
            }
        }
        self.restore(down);
    }

    /// Puts the last good state of files back. Candidates that contradict it
    /// are turned down as well: served resources stay.
    fn restore(&mut self, mut down: Vec<FileId>) {
        while let Some(id) = down.pop() {
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
                    self.rejected.insert(other.clone(), clash.problems);
                    down.push(other);
                }
            }
        }
    }

    fn evict(&mut self, clash: Clash) -> Vec<(FileId, Arc<Parsed>)> {
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

    /// Whether the file is about to change.
    fn taken(&self, id: &FileId) -> bool {
        let wish = self.files.get(id).and_then(|file| file.wish.as_ref());
        wish.is_some() && !self.rejected.contains_key(id)
    }

    /// The contents that a file will have.
    fn says(&self, id: &FileId) -> Option<&Arc<Parsed>> {
        let file = self.files.get(id)?;
        match (&file.wish, self.taken(id)) {
            (Some(Wish::New(parsed)), true) => Some(parsed),
            (Some(Wish::Gone), true) => None,
            _ => file.served.as_ref(),
        }
    }

    /// Dangling references. As long as the contents of some file are not known,
    /// none can be told.
    fn dangling(&self, all_known: bool, most: usize) -> Vec<Loose> {
        let gone = |file: &File| matches!(file.wish, Some(Wish::Gone));
        let known = |(id, file): (&FileId, &File)| gone(file) || self.says(id).is_some();
        if !all_known || !self.files.iter().all(known) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for id in self.files.keys() {
            let Some(parsed) = self.says(id) else {
                continue;
            };
            let references = parsed.items.iter().flat_map(|item| {
                let all = item.resource.facts().references.iter();
                all.map(move |to| (item, to))
            });
            let loose = references.filter(|(_, to)| self.leads_nowhere(to));
            for (item, to) in loose.take(most) {
                let fault = Fault::Dangling {
                    type_url: to.type_url.clone(),
                    name: to.name.clone(),
                };
                found.push(Loose {
                    file: id.clone(),
                    problem: parsed.problem(item, fault),
                    to: to.clone(),
                });
            }
        }
        found
    }

    fn leads_nowhere(&self, to: &Reference) -> bool {
        let ours = [kind::RDS, kind::CDS].contains(&to.type_url.as_str())
            || self.index.has_type(&to.type_url);
        // A whole collection may be empty.
        let collection = to.name.as_str().ends_with('*');
        ours && !collection && !self.index.answers(&to.type_url, &to.name)
    }

    /// Turns down the files that made references dangle; true if there was one.
    fn refuse(&mut self, found: &[Loose]) -> bool {
        let takers = self.takers();
        let mut down = Problems::new();
        for loose in found {
            let taker = takers.get(&(loose.to.type_url.clone(), loose.to.name.clone()));
            if self.taken(&loose.file) {
                let problems = down.entry(loose.file.clone()).or_default();
                problems.push(loose.problem.clone());
            } else if let Some(taker) = taker {
                let problems = down.entry((*taker).clone()).or_default();
                problems.push(still_needed(taker, &loose.to, &loose.problem.place));
            }
        }
        for (id, problems) in &mut down {
            problems.truncate(MOST);
            if self.files.get(id).and_then(File::candidate).is_some() {
                self.index.remove(id);
            }
        }
        let ids: Vec<_> = down.keys().cloned().collect();
        let any = !ids.is_empty();
        self.rejected.append(&mut down);
        self.restore(ids);
        any
    }

    /// The names that files are about to remove.
    fn takers(&self) -> HashMap<(TypeUrl, Name), &FileId> {
        let taken = self.files.iter().filter(|(id, _)| self.taken(id));
        let mut takers = HashMap::new();
        for (id, file) in taken {
            for item in file.served.iter().flat_map(|served| &served.items) {
                let own = std::iter::once(&item.resource.name);
                for name in own.chain(&item.resource.aliases) {
                    takers.insert((item.type_url.clone(), name.clone()), id);
                }
            }
        }
        takers
    }
}

fn still_needed(taker: &FileId, to: &Reference, by: &Place) -> Problem {
    let fault = Fault::StillNeeded {
        type_url: to.type_url.clone(),
        name: to.name.clone(),
        by: by.clone(),
    };
    Problem::whole(&taker.name, fault)
}
