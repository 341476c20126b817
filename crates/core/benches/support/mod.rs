//! What the benchmarks and the cost tests are made of: many resources, and
//! peers that ask, accept and wait.
#![allow(
    dead_code,
    clippy::expect_used,
    reason = "each of them uses a part, with input of its own"
)]

use std::sync::Arc;

use bytes::Bytes;
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{Database, Work};
use trunkline_core::facts::{Facts, Reference};
use trunkline_core::hosts::Domains;
use trunkline_core::kind::{CDS, VHDS};
use trunkline_core::message::{DeltaRequest, DeltaResponse, InitialVersions, Locator, Mode, Node};
use trunkline_core::name::Name;
use trunkline_core::params::Params;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::{Config, Session};

/// Bytes in the body of a [`resource`].
pub(crate) const BODY: usize = 100;

/// A name of twenty characters.
pub(crate) fn name(number: usize) -> Name {
    Name::new(&format!("cluster-{number:012}"))
}

/// The resource of that number, with contents of their own for each edition.
pub(crate) fn resource(number: usize, edition: u64) -> Arc<Resource> {
    Arc::new(plain(number, edition))
}

fn plain(number: usize, edition: u64) -> Resource {
    let mut body = vec![0; BODY];
    body[..8].copy_from_slice(&(number as u64).to_le_bytes());
    body[8..16].copy_from_slice(&edition.to_le_bytes());
    Resource::new(name(number), Bytes::from(body))
}

/// The variant of that resource for clients of one group.
pub(crate) fn variant(number: usize, edition: u64, group: usize) -> Arc<Resource> {
    let constraints = format!("group={group}");
    Arc::new(Resource {
        constraints: Some(constraints.parse().expect("a constraint")),
        ..plain(number, edition)
    })
}

/// Bytes in the body of a [`host`].
pub(crate) const HOST_BODY: usize = 300;

/// The two domains of a virtual host of that number.
pub(crate) fn domains(number: usize) -> [String; 2] {
    let host = format!("svc-{number}.ns-{}", number % 1000);
    [host.clone(), format!("{host}.svc.cluster.local")]
}

/// What the virtual host of that number is asked for by.
pub(crate) fn host_name(number: usize) -> Name {
    Name::new(&format!("outbound/{}", domains(number)[0]))
}

/// A virtual host with two domains that refers to one cluster.
pub(crate) fn host(number: usize, edition: u64) -> Arc<Resource> {
    let name = format!("outbound/svc-{number}.ns-{}:80", number % 1000);
    let mut body = vec![0; HOST_BODY];
    body[..8].copy_from_slice(&(number as u64).to_le_bytes());
    body[8..16].copy_from_slice(&edition.to_le_bytes());
    let cluster = Reference {
        type_url: TypeUrl::from(CDS),
        name: Name::new(&format!("outbound|80||{}", domains(number)[1])),
    };
    Arc::new(Resource {
        facts: Some(Box::new(Facts {
            references: Box::new([cluster]),
            domains: Domains::new(domains(number)),
            ..Facts::default()
        })),
        ..Resource::new(Name::new(&name), Bytes::from(body))
    })
}

/// A database with that many virtual hosts.
pub(crate) fn hosts(count: usize) -> Database {
    let mut db = Database::new();
    for from in (0..count).step_by(1000) {
        let some = (from..count.min(from + 1000)).map(|number| host(number, 0));
        put(&mut db, &TypeUrl::from(VHDS), some);
    }
    db
}

/// The parameters of a client of one group.
pub(crate) fn group(group: usize) -> Params {
    Params::new([("group", group.to_string())]).expect("within the limits")
}

/// A database with that many resources of one type.
pub(crate) fn filled(url: &str, count: usize) -> Database {
    let mut db = Database::new();
    fill(&mut db, url, count, 0);
    db
}

/// Gives that many resources of one type the contents of an edition, some at a
/// time, as an upstream stream would.
pub(crate) fn fill(db: &mut Database, url: &str, count: usize, edition: u64) {
    let url = TypeUrl::from(url);
    for from in (0..count).step_by(1000) {
        let some = (from..count.min(from + 1000)).map(|number| resource(number, edition));
        put(db, &url, some);
    }
}

/// Puts these resources in place.
pub(crate) fn put(
    db: &mut Database,
    url: &TypeUrl,
    resources: impl IntoIterator<Item = Arc<Resource>>,
) {
    let upsert = |resource| Change::Upsert(url.clone(), resource);
    let changes = resources.into_iter().map(upsert).collect();
    db.apply(changes).expect("sound contents");
}

