//! Handles requests: node and type, acknowledgement, subscriptions.

use super::reading::UnfinishedRequest;
use super::{Event, ProtocolError, Refusal, Session};
use crate::database::{Database, TypeId};
use crate::kind::Kind;
use crate::message::{DeltaRequest, ErrorDetail, Mode, Node, SotwRequest};
use crate::moment::Moment;
use crate::resource::{Nonce, TypeUrl, Version};
use crate::source::{TypeStream, TypeStreamConfig};

impl Session {
    /// Handles a delta request. Its acknowledgement, subscriptions and initial
    /// versions count independently of each other (S8). A request of a refused
    /// type is ignored. Many subscriptions are read in slices; polls read the
    /// other slices (S85).
    ///
    /// # Errors
    /// If the stream cannot go on.
    pub fn handle_delta(
        &mut self,
        db: &mut Database,
        request: DeltaRequest,
        now: Moment,
    ) -> Result<(), ProtocolError> {
        while self.continue_request(db) {}
        let url = self.bind_request(Mode::Delta, request.node, request.type_url)?;
        let Some((index, is_first_request)) = self.find_or_open_type(db, &url) else {
            return Ok(());
        };

        if let Some(nonce) = request.nonce.filter(|_| !is_first_request) {
            self.acknowledge_delta(db, index, nonce, request.error, now);
        }
        if !is_first_request && request.subscribe.is_empty() && request.unsubscribe.is_empty() {
            // Most requests are an acknowledgement and nothing else.
            self.mark_deferred_dirty();
            return Ok(());
        }

        let names = (request.subscribe, request.unsubscribe);
        let initial = request.initial_versions;
        let unfinished = UnfinishedRequest::from_delta(url, is_first_request, now, names, initial);
        self.begin_request(db, unfinished);
        Ok(())
    }

    /// Handles the nonce of a delta request. A nonce that is not pending is
    /// stale, and the subscriptions of the request count all the same (S7).
    fn acknowledge_delta(
        &mut self,
        db: &mut Database,
        index: usize,
        nonce: Nonce,
        error: Option<ErrorDetail>,
        now: Moment,
    ) {
        if self.is_pending(index, &nonce, error.is_some()) {
            self.handle_acknowledgement(db, index, nonce, error, now);
        } else {
            self.report_stale(index, nonce);
        }
    }

    /// Handles a SotW request: the newest list counts, whatever its nonce is
    /// (S10). A request of a refused type is ignored. A long list is read in
    /// slices; polls read the other slices (S85).
    ///
    /// # Errors
    /// If the stream cannot go on.
    pub fn handle_sotw(
        &mut self,
        db: &mut Database,
        request: SotwRequest,
        now: Moment,
    ) -> Result<(), ProtocolError> {
        while self.continue_request(db) {}
        let url = self.bind_request(Mode::Sotw, request.node, request.type_url)?;
        let Some((index, is_first_request)) = self.find_or_open_type(db, &url) else {
            return Ok(());
        };

        if let Some(nonce) = request.nonce.filter(|_| !is_first_request) {
            let version = request.version.as_ref();
            self.acknowledge_sotw(db, index, nonce, version, request.error, now);
        }

        let version = request.version.filter(|_| is_first_request);
        let unfinished = UnfinishedRequest::from_sotw(
            url,
            is_first_request,
            now,
            request.names.into_vec(),
            version,
        );
        self.begin_request(db, unfinished);
        Ok(())
    }

    /// Handles the nonce of a SotW request. Without an error it is an ACK only
    /// if the version is that of the response: a change of names may come first
    /// (wire facts 1). A nonce that is not the newest is stale. The list is the
    /// newest all the same, and new names are sent after the newest response is
    /// acknowledged (S6, S10).
    fn acknowledge_sotw(
        &mut self,
        db: &mut Database,
        index: usize,
        nonce: Nonce,
        version: Option<&Version>,
        error: Option<ErrorDetail>,
        now: Moment,
    ) {
        let is_newest = self.is_newest(index, &nonce);
        let is_nack = error.is_some();
        let is_acknowledgement = is_nack || version == self.sent_version(index, &nonce).as_ref();
        if is_acknowledgement && self.is_pending(index, &nonce, is_nack) {
            self.handle_acknowledgement(db, index, nonce.clone(), error, now);
        }
        if !is_newest {
            self.report_stale(index, nonce);
        }
    }

