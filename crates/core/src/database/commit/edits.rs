//! The changes of a transaction, by type and name.
//!
//! Nothing here needs the database, so a large transaction is sorted before
//! anybody has to wait for it.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::apply::ApplyError;
use super::super::entry::EntryId;
use crate::change::Change;
use crate::kind::Kind;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Resource, ResourceError, TypeUrl};

/// The edits of a transaction to one type.
#[derive(Debug)]
pub(super) struct TypeEdits {
    pub(super) url: TypeUrl,
    /// The type is replaced: old contents do not count, and names without an
    /// edit are removed.
    pub(super) replaces: bool,
    /// One for each name, sorted by name; then those of [`Self::add_removal`].
    pub(super) edits: Vec<Edit>,
    /// The number of edits that are sorted by name.
    named_count: usize,
}

/// The edit of one name: two words, since there may be millions.
#[derive(Debug)]
pub(super) enum Edit {
    /// One variant gets this body.
    Put(Arc<Resource>),
    /// Anything else.
    Rework(Box<Rework>),
    /// Removal of the name, because the type is replaced.
    Remove(EntryId),
    /// The edit was applied.
    Applied,
}

/// Any other result of the changes.
#[derive(Debug)]
pub(super) struct Rework {
    pub(super) name: Name,
    /// The old contents of the name do not count.
    drops_old: bool,
    /// No two have the same constraints.
    puts: Vec<Arc<Resource>>,
    /// Variants to remove.
    drops: Vec<Option<Constraints>>,
    /// The error that the name gets.
    failure: Option<Arc<ResourceError>>,
}

impl TypeEdits {
    /// Sorts all changes into edits, one for each name of a type. The types are
    /// in the order of their ranks, so that a resource comes before those that
    /// refer to it (S52). Fails if a resource has no body.
    pub(super) fn from_changes(changes: Vec<Change>) -> Result<Vec<Self>, ApplyError> {
        let mut types: Vec<Self> = Vec::new();
        for change in changes {
            Self::find_or_add(&mut types, change.type_url()).add(change)?;
        }
        types.iter_mut().for_each(Self::merge_by_name);
        types.sort_by_key(|edits| Kind::of(&edits.url).rank);
        Ok(types)
    }

    /// Returns the edits of a type, which are added if need be. The last type
    /// is looked at first: changes of one type mostly come together.
    fn find_or_add<'t>(types: &'t mut Vec<Self>, url: &TypeUrl) -> &'t mut Self {
        let position = types.iter().rposition(|edits| edits.url == *url);
        let index = position.unwrap_or_else(|| {
            types.push(Self {
                url: url.clone(),
                replaces: false,
                edits: Vec::new(),
                named_count: 0,
            });
            types.len() - 1
        });
        &mut types[index]
    }

    /// Adds the edit of one change; a change that replaces the type drops all
    /// edits before it. Several edits of a name stay apart until
    /// [`Self::merge_by_name`]. Fails if a resource has no body.
    fn add(&mut self, change: Change) -> Result<(), ApplyError> {
        let rework = match change {
            Change::Upsert(_, resource) => return self.add_put(resource),
            Change::ReplaceAll(_, resources) => {
                self.replaces = true;
                self.edits.clear();
                let mut resources = resources.into_iter();
                return resources.try_for_each(|resource| self.add_put(resource));
            }
            Change::Remove(_, name) => Rework {
                drops_old: true,
                ..Rework::new(name)
            },
            Change::RemoveVariant(_, name, constraints) => Rework {
                drops: vec![constraints],
                ..Rework::new(name)
            },
            Change::Fail(_, name, error) => Rework {
                // A transient error leaves the old contents in use (S61).
                drops_old: error.code.is_data_error(),
                failure: Some(error),
                ..Rework::new(name)
            },
        };

        self.edits.push(Edit::Rework(Box::new(rework)));
        Ok(())
    }

    /// Adds the edit of a resource; fails if it has no body.
    fn add_put(&mut self, resource: Arc<Resource>) -> Result<(), ApplyError> {
        if resource.body.is_none() {
            let name = resource.name.clone();
            return Err(ApplyError::NoBody { name });
        }
        self.edits.push(Edit::Put(resource));
        Ok(())
    }

    /// Sorts the edits by name, and merges those of one name in the order of
    /// their changes, which the sort keeps.
    fn merge_by_name(&mut self) {
        self.edits
            .sort_by(|left, right| left.name().cmp(&right.name()));
        self.edits.dedup_by(|later, earlier| {
            let is_same_name = later.name() == earlier.name();
            if is_same_name {
                earlier.merge(std::mem::replace(later, Edit::Applied));
            }
            is_same_name
        });
        self.named_count = self.edits.len();
    }

    /// Returns the number of edits that are sorted by name.
    pub(super) fn named_count(&self) -> usize {
        self.named_count
    }

    /// Removes a name, because the type is replaced. Called in the order of
    /// slots, for names that have no edit.
    pub(super) fn add_removal(&mut self, entry: EntryId) {
        self.edits.push(Edit::Remove(entry));
    }

    /// Returns the index of the edit of a name, if it has one. Removals of
    /// [`Self::add_removal`] have no name, and are not found.
    pub(super) fn find_by_name(&self, name: &Name) -> Option<usize> {
        let named_edits = &self.edits[..self.named_count];
        let position = named_edits.binary_search_by(|edit| edit.name().cmp(&Some(name)));
        position.ok()
    }

    /// Returns the index of the edit of an entry of the database, whose name
    /// this is. It may be a removal of [`Self::add_removal`].
    pub(super) fn find_by_entry(&self, entry: EntryId, name: &Name) -> Option<usize> {
        if let Some(index) = self.find_by_name(name) {
            return Some(index);
        }
        // Removals were added in the order of slots.
        let removals = &self.edits[self.named_count..];
        let index = removals.binary_search_by(|edit| match edit {
            Edit::Remove(removed_entry) => removed_entry.cmp(&entry),
            Edit::Put(_) | Edit::Rework(_) | Edit::Applied => Ordering::Less,
        });
        index.ok().map(|index| self.named_count + index)
    }

    /// Returns whether an edit leaves a name with a single resource, which can
    /// overlap with nothing; `old` are the contents before. False also for
    /// edits whose result has to be worked out first.
    pub(super) fn is_plain(&self, edit: usize, old: &[Arc<Resource>]) -> bool {
        match &self.edits[edit] {
            Edit::Put(new) => {
                let mut old_variants = old.iter();
                self.replaces || old_variants.all(|old| old.constraints == new.constraints)
            }
            Edit::Rework(_) | Edit::Remove(_) | Edit::Applied => false,
        }
    }

    /// Returns the contents of a name after the edit; `old` are the contents
    /// before, which do not count if the type is replaced.
    pub(super) fn contents(&self, edit: usize, old: &[Arc<Resource>]) -> Vec<Arc<Resource>> {
        let kept_contents = if self.replaces { &[] } else { old };
        self.edits[edit].contents(kept_contents)
    }
}

