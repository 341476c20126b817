//! Reads a request in slices, so that other streams need not wait for one that
//! lists a million names (S85).
//!
//! ```text
//!   delta   parameters ─▶ scan ─▶ begin ─▶ unsubscribe ─▶ subscribe ─────┐
//!   SotW    parameters ─▶ scan ─▶ begin ─▶ compare ─▶ sweep ─▶ subscribe ┴▶ held ─▶ end
//! ```
//!
//! A short request is read at once. Of a longer one a slice is read, and polls
//! read the rest before anything else happens on the stream. A part of the list
//! is parsed only when it is applied, so memory shrinks as the reading goes on.

mod delta;
mod scan;
mod slice;
mod sotw;

use super::Session;
use crate::database::{Database, SLICE};
use crate::message::{InitialVersions, Locator};
use crate::moment::Moment;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::{TypeUrl, Version};
use crate::source::{RequestContext, TypeStream};
use delta::DeltaList;
use scan::ListScan;
use sotw::SotwList;

/// Names that are scanned in one slice: a scan looks at the length of a name,
/// and rarely at its text.
const SCANNED_AT_ONCE: usize = 16 * SLICE;

/// A request that is not read to its end.
#[derive(Debug)]
pub(super) struct UnfinishedRequest {
    url: TypeUrl,
    /// Whether it is the first request of the type.
    is_first: bool,
    now: Moment,
    stage: Stage,
    scan: ListScan,
    context: RequestContext,
    list: NameList,
}

/// The names of a request that are not read yet.
#[derive(Debug)]
enum NameList {
    Delta(DeltaList),
    Sotw(SotwList),
}

/// The next part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// New parameters of the client are applied to its subscriptions.
    Parameters,
    /// Wildcards and globs are looked for.
    Scan,
    /// The parameters that came with a scope are applied.
    ScopeParameters,
    /// The wildcard is updated, and a client that reconnected resumes.
    Begin,
    /// Delta: the names to unsubscribe from.
    Unsubscribe,
    /// SotW: the list is compared with the subscriptions.
    Compare,
    /// SotW: subscriptions that the list lacks end.
    Sweep,
    /// The names to subscribe to.
    Subscribe,
    /// The resources that a reconnected client holds.
    Held,
    End,
}

impl UnfinishedRequest {
    /// Makes a delta request of which nothing is read yet. `initial` counts in
    /// the first request of a type only.
    pub(super) fn from_delta(
        url: TypeUrl,
        is_first: bool,
        now: Moment,
        (subscribe, unsubscribe): (Vec<Locator>, Vec<Locator>),
        initial: InitialVersions,
    ) -> Self {
        let list = NameList::Delta(DeltaList::new(subscribe, unsubscribe, initial));
        Self::new(url, is_first, now, list, RequestContext::default())
    }

    /// Makes a SotW request of which nothing is read yet. `version` is the one
    /// that the first request of a type names.
    pub(super) fn from_sotw(
        url: TypeUrl,
        is_first: bool,
        now: Moment,
        names: Vec<Locator>,
        version: Option<Version>,
    ) -> Self {
        let context = RequestContext {
            version,
            ..RequestContext::default()
        };
        let list = NameList::Sotw(SotwList::new(names));
        Self::new(url, is_first, now, list, context)
    }

    /// Makes a request that is read from its first stage.
    fn new(
        url: TypeUrl,
        is_first: bool,
        now: Moment,
        list: NameList,
        context: RequestContext,
    ) -> Self {
        Self {
            url,
            is_first,
            now,
            stage: Stage::Parameters,
            scan: ListScan::default(),
            context,
            list,
        }
    }

    /// Returns the number of names that are not read yet.
    pub(super) fn len(&self) -> usize {
        match &self.list {
            NameList::Delta(list) => list.subscribe.len() + list.unsubscribe.len(),
            NameList::Sotw(list) => list.names.len(),
        }
    }

