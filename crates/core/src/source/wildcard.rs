//! Wildcards and globs: beginning to follow a view, and leaving it.

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

impl TypeStream {
    /// The peer asks for all that a scope shows. If it did before, it gets all
    /// of it again (S28).
    pub(crate) fn subscribe_scope(
        &mut self,
        db: &mut Database,
        scope: &Scope,
        initial: &InitialVersions,
    ) {
        if let Some(view) = self.client_cache.cursor_of(scope) {
            let cursor = view.id;
            self.record_tombstones(db, scope);
            self.resend_all(db, cursor, true);
            return;
        }
        let cursor = db.open_cursor(self.subscriber, scope);
        let asked: Vec<Name> = self
            .subscriptions
            .keys()
            .map(|key| db.name(self.type_id, key.entry).clone())
            .collect();
        // What is recorded stays so: the view has said nothing of it.
        let recorded = self
            .client_cache
            .records()
            .map(|held| held.resource.name.clone());
        let recorded: BTreeSet<Name> = recorded.chain(asked).collect();
        self.client_cache
            .add_cursor(Cursor::new(scope.clone(), cursor));
        for name in recorded {
            self.client_cache.mark_exception(&name);
        }
        self.record_tombstones(db, scope);
        if !initial.is_empty() {
            self.resume_cursor(db, cursor, initial);
        }
        self.resend_all(db, cursor, false);
    }

    /// Records the remembered tombstones of a glob as held: the members of a
    /// glob are not among the initial versions of a client (S75).
    fn record_tombstones(&mut self, db: &mut Database, scope: &Scope) {
        let Scope::Glob(glob) = scope else { return };
        for name in db.tombstones(self.type_id, glob) {
            if self.client_cache.held_after_acks(db, &name).is_empty()
                && self.subscriptions_of(db, &name).is_empty()
            {
                let held = CachedResource::unknown_body(name.clone(), Version::new(""));
                self.client_cache.record(db, held);
                self.dirty.insert(name);
            }
        }
    }

    /// Begins where a reconnecting client says it stands: only what differs
    /// from that is sent (S45, S46).
    fn resume_cursor(&mut self, db: &mut Database, id: CursorId, initial: &InitialVersions) {
        let point = match db.resume_point(id, initial) {
            Some(point) => point,
            None => self.compare_with_view(db, id, initial),
        };
        if let Some(cursor) = self.client_cache.cursor_mut(id) {
            cursor.resume_at(db, point);
        }
    }

    /// Compares what a client says it holds with what a cursor lists.
    fn compare_with_view(
        &self,
        db: &mut Database,
        id: CursorId,
        initial: &InitialVersions,
    ) -> Arc<ResumePoint> {
        let listed = db.view_changes(id, 0);
        let mut differing = Vec::new();
        let mut still_listed = 0;
        for (name, resource) in &listed.items {
            let Some(resource) = resource else { continue };
            let version = initial.get(name);
            still_listed += usize::from(version.is_some());
            if version != Some(&resource.version) {
                let held = version.map(|version| self.resumed_resource(db, name, version));
                differing.push((name.clone(), held.map(|held| held.resource)));
            }
        }
        if still_listed < initial.len() {
            let covers = |name: &Name| {
                let cursor = self.client_cache.cursor(id);
                !name.as_str().is_empty() && cursor.is_some_and(|cursor| cursor.covers(name))
            };
            // The client holds them, and the view does not list them.
            let strays = initial.iter().filter(|(name, _)| covers(name));
            let strays = strays.filter(|(name, _)| listed.find(name).is_none());
            differing.extend(strays.map(|(name, version)| {
                let held = self.resumed_resource(db, name, version);
                (name.clone(), Some(held.resource))
            }));
        }
        db.add_resume_point(id, initial, differing)
    }

