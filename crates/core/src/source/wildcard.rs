//! Wildcards and globs: opens cursors and closes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use super::client_cache::{CachedResource, Cursor};
use super::{Mode, TypeStream};
use crate::database::{CursorId, Database, ResumePoint, Scope};
use crate::message::InitialVersions;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::Version;

/// The names to resend among those that a cursor lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resend {
    All,
    /// Only names that an earlier cursor covers too, and decides.
    CoveredByOthers,
}

impl TypeStream {
    /// Subscribes to a scope. If the client was subscribed before, the whole
    /// scope is resent (S28). Otherwise a cursor is opened, which resumes at
    /// the versions in `initial` if there are any.
    pub(crate) fn subscribe_scope(
        &mut self,
        db: &mut Database,
        scope: &Scope,
        initial: &InitialVersions,
    ) {
        if let Some(cursor) = self.client_cache.cursor_of(scope) {
            let id = cursor.id;
            self.record_tombstones(db, scope);
            self.resend_names_of(db, id, Resend::All);
            return;
        }

        let id = db.open_cursor(self.subscriber, scope);
        // Nothing was sent by the cursor, so records and subscriptions count.
        let keys = self.subscriptions.keys();
        let subscribed_names = keys.map(|key| db.name(self.type_id, key.entry).clone());
        let records = self.client_cache.records();
        let recorded_names = records.map(|record| record.resource.name.clone());
        let exceptions: BTreeSet<Name> = recorded_names.chain(subscribed_names).collect();
        self.client_cache.add_cursor(Cursor::new(scope.clone(), id));
        for name in exceptions {
            self.client_cache.mark_exception(&name);
        }

        self.record_tombstones(db, scope);
        if !initial.is_empty() {
            self.resume_cursor(db, id, initial);
        }
        self.resend_names_of(db, id, Resend::CoveredByOthers);
    }

    /// Records the remembered tombstones of a glob as held, so that they are
    /// removed: the members of a glob are not among the initial versions of a
    /// client (S75). Nothing is recorded for a wildcard.
    fn record_tombstones(&mut self, db: &mut Database, scope: &Scope) {
        let Scope::Glob(glob) = scope else { return };
        for name in db.tombstones(self.type_id, glob) {
            if self.client_cache.held_after_acks(db, &name).is_empty()
                && self.subscriptions_of(db, &name).is_empty()
            {
                let record = CachedResource::unknown_body(name.clone(), Version::unknown());
                self.client_cache.record(db, record);
                self.dirty.insert(name);
            }
        }
    }

    /// Resumes a cursor at the versions that a reconnecting client holds: only
    /// the differences are sent (S45, S46).
    fn resume_cursor(&mut self, db: &mut Database, id: CursorId, initial: &InitialVersions) {
        let point = match db.resume_point(id, initial) {
            Some(point) => point,
            None => self.compare_with_view(db, id, initial),
        };
        if let Some(cursor) = self.client_cache.cursor_mut(id) {
            cursor.resume_at(db, point);
        }
    }

    /// Compares the `initial_resource_versions` of a client, or what is known
    /// otherwise of what it holds, with the view of a cursor:
    /// names of another version, names that the client lacks, and names that
    /// the view does not list. Returns the resume point, which serves all
    /// clients that hold the same.
    fn compare_with_view(
        &self,
        db: &mut Database,
        id: CursorId,
        initial: &InitialVersions,
    ) -> Arc<ResumePoint> {
        let changes = db.view_changes(id, 0);
        let mut differences = Vec::new();
        for (name, resource) in &changes.items {
            let Some(resource) = resource else { continue };
            let version = initial.get(name);
            if version != Some(&resource.version) {
                let record = version.map(|version| self.resumed_resource(db, name, version));
                differences.push((name.clone(), record.map(|record| record.resource)));
            }
        }

        let covers = |name: &Name| {
            let cursor = self.client_cache.cursor(id);
            !name.as_str().is_empty() && cursor.is_some_and(|cursor| cursor.covers(name))
        };
        let covered_versions = initial.iter().filter(|(name, _)| covers(name));
        let unlisted_versions = covered_versions.filter(|(name, _)| changes.find(name).is_none());
        differences.extend(unlisted_versions.map(|(name, version)| {
            let record = self.resumed_resource(db, name, version);
            (name.clone(), Some(record.resource))
        }));
        db.add_resume_point(id, initial, differences)
    }

    /// Unsubscribes from a scope, the wildcard `*` or a glob (S22), or does
    /// nothing if the client is not subscribed to it. Names that another scope covers, too, are resent in
    /// delta, since the client may have dropped them. All others are forgotten.
    pub(crate) fn unsubscribe_scope(&mut self, db: &mut Database, scope: &Scope) {
        let Some(cursor) = self.client_cache.cursor_of(scope) else {
            return;
        };
        let id = cursor.id;
        let shared_names = self.names_shared_with_others(db, cursor);
        for name in &shared_names {
            self.client_cache.make_exception(db, name);
        }

        let uncovered_names = self.client_cache.close_cursor(db, id);
        self.forget_unsubscribed(db, uncovered_names.into_iter());
        if self.mode == Mode::Delta {
            self.resend_names.extend(shared_names.iter().cloned());
        }
        self.dirty.extend(shared_names);
        self.forget_undesired_nacks(db);
    }

