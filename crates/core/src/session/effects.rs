//! What sending or accepting one type means for another on the same stream.

use super::Session;
use crate::database::{Choice, Database};
use crate::kind;
use crate::name::Name;
use crate::resource::{Resource, TypeUrl};
use crate::source::{Conversation, Key, Selected};

impl Session {
    /// A response is about to go out; what it replaces is still in the slots.
    pub(super) fn after_sending(&mut self, db: &mut Database, index: usize, selected: &Selected) {
        let Some(conversation) = &self.conversations[index] else {
            return;
        };
        match conversation.url.as_str() {
            kind::CDS if self.config.repeat_endpoints => self.repeat_endpoints(db, selected),
            kind::RDS => self.restart_virtual_hosts(db, index, selected),
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
    fn restart_virtual_hosts(&mut self, db: &mut Database, index: usize, selected: &Selected) {
        let Some(routes) = &self.conversations[index] else {
            return;
        };
        let restarted: Vec<Name> = selected
            .keys
            .iter()
            .filter_map(|(key, choice)| {
                let new = choice.resource()?;
                let told = routes.slot(key).and_then(|slot| slot.told.resource());
                let before = told.and_then(|old| old.facts().vhds.as_ref());
                (new.facts().vhds.is_some() && new.facts().vhds.as_ref() != before)
                    .then(|| new.name.clone())
            })
            .collect();
        for route in &restarted {
            self.ask_for_base(db, route);
        }
        if let Some(hosts) = self.conversation_mut(kind::VHDS) {
            for route in restarted {
                hosts.placeholders.insert(placeholder(&route));
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
        let routes = self.held_routes(db);
        let waiting = routes.iter().filter(|r| r.facts().vhds.is_some());
        conversation
            .placeholders
            .extend(waiting.map(|route| placeholder(&route.name)));
    }

    /// Where a route configuration has no VHDS, nothing is said of its hosts.
    pub(super) fn close_routes(&self, db: &Database, hosts: &mut Conversation) {
        let mut all = self.conversations.iter().flatten();
        let routes = all.find(|c| c.url.as_str() == kind::RDS);
        if let Some(routes) = routes.filter(|_| hosts.kind.on_demand) {
            hosts.closed.update(db, routes);
        }
    }

    /// The route configurations that the peer was sent, accepted or not: Envoy
    /// asks for hosts before it accepts their routes. On a stream of virtual
    /// hosts alone, all there are.
    pub(super) fn held_routes(&self, db: &mut Database) -> Vec<std::sync::Arc<Resource>> {
        let url = TypeUrl::from(kind::RDS);
        match self.conversations.iter().flatten().find(|c| c.url == url) {
            Some(routes) => routes
                .asks
                .iter()
                .filter_map(|(key, slot)| {
                    let sent = routes.in_flight(&Key::Ask(*key));
                    sent.as_ref().unwrap_or(&slot.told).resource().cloned()
                })
                .collect(),
            None if self.config.only.is_some() => {
                let found = db.find_type(&url);
                found.map_or_else(Vec::new, |id| db.resources(id).cloned().collect())
            }
            None => Vec::new(),
        }
    }
}

/// A name under a route configuration that nothing ever has.
fn placeholder(route: &Name) -> Name {
    Name::new(&format!("{route}/.none"))
}

impl Selected {
    /// The resources that a response brings.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &std::sync::Arc<Resource>> {
        let single = self
            .keys
            .iter()
            .filter_map(|(_, choice): &(Key, Choice)| choice.resource());
        let items = self.steps.iter().flat_map(|step| step.items());
        single.chain(items.filter_map(|(_, item)| item.as_ref()))
    }
}
