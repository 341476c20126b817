//! Reads the names of a request and their parameters (TP2).

use super::{Refusal, Session};
use crate::database::Database;
use crate::message::Locator;
use crate::name::Selector;
use crate::params::ParamsId;
use crate::resource::TypeUrl;

impl Session {
    /// Parses names of a list. An invalid name is left out and reported as
    /// refused, and the others count (S72). Records the names that came as
    /// locators with the parameters of plain names (TP2).
    pub(super) fn parse_locators(
        &mut self,
        db: &mut Database,
        url: &TypeUrl,
        names: impl Iterator<Item = Locator>,
    ) -> Vec<(Selector, ParamsId)> {
        let mut selectors = Vec::new();
        // The present parameters, even if others will be applied next.
        let plain_params = self
            .type_stream(url.as_str())
            .map_or_else(|| self.params_of(url), |type_stream| type_stream.params);

        for locator in names {
            let is_located = locator.params.is_some();
            self.uses_locators |= is_located;
            match self.parse_locator(db, url, locator, plain_params) {
                Ok((selector, params)) => {
                    if is_located && params == plain_params {
                        self.record_located_name(url, &selector, params);
                    }
                    selectors.push((selector, params));
                }
                Err(refusal) => self.report_refusal(url, refusal, 1),
            }
        }
        selectors
    }

    /// Parses a name and its parameters. A name without parameters gets the
    /// plain ones. A name whose parameters are refused is answered, so that the
    /// client does not wait (S72).
    fn parse_locator(
        &mut self,
        db: &mut Database,
        url: &TypeUrl,
        locator: Locator,
        plain_params: ParamsId,
    ) -> Result<(Selector, ParamsId), Refusal> {
        let selector = Selector::parse(&locator.name, self.config.limits.name_bytes)?;
        match self.params_of_locator(db, locator.params, plain_params) {
            Ok(params) => Ok((selector, params)),
            Err(refusal) => {
                if let (Selector::Name(name), Some(type_stream)) =
                    (&selector, self.type_stream_mut(url.as_str()))
                {
                    type_stream.refuse(db, name);
                }
                Err(refusal)
            }
        }
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
}