/// Gives one resource the contents of an edition.
pub(crate) fn touch(db: &mut Database, url: &str, number: usize, edition: u64) {
    put(db, &TypeUrl::from(url), [resource(number, edition)]);
}

/// What was done since `before`.
pub(crate) fn since(db: &Database, before: Work) -> Work {
    let now = db.work();
    Work {
        entries: now.entries - before.entries,
        views: now.views - before.views,
        subscribers: now.subscribers - before.subscribers,
        evaluations: now.evaluations - before.evaluations,
        ..Work::default()
    }
}

/// A delta stream whose peer accepts everything.
pub(crate) struct Peer {
    session: Session,
    taken: Option<DeltaResponse>,
}

impl Peer {
    /// A stream of a peer with these parameters, to which all there is may be
    /// said at once.
    pub(crate) fn open(db: &mut Database, params: Params) -> Self {
        let mut config = Config::new(Mode::Delta);
        config.params = params;
        config.limits.response_bytes = usize::MAX;
        Self::with(db, config)
    }

    /// A stream that behaves like this.
    pub(crate) fn with(db: &mut Database, config: Config) -> Self {
        Self {
            session: Session::open(db, config),
            taken: None,
        }
    }

    /// Asks for names; none is the wildcard.
    pub(crate) fn ask(
        &mut self,
        db: &mut Database,
        url: &str,
        names: impl IntoIterator<Item = Name>,
    ) {
        let locator = |name: Name| Locator::from(name.as_str());
        self.say(
            db,
            DeltaRequest {
                node: self.session.node().is_none().then(node),
                type_url: Some(url.into()),
                subscribe: names.into_iter().map(locator).collect(),
                ..DeltaRequest::default()
            },
        );
    }

    /// Comes back for everything of a type, and says what it holds.
    pub(crate) fn resume(&mut self, db: &mut Database, url: &str, held: &InitialVersions) {
        self.say(
            db,
            DeltaRequest {
                node: Some(node()),
                type_url: Some(url.into()),
                initial_versions: held.clone(),
                ..DeltaRequest::default()
            },
        );
    }

    /// Takes one response; whether there was one.
    pub(crate) fn take(&mut self, db: &mut Database) -> bool {
        self.taken = self
            .session
            .poll(db, Moment::START)
            .and_then(trunkline_core::message::Response::into_delta);
        self.taken.is_some()
    }

    /// The response that was taken last and not accepted.
    pub(crate) fn taken(&self) -> Option<&DeltaResponse> {
        self.taken.as_ref()
    }

    /// Accepts what was taken.
    pub(crate) fn accept(&mut self, db: &mut Database) {
        if let Some(response) = self.taken.take() {
            let request = DeltaRequest {
                type_url: Some(response.type_url),
                nonce: Some(response.nonce),
                ..DeltaRequest::default()
            };
            self.say(db, request);
        }
    }

    pub(crate) fn close(self, db: &mut Database) {
        self.session.close(db);
    }

    fn say(&mut self, db: &mut Database, request: DeltaRequest) {
        let handled = self.session.handle_delta(db, request, Moment::START);
        handled.expect("the stream goes on");
        while self.session.poll_event().is_some() {}
    }
}

fn node() -> Node {
    Node {
        id: "node".into(),
        cluster: "cluster".into(),
        user_agent: "envoy".into(),
        ..Node::default()
    }
}

/// That many wildcard streams of each group.
pub(crate) fn wildcards(db: &mut Database, url: &str, count: usize, groups: usize) -> Vec<Peer> {
    let mut peers: Vec<_> = (0..count)
        .map(|number| Peer::open(db, group(number % groups)))
        .collect();
    for peer in &mut peers {
        peer.ask(db, url, []);
    }
    settle(db, &mut peers);
    peers
}

/// That many streams which ask for the same names.
pub(crate) fn named(db: &mut Database, url: &str, count: usize, names: &[Name]) -> Vec<Peer> {
    let mut peers: Vec<_> = (0..count)
        .map(|_| Peer::open(db, Params::default()))
        .collect();
    for peer in &mut peers {
        peer.ask(db, url, names.iter().cloned());
    }
    settle(db, &mut peers);
    peers
}

/// Lets everybody take and accept all there is, side by side.
pub(crate) fn settle(db: &mut Database, peers: &mut [Peer]) {
    loop {
        let mut quiet = true;
        for peer in &mut *peers {
            quiet &= !peer.take(db);
        }
        if quiet {
            break;
        }
        for peer in &mut *peers {
            peer.accept(db);
        }
    }
    db.take_woken_streams();
}
