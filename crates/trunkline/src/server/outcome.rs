//! What a request led to, and telling of it when nothing is locked.

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

/// What a request led to, to be reported when nothing is locked.
#[derive(Default)]
pub(super) struct Outcome {
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
    pub(super) fn tell(&self, bytes: usize, outcome: &Outcome) {
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

/// Names that are told of one request: a proxy that comes back lists all.
const TOLD: usize = 16;

/// What a request asks for on demand: the first names, and how many there are
/// beside them.
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

/// Names that somebody asks for first and that do not exist, and names that
/// nobody asks for any more.
pub(super) fn take_edges(db: &mut Database, outcome: &mut Outcome) {
    let edges: Vec<_> = db.take_demand_changes().collect();
    for (type_id, ask, edge) in edges {
        let Selector::Name(name) = ask else { continue };
        let type_url = db.type_url(type_id).clone();
        match edge {
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
