//! The outcome of a request, reported to hooks and contents after the locks are
//! released.

use trunkline_core::database::{Choice, Database, DemandChange};
use trunkline_core::kind::Kind;
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::ParamsId;
use trunkline_core::resource::TypeUrl;
use trunkline_core::session::Event;
use trunkline_core::sink::Request;

use super::report::{Acknowledged, Report, RequestDetails};
use super::stream::Stream;
use crate::wire::Refused;

/// Events of one request, to be reported after the locks are released.
#[derive(Default)]
pub(super) struct RequestOutcome {
    /// Whether it is the first request of the stream.
    pub(super) opens: bool,
    pub(super) type_url: Option<TypeUrl>,
    /// The type, if the client may not see it.
    pub(super) denied_type: Option<TypeUrl>,
    /// Names that were taken out of the request.
    pub(super) refused_names: Vec<Refused>,
    pub(super) names_on_demand: NamesOnDemand,
    /// The contents of the request, if hooks read them.
    pub(super) details: Option<RequestDetails>,
    pub(super) events: Vec<Event>,
    /// The revision of the response that the request acknowledges.
    pub(super) acknowledged_revision: Option<u64>,
    /// Names that do not exist and got their first subscriber.
    pub(super) missing_names: Vec<(TypeUrl, Name)>,
    /// Names that lost their last subscriber.
    pub(super) unsubscribed_names: Vec<(TypeUrl, Name)>,
    /// Whether it is the first ACK of the stream.
    pub(super) has_first_ack: bool,
}

/// The names that a request subscribes to on demand.
#[derive(Default)]
pub(super) struct NamesOnDemand {
    /// The first names.
    first_names: Vec<String>,
    /// The number of the others.
    more_count: usize,
}

impl Stream {
    /// Reports a request of so many bytes to the hooks, in the order in which
    /// things happened. Tells the contents of the names whose demand it started
    /// or ended.
    pub(super) fn report_request(&self, bytes: usize, outcome: &RequestOutcome) {
        if outcome.opens {
            self.report(Report::Opened);
        }
        if let Some(type_url) = &outcome.type_url {
            self.report(Report::Requested {
                type_url,
                bytes,
                details: outcome.details.as_ref(),
            });
            self.report_on_demand(type_url, &outcome.names_on_demand);
        }
        if let Some(type_url) = &outcome.denied_type {
            self.report(Report::Denied { type_url });
        }
        for name in &outcome.refused_names {
            self.report(Report::Refused(name));
        }
        for event in &outcome.events {
            self.report(Report::Event(event));
        }
        let acknowledgement = Acknowledged::find(&outcome.events, outcome.acknowledged_revision);
        if let Some(acknowledgement) = acknowledgement {
            self.report(Report::Acknowledged(acknowledgement));
        }
        if outcome.has_first_ack {
            self.report(Report::Configured(self.started.elapsed()));
        }

        self.report_demand(outcome);
    }

    /// Reports names that do not exist and got their first subscriber. Tells
    /// the contents of these, and of names that have lost their last
    /// subscriber.
    pub(super) fn report_demand(&self, outcome: &RequestOutcome) {
        for (type_url, name) in &outcome.missing_names {
            self.report(Report::Missing { type_url, name });
            for contents in &self.shared.contents {
                contents.subscribed(type_url, name);
            }
        }
        for (type_url, name) in &outcome.unsubscribed_names {
            for contents in &self.shared.contents {
                contents.unsubscribed(type_url, name);
            }
        }
    }

    /// Reports names that were subscribed to on demand, if there are any.
    fn report_on_demand(&self, type_url: &TypeUrl, names: &NamesOnDemand) {
        if !names.first_names.is_empty() {
            self.report(Report::HostsRequested {
                type_url,
                names: &names.first_names,
                more: names.more_count,
            });
        }
    }
}

/// The maximum of names that are reported of one request: a client that
/// reconnects lists all of its names.
const MAX_REPORTED: usize = 16;

/// Lists the names that a request subscribes to on demand: the first
/// [`MAX_REPORTED`], and the number of the others. Lists none unless the
/// request is one of delta, of a type that is subscribed to on demand.
pub(super) fn names_on_demand(type_url: Option<&TypeUrl>, request: &Request) -> NamesOnDemand {
    let Request::Delta(request) = request else {
        return NamesOnDemand::default();
    };
    if !type_url.is_some_and(|url| Kind::of(url).on_demand) {
        return NamesOnDemand::default();
    }

    let mut names = request.subscribe.iter().map(|locator| &locator.name);
    let without_star = names.by_ref().filter(|name| *name != "*");
    NamesOnDemand {
        first_names: without_star.take(MAX_REPORTED).cloned().collect(),
        // A star comes first, if there is one. The rest may be a million names.
        more_count: names.len(),
    }
}

/// Takes the changes of demand since the last call, whichever stream made them,
/// and adds to `outcome` the names whose demand ended, and those whose demand
/// started and that do not exist in any variant. Drops types that are without a
/// use now.
pub(super) fn take_demand_changes(db: &mut Database, outcome: &mut RequestOutcome) {
    for (type_id, selector, change) in db.take_demand_changes() {
        // Contents are not asked for wildcards and globs.
        let Selector::Name(name) = selector else {
            continue;
        };
        let type_url = db.type_url(type_id).clone();
        match change {
            DemandChange::Ended => outcome.unsubscribed_names.push((type_url, name)),
            DemandChange::Started => {
                let choice = db.choose_name(type_id, &name, ParamsId::EMPTY);
                let is_unanswered = matches!(choice, Choice::Absent | Choice::Unknown);
                // Variants may be for clients with other parameters.
                if is_unanswered && db.variants(type_id, &name).is_empty() {
                    outcome.missing_names.push((type_url, name));
                }
            }
        }
    }
    db.drop_idle_types();
}