    /// Returns the names that a cursor and another one both cover, as far as
    /// the client holds them or the other cursor lists them.
    fn names_shared_with_others(&self, db: &mut Database, cursor: &Cursor) -> BTreeSet<Name> {
        let cursors = self.client_cache.cursors().iter();
        let other_cursors: Vec<&Cursor> = cursors.filter(|other| other.id != cursor.id).collect();
        if other_cursors.is_empty() {
            return BTreeSet::new();
        }
        let mut resources = cursor.held_resources(db);
        for other in &other_cursors {
            resources.extend(db.list(other.id));
        }

        let is_shared = |name: &&Name| {
            cursor.covers(name) && other_cursors.iter().any(|other| other.covers(name))
        };
        let names = resources.iter().map(|resource| &resource.name);
        names.filter(is_shared).cloned().collect()
    }

    /// Forgets the NACKs of names that no subscription covers any more (S83).
    fn forget_undesired_nacks(&mut self, db: &Database) {
        let nacked_variants = self.quarantine.values().chain(self.suspects.values());
        let requested_names: BTreeSet<Name> =
            nacked_variants.map(|(_, name)| name.clone()).collect();
        for requested_name in requested_names {
            if !self.has_interest(db, &requested_name) {
                self.forget_nacks(&requested_name, &[]);
                self.forget_name(&requested_name);
            }
        }
    }

    /// Resends the names that a cursor lists (S30): those that the client is
    /// subscribed to by name, and those that `resend` says. Records of other
    /// names stay as they are: a record whose resource is no longer listed
    /// still has to be removed.
    fn resend_names_of(&mut self, db: &mut Database, cursor: CursorId, resend: Resend) {
        let is_only_cursor = self.client_cache.cursors().len() == 1;
        if is_only_cursor && resend == Resend::CoveredByOthers {
            return;
        }

        for resource in db.list(cursor) {
            let name = &resource.name;
            if self.is_subscribed(db, name, self.params) {
                self.resend_plain(db, name);
            } else if let Some(covering) = self.client_cache.covering_cursor(name)
                && (resend == Resend::All || covering.id != cursor)
            {
                self.client_cache.make_exception(db, name);
                self.resend_names.insert(name.clone());
                self.dirty.insert(name.clone());
            }
        }
    }

    /// Replaces all cursors by cursors with other parameters, at the head of
    /// their views. All names of the old and new views become dirty, and become
    /// exceptions whose records say what the client holds. Returns these names.
    pub(super) fn change_cursor_params(
        &mut self,
        db: &mut Database,
        params: ParamsId,
    ) -> BTreeSet<Name> {
        let held_resources = self.held_by_cursors(db);
        let exceptions = self.client_cache.exceptions().clone();
        self.reopen_cursors(db, params);
        for name in &exceptions {
            self.client_cache.mark_exception(name);
        }

        // Of a name that only a new view lists the client holds nothing.
        let mut records_by_name: BTreeMap<Name, Vec<CachedResource>> = BTreeMap::new();
        for cursor in self.client_cache.cursors() {
            let resources = db.list(cursor.id).into_iter();
            records_by_name.extend(resources.map(|resource| (resource.name.clone(), Vec::new())));
        }
        records_by_name.extend(held_resources);

        // The cursors begin at the head, so no advance contains earlier changes
        // of exceptions: these are dirty, too.
        let mut changed_names = exceptions.clone();
        for (name, held_resources) in records_by_name {
            if !exceptions.contains(&name) {
                self.client_cache
                    .edit_records(db, &name, |records| *records = held_resources);
            }
            changed_names.insert(name);
        }
        self.dirty.extend(changed_names.iter().cloned());
        changed_names
    }

    /// Returns the resources that the client holds by cursors, by their names,
    /// each as the client cache has it: of an exception, its records. All names
    /// of all views are visited.
    fn held_by_cursors(&self, db: &mut Database) -> HashMap<Name, Vec<CachedResource>> {
        let mut held_resources: HashMap<Name, Vec<CachedResource>> = HashMap::new();
        for cursor in self.client_cache.cursors() {
            for resource in cursor.held_resources(db) {
                let name = resource.name.clone();
                let records = self.client_cache.held(db, &name);
                held_resources.entry(name).or_insert(records);
            }
        }
        held_resources
    }

    /// Closes all cursors, and opens others with these parameters for the same
    /// scopes, at the head of their views. The caller marks the exceptions
    /// again, which end with the old cursors.
    fn reopen_cursors(&mut self, db: &mut Database, params: ParamsId) {
        db.set_params(self.subscriber, params);
        let cursors = self.client_cache.cursors().iter();
        let scopes: Vec<(CursorId, Scope)> = cursors
            .map(|cursor| (cursor.id, cursor.scope.clone()))
            .collect();
        for (old_id, scope) in scopes {
            self.client_cache.close_cursor(db, old_id);
            let id = db.open_cursor(self.subscriber, &scope);
            let mut cursor = Cursor::new(scope, id);
            cursor.move_to_head(db);
            self.client_cache.add_cursor(cursor);
        }
    }
}