impl Edit {
    /// Returns the name of the edit; `None` for a removal, which has only an
    /// entry, and for an edit that was applied.
    pub(super) fn name(&self) -> Option<&Name> {
        match self {
            Self::Put(resource) => Some(&resource.name),
            Self::Rework(rework) => Some(&rework.name),
            Self::Remove(_) | Self::Applied => None,
        }
    }

    /// Returns the error that the edit gives the name, if it does.
    pub(super) fn failure(self) -> Option<Arc<ResourceError>> {
        match self {
            Self::Rework(rework) => rework.failure,
            Self::Put(_) | Self::Remove(_) | Self::Applied => None,
        }
    }

    /// Returns the contents of a name after the edit: the old variants that it
    /// neither removes nor replaces, and the new ones.
    fn contents(&self, old: &[Arc<Resource>]) -> Vec<Arc<Resource>> {
        let (puts, drops): (&[_], &[_]) = match self {
            Self::Put(resource) => (std::slice::from_ref(resource), &[]),
            Self::Rework(rework) if rework.drops_old => return rework.puts.clone(),
            Self::Rework(rework) => (&rework.puts, &rework.drops),
            Self::Remove(_) | Self::Applied => return Vec::new(),
        };
        let stays = |variant: &&Arc<Resource>| {
            let is_dropped = drops.contains(&variant.constraints);
            let is_replaced = puts
                .iter()
                .any(|put| put.constraints == variant.constraints);
            !is_dropped && !is_replaced
        };

        let mut contents = Vec::with_capacity(old.len() + puts.len());
        contents.extend(old.iter().filter(stays).cloned());
        contents.extend(puts.iter().cloned());
        contents
    }

    /// Merges a later edit of the same name into this one, which becomes a
    /// rework. Both are puts or reworks: others have no name.
    fn merge(&mut self, later: Self) {
        let earlier = std::mem::replace(self, Self::Applied);
        if let Some(mut rework) = earlier.into_rework()
            && let Some(later) = later.into_rework()
        {
            rework.merge(*later);
            *self = Self::Rework(rework);
        }
    }

    /// Turns a put or a rework into its general form; `None` for an edit
    /// without a name.
    fn into_rework(self) -> Option<Box<Rework>> {
        match self {
            Self::Rework(rework) => Some(rework),
            Self::Put(resource) => Some(Box::new(Rework {
                puts: vec![Arc::clone(&resource)],
                ..Rework::new(resource.name.clone())
            })),
            Self::Remove(_) | Self::Applied => None,
        }
    }
}