    /// The peer asks for a scope no longer. What another scope still brings of
    /// it is said again, in deltas: the peer may have dropped it.
    pub(crate) fn unsubscribe_scope(&mut self, db: &mut Database, scope: &Scope) {
        let Some(view) = self.client_cache.cursor_of(scope) else {
            return;
        };
        let cursor = view.id;
        let others = self
            .client_cache
            .cursors()
            .iter()
            .filter(|v| v.id != cursor);
        let others: Vec<CursorId> = others.map(|view| view.id).collect();
        let mut shared: BTreeSet<Name> = BTreeSet::new();
        if !others.is_empty() {
            let mut names = view.held_resources(db);
            for other in others {
                names.extend(db.list(other));
            }
            let is_shared = |name: &Name| {
                let covering = self
                    .client_cache
                    .cursors()
                    .iter()
                    .filter(|v| v.covers(name));
                view.covers(name) && covering.count() > 1
            };
            let names = names.iter().map(|r| &r.name);
            shared.extend(names.filter(|name| is_shared(name)).cloned());
        }
        for name in &shared {
            self.client_cache.make_exception(db, name);
        }
        let bare = self.client_cache.close_cursor(db, cursor);
        self.forget_undesired(db, bare.into_iter());
        if self.mode == Mode::Delta {
            self.resend_names.extend(shared.iter().cloned());
        }
        self.dirty.extend(shared);
        self.forget_undesired_nacks(db);
    }

    /// Forgets rejections of what nothing brings any more (S83).
    fn forget_undesired_nacks(&mut self, db: &Database) {
        let requested_names = self.quarantine.values().chain(self.suspects.values());
        let requested_names: BTreeSet<Name> = requested_names
            .map(|(_, requested_name)| requested_name.clone())
            .collect();
        for requested_name in requested_names {
            if !self.has_interest(db, &requested_name) {
                self.forget_nacks(&requested_name, &[]);
                self.forget_name(&requested_name);
            }
        }
    }

    /// Marks all that a cursor lists to be sent again, also names that another
    /// cursor serves (S30). Records of anything else stay: it is still to be
    /// removed.
    fn resend_all(&mut self, db: &mut Database, cursor: CursorId, own: bool) {
        let alone = self.client_cache.cursors().len() == 1;
        if alone && !own {
            return;
        }
        for resource in db.list(cursor) {
            let name = &resource.name;
            if self.is_subscribed(db, name, self.params) {
                self.resend_plain(db, name);
            } else if let Some(owner) = self.client_cache.covering_cursor(name)
                && (own || owner.id != cursor)
            {
                self.client_cache.make_exception(db, name);
                self.resend_names.insert(name.clone());
                self.dirty.insert(name.clone());
            }
        }
    }

    /// Follows what other parameters show; what the peer holds otherwise is an
    /// exception, to be told of.
    /// Returns the names of which something may be told.
    pub(super) fn change_cursor_params(
        &mut self,
        db: &mut Database,
        params: ParamsId,
    ) -> BTreeSet<Name> {
        let mut held: HashMap<Name, Vec<CachedResource>> = HashMap::new();
        for view in self.client_cache.cursors() {
            for resource in view.held_resources(db) {
                let name = resource.name.clone();
                let now = self.client_cache.held(db, &name);
                held.entry(name).or_insert(now);
            }
        }
        db.set_params(self.subscriber, params);
        let scopes: Vec<(CursorId, Scope)> = self
            .client_cache
            .cursors()
            .iter()
            .map(|view| (view.id, view.scope.clone()))
            .collect();
        let exceptions = self.client_cache.exceptions().clone();
        for (old, scope) in scopes {
            self.client_cache.close_cursor(db, old);
            let cursor = db.open_cursor(self.subscriber, &scope);
            let mut view = Cursor::new(scope, cursor);
            view.move_to_head(db);
            self.client_cache.add_cursor(view);
        }
        for name in &exceptions {
            self.client_cache.mark_exception(name);
        }
        let mut names: BTreeMap<Name, Vec<CachedResource>> = BTreeMap::new();
        for view in self.client_cache.cursors() {
            let listed = db.list(view.id).into_iter();
            names.extend(listed.map(|r| (r.name.clone(), Vec::new())));
        }
        names.extend(held);
        // Views begin where they are now: what happened to exceptions before is news
        // that no log tells.
        let mut told = exceptions.clone();
        self.dirty.extend(exceptions.iter().cloned());
        for (name, held) in names {
            if !exceptions.contains(&name) {
                self.client_cache.edit_records(db, &name, |now| *now = held);
            }
            told.insert(name.clone());
            self.dirty.insert(name);
        }
        told
    }
}
