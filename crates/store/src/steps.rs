//! Steps of an update, one for each file, so that it can be undone when the
//! database refuses it.

use std::sync::Arc;

use trunkline::checked::{Document, Fault, Finding};
use trunkline::{ApplyError, Change, Name};

use crate::coverage::find_unserved_values;
use crate::diff;
use crate::file::{File, FileId, NewState};
use crate::files::Files;
use crate::settle::{Settled, settle};

/// A change of one file, to be undone if it is refused.
pub(crate) struct Step {
    pub(crate) id: FileId,
    before: Option<Arc<Document>>,
    after: Option<Arc<Document>>,
}

impl Step {
    /// Puts the new state of a file in place, so that it is the served one, and
    /// returns the step from the state before. A removed file is served no
    /// more, but stays in its map.
    fn take(id: &FileId, file: &mut File, new_state: NewState) -> Self {
        let before = file.served.take();
        let after = match new_state {
            NewState::Contents(document) => {
                file.mark_good(Arc::clone(&document));
                Some(document)
            }
            NewState::Removed => None,
        };
        let id = Arc::clone(id);
        Self { id, before, after }
    }

    /// Returns whether the new state has a resource of one of these names; a
    /// removed file has none.
    fn has_any_of(&self, names: &[&Name]) -> bool {
        let mut items = self.after.iter().flat_map(|document| &document.items);
        items.any(|item| names.contains(&&item.resource.name))
    }
}

impl Files {
    /// Returns the changes that the steps of the last update amount to, upserts
    /// first.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let before = self.steps.iter().filter_map(|step| step.before.as_deref());
        let after = self.steps.iter().filter_map(|step| step.after.as_deref());
        diff::between(before, after)
    }

    /// Settles the files, and records the steps: the files whose new states are
    /// served from now on. A file that was turned down is bad, and tried again
    /// the next time. Removed files are dropped.
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
                file.mark_bad(errors);
                file.was_turned_down = true;
            } else if let Some(new_state) = file.new_state.take() {
                self.steps.push(Step::take(id, file, new_state));
            }
        }

        let removed = self.steps.iter().filter(|step| step.after.is_none());
        for step in removed {
            self.files.remove(&step.id);
        }
        if !self.steps.is_empty() {
            self.update_unserved();
        }
    }

    /// Replaces the warnings of all files about values that no variant of a
    /// name serves.
    fn update_unserved(&mut self) {
        let files = self.files.iter();
        let served = files.filter_map(|(id, file)| Some((id, file.served.as_deref()?)));
        let mut unserved = find_unserved_values(served);
        for (id, file) in &mut self.files {
            file.unserved = unserved.remove(id).unwrap_or_default();
        }
    }

    /// Undoes the last update, which the database refused. Files with a name in
    /// the error are bad until they change; if no file has such a name, all
    /// that changed are. The new states of the others are tried again. `first`
    /// says whether it was the first update.
    pub(crate) fn undo_update(&mut self, error: &ApplyError, first: bool) {
        if first {
            self.loaded = false;
            self.steps = self.first_steps();
        }

        let steps = std::mem::take(&mut self.steps);
        let names = names_of(error);
        let any_named = steps.iter().any(|step| step.has_any_of(&names));

        // All new states leave the index before an old one returns: a resource
        // may have moved from one file to another.
        for step in steps.iter().filter(|step| step.after.is_some()) {
            self.index.remove(&step.id);
        }
        for step in steps {
            let at_fault = step.after.is_some() && (!any_named || step.has_any_of(&names));
            self.undo_step(step, at_fault.then_some(error));
        }
        self.update_unserved();
    }

    /// Returns the steps of the first update: one for each served file, which
    /// had no state before. The steps of the last refresh may be fewer, because
    /// files were read before all were good.
    fn first_steps(&self) -> Vec<Step> {
        let served = self.files.iter().filter_map(|(id, file)| {
            Some(Step {
                id: Arc::clone(id),
                before: None,
                after: Some(file.served.clone()?),
            })
        });
        served.collect()
    }

    /// Puts back the state that a file had before a step. With an `error` the
    /// file is at fault: it is bad, and its new state is forgotten. Without
    /// one, the new state is to be tried again.
    fn undo_step(&mut self, step: Step, error: Option<&ApplyError>) {
        let file = self.files.entry(Arc::clone(&step.id)).or_default();
        file.served = step.before;
        if let Some(before) = &file.served {
            // The states before were in the index together, so this one fits.
            let _ = self.index.insert(&step.id, before);
        }
        file.new_state = match (error, step.after) {
            (Some(error), _) => {
                let fault = Fault::Refused(error.clone());
                file.mark_bad(vec![Finding::whole(&step.id.name, fault)]);
                None
            }
            (None, Some(after)) => Some(NewState::Contents(after)),
            (None, None) => Some(NewState::Removed),
        };
    }
}

/// Returns the names of the resources for which the database refused changes.
fn names_of(error: &ApplyError) -> Vec<&Name> {
    match error {
        ApplyError::Overlap { name, .. }
        | ApplyError::Undecided { name, .. }
        | ApplyError::NoBody { name } => vec![name],
        ApplyError::Domain { first, second, .. } => vec![first, second],
    }
}
