//! Steps of an update, one for each file, so that it can be undone when the
//! database refuses it.

use std::sync::Arc;

use trunkline::checked::{Document, Fault, Finding};
use trunkline::{ApplyError, Change, Name};

use crate::coverage::uncovered;
use crate::diff;
use crate::file::{File, FileId, Wish};
use crate::files::Files;
use crate::settle::{Settled, settle};

/// A change of one file, to be undone if it is refused.
pub(crate) struct Step {
    pub(crate) id: FileId,
    before: Option<Arc<Document>>,
    after: Option<Arc<Document>>,
}

impl Step {
    /// Puts the new state of a file in place.
    fn new(id: &FileId, file: &mut File, wish: Wish) -> Self {
        let before = file.served.take();
        let after = match wish {
            Wish::New(parsed) => {
                file.serve(Arc::clone(&parsed));
                Some(parsed)
            }
            Wish::Gone => None,
        };
        let id = Arc::clone(id);
        Self { id, before, after }
    }

    /// Whether the new state has a resource of one of these names.
    fn has_any(&self, names: &[&Name]) -> bool {
        let mut items = self.after.iter().flat_map(|parsed| &parsed.items);
        items.any(|item| names.contains(&&item.resource.name))
    }
}

impl Files {
    /// Returns the changes that the steps amount to.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let before = self.steps.iter().filter_map(|step| step.before.as_deref());
        let after = self.steps.iter().filter_map(|step| step.after.as_deref());
        diff::between(before, after)
    }

    /// Settles the files, and records the steps: the files whose new states are
    /// served from now on.
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
            } else if let Some(wish) = file.wish.take() {
                self.steps.push(Step::new(id, file, wish));
            }
        }
        for step in self.steps.iter().filter(|step| step.after.is_none()) {
            self.files.remove(&step.id);
        }
        if !self.steps.is_empty() {
            self.find_unserved();
        }
    }

    /// Finds the values that no variant of a name serves, in all files.
    fn find_unserved(&mut self) {
        let files = self.files.iter();
        let served = files.filter_map(|(id, file)| Some((id, file.served.as_deref()?)));
        let mut unserved = uncovered(served);
        for (id, file) in &mut self.files {
            file.unserved = unserved.remove(id).unwrap_or_default();
        }
    }

    /// Undoes the last update, which the database refused. Files with a name in
    /// the error are bad until they change; if there is none, all that changed
    /// are. The new states of the others are tried again. `first` says whether
    /// it was the first update.
    pub(crate) fn refused(&mut self, error: &ApplyError, first: bool) {
        if first {
            self.loaded = false;
            self.steps = self.first_steps();
        }
        let steps = std::mem::take(&mut self.steps);
        let names = names_of(error);
        let any_named = steps.iter().any(|step| step.has_any(&names));
        for step in steps.iter().filter(|step| step.after.is_some()) {
            self.index.remove(&step.id);
        }
        for step in steps {
            let at_fault = step.after.is_some() && (!any_named || step.has_any(&names));
            self.undo(step, at_fault.then_some(error));
        }
        self.find_unserved();
    }

    /// Returns the steps of the first update, which creates all resources.
    /// Those of the last refresh may be fewer, because files were read before
    /// all were good.
    fn first_steps(&self) -> Vec<Step> {
        let served = self.files.iter().filter_map(|(id, file)| {
            let after = Some(file.served.clone()?);
            let (id, before) = (Arc::clone(id), None);
            Some(Step { id, before, after })
        });
        served.collect()
    }

    /// Puts the state of a file before a step back. A file that is at fault is
    /// bad, by `error`; the new state of another is to be tried again.
    fn undo(&mut self, step: Step, error: Option<&ApplyError>) {
        let file = self.files.entry(Arc::clone(&step.id)).or_default();
        file.served = step.before;
        if let Some(before) = &file.served {
            // They were in the index together before.
            let _ = self.index.insert(&step.id, before);
        }
        file.wish = match (error, step.after) {
            (Some(error), _) => {
                let fault = Fault::Refused(error.clone());
                file.fail(vec![Finding::whole(&step.id.name, fault)]);
                None
            }
            (None, Some(after)) => Some(Wish::New(after)),
            (None, None) => Some(Wish::Gone),
        };
    }
}

/// Returns the names of the resources because of which changes were refused.
fn names_of(error: &ApplyError) -> Vec<&Name> {
    match error {
        ApplyError::Overlap { name, .. }
        | ApplyError::Undecided { name, .. }
        | ApplyError::NoBody { name } => vec![name],
        ApplyError::Domain { first, second, .. } => vec![first, second],
    }
}
