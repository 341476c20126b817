//! The outcome of a request, reported to hooks and contents after the locks are
//! released.

use trunkline_core::database::{Choice, Database, DemandChange};
use trunkline_core::kind::Kind;
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::ParamsId;
use trunkline_core::resource::TypeUrl;
use trunkline_core::session::Event;
use trunkline_core::sink::Request;

use super::report::Report;
use super::stream::Stream;
use crate::wire::Refused;

/// Events of one request, to be reported after the locks are released.
#[derive(Default)]
pub(super) struct RequestOutcome {
    pub(super) opens: bool,
    pub(super) type_url: Option<TypeUrl>,
    pub(super) denied: Option<TypeUrl>,
    pub(super) refused: Vec<Refused>,
    pub(super) asked: (Vec<String>, usize),
    pub(super) events: Vec<Event>,
    pub(super) missing: Vec<(TypeUrl, Name)>,
    pub(super) unwanted: Vec<(TypeUrl, Name)>,
    pub(super) configured: bool,
}

impl Stream {
    pub(super) fn tell(&self, bytes: usize, outcome: &RequestOutcome) {
        if outcome.opens {
            self.report(Report::Opened);
        }
        if let Some(type_url) = &outcome.type_url {
            self.report(Report::Requested { type_url, bytes });
        }
        if let (Some(type_url), (names @ [_, ..], more)) =
            (&outcome.type_url, (&*outcome.asked.0, outcome.asked.1))
        {
            self.report(Report::Asked {
                type_url,
                names,
                more,
            });
        }
        if let Some(type_url) = &outcome.denied {
            self.report(Report::Denied { type_url });
        }
        for name in &outcome.refused {
            self.report(Report::Refused(name));
        }
        for event in &outcome.events {
            self.report(Report::Event(event));
        }
        if outcome.configured {
            self.report(Report::Configured(self.begun.elapsed()));
        }
        for (type_url, name) in &outcome.missing {
            self.report(Report::Missing { type_url, name });
            for contents in &self.shared.contents {
                contents.wanted(type_url, name);
            }
        }
        self.unwanted(&outcome.unwanted);
    }

    pub(super) fn unwanted(&self, names: &[(TypeUrl, Name)]) {
        for (type_url, name) in names {
            for contents in &self.shared.contents {
                contents.unwanted(type_url, name);
            }
        }
    }
}

/// Names of one request that are reported: a client that reconnects lists all.
const TOLD: usize = 16;

/// The names that a request subscribes to on demand: the first ones, and the
/// number of the others.
pub(super) fn on_demand(type_url: Option<&TypeUrl>, request: &Request) -> (Vec<String>, usize) {
    let Request::Delta(request) = request else {
        return (Vec::new(), 0);
    };
    if !type_url.is_some_and(|url| Kind::of(url).on_demand) {
        return (Vec::new(), 0);
    }
    let names = request.subscribe.iter().map(|locator| &locator.name);
    let mut names = names.filter(|name| *name != "*");
    let told = names.by_ref().take(TOLD).cloned().collect();
    (told, names.count())
}

/// Notes the missing names whose demand started, and the names whose demand
/// ended.
pub(super) fn take_demand_changes(db: &mut Database, outcome: &mut RequestOutcome) {
    let changes: Vec<_> = db.take_demand_changes().collect();
    for (type_id, selector, change) in changes {
        let Selector::Name(name) = selector else {
            continue;
        };
        let type_url = db.type_url(type_id).clone();
        match change {
            DemandChange::Ended => outcome.unwanted.push((type_url, name)),
            DemandChange::Started => {
                let found = db.choose_name(type_id, &name, ParamsId::EMPTY);
                if matches!(found, Choice::Absent | Choice::Unknown)
                    && db.variants(type_id, &name).is_empty()
                {
                    outcome.missing.push((type_url, name));
                }
            }
        }
    }
}