    /// Reports an acknowledgement of a response that is not the newest.
    fn report_stale(&mut self, index: usize, nonce: Nonce) {
        let type_url = self.type_streams[index].type_url.clone();
        self.events.push_back(Event::Stale { type_url, nonce });
    }

    /// Checks the protocol and the type of a request, and takes its node if it
    /// is the first one; another node is only reported (S1, S2, S3). Returns
    /// the type, which a request on a stream of one type may leave out.
    fn bind_request(
        &mut self,
        mode: Mode,
        node: Option<Node>,
        url: Option<TypeUrl>,
    ) -> Result<TypeUrl, ProtocolError> {
        if mode != self.config.mode {
            return Err(ProtocolError::WrongMode);
        }
        match (node, &self.node) {
            (Some(node), None) => self.node = Some(node),
            (Some(node), Some(first_node)) if node != *first_node => {
                self.events.push_back(Event::NodeChanged { node });
            }
            _ => {}
        }

        let url = url.filter(|url| !url.as_str().is_empty());
        match (url, &self.config.single_type) {
            (Some(got), Some(expected)) if got != *expected => Err(ProtocolError::WrongType {
                expected: expected.clone(),
                got,
            }),
            (_, Some(single_type)) => Ok(single_type.clone()),
            (Some(url), None) => Ok(url),
            (None, None) => Err(ProtocolError::NoType),
        }
    }

    /// Returns the index of a type stream, and whether this request opened it;
    /// `None` if the type is refused.
    fn find_or_open_type(&mut self, db: &mut Database, url: &TypeUrl) -> Option<(usize, bool)> {
        let mut type_streams = self.type_streams.iter();
        if let Some(index) = type_streams.position(|type_stream| type_stream.type_url == *url) {
            return Some((index, false));
        }
        if !self.has_room_for_type(url) {
            let limit = self.config.limits.types;
            self.report_refusal(url, Refusal::Types { limit }, 1);
            return None;
        }
        if !self.has_share_of_types(db, url) {
            let limit = self.config.limits.all_types;
            self.report_refusal(url, Refusal::AllTypes { limit }, 1);
            return None;
        }

        let config = TypeStreamConfig {
            mode: self.config.mode,
            dialect: self.dialect(),
            supports_resource_errors: self.config.supports_resource_errors,
            denied: self.denied.contains(url),
            withholds_keys: self.config.withholds_keys,
            params: self.params_of(url),
        };
        let type_id = self.type_id_for(db, url);
        let mut type_stream = TypeStream::new(db, self.stream, url, type_id, config);
        type_stream.kind.legacy_wildcard &= self.allows_legacy_wildcard(url);

        let rank = |type_stream: &TypeStream| (type_stream.kind.rank, type_stream.type_url.clone());
        let new_rank = rank(&type_stream);
        let position = self.type_streams.binary_search_by_key(&new_rank, rank);
        let index = position.unwrap_or_else(|index| index);
        self.type_streams.reserve_exact(1);
        self.type_streams.insert(index, type_stream);
        Some((index, true))
    }

    /// Returns whether a stream can open another type, of this URL: it has
    /// fewer than the limit, and the URL is no longer than a name may be.
    pub(super) fn has_room_for_type(&self, url: &TypeUrl) -> bool {
        let limits = &self.config.limits;
        self.type_streams.len() < limits.types && url.as_str().len() <= limits.name_bytes
    }

    /// Returns whether a stream may bring a type that no other stream has: as
    /// long as it has no more types than are left for all streams. Types that
    /// the rules know, and those that the database has already, are exempt.
    fn has_share_of_types(&self, db: &Database, url: &TypeUrl) -> bool {
        let remaining_types = self
            .config
            .limits
            .all_types
            .saturating_sub(db.unclaimed_types());
        self.type_streams.len() <= remaining_types
            || Kind::is_known(url)
            || db.find_type(url).is_some()
    }

    /// Returns the type of the database for a type of the stream. A denied type
    /// gets one that is always empty, so that its names do not exist and no
    /// client waits.
    fn type_id_for(&self, db: &mut Database, url: &TypeUrl) -> TypeId {
        if self.denied.contains(url) {
            db.subscribed_type_id(&TypeUrl::new(format!("denied {url}")))
        } else {
            db.subscribed_type_id(url)
        }
    }
}