impl Rework {
    /// Makes a rework that changes nothing.
    fn new(name: Name) -> Self {
        Self {
            name,
            drops_old: false,
            puts: Vec::new(),
            drops: Vec::new(),
            failure: None,
        }
    }

    /// Adds the changes of a later rework, which drops or replaces variants of
    /// this one with the same constraints. One that drops the old contents
    /// replaces all of this one.
    fn merge(&mut self, later: Self) {
        if later.drops_old {
            *self = later;
            return;
        }
        self.puts.retain(|put| {
            let is_dropped = later.drops.contains(&put.constraints);
            let mut new_puts = later.puts.iter();
            let is_replaced = new_puts.any(|new_put| new_put.constraints == put.constraints);
            !is_dropped && !is_replaced
        });
        self.puts.extend(later.puts);
        self.drops.extend(later.drops);
        // A later change ends an error, or brings its own.
        self.failure = later.failure;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::ErrorCode;

    fn put(name: &str, clients: Option<&str>, body: &'static str) -> Arc<Resource> {
        let mut resource = Resource::new(name.into(), body.into());
        resource.constraints = clients.map(|text| text.parse().unwrap());
        Arc::new(resource)
    }

    fn edits(changes: Vec<Change>) -> TypeEdits {
        TypeEdits::from_changes(changes).unwrap().remove(0)
    }

    #[test]
    fn several_changes_of_a_name_become_one_edit() {
        let (a, b) = (put("n", Some("env=a"), "1"), put("n", Some("env=b"), "1"));
        let newer = put("n", Some("env=a"), "2");
        let upsert = |r: &Arc<Resource>| Change::Upsert("t".into(), Arc::clone(r));
        let old = [Arc::clone(&b)];
        let both = edits(vec![upsert(&a), upsert(&newer)]);
        assert_eq!(both.contents(0, &old), [b.clone(), newer.clone()]);
        let gone = Change::RemoveVariant("t".into(), "n".into(), b.constraints.clone());
        let one = edits(vec![gone.clone(), upsert(&newer)]);
        assert_eq!(one.contents(0, &old), std::slice::from_ref(&newer));
        let none = edits(vec![upsert(&b), gone]);
        assert_eq!(none.contents(0, &old), []);
        let last = Change::Remove("t".into(), "n".into());
        let removed = edits(vec![upsert(&newer), last.clone()]);
        assert_eq!(removed.contents(0, &old), []);
        let again = edits(vec![last, upsert(&a)]);
        assert_eq!(again.contents(0, &old), [a]);
    }

    #[test]
    fn a_type_that_is_replaced_forgets_what_was_said_before() {
        let (a, b) = (put("a", None, "1"), put("b", None, "1"));
        let all = Change::ReplaceAll("t".into(), vec![Arc::clone(&b)]);
        let edits = edits(vec![Change::Upsert("t".into(), Arc::clone(&a)), all]);
        assert!(edits.replaces);
        assert_eq!(edits.find_by_name(&"a".into()), None);
        let old = [put("b", Some("env=a"), "1")];
        assert_eq!(edits.contents(0, &old), [b]);
    }

    #[test]
    fn what_arrives_ends_a_failure() {
        let error = ResourceError {
            code: ErrorCode::Unavailable,
            message: "down".into(),
        };
        let fail = Change::Fail("t".into(), "a".into(), Arc::new(error));
        let put = Change::Upsert("t".into(), put("a", None, "1"));
        let failed = |changes| match &edits(changes).edits[0] {
            Edit::Rework(rework) => rework.failure.is_some(),
            _ => false,
        };
        assert!(failed(vec![put.clone(), fail.clone()]));
        assert!(!failed(vec![fail, put]));
    }

    #[test]
    fn a_single_resource_for_the_same_clients_needs_no_closer_look() {
        let upsert = |clients| edits(vec![Change::Upsert("t".into(), put("n", clients, "2"))]);
        let old = [put("n", Some("env=a"), "1")];
        assert!(upsert(None).is_plain(0, &[]));
        assert!(upsert(Some("env=a")).is_plain(0, &old));
        assert!(!upsert(Some("env=b")).is_plain(0, &old));
        assert!(!upsert(None).is_plain(0, &old));
        let replaced = edits(vec![Change::ReplaceAll(
            "t".into(),
            vec![put("n", None, "2")],
        )]);
        assert!(replaced.is_plain(0, &old));
        let removed = edits(vec![Change::Remove("t".into(), "n".into())]);
        assert!(!removed.is_plain(0, &[]));
    }
}
