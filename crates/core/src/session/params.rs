//! The parameters of a stream: of all its names, of a type, or of one name
//! (TP2).

use super::{Refusal, Session};
use crate::database::Database;
use crate::limits::Limits;
use crate::params::{Params, ParamsId};
use crate::resource::TypeUrl;

impl Session {
    /// The client says something else of itself from now on: it is told what
    /// that changes, in one response of each type (TP2).
    pub fn set_params(&mut self, db: &mut Database, params: Params) {
        self.set_all_params(db, params, Vec::new());
    }

    /// The same, with types that have parameters of their own. A client that
    /// brings too many sets stays what it was.
    pub fn set_all_params(
        &mut self,
        db: &mut Database,
        params: Params,
        own: Vec<(TypeUrl, Params)>,
    ) {
        let Ok(params) = self.acquire_params(db, params) else {
            return;
        };
        self.apply_params(db);
        let own = own.into_iter();
        let own = own.map(|(url, own)| (url, self.acquire_params(db, own).unwrap_or(params)));
        self.params_by_type = own.collect();
        self.params = params;
    }

    /// Parameters are taken up before they change once more, and before a request
    /// is read: a client that matches by them has dropped what they are not for,
    /// and what it gives up is theirs.
    pub(super) fn apply_params(&mut self, db: &mut Database) {
        for index in 0..self.type_streams.len() {
            let own = self.params_of(&self.type_streams[index].type_url);
            let type_stream = &mut self.type_streams[index];
            let params = type_stream.next_params(own);
            if type_stream.params != params && type_stream.can_change_params() {
                type_stream.change_params(db, params);
            }
        }
    }

    /// The parameters to ask for a type with.
    pub(super) fn params_of(&self, url: &TypeUrl) -> ParamsId {
        let own = self.params_by_type.iter().find(|(own, _)| own == url);
        own.map_or(self.params, |(_, params)| *params)
    }

    /// Parameters that come with a name.
    pub(super) fn params_of_locator(
        &mut self,
        db: &mut Database,
        params: Option<Params>,
        own: ParamsId,
    ) -> Result<ParamsId, Refusal> {
        params.map_or(Ok(own), |params| self.acquire_params(db, params))
    }

    /// The place of a set, held for as long as the stream is open: it may be
    /// asked with at any time. So a stream may bring only so many.
    fn acquire_params(&mut self, db: &mut Database, params: Params) -> Result<ParamsId, Refusal> {
        let Limits {
            params: limit,
            all_params,
            ..
        } = self.config.limits;
        let known = db.find_params(&params);
        let place = known.map(|known| self.held_params.binary_search(&known));
        if let (Some(known), Some(Ok(_))) = (known, place) {
            return Ok(known);
        }
        // The one of the stream itself is not counted.
        if self.held_params.len() > limit || (known.is_none() && db.params_count() >= all_params) {
            return Err(Refusal::Params { limit });
        }
        let id = known.unwrap_or_else(|| db.intern_params(params));
        db.hold_params(id);
        let place = self.held_params.partition_point(|held| *held < id);
        self.held_params.insert(place, id);
        Ok(id)
    }
}
