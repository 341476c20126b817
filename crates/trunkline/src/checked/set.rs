//! All contents of a server: checked, and settled with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::database::ApplyError;
use trunkline_core::resource::{Resource, TypeUrl};

use super::coverage::Coverage;
use super::diff::Diff;
use super::document::Document;
use super::edit::{Edit, OpenEdit};
use super::finding::{Fault, Finding};
use super::guard::{Confirmed, Guard, Judgement};
use super::index::Index;
use super::place::Place;
use super::references::DanglingReferences;
use super::rows::{AcceptedChanges, Keeping};
use super::settle::Settling;
use super::slots::SlotItem;
use super::unit::{OriginId, UnitId, UnitKey};
use super::warnings::update_coverage;

/// The treatment of a reference to a resource that does not exist.
///
/// References to routes, clusters and endpoints are always checked. Secrets,
/// scopes and the like often come from another server: references to such a
/// type are checked if there are some of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dangling {
    /// A warning: an Envoy may have the resource from its bootstrap.
    #[default]
    Warn,
    /// A mistake, of the edit that adds the reference or of the one that
    /// removes the resource.
    Refuse,
}

/// Changes that an origin proposes.
#[derive(Debug)]
pub struct Proposal<'a> {
    /// The name of the origin.
    pub origin: &'a str,
    /// Its edits: of files, or one of resources. Of two that contradict each
    /// other, the earlier one wins.
    pub edits: Vec<Edit>,
    /// The treatment of dangling references.
    pub dangling: Dangling,
    /// Whether all contents of the origin are known. If not, no reference is
    /// checked: the unknown contents may have the resource.
    pub is_complete: bool,
    /// What becomes of its changes.
    pub effect: Effect,
    /// Whether changes that remove much are held.
    pub guard: Guard,
}

/// What becomes of the changes of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// They are applied.
    Applied,
    /// They are settled, but applied later: the contents are not all good yet.
    Held,
    /// Nothing is changed; only the result is wanted.
    Rehearsed,
}

/// The result of settling a proposal.
#[derive(Debug)]
pub struct Settlement<T> {
    /// The result of applying the changes; `None` if there were none.
    pub applied: Option<T>,
    /// How many resources were written that are as they were.
    pub unchanged: usize,
    /// The edits that were rejected.
    pub rejections: Vec<Rejection>,
    /// Warnings about the edits that were accepted.
    pub warnings: Vec<Finding>,
}

/// An edit that was rejected.
#[derive(Debug)]
pub struct Rejection {
    /// Its number in the proposal.
    pub edit: usize,
    /// The reasons.
    pub findings: Vec<Finding>,
    /// Its document, which can be proposed again.
    pub document: Option<Document>,
}

/// All contents, by origin. No two resources contradict each other.
///
/// ```
/// use std::io::Cursor;
/// use trunkline::checked::{
///     ContentSet, Dangling, Edit, Effect, Form, Guard, Proposal, ResourceEdit, decode,
/// };
///
/// let text = "resources: [{'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a}]";
/// let options = trunkline::wire::text_options();
/// let decoded = decode(&"".into(), Form::ByName, Cursor::new(text), &options)?;
/// let mut set = ContentSet::default();
/// let settlement = set.settle(
///     Proposal {
///         origin: "example",
///         edits: vec![Edit::Resources(ResourceEdit::of_document(decoded.document))],
///         dangling: Dangling::Warn,
///         is_complete: true,
///         effect: Effect::Applied,
///         guard: Guard::Off,
///     },
///     |changes| Ok(changes.len()),
/// );
/// assert_eq!(settlement.applied, Some(1));
/// assert!(settlement.rejections.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ContentSet {
    index: Index,
    dangling: DanglingReferences,
    coverage: Coverage,
    /// Origins whose contents are not all known.
    incomplete: BTreeSet<OriginId>,
    confirmed: Confirmed,
}

