//! Steps of an update, one for each file, so that it can be undone when the
//! database refuses it.

use std::sync::Arc;

use trunkline::{ApplyError, Change};

use crate::coverage::uncovered;
use crate::diff;
use crate::file::{FileId, Wish};
use crate::files::Files;
use crate::item::Parsed;
use crate::problem::{Fault, Problem};
use crate::settle::{Settled, settle};

/// A change of one file, to be undone if it is refused.
pub(crate) struct Step {
    pub(crate) id: FileId,
    before: Option<Arc<Parsed>>,
    after: Option<Arc<Parsed>>,
}

impl Files {
    /// The changes that the steps amount to.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let before = self.steps.iter().filter_map(|step| step.before.as_deref());
        let after = self.steps.iter().filter_map(|step| step.after.as_deref());
        diff::between(before, after)
    }

    /// Settles the files, and records the steps.
    pub(crate) fn settle(&mut self) {
        let all_known = self.failed.is_empty();
        let dangling = self.options.dangling;
        let Settled {
            mut rejected,
            mut dangling,
        } = settle(&mut self.index, &self.files, all_known, dangling);
        self.steps.clear();
        for (id, file) in &mut self.files {
            file.dangling = dangling.remove(id).unwrap_or_default();
            if let Some(errors) = rejected.remove(id) {
                file.fail(errors);
                file.lost = true;
                continue;
            }
            let Some(wish) = file.wish.take() else {
                continue;
            };
            let before = file.served.take();
            let after = match wish {
                Wish::New(parsed) => {
                    file.take(Arc::clone(&parsed));
                    Some(parsed)
                }
                Wish::Gone => None,
            };
            let id = Arc::clone(id);
            self.steps.push(Step { id, before, after });
        }
        for step in self.steps.iter().filter(|step| step.after.is_none()) {
            self.files.remove(&step.id);
        }
        if !self.steps.is_empty() {
            self.cover();
        }
    }

    /// Finds values that no variant serves.
    fn cover(&mut self) {
        let files = self.files.iter();
        let served = files.filter_map(|(id, file)| Some((id, file.served.as_deref()?)));
        let mut unserved = uncovered(served);
        for (id, file) in &mut self.files {
            file.unserved = unserved.remove(id).unwrap_or_default();
        }
    }

    /// Undoes the last update, which the database refused. Files with a name in
    /// the error are bad until they change.
    pub(crate) fn refused(&mut self, error: &ApplyError, first: bool) {
        let names = match error {
            ApplyError::Overlap { name, .. }
            | ApplyError::Undecided { name, .. }
            | ApplyError::NoBody { name } => vec![name],
            ApplyError::Domain { first, second, .. } => vec![first, second],
        };
        if first {
            self.loaded = false;
            let served = self.files.iter().filter_map(|(id, file)| {
                let after = Some(file.served.clone()?);
                let (id, before) = (Arc::clone(id), None);
                Some(Step { id, before, after })
            });
            self.steps = served.collect();
        }
        let steps = std::mem::take(&mut self.steps);
        let has = |parsed: &Parsed| {
            let mut items = parsed.items.iter();
            items.any(|item| names.contains(&&item.resource.name))
        };
        let new = |step: &Step| step.after.as_deref().is_some_and(has);
        let anyone = steps.iter().any(new);
        for step in &steps {
            if step.after.is_some() {
                self.index.remove(&step.id);
            }
        }
        for step in steps {
            let guilty = step.after.is_some() && (!anyone || new(&step));
            let file = self.files.entry(Arc::clone(&step.id)).or_default();
            file.served = step.before;
            if let Some(before) = &file.served {
                // They were in the index together before.
                let _ = self.index.insert(&step.id, before);
            }
            file.wish = match step.after {
                _ if guilty => {
                    let fault = Fault::Refused(error.clone());
                    file.fail(vec![Problem::whole(&step.id.name, fault)]);
                    None
                }
                Some(after) => Some(Wish::New(after)),
                None => Some(Wish::Gone),
            };
        }
        self.cover();
    }
}