    /// Drops at most `limit` of the names, since the stream has ended. Returns
    /// whether none is left; then the request can be dropped as a whole.
    pub(super) fn drop_slice(&mut self, limit: usize) -> bool {
        let (names, unsubscribe) = match &mut self.list {
            NameList::Delta(list) => (&mut list.subscribe, Some(&mut list.unsubscribe)),
            NameList::Sotw(list) => (&mut list.names, None),
        };
        let mut dropped_count = names.by_ref().take(limit).count();
        if let Some(unsubscribe) = unsubscribe {
            dropped_count += unsubscribe.by_ref().take(limit - dropped_count).count();
        }
        dropped_count < limit
    }
}

impl Session {
    /// Returns whether a further request has to wait until polls have read the
    /// last one to its end, or have applied new parameters (S85). A caller that
    /// does not wait delays other streams.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let changes_params = |type_stream: &TypeStream| {
            let stream_params = self.params_of(&type_stream.type_url);
            type_stream.may_change_params(type_stream.next_params(stream_params))
        };
        self.unfinished.is_some() || self.type_streams.iter().any(changes_params)
    }

    /// Returns whether the last request is not read to its end. A poll reads a
    /// slice of it and sends nothing.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Does a slice of the work for which a further request has to wait; does
    /// nothing once [`Self::is_busy`] is false.
    pub fn work_off(&mut self, db: &mut Database) {
        if self.unfinished.is_some() {
            _ = self.continue_request(db)
        } else {
            _ = self.apply_params_slice(db, &mut SLICE.clone())
        }
    }

    /// Reads the first slice of a request, and keeps the rest for polls. The
    /// caller has read the request before it to its end.
    pub(super) fn begin_request(&mut self, db: &mut Database, mut request: UnfinishedRequest) {
        if self.read_slice(db, &mut request) {
            self.unfinished = Some(Box::new(request));
        }
    }

    /// Reads another slice of the unfinished request. Returns whether it has
    /// more; `false` if there is none.
    pub(super) fn continue_request(&mut self, db: &mut Database) -> bool {
        let Some(mut request) = self.unfinished.take() else {
            return false;
        };
        let has_more = self.read_slice(db, &mut request);
        self.unfinished = has_more.then_some(request);
        has_more
    }

    /// Reads a slice of a request. Returns whether the request has more;
    /// `false` too if its type is gone.
    fn read_slice(&mut self, db: &mut Database, request: &mut UnfinishedRequest) -> bool {
        let mut type_streams = self.type_streams.iter();
        let Some(index) = type_streams.position(|type_stream| type_stream.type_url == request.url)
        else {
            return false;
        };

        let mut budget = SLICE;
        while request.stage != Stage::End {
            let stage = request.stage;
            self.read_part(db, index, request, &mut budget);
            if budget == 0 && request.stage == stage {
                return true;
            }
        }
        false
    }

    /// Reads a part of a request, which may visit `budget` names, and subtracts
    /// the visited ones. Moves to the next stage when the present one is
    /// complete; with the last one the request's effects on other types apply.
    fn read_part(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
        budget: &mut usize,
    ) {
        let is_done = match request.stage {
            Stage::Parameters => self.apply_params_slice(db, budget),
            Stage::Scan => scan_names(request, budget),
            Stage::ScopeParameters => self.adopt_scope_params(db, index, request, budget),
            Stage::Begin => {
                self.begin_names(db, index, request);
                true
            }
            Stage::Unsubscribe => self.read_unsubscribed(db, index, request, budget),
            Stage::Compare => self.compare_list(db, index, request, budget),
            Stage::Sweep => self.sweep_unlisted(db, index, request, budget),
            Stage::Subscribe => match &request.list {
                NameList::Delta(_) => self.read_subscribed(db, index, request, budget),
                NameList::Sotw(_) => self.subscribe_listed(db, index, request, budget),
            },
            Stage::Held => self.read_held(db, index, request, budget),
            Stage::End => true,
        };

        if is_done {
            request.stage = request.next_stage();
            if request.stage == Stage::End {
                self.end_request(db, index, request);
            }
        }
    }

    /// Adopts the parameters of a wildcard or glob: they become those of the
    /// type on this stream, for cursors and for plain names. The last ones in
    /// the list count. Returns whether they are applied to all names.
    fn adopt_scope_params(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
        budget: &mut usize,
    ) -> bool {
        // An error is ignored here, because the parser of names reports it.
        if let Some(params) = request.scan.scope_params.take()
            && let Ok(params) = self.params_of_locator(db, Some(params), self.params)
        {
            self.type_streams[index].scope_params = Some(params);
        }
        self.apply_type_params(db, index, budget)
    }

    /// Applies the parts of a request other than its single names.
    fn begin_names(&mut self, db: &mut Database, index: usize, request: &mut UnfinishedRequest) {
        match &request.list {
            NameList::Delta(_) => self.begin_delta(db, index, request),
            NameList::Sotw(_) => self.begin_sotw(db, index, request),
        }
    }

    /// Records the resources that a reconnected client holds in addition to its
    /// subscriptions. Returns whether all of them are recorded.
    fn read_held(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
        budget: &mut usize,
    ) -> bool {
        if !request.is_first {
            return true;
        }
        self.type_streams[index].record_resumed_resources(db, &mut request.context, budget)
    }

    /// Ends a request: applies its effects on other types, and marks deferred
    /// names dirty.
    fn end_request(&mut self, db: &mut Database, index: usize, request: &mut UnfinishedRequest) {
        if let NameList::Sotw(list) = &mut request.list {
            let refusals = std::mem::take(&mut list.refusals);
            self.report_refusals_of_list(index, refusals, list.has_unsent_refusals);
        }
        self.type_streams[index].finish_request();

        if request.is_first && self.resuming_until.is_some() {
            self.infer_clusters_from_endpoints(db);
            self.record_inline_routes(db);
            self.discount_route_names(index);
            self.drain_replaced_by_warming(db, request.now);
        }

        let unsubscribed = std::mem::take(&mut request.context.unsubscribed);
        self.drain_unsubscribed(db, index, &unsubscribed, request.now);
        self.mark_deferred_dirty();
    }
}