impl ContentSet {
    /// Settles a proposal against all other contents, and passes the resulting
    /// changes to `apply`. If `apply` refuses them, the edits at fault are
    /// rejected, and the changes of the others are applied.
    pub fn settle<T>(
        &mut self,
        proposal: Proposal<'_>,
        mut apply: impl FnMut(Vec<Change>) -> Result<T, ApplyError>,
    ) -> Settlement<T> {
        let apply = |accepted: AcceptedChanges| apply(accepted.changes);
        self.settle_rows(proposal, Keeping::Nothing, apply)
    }

    /// Settles a proposal as [`Self::settle`] does. `apply` also gets the rows
    /// that the proposal changes, if `keeping` asks for them.
    pub(crate) fn settle_rows<T>(
        &mut self,
        proposal: Proposal<'_>,
        keeping: Keeping,
        mut apply: impl FnMut(AcceptedChanges) -> Result<T, ApplyError>,
    ) -> Settlement<T> {
        let origin = self.note_origin(&proposal);

        let edits = proposal.edits.into_iter();
        let edits = edits
            .map(|edit| edit.open(&mut self.index, origin))
            .collect();

        let mut settling = Settling::new(&mut self.index, edits);
        settling.try_edits();
        let checks_references = self.incomplete.is_empty() && !settling.has_unknown_contents();
        if checks_references && proposal.dangling == Dangling::Refuse {
            settling.reject_dangling();
        }

        let judge = |settling: &Settling<'_>, changes: &[Change]| {
            settling.judge(changes, origin, proposal.guard, &self.confirmed)
        };
        let outcome = apply_changes(&mut settling, keeping, judge, &mut apply);
        if let Some(hash) = &outcome.confirmed
            && proposal.effect == Effect::Applied
        {
            self.confirmed.remove(hash);
        }

        let lost = checks_references.then(|| settling.lost_names());
        let touched = settling.touched_units();
        let is_rehearsed = proposal.effect == Effect::Rehearsed;
        let warnings = update_coverage(
            &mut settling,
            &mut self.coverage,
            lost.as_ref(),
            is_rehearsed,
        );
        if !is_rehearsed {
            match &lost {
                Some(lost) => self.dangling.update(settling.index, &touched, lost),
                None => self.dangling.clear(),
            }
        }

