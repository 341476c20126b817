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
    pub(super) fn parse_locators(
        &mut self,
        db: &mut Database,
        url: &TypeUrl,
        names: Vec<Locator>,
    ) -> Vec<(Selector, ParamsId)> {
        let mut selectors = Vec::with_capacity(names.len());
        // Those that it is asked with now, be there others to take up.
        let own = self
            .type_stream(url.as_str())
            .map_or_else(|| self.params_of(url), |c| c.params);
        for locator in names {
            self.uses_locators |= locator.params.is_some();
            match Selector::parse(&locator.name, self.config.limits.name_bytes) {
                Ok(selector) => match self.params_of_locator(db, locator.params.clone(), own) {
                    Ok(params) => {
                        if locator.params.is_some() && params == own {
                            self.record_located_name(url, &selector, params);
                        }
                        selectors.push((selector, params));
                    }
                    Err(refusal) => self.refuse(url, refusal),
                },
                Err(error) => self.refuse(url, Refusal::Name(error)),
            }
        }
        selectors
    }

    fn record_located_name(&mut self, url: &TypeUrl, selector: &Selector, params: ParamsId) {
        if let (Selector::Name(name), Some(type_stream)) =
            (selector, self.type_stream_mut(url.as_str()))
        {
            type_stream.located_names.insert((name.clone(), params));
        }
    }

    /// Parameters that come with a wildcard or glob are those of the type on this
    /// stream from then on: for all that it brings, and for plain names beside it.
    pub(super) fn adopt_scope_params(
        &mut self,
        db: &mut Database,
        index: usize,
        names: &[Locator],
    ) {
        let is_whole = |name: &str| {
            let selector = Selector::parse(name, self.config.limits.name_bytes);
            matches!(selector, Ok(Selector::Wildcard | Selector::Glob(_)))
        };
        let given = names.iter().rev().find_map(|locator| {
            let params = locator.params.clone()?;
            is_whole(&locator.name).then_some(params)
        });
        // One that is refused is refused where names are read.
        if let Some(params) = given
            && let Ok(params) = self.params_of_locator(db, Some(params), self.params)
        {
            let type_stream = &mut self.type_streams[index];
            type_stream.scope_params = Some(params);
            if type_stream.can_change_params() && type_stream.params != params {
                type_stream.change_params(db, params);
            }
        }
    }

    /// Reads what a request changes, as far as others need not wait for it; the
    /// rest is read before anything else happens on the stream (S85).
    pub(super) fn begin_changes(
        &mut self,
        db: &mut Database,
        url: TypeUrl,
        reading: RequestChanges,
        first: bool,
        now: Moment,
    ) {
        self.unfinished = Some(UnfinishedRequest {
            url,
            changes: reading,
            first,
            now,
        });
        self.continue_changes(db);
    }

    /// Reads on; whether there is more to read.
    pub(super) fn continue_changes(&mut self, db: &mut Database) -> bool {
        let Some(mut unread) = self.unfinished.take() else {
            return false;
        };
        let url = unread.url.as_str();
        let place = self
            .type_streams
            .iter()
            .position(|c| c.type_url.as_str() == url);
        let Some(index) = place else {
            return false;
        };
        if !self.type_streams[index].apply_changes(db, &mut unread.changes, SLICE) {
            self.unfinished = Some(unread);
            return true;
        }
        if unread.first && self.resuming_until.is_some() {
            self.infer_clusters_from_endpoints(db);
            self.record_inline_routes(db);
            self.discount_route_names(index);
            self.drain_replaced_by_warming(db, unread.now);
        }
        self.drain_unsubscribed(db, index, &unread.changes.unsubscribed, unread.now);
        self.mark_deferred_dirty();
        false
    }
}

/// A request that names more than is read at once.
#[derive(Debug)]
pub(super) struct UnfinishedRequest {
    url: TypeUrl,
    changes: RequestChanges,
    first: bool,
    now: Moment,
}