impl UnfinishedRequest {
    /// Returns the stage after the present one, which depends on the protocol.
    fn next_stage(&self) -> Stage {
        let is_delta = matches!(self.list, NameList::Delta(_));
        match self.stage {
            Stage::Parameters => Stage::Scan,
            Stage::Scan => Stage::ScopeParameters,
            Stage::ScopeParameters => Stage::Begin,
            Stage::Begin if is_delta => Stage::Unsubscribe,
            Stage::Begin => Stage::Compare,
            Stage::Compare => Stage::Sweep,
            Stage::Unsubscribe | Stage::Sweep => Stage::Subscribe,
            Stage::Subscribe => Stage::Held,
            Stage::Held | Stage::End => Stage::End,
        }
    }
}

/// Scans names of a list, many more than other stages read in a slice. Returns
/// whether the list is scanned to its end; if not, the budget is used up.
fn scan_names(request: &mut UnfinishedRequest, budget: &mut usize) -> bool {
    let is_done = match &request.list {
        NameList::Delta(list) => request.scan.scan_delta(list, SCANNED_AT_ONCE),
        NameList::Sotw(list) => request.scan.scan(list.names.as_slice(), SCANNED_AT_ONCE),
    };
    if !is_done {
        *budget = 0;
    }
    is_done
}

/// A name that a request subscribes to, with its parameters.
type NamedParams = (Name, ParamsId);

/// Returns whether a version is that of the empty set: a client that names it
/// reconnected, and holds nothing.
fn is_empty_set(version: &Version) -> bool {
    *version == Version::of_hash(0)
}