        let edits = std::mem::take(&mut settling.edits);
        self.forget_settled(&edits, &touched);
        Settlement {
            applied: outcome.applied,
            unchanged: outcome.unchanged,
            rejections: edits
                .into_iter()
                .enumerate()
                .filter_map(into_rejection)
                .collect(),
            warnings,
        }
    }

    /// Returns the number of a proposal's origin, and notes whether all
    /// contents of that origin are known.
    fn note_origin(&mut self, proposal: &Proposal<'_>) -> OriginId {
        let origin = self.index.slots.origins.find_or_add(proposal.origin);
        if proposal.is_complete {
            self.incomplete.remove(&origin);
        } else {
            self.incomplete.insert(origin);
        }
        origin
    }

    /// Frees what a settlement leaves unused: the places of resources that are
    /// not of files, units without items, and origins without resources.
    fn forget_settled(&mut self, edits: &[OpenEdit], touched: &BTreeSet<UnitId>) {
        for edit in edits.iter().filter(|edit| !edit.is_file) {
            for id in &edit.inserted {
                self.index.slots.forget_place(*id);
            }
        }
        for unit in touched {
            self.index.slots.units.remove_if_empty(*unit);
        }
        let is_kept = |origin| self.incomplete.contains(&origin);
        self.index.slots.origins.forget_empty(is_kept);
    }

    /// Confirms a change that is held, by its hash: it is accepted when it is
    /// proposed again. Only the last 64 confirmations are kept.
    pub fn confirm(&mut self, hash: &str) {
        self.confirmed.add(hash);
    }

    /// Replaces the resources of a document that the set already has by the
    /// set's own, so that a document which waits to be proposed takes less
    /// memory.
    pub fn share(&self, document: &mut Document) {
        for item in &mut document.items {
            let shared_resource = {
                let mut variants = self.index.variants(&item.type_url, &item.resource.name);
                let same = variants.find(|(_, variant)| *variant.resource == item.resource);
                same.map(|(_, variant)| Arc::clone(variant.resource))
            };
            if let Some(shared_resource) = shared_resource {
                item.resource = shared_resource;
            }
        }
    }

    /// Returns the dangling references of a file.
    #[must_use]
    pub fn dangling_of_file(&self, origin: &str, root: usize, name: &Arc<str>) -> Vec<Finding> {
        let unit = self.find_file(origin, root, name);
        let dangling = unit.map(|unit| self.dangling.of_unit(unit));
        let findings = dangling.into_iter().flatten();
        findings
            .map(|reference| reference.finding.clone())
            .collect()
    }

    /// Returns the warnings about values that no variant serves, of names whose
    /// first variants are in a file.
    #[must_use]
    pub fn unserved_of_file(&self, origin: &str, root: usize, name: &Arc<str>) -> Vec<Finding> {
        let unit = self.find_file(origin, root, name);
        let unserved = unit.map(|unit| self.coverage.of_unit(unit));
        unserved.into_iter().flatten().cloned().collect()
    }

    /// Finds the unit of a file: `root` is the position of the configured path
    /// that the file was found below.
    fn find_file(&self, origin: &str, root: usize, name: &Arc<str>) -> Option<UnitId> {
        let origin = self.index.slots.origins.find(origin)?;
        let name = Arc::clone(name);
        self.index
            .slots
            .units
            .find(origin, &UnitKey::File { root, name })
    }

    /// Returns all resources of an origin with their types.
    #[must_use]
    pub fn resources(&self, origin: &str) -> Vec<(TypeUrl, Arc<Resource>)> {
        let slots = &self.index.slots;
        let origin = slots.origins.find(origin);
        let items = slots.iter().map(|(_, item)| item);
        let items = items.filter(|item| slots.units.origin_of(item.unit) == origin);
        let resources = items.map(|item| (item.type_url.clone(), Arc::clone(item.resource)));
        resources.collect()
    }

    /// Returns all resources of a file with their types.
    #[must_use]
    pub fn resources_of_file(
        &self,
        origin: &str,
        root: usize,
        name: &Arc<str>,
    ) -> Vec<(TypeUrl, Arc<Resource>)> {
        let slots = &self.index.slots;
        let unit = self.find_file(origin, root, name);
        let unit = unit.and_then(|unit| slots.units.get(unit));
        let items = unit.into_iter().flat_map(|unit| &unit.items);
        let items = items.filter_map(|id| slots.get(*id));
        let resources = items.map(|item| (item.type_url.clone(), Arc::clone(item.resource)));
        resources.collect()
    }

    /// Returns the name of the origin that has a resource; `None` if the set
    /// does not have it. The resource is found by its type, name and
    /// constraints.
    #[must_use]
    pub fn origin_of(&self, type_url: &TypeUrl, resource: &Resource) -> Option<Arc<str>> {
        let slots = &self.index.slots;
        let item = self.find_variant(type_url, resource)?;
        Some(slots.origins.name(slots.units.origin_of(item.unit)?))
    }

    /// Returns the place of a resource in its file; `None` if it is of no file,
    /// or the set does not have it. The resource is found by its type, name and
    /// constraints.
    #[must_use]
    pub fn place_of(&self, type_url: &TypeUrl, resource: &Resource) -> Option<Place> {
        let item = self.find_variant(type_url, resource)?;
        item.at.is_known().then(|| self.index.slots.place(item))
    }

    /// Finds the variant of a name that has the constraints of a resource,
    /// whatever its body.
    fn find_variant<'a>(
        &'a self,
        type_url: &'a TypeUrl,
        resource: &'a Resource,
    ) -> Option<SlotItem<'a>> {
        let mut variants = self.index.variants(type_url, &resource.name);
        let same = variants.find(|(_, item)| item.resource.constraints == resource.constraints);
        same.map(|(_, item)| item)
    }

    /// Returns the finding of a fault of a resource, at its place. Returns
    /// `None` if the set does not have exactly this resource.
    #[must_use]
    pub fn finding(
        &self,
        type_url: &TypeUrl,
        resource: &Resource,
        fault: Fault,
    ) -> Option<Finding> {
        let mut variants = self.index.variants(type_url, &resource.name);
        let (_, item) = variants.find(|(_, item)| **item.resource == *resource)?;
        Some(self.index.slots.finding(item.unit, item.at, fault))
    }

    /// Counts the resources of each type by the names of their origins.
    /// Variants count one by one.
    #[must_use]
    pub fn count_by_origin(&self) -> BTreeMap<TypeUrl, BTreeMap<Arc<str>, usize>> {
        let slots = &self.index.slots;
        let mut by_id: BTreeMap<(&TypeUrl, OriginId), usize> = BTreeMap::new();
        for (_, item) in slots.iter() {
            if let Some(origin) = slots.units.origin_of(item.unit) {
                *by_id.entry((item.type_url, origin)).or_default() += 1;
            }
        }
        let mut counts: BTreeMap<TypeUrl, BTreeMap<Arc<str>, usize>> = BTreeMap::new();
        for ((type_url, origin), count) in by_id {
            let origin_counts = counts.entry(type_url.clone()).or_default();
            origin_counts.insert(slots.origins.name(origin), count);
        }
        counts
    }
}

