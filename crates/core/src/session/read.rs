//! Reading what a request names, and with which parameters (TP2).

use super::{Refusal, Session};
use crate::database::{Database, SLICE};
use crate::message::Locator;
use crate::moment::Moment;
use crate::name::Selector;
use crate::params::ParamsId;
use crate::resource::TypeUrl;
use crate::source::RequestChanges;

impl Session {
    /// Reads names; what is not one is refused, and the rest counts (S72).
    pub(super) fn read(
        &mut self,
        db: &mut Database,
        url: &TypeUrl,
        names: Vec<Locator>,
    ) -> Vec<(Selector, ParamsId)> {
        let mut asks = Vec::with_capacity(names.len());
        // Those that it is asked with now, be there others to take up.
        let own = self
            .conversation_of(url.as_str())
            .map_or_else(|| self.params_of(url), |c| c.params);
        for locator in names {
            self.locates |= locator.params.is_some();
            match Selector::parse(&locator.name, self.config.limits.name_bytes) {
                Ok(ask) => match self.read_params(db, locator.params.clone(), own) {
                    Ok(params) => {
                        if locator.params.is_some() && params == own {
                            self.note_explicit(url, &ask, params);
                        }
                        asks.push((ask, params));
                    }
                    Err(refusal) => self.refuse(url, refusal),
                },
                Err(error) => self.refuse(url, Refusal::Name(error)),
            }
        }
        asks
    }

    fn note_explicit(&mut self, url: &TypeUrl, ask: &Selector, params: ParamsId) {
        if let (Selector::Name(name), Some(conversation)) =
            (ask, self.conversation_mut(url.as_str()))
        {
            conversation.located_names.insert((name.clone(), params));
        }
    }

    /// Parameters that come with a wildcard or glob are those of the type on this
    /// stream from then on: for all that it brings, and for plain names beside it.
    pub(super) fn take_params_of_whole(
        &mut self,
        db: &mut Database,
        index: usize,
        names: &[Locator],
    ) {
        let is_whole = |name: &str| {
            let ask = Selector::parse(name, self.config.limits.name_bytes);
            matches!(ask, Ok(Selector::Wildcard | Selector::Glob(_)))
        };
        let given = names.iter().rev().find_map(|locator| {
            let params = locator.params.clone()?;
            is_whole(&locator.name).then_some(params)
        });
        // One that is refused is refused where names are read.
        if let Some(params) = given
            && let Ok(params) = self.read_params(db, Some(params), self.params)
        {
            let conversation = &mut self.conversations[index];
            conversation.scope_params = Some(params);
            if conversation.can_change_params() && conversation.params != params {
                conversation.change_params(db, params);
            }
        }
    }

    /// Reads what a request changes, as far as others need not wait for it; the
    /// rest is read before anything else happens on the stream (S85).
    pub(super) fn read_later(
        &mut self,
        db: &mut Database,
        url: TypeUrl,
        reading: RequestChanges,
        first: bool,
        now: Moment,
    ) {
        self.unread = Some(Unread {
            url,
            reading,
            first,
            now,
        });
        self.read_on(db);
    }

    /// Reads on; whether there is more to read.
    pub(super) fn read_on(&mut self, db: &mut Database) -> bool {
        let Some(mut unread) = self.unread.take() else {
            return false;
        };
        let url = unread.url.as_str();
        let place = self
            .conversations
            .iter()
            .position(|c| c.type_url.as_str() == url);
        let Some(index) = place else {
            return false;
        };
        if !self.conversations[index].apply_changes(db, &mut unread.reading, SLICE) {
            self.unread = Some(unread);
            return true;
        }
        if unread.first && self.resuming_until.is_some() {
            self.join_endpoints(db);
            self.look_inside_listeners(db);
            self.discount_routes(index);
            self.keep_what_warming_replaces(db, unread.now);
        }
        self.give_up(db, index, &unread.reading.unsubscribed, unread.now);
        self.look_again();
        false
    }
}

/// A request that names more than is read at once.
#[derive(Debug)]
pub(super) struct Unread {
    url: TypeUrl,
    reading: RequestChanges,
    first: bool,
    now: Moment,
}
