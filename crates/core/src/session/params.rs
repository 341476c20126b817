//! The parameters of a stream: of all its names, of a type, or of one name
//! (TP2).

use super::{Refusal, Session};
use crate::database::{Database, SLICE};
use crate::limits::Limits;
use crate::params::{Params, ParamsId};
use crate::resource::TypeUrl;

impl Session {
    /// Changes the parameters of the client; it is sent the differences, in one
    /// response of each type (TP2).
    pub fn set_params(&mut self, db: &mut Database, params: Params) {
        self.set_all_params(db, params, Vec::new());
    }

    /// Changes the parameters of the client, with others for single types. If
    /// the stream has brought too many sets already, the client keeps its
    /// parameters, and that is reported. If only the set of a type is too many,
    /// the type gets the parameters of the client.
    pub fn set_all_params(
        &mut self,
        db: &mut Database,
        params: Params,
        by_type: Vec<(TypeUrl, Params)>,
    ) {
        let params = match self.acquire_params(db, params, ParamsOwner::Node) {
            Ok(params) => params,
            Err(refusal) => return self.report_refusal(&TypeUrl::new(""), refusal, 1),
        };

        // The parameters that were set before are applied first, to the end.
        while !self.apply_params_slice(db, &mut SLICE.clone()) {}
        let mut params_by_type = Vec::with_capacity(by_type.len());
        for (url, type_params) in by_type {
            let type_id = self.acquire_params(db, type_params, ParamsOwner::Node);
            params_by_type.push((url, type_id.unwrap_or(params)));
        }
        self.params_by_type = params_by_type;
        self.params = params;
    }

    /// Applies new parameters to all types that have no pending ACK. This is
    /// done before the parameters change once more, and before a request is
    /// read: a client that matches variants has dropped those that no longer
    /// match, and its unsubscriptions are meant for the new parameters. Visits
    /// at most `budget` names, and subtracts them from it. Returns whether the
    /// parameters are applied to all types.
    pub(super) fn apply_params_slice(&mut self, db: &mut Database, budget: &mut usize) -> bool {
        let mut indexes = 0..self.type_streams.len();
        indexes.all(|index| self.apply_type_params(db, index, budget))
    }

    /// Applies new parameters of one type, unless an ACK is pending. Visits at
    /// most `budget` names, and subtracts them from it. Returns whether the
    /// parameters are applied to all names.
    pub(super) fn apply_type_params(
        &mut self,
        db: &mut Database,
        index: usize,
        budget: &mut usize,
    ) -> bool {
        let stream_params = self.params_of(&self.type_streams[index].type_url);
        let type_stream = &mut self.type_streams[index];
        let params = type_stream.next_params(stream_params);
        type_stream.apply_params(db, params, budget)
    }

    /// Returns the parameters of plain names of a type, before those of a
    /// wildcard or glob (`scope_params` of the type stream).
    pub(super) fn params_of(&self, url: &TypeUrl) -> ParamsId {
        let type_params = self.params_by_type.iter().find(|(other, _)| other == url);
        type_params.map_or(self.params, |(_, params)| *params)
    }

    /// Returns the parameters of a locator, or the plain ones if the locator
    /// has none. Its own are held until the stream ends, or refused.
    pub(super) fn params_of_locator(
        &mut self,
        db: &mut Database,
        params: Option<Params>,
        plain_params: ParamsId,
    ) -> Result<ParamsId, Refusal> {
        params.map_or(Ok(plain_params), |params| {
            self.acquire_params(db, params, ParamsOwner::Locator)
        })
    }

    /// Interns a set of parameters and holds it until the stream ends. Refuses
    /// a set if the stream has too many. A set of a locator is refused as well
    /// if the stream has used up its share of the sets of all streams; the
    /// share is as many sets as are left.
    fn acquire_params(
        &mut self,
        db: &mut Database,
        params: Params,
        owner: ParamsOwner,
    ) -> Result<ParamsId, Refusal> {
        let Limits {
            params: limit,
            all_params,
            ..
        } = self.config.limits;
        let existing_id = db.find_params(&params);
        let held_id = existing_id.filter(|id| self.held_params.binary_search(id).is_ok());
        if let Some(id) = held_id {
            return Ok(id);
        }

        // The set of the stream itself is not counted.
        if self.held_params.len() > limit {
            return Err(Refusal::Params { limit });
        }
        let share = all_params.saturating_sub(db.params_weight());
        let has_share = self.held_params.len() <= share;
        if owner == ParamsOwner::Locator && existing_id.is_none() && !has_share {
            return Err(Refusal::AllParams { limit: all_params });
        }

        let id = existing_id.unwrap_or_else(|| db.intern_params(params));
        db.hold_params(id);
        if let Err(index) = self.held_params.binary_search(&id) {
            self.held_params.insert(index, id);
        }
        Ok(id)
    }
}

/// The origin of a set of parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParamsOwner {
    /// The node, as rules read it: without it the client gets other variants
    /// than it should.
    Node,
    /// A single name.
    Locator,
}
