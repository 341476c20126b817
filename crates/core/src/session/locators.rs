//! Reads the names of a request and their parameters (TP2).

use super::{Refusal, Session};
use crate::database::{Database, SLICE};
use crate::message::Locator;
use crate::moment::Moment;
use crate::name::Selector;
use crate::params::ParamsId;
use crate::resource::TypeUrl;
use crate::source::RequestChanges;

impl Session {
    /// Parses the names of a list. An invalid one is left out and reported as
    /// refused, and the others count (S72). Notes the names that came as
    /// locators with the parameters of plain names (TP2).
    pub(super) fn parse_locators(
        &mut self,
        db: &mut Database,
        url: &TypeUrl,
        names: Vec<Locator>,
    ) -> Vec<(Selector, ParamsId)> {
        let mut selectors = Vec::with_capacity(names.len());
        // The present parameters, even if others will be applied next.
        let plain_params = self
            .type_stream(url.as_str())
            .map_or_else(|| self.params_of(url), |c| c.params);

        for locator in names {
            let is_located = locator.params.is_some();
            self.uses_locators |= is_located;
            match self.parse_locator(db, locator, plain_params) {
                Ok((selector, params)) => {
                    if is_located && params == plain_params {
                        self.record_located_name(url, &selector, params);
                    }
                    selectors.push((selector, params));
                }
                Err(refusal) => self.report_refusal(url, refusal),
            }
        }
        selectors
    }

    /// Parses a name and its parameters; a name without any gets the plain
    /// ones.
    fn parse_locator(
        &mut self,
        db: &mut Database,
        locator: Locator,
        plain_params: ParamsId,
    ) -> Result<(Selector, ParamsId), Refusal> {
        let selector = Selector::parse(&locator.name, self.config.limits.name_bytes)?;
        let params = self.params_of_locator(db, locator.params, plain_params)?;
        Ok((selector, params))
    }

    /// Records that a name of the request came as a locator, although its
    /// parameters are those of plain names.
    fn record_located_name(&mut self, url: &TypeUrl, selector: &Selector, params: ParamsId) {
        if let (Selector::Name(name), Some(type_stream)) =
            (selector, self.type_stream_mut(url.as_str()))
        {
            type_stream.located_names.insert((name.clone(), params));
        }
    }

    /// Adopts the parameters that come with a wildcard or glob: they are those
    /// of the type on this stream from then on, for cursors and for plain
    /// names. The last ones in the list count.
    pub(super) fn adopt_scope_params(
        &mut self,
        db: &mut Database,
        index: usize,
        names: &[Locator],
    ) {
        let is_scope = |name: &str| {
            let selector = Selector::parse(name, self.config.limits.name_bytes);
            matches!(selector, Ok(Selector::Wildcard | Selector::Glob(_)))
        };
        let scope_params = names.iter().rev().find_map(|locator| {
            let params = locator.params.clone()?;
            is_scope(&locator.name).then_some(params)
        });
        // Parameters that are refused here are refused where the names are
        // parsed.
        if let Some(params) = scope_params
            && let Ok(params) = self.params_of_locator(db, Some(params), self.params)
        {
            let type_stream = &mut self.type_streams[index];
            type_stream.scope_params = Some(params);
            type_stream.apply_params(db, params);
        }
    }

    /// Applies the first slice of the changes of a request, so that other
    /// streams need not wait; the rest is applied before anything else happens
    /// on the stream (S85). `first` is whether it is the first request of the
    /// type.
    pub(super) fn begin_changes(
        &mut self,
        db: &mut Database,
        url: TypeUrl,
        changes: RequestChanges,
        first: bool,
        now: Moment,
    ) {
        self.unfinished = Some(UnfinishedRequest {
            url,
            changes,
            first,
            now,
        });
        self.continue_changes(db);
    }

    /// Applies another slice of the changes of a request. Returns whether there
    /// are more. With the last one, other types learn what the request says of
    /// them, and deferred names become dirty.
    pub(super) fn continue_changes(&mut self, db: &mut Database) -> bool {
        let Some(mut unfinished) = self.unfinished.take() else {
            return false;
        };
        let mut type_streams = self.type_streams.iter();
        let Some(index) = type_streams.position(|other| other.type_url == unfinished.url) else {
            return false;
        };

        if !self.type_streams[index].apply_changes(db, &mut unfinished.changes, SLICE) {
            self.unfinished = Some(unfinished);
            return true;
        }

        if unfinished.first && self.resuming_until.is_some() {
            self.infer_clusters_from_endpoints(db);
            self.record_inline_routes(db);
            self.discount_route_names(index);
            self.drain_replaced_by_warming(db, unfinished.now);
        }
        self.drain_unsubscribed(db, index, &unfinished.changes.unsubscribed, unfinished.now);
        self.mark_deferred_dirty();
        false
    }
}

/// A request with more names than are applied at once.
#[derive(Debug)]
pub(super) struct UnfinishedRequest {
    url: TypeUrl,
    changes: RequestChanges,
    first: bool,
    now: Moment,
}
