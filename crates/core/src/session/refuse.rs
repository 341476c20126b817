//! Refuses what is over the limits of a stream (S72): names, hosts, globs and
//! initial versions of a request.

use super::{Event, MAX_EVENTS, Refusal, Session};
use crate::database::{Choice, Database, Scope, name_weight};
use crate::limits::Limits;
use crate::message::InitialVersions;
use crate::name::{Name, Selector};
use crate::params::ParamsId;
use crate::resource::{TypeUrl, Version};
use crate::source::{TypeStream, is_negative_version};

impl Session {
    /// Returns why a selector cannot be subscribed to; `None` if it can. A
    /// selector that the client is subscribed to already is never refused.
    pub(super) fn find_refusal(
        &self,
        db: &mut Database,
        index: usize,
        selector: &Selector,
        params: ParamsId,
    ) -> Option<Refusal> {
        let type_stream = &self.type_streams[index];
        match selector {
            Selector::Wildcard => None,
            Selector::Glob(glob) => {
                let scope = Scope::Glob(glob.clone());
                let is_subscribed = type_stream.client_cache.cursor_of(&scope).is_some();
                let limit = self.config.limits.globs;
                let is_full = self.total(TypeStream::glob_count) >= limit;
                (is_full && !is_subscribed).then_some(Refusal::Globs { limit })
            }
            Selector::Name(name) => {
                // A bounded host needs no room, since virtual hosts name it.
                let needs_no_room = type_stream.is_subscribed(db, name, params)
                    || (type_stream.kind.on_demand
                        && db.is_bounded_host(type_stream.type_id, name));
                if needs_no_room {
                    return None;
                }
                self.find_name_refusal(db, index, name, params)
            }
        }
    }

    /// Returns why there is no room for a further name; `None` if there is
    /// room. Names are counted and weighed for the whole stream, unbounded
    /// hosts for the type. A name that does not exist needs a share of the
    /// memory that all streams have together for such names.
    fn find_name_refusal(
        &self,
        db: &mut Database,
        index: usize,
        name: &Name,
        params: ParamsId,
    ) -> Option<Refusal> {
        let type_stream = &self.type_streams[index];
        let &Limits {
            subscriptions,
            subscription_bytes,
            hosts,
            ..
        } = &self.config.limits;

        if self.total(TypeStream::subscription_count) >= subscriptions {
            return Some(Refusal::Subscriptions {
                limit: subscriptions,
            });
        }
        if type_stream.kind.on_demand && type_stream.subscriptions.unbounded_hosts() >= hosts {
            return Some(Refusal::Hosts { limit: hosts });
        }

        let weight = self.total(TypeStream::subscription_weight) + name_weight(name);
        if weight > subscription_bytes {
            return Some(Refusal::SubscriptionBytes {
                limit: subscription_bytes,
            });
        }

        let refusal = self.find_memory_refusal(db, weight)?;
        let choice = db.choose_name(type_stream.type_id, name, params);
        let is_missing = matches!(choice, Choice::Absent | Choice::Unknown);
        is_missing.then_some(refusal)
    }

    /// Returns why there is no memory for a further name that does not exist,
    /// on a stream whose names weigh `weight` with that name; `None` if there
    /// is. A stream may weigh as much as is left for all: the more missing
    /// names the streams request, the smaller is the share of each, and it
    /// never becomes zero.
    fn find_memory_refusal(&self, db: &Database, weight: usize) -> Option<Refusal> {
        let limit = self.config.limits.missing_bytes;
        let remaining_bytes = limit.saturating_sub(db.missing_weight());
        match db.is_memory_short() {
            true => Some(Refusal::Memory),
            false => (weight > remaining_bytes).then_some(Refusal::MissingBytes { limit }),
        }
    }

    /// Returns the sum of a count over all types of the stream.
    fn total(&self, count: fn(&TypeStream) -> usize) -> usize {
        self.type_streams.iter().map(count).sum()
    }

    /// Records a refused name to be answered, so that the client does not wait;
    /// the name is not remembered (S72). A name is not answered if a
    /// reconnected client knows that it does not exist: a proxy lists every
    /// host that it ever requested.
    pub(super) fn refuse(
        &mut self,
        db: &Database,
        index: usize,
        selector: &Selector,
        initial: &InitialVersions,
    ) {
        if let Selector::Name(name) = selector
            && !initial.get(name).is_some_and(is_negative_version)
        {
            self.type_streams[index].refuse(db, name);
        }
    }

    /// Reports that `count` names are refused. One request can have millions of
    /// bad names, so names that are refused for one reason are one event.
    /// Beyond [`MAX_EVENTS`] reasons there is no event.
    pub(super) fn report_refusal(&mut self, url: &TypeUrl, reason: Refusal, count: usize) {
        if let Some(Event::Refused {
            type_url,
            reason: last_reason,
            names,
        }) = self.events.back_mut()
            && type_url == url
            && *last_reason == reason
        {
            *names += count;
            return;
        }

        if self.events.len() < MAX_EVENTS {
            self.events.push_back(Event::Refused {
                type_url: url.clone(),
                reason,
                names: count,
            });
        }
    }
}

/// Drops initial versions beyond the limits, in number or in the length of
/// their names. Their resources are sent again.
pub(super) fn limit_versions(versions: InitialVersions, limits: &Limits) -> InitialVersions {
    let count_limit = limits.subscriptions;
    let length_limit = limits.name_bytes;
    if versions.len() <= count_limit && versions.longest_name() <= length_limit {
        return versions;
    }

    let fits = |(name, _): &&(Name, Version)| name.as_str().len() <= length_limit;
    let first_versions = versions.iter().take(count_limit);
    first_versions.filter(fits).cloned().collect()
}