/// The outcome of applying the changes of edits.
struct Outcome<T> {
    /// The result; `None` if there were no changes.
    applied: Option<T>,
    /// How many resources were written that are as they were.
    unchanged: usize,
    /// The hash of the changes, if they had to be confirmed.
    confirmed: Option<String>,
}

/// Applies the changes of the accepted edits. As long as changes are held or
/// refused, the edits at fault are rejected, and the changes of the others are
/// tried.
fn apply_changes<T>(
    settling: &mut Settling<'_>,
    keeping: Keeping,
    judge: impl Fn(&Settling<'_>, &[Change]) -> Judgement,
    apply: &mut impl FnMut(AcceptedChanges) -> Result<T, ApplyError>,
) -> Outcome<T> {
    loop {
        let Diff { changes, unchanged } = settling.diff();
        let mut outcome = Outcome {
            applied: None,
            unchanged: unchanged.len(),
            confirmed: None,
        };
        // The database keeps its own copies of unchanged resources, which the
        // set shares.
        for (id, resource) in unchanged {
            settling.index.slots.replace_resource(id, resource);
        }

        let rows = match keeping {
            Keeping::Rows => settling.row_changes(),
            Keeping::Nothing => Vec::new(),
        };
        if changes.is_empty() && rows.is_empty() {
            return outcome;
        }

        match judge(settling, &changes) {
            Judgement::Hold(fault) if settling.reject_held(&fault) => continue,
            Judgement::Hold(_) => return outcome,
            Judgement::Pass(confirmed) => outcome.confirmed = confirmed,
        }
        match apply(AcceptedChanges { changes, rows }) {
            Ok(applied) => {
                outcome.applied = Some(applied);
                return outcome;
            }
            Err(error) if settling.reject_refused(&error) => {}
            Err(_) => return outcome,
        }
    }
}

/// Returns an edit as a rejection; `None` if it was accepted.
fn into_rejection((nth, edit): (usize, OpenEdit)) -> Option<Rejection> {
    if !edit.is_rejected() {
        return None;
    }
    let items = edit.new.into_iter().flat_map(|(_, items)| items).collect();
    Some(Rejection {
        edit: nth,
        findings: edit.findings,
        document: edit.document.map(|document| Document { items, ..document }),
    })
}
