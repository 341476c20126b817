//! The parameters of a stream: of all its names, of a type, or of one name
//! (TP2).

use super::{Refusal, Session};
use crate::database::Database;
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
    /// there are too many sets for the first, the client keeps its parameters;
    /// if for those of a type, the type gets the first.
    pub fn set_all_params(
        &mut self,
        db: &mut Database,
        params: Params,
        by_type: Vec<(TypeUrl, Params)>,
    ) {
        let Ok(params) = self.acquire_params(db, params) else {
            return;
        };

        self.apply_params(db);
        let mut params_by_type = Vec::with_capacity(by_type.len());
        for (url, type_params) in by_type {
            let type_params = self.acquire_params(db, type_params).unwrap_or(params);
            params_by_type.push((url, type_params));
        }
        self.params_by_type = params_by_type;
        self.params = params;
    }

    /// Applies new parameters to all types, as far as no ACK is pending. So it
    /// is done before they change once more, and before a request is read: a
    /// client that matches variants has dropped those that no longer match, and
    /// its unsubscriptions are meant for the new parameters.
    pub(super) fn apply_params(&mut self, db: &mut Database) {
        for index in 0..self.type_streams.len() {
            self.apply_type_params(db, index);
        }
    }

    /// Applies new parameters of one type, unless an ACK is pending.
    pub(super) fn apply_type_params(&mut self, db: &mut Database, index: usize) {
        let stream_params = self.params_of(&self.type_streams[index].type_url);
        let type_stream = &mut self.type_streams[index];
        let params = type_stream.next_params(stream_params);
        type_stream.apply_params(db, params);
    }

    /// The parameters of a type.
    pub(super) fn params_of(&self, url: &TypeUrl) -> ParamsId {
        let of_type = self.params_by_type.iter().find(|(other, _)| other == url);
        of_type.map_or(self.params, |(_, params)| *params)
    }

    /// The parameters of a locator; those of plain names if it has none.
    pub(super) fn params_of_locator(
        &mut self,
        db: &mut Database,
        params: Option<Params>,
        plain_params: ParamsId,
    ) -> Result<ParamsId, Refusal> {
        params.map_or(Ok(plain_params), |params| self.acquire_params(db, params))
    }

    /// Interns a set of parameters and holds it until the stream ends. Refused
    /// if the stream has too many sets, or all streams together have.
    fn acquire_params(&mut self, db: &mut Database, params: Params) -> Result<ParamsId, Refusal> {
        let Limits {
            params: limit,
            all_params,
            ..
        } = self.config.limits;
        let known = db.find_params(&params);
        if let Some(known) = known.filter(|known| self.held_params.binary_search(known).is_ok()) {
            return Ok(known);
        }

        // The set of the stream itself is not counted.
        let is_stream_full = self.held_params.len() > limit;
        let is_database_full = known.is_none() && db.params_count() >= all_params;
        if is_stream_full || is_database_full {
            return Err(Refusal::Params { limit });
        }

        let id = known.unwrap_or_else(|| db.intern_params(params));
        db.hold_params(id);
        if let Err(index) = self.held_params.binary_search(&id) {
            self.held_params.insert(index, id);
        }
        Ok(id)
    }
}
