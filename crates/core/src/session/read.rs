//! Reading what a request names, and with which parameters (TP2).

use super::{Refusal, Session};
use crate::database::Database;
use crate::message::Locator;
use crate::name::Ask;
use crate::params::ParamsId;
use crate::resource::TypeUrl;

impl Session {
    /// Reads names; what is not one is refused, and the rest counts (S72).
    pub(super) fn read(
        &mut self,
        db: &mut Database,
        url: &TypeUrl,
        names: Vec<Locator>,
    ) -> Vec<(Ask, ParamsId)> {
        let mut asks = Vec::with_capacity(names.len());
        // Those that it is asked with now, be there others to take up.
        let own = self
            .conversation_of(url.as_str())
            .map_or_else(|| self.params_of(url), |c| c.params);
        for locator in names {
            self.locates |= locator.params.is_some();
            match Ask::parse(&locator.name, self.config.limits.name_bytes) {
                Ok(ask) => match self.read_params(db, locator.params, own) {
                    Ok(params) => asks.push((ask, params)),
                    Err(refusal) => self.refuse(url, refusal),
                },
                Err(error) => self.refuse(url, Refusal::Name(error)),
            }
        }
        asks
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
            let ask = Ask::parse(name, self.config.limits.name_bytes);
            matches!(ask, Ok(Ask::Wildcard | Ask::Glob(_)))
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
            conversation.own_params = Some(params);
            if conversation.may_move() && conversation.params != params {
                conversation.move_to(db, params);
            }
        }
    }
}
