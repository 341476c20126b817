//! What sending or accepting one type means for another on the same stream.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Session;
use crate::database::{Choice, Database};
use crate::kind;
use crate::name::Name;
use crate::resource::{Resource, TypeUrl};
use crate::source::{Conversation, Key, Selected, Told};

impl Session {
    /// A response is about to go out; what it replaces is still in the slots.
    pub(super) fn after_sending(&mut self, db: &mut Database, index: usize, selected: &Selected) {
        let Some(conversation) = &self.conversations[index] else {
            return;
        };
        match conversation.url.as_str() {
            kind::CDS if self.config.repeat_endpoints => self.repeat_endpoints(db, selected),
            kind::RDS => {
                let restarted = restarted(conversation, selected);
                self.restart_virtual_hosts(db, &restarted);
            }
            // A listener that is sent begins anew, with all that is inside.
            kind::LDS => {
                let listeners = selected.resources();
                let inside = listeners.flat_map(|listener| listener.facts().leaves());
                self.restart_virtual_hosts(db, &inside.cloned().collect::<Vec<_>>());
            }
            _ => {}
        }
    }

    /// A changed cluster needs its endpoints again, even if they are the same:
    /// until they come Envoy withholds its ACK (S53).
    fn repeat_endpoints(&mut self, db: &mut Database, selected: &Selected) {
        let names: Vec<Name> = selected
            .resources()
            .flat_map(|cluster| cluster.facts().references.iter())
            .filter(|reference| reference.type_url.as_str() == kind::EDS)
            .map(|reference| reference.name.clone())
            .collect();
        if let Some(endpoints) = self.conversation_mut(kind::EDS) {
            for name in names {
                endpoints.say_again(db, &name);
            }
        }
    }

    /// Where a route configuration begins to leave its virtual hosts to VHDS,
    /// Envoy's table is empty and it waits for one word on it (S76).
    fn restart_virtual_hosts(&mut self, db: &mut Database, routes: &[Name]) {
        for route in routes {
            self.ask_for_base(db, route);
        }
        if let Some(hosts) = self.conversation_mut(kind::VHDS) {
            for route in routes {
                hosts.placeholders.insert(placeholder(route));
                let under = format!("{route}/");
                let keys: Vec<Key> = hosts.asks.keys().map(|key| Key::Ask(*key)).collect();
                for key in keys {
                    if hosts.key_name(db, &key).as_str().starts_with(&under) {
                        hosts.say_anew(&key);
                    }
                }
            }
        }
    }

    /// The first request for virtual hosts is answered with one word on each
    /// route configuration that leaves its hosts to VHDS; an empty answer would
    /// not do (S66, S76).
    pub(super) fn greet_on_demand(&self, db: &mut Database, conversation: &mut Conversation) {
        if !conversation.kind.on_demand || !conversation.owes_answer {
            return;
        }
        conversation.owes_answer = false;
        let waiting = self.routes_with_hosts(db);
        conversation
            .placeholders
            .extend(waiting.iter().map(placeholder));
    }

    /// Where a route configuration has no VHDS, nothing is said of its hosts.
    pub(super) fn close_routes(&self, db: &Database, hosts: &mut Conversation) {
        let mut all = self.conversations.iter().flatten();
        let routes = all.find(|c| c.url.as_str() == kind::RDS);
        if let Some(routes) = routes.filter(|_| hosts.kind.on_demand) {
            hosts.closed.update(db, routes);
        }
    }

    /// The route configurations that leave hosts to VHDS and that the peer was
    /// sent, by themselves or inside a listener, accepted or not: Envoy asks for
    /// hosts before it accepts their routes. On a stream of virtual hosts alone,
    /// all there are.
    pub(super) fn routes_with_hosts(&self, db: &mut Database) -> BTreeSet<Name> {
        let (routes, listeners) = match self.config.only {
            Some(_) => (all_of(db, kind::RDS), all_of(db, kind::LDS)),
            None => (self.sent_of(db, kind::RDS), self.sent_of(db, kind::LDS)),
        };
        let routes = routes.iter().filter(|route| route.facts().vhds().is_some());
        let inside = listeners.iter().flat_map(|l| l.facts().leaves());
        let names = routes.map(|route| &route.name).chain(inside);
        names.cloned().collect()
    }

    /// All that the peer was sent of a type.
    fn sent_of(&self, db: &mut Database, url: &str) -> Vec<Arc<Resource>> {
        let url = TypeUrl::from(url);
        let mut sent = self.held(db, &url);
        let all = self.conversations.iter().flatten();
        for conversation in all.filter(|c| c.url == url) {
            // Some that it rejected something of since, too.
            let told = conversation.asks.values().map(|slot| &slot.told);
            let told = told.filter_map(Told::resource);
            sent.extend(told.map(|r| (r.name.clone(), Arc::clone(r))));
            for response in &conversation.outstanding {
                let single = response.keys.iter().filter_map(|(_, c)| c.resource());
                let items = response.steps.iter().flat_map(|step| step.items());
                let brought = single.chain(items.filter_map(|(_, item)| item.as_ref()));
                sent.extend(brought.map(|r| (r.name.clone(), Arc::clone(r))));
            }
        }
        sent.into_values().collect()
    }
}

/// All there is of a type.
fn all_of(db: &Database, url: &str) -> Vec<Arc<Resource>> {
    let found = db.find_type(&TypeUrl::from(url));
    found.map_or_else(Vec::new, |id| db.resources(id).cloned().collect())
}

/// The route configurations of a response that find their hosts in another way
/// than the peer was told before.
fn restarted(routes: &Conversation, selected: &Selected) -> Vec<Name> {
    let anew = |(key, choice): &(Key, Choice)| {
        let new = choice.resource()?;
        let told = routes.slot(key).and_then(|slot| slot.told.resource());
        let before = told.and_then(|old| old.facts().vhds());
        let way = new.facts().vhds();
        (way.is_some() && way != before).then(|| new.name.clone())
    };
    selected.keys.iter().filter_map(anew).collect()
}

/// A name under a route configuration that nothing ever has.
fn placeholder(route: &Name) -> Name {
    Name::new(&format!("{route}/.none"))
}

impl Selected {
    /// The resources that a response brings.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let single = self
            .keys
            .iter()
            .filter_map(|(_, choice): &(Key, Choice)| choice.resource());
        let items = self.steps.iter().flat_map(|step| step.items());
        single.chain(items.filter_map(|(_, item)| item.as_ref()))
    }
}
