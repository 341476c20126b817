//! Refuses what is over the limits of a stream (S72): names, hosts, globs and
//! initial versions of a request.

use super::{Event, MAX_EVENTS, Refusal, Session};
use crate::database::{Database, Scope};
use crate::limits::Limits;
use crate::message::InitialVersions;
use crate::name::{Name, Selector};
use crate::params::ParamsId;
use crate::resource::{TypeUrl, Version};
use crate::source::{TypeStream, is_negative_version};

impl Session {
    /// The number of these names that the client is subscribed to.
    pub(super) fn count_subscribed(
        &self,
        db: &Database,
        index: usize,
        selectors: &[(Selector, ParamsId)],
    ) -> usize {
        let type_stream = &self.type_streams[index];
        count_names(selectors, |name, params| {
            type_stream.is_subscribed(db, name, params)
        })
    }

    /// The number of these names that the client is subscribed to as unbounded
    /// hosts.
    pub(super) fn count_unbounded_hosts(
        &self,
        db: &Database,
        index: usize,
        selectors: &[(Selector, ParamsId)],
    ) -> usize {
        let type_stream = &self.type_streams[index];
        count_names(selectors, |name, params| {
            type_stream.has_unbounded_host(db, name, params)
        })
    }

    /// Takes selectors out of a list that are over the limits, and returns the
    /// refusals. Selectors that the client is subscribed to already need no
    /// room. `ending` are the subscriptions that end with the same request. A
    /// refused name gets a negative answer, so that the client does not wait,
    /// and is not remembered (S72).
    #[must_use]
    pub(super) fn refuse_over_limits(
        &mut self,
        db: &Database,
        index: usize,
        selectors: &mut Vec<(Selector, ParamsId)>,
        ending: EndingSubscriptions,
    ) -> Vec<Refusal> {
        let mut room = self.room_within_limits(index, ending);
        let mut refusals = Vec::new();
        let type_stream = &mut self.type_streams[index];
        let on_demand = type_stream.kind.on_demand;
        selectors.retain(|(selector, params)| {
            let (is_known, left) = match selector {
                Selector::Wildcard => return true,
                Selector::Glob(glob) => {
                    let scope = Scope::Glob(glob.clone());
                    let is_known = type_stream.client_cache.cursor_of(&scope).is_some();
                    (is_known, &mut room.globs)
                }
                Selector::Name(name) if on_demand => {
                    let is_known = type_stream.is_subscribed(db, name, *params)
                        || db.is_bounded_host(type_stream.type_id, name);
                    (is_known, &mut room.hosts)
                }
                Selector::Name(name) => {
                    let is_known = type_stream.is_subscribed(db, name, *params);
                    (is_known, &mut room.names)
                }
            };
            if is_known || *left > 0 {
                *left -= usize::from(!is_known);
                return true;
            }

            if let Selector::Name(name) = selector {
                type_stream.refused.insert(name.clone());
            }
            refusals.push(room.refusal(selector, on_demand, &self.config.limits));
            false
        });
        refusals
    }

    /// The numbers of subscriptions that a type can still add to the stream.
    /// Names and globs are limited for the whole stream, unbounded hosts for
    /// the type.
    fn room_within_limits(&self, index: usize, ending: EndingSubscriptions) -> Room {
        let total = |count: fn(&TypeStream) -> usize| -> usize {
            let type_streams = self.type_streams.iter();
            type_streams.map(count).sum()
        };
        let limits = &self.config.limits;

        let used_names = total(TypeStream::subscription_count).saturating_sub(ending.names);
        let names = limits.subscriptions.saturating_sub(used_names);

        let used_hosts = self.type_streams[index].subscriptions.unbounded_hosts();
        let used_hosts = used_hosts.saturating_sub(ending.unbounded_hosts);
        let hosts = limits.hosts.saturating_sub(used_hosts);

        Room {
            names,
            hosts: hosts.min(names),
            globs: limits.globs.saturating_sub(total(TypeStream::glob_count)),
            hosts_end_first: hosts < names,
        }
    }

    /// Forgets the refusals of names that a reconnecting client knows not to
    /// exist: a proxy lists every host that it ever requested.
    pub(super) fn forget_known_refusals(&mut self, index: usize, initial: &InitialVersions) {
        let is_known = |name: &Name| initial.get(name).is_some_and(is_negative_version);
        let refused = &mut self.type_streams[index].refused;
        refused.retain(|name| !is_known(name));
    }

    /// Reports a refusal. One request can have millions of bad names, so beyond
    /// [`MAX_EVENTS`] they are not reported.
    pub(super) fn report_refusal(&mut self, url: &TypeUrl, reason: Refusal) {
        if self.events.len() < MAX_EVENTS {
            let type_url = url.clone();
            self.events.push_back(Event::Refused { type_url, reason });
        }
    }
}

/// The subscriptions that end with a request.
#[derive(Clone, Copy)]
pub(super) struct EndingSubscriptions {
    pub(super) names: usize,
    pub(super) unbounded_hosts: usize,
}

/// The numbers of subscriptions that a stream may still add.
struct Room {
    names: usize,
    /// Unbounded hosts of one type.
    hosts: usize,
    globs: usize,
    /// Whether the limit of hosts is reached before that of names.
    hosts_end_first: bool,
}

impl Room {
    /// The refusal of a selector for which there is no room. A host may lack
    /// room among the hosts or among all names; the refusal names the limit
    /// that is reached first.
    fn refusal(&self, selector: &Selector, on_demand: bool, limits: &Limits) -> Refusal {
        match selector {
            Selector::Name(_) if on_demand && self.hosts_end_first => Refusal::Hosts {
                limit: limits.hosts,
            },
            Selector::Name(_) => Refusal::Subscriptions {
                limit: limits.subscriptions,
            },
            Selector::Glob(_) | Selector::Wildcard => Refusal::Globs {
                limit: limits.globs,
            },
        }
    }
}

/// Leaves out initial versions that are too many, or whose names are too long:
/// their resources are sent once more.
pub(super) fn limit_versions(versions: InitialVersions, limits: &Limits) -> InitialVersions {
    let count_limit = limits.subscriptions;
    let length_limit = limits.name_bytes;
    if versions.len() <= count_limit && versions.longest_name() <= length_limit {
        return versions;
    }

    let fits = |(name, _): &&(Name, Version)| name.as_str().len() <= length_limit;
    let counted = versions.iter().take(count_limit);
    counted.filter(fits).cloned().collect()
}

/// Counts the names among selectors for which `is_counted` is true. Wildcards
/// and globs are not counted.
fn count_names(
    selectors: &[(Selector, ParamsId)],
    is_counted: impl Fn(&Name, ParamsId) -> bool,
) -> usize {
    let is_counted = |(selector, params): &&(Selector, ParamsId)| match selector {
        Selector::Name(name) => is_counted(name, *params),
        Selector::Glob(_) | Selector::Wildcard => false,
    };
    selectors.iter().filter(is_counted).count()
}
