//! Hooks of an embedder.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tonic::{Code, Status};
use trunkline::{
    ApplyError, BoxFuture, Call, Changed, Contents, Event, Hooks, Identity, Name, Peer, Report,
    Server, TypeUrl, Writer, kind,
};
use trunkline_proto::envoy::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use trunkline_proto::envoy::google::rpc::Status as Rejection;

use crate::support::{Delta, bodies, build, put};

/// Writes down each call as one word.
struct Words(mpsc::UnboundedSender<String>);

impl Words {
    fn say(&self, word: impl Into<String>) {
        // A test that has seen enough does not listen any more.
        let _ = self.0.send(word.into());
    }
}

impl Hooks for Words {
    fn report(&self, _: Peer<'_>, report: Report<'_>) {
        match report {
            Report::Opened => self.say("opened"),
            Report::Missing { name, .. } => self.say(format!("missing {name}")),
            Report::Sent(sent) => self.say(format!("sent {}", sent.nonce)),
            Report::Event(Event::Acked { nonce, .. }) => self.say(format!("acked {nonce}")),
            Report::Event(Event::Nacked { error, .. }) => {
                self.say(format!("nacked: {}", error.message));
            }
            Report::Event(Event::Quarantined { name, .. }) => self.say(format!("parked {name}")),
            Report::Acknowledged(acknowledged) => {
                let names = acknowledged.quarantined().map(|(name, _)| name.as_str());
                let names: Vec<&str> = names.collect();
                self.say(format!("of revision {:?} {names:?}", acknowledged.revision));
            }
            Report::Configured(_) => self.say("configured"),
            _ => {}
        }
    }

    fn changed(&self, revision: u64, origin: &str, changed: &[Changed]) {
        for c in changed {
            let step = match (&c.from, &c.to) {
                (None, Some(_)) => "new",
                (Some(_), Some(_)) => "other",
                (Some(_), None) => "gone",
                (None, None) => "nothing",
            };
            self.say(format!("{revision} {origin}: {} {step}", c.name));
        }
    }

    fn converged(&self, _: Duration) {
        self.say("converged");
    }

    fn pushed(&self, type_url: &TypeUrl, _: Duration) {
        let (_, short) = type_url.as_str().rsplit_once('.').unwrap_or_default();
        self.say(format!("pushed {short}"));
    }
}

#[tokio::test]
async fn everything_that_happens_is_told() {
    let (words, mut told) = mpsc::unbounded_channel();
    let fixture = build(Server::builder().hooks(Words(words))).await;
    let mut hear = async |expected: &[&str]| {
        for expected in expected {
            assert_eq!(told.recv().await.as_deref(), Some(*expected));
        }
    };
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a"]).await;
    hear(&["opened", "missing a", "sent 1"]).await;
    let response = stream.next().await;
    assert_eq!(response.removed_resources, ["a"]);
    stream.accept(&response).await;
    hear(&["acked 1", "of revision Some(0) []", "configured"]).await;

    fixture.server.apply_as("me", vec![put("a", b"1")]).unwrap();
    hear(&["1 me: a new", "sent 2", "pushed ClusterLoadAssignment"]).await;
    let response = stream.next().await;
    stream.accept(&response).await;
    hear(&["acked 2", "of revision Some(1) []", "converged"]).await;

    // An equal resource makes a revision, but nothing is different.
    fixture.server.apply(vec![put("a", b"1")]).unwrap();
    fixture.server.apply(vec![put("a", b"2")]).unwrap();
    hear(&[
        "3 program: a other",
        "sent 3",
        "pushed ClusterLoadAssignment",
    ])
    .await;
    let response = stream.next().await;
    let rejection = DeltaDiscoveryRequest {
        type_url: response.type_url,
        response_nonce: response.nonce,
        error_detail: Some(Rejection {
            message: "too bad".into(),
            ..Rejection::default()
        }),
        ..Default::default()
    };
    stream.requests.send(rejection).await.unwrap();
    let nacked = ["nacked: too bad", "parked a"];
    hear(&nacked).await;
    hear(&["of revision Some(3) [\"a\"]", "converged"]).await;
}

/// Admits streams that have the right header, and lets them see no endpoints.
struct Guard;

impl Hooks for Guard {
    fn authenticate<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Option<String>, Status>> {
        Box::pin(async move {
            match call.headers.contains_key("x-let-me-in") {
                true => Ok(Some("friend".to_owned())),
                false => Err(Status::permission_denied("who are you?")),
            }
        })
    }

    fn authorise(&self, peer: Peer<'_>, type_url: &TypeUrl) -> bool {
        peer.identity.map(Identity::as_str) == Some("friend") && type_url.as_str() != kind::EDS
    }
}

#[tokio::test]
async fn s78_who_is_not_let_in_hears_so_before_anything_else() {
    let builder = Server::builder().hooks(Guard);
    let fixture = build(builder.options(|o| o.refusal_delay = Duration::ZERO)).await;
    fixture.server.apply(vec![put("a", b"1")]).unwrap();
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a"]).await;
    assert_eq!(stream.end().await, Code::PermissionDenied);
}

#[tokio::test]
async fn a_type_that_a_peer_may_not_see_does_not_exist() {
    let fixture = build(Server::builder().hooks(Guard)).await;
    fixture.server.apply(vec![put("a", b"1")]).unwrap();
    let mut stream = Delta::open_with(&fixture, "x-let-me-in").await;
    stream.ask(&["a"]).await;
    let response = stream.next().await;
    assert_eq!(response.removed_resources, ["a"]);
    assert_eq!(bodies(&response), []);
}

/// Makes each name when it is demanded, and remembers the demand.
#[derive(Default)]
struct OnDemand {
    writer: Mutex<Option<Writer>>,
    unwanted: Mutex<Vec<String>>,
}

impl Contents for OnDemand {
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        writer.loaded();
        *self.writer.lock().unwrap() = Some(writer);
        Box::pin(std::future::ready(()))
    }

    fn subscribed(&self, _: &TypeUrl, name: &Name) {
        let writer = self.writer.lock().unwrap();
        let writer = writer.as_ref().unwrap();
        writer
            .apply("demand", vec![put(name.as_str(), b"made")])
            .unwrap();
    }

    fn unsubscribed(&self, _: &TypeUrl, name: &Name) {
        self.unwanted.lock().unwrap().push(name.to_string());
    }
}

#[tokio::test]
async fn contents_are_made_on_demand() {
    let contents = Arc::new(OnDemand::default());
    let mut fixture = build(Server::builder().contents(Arc::clone(&contents))).await;
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a"]).await;
    assert_eq!(bodies(&stream.next().await), [("a", &b"made"[..])]);
    drop(stream);
    fixture.closed.recv().await.unwrap();
    assert_eq!(*contents.unwanted.lock().unwrap(), ["a"]);
}

#[tokio::test]
async fn what_is_asked_for_on_demand_is_told() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let builder = Server::builder().observe(move |_, report| {
        if let Report::HostsRequested { names, more, .. } = report {
            told.send((names.to_vec(), more)).unwrap();
        }
    });
    let fixture = build(builder).await;
    let stream = Delta::open(&fixture).await;
    // A wildcard of another type is no demand, and neither is an empty
    // subscription.
    stream.ask(&["a"]).await;
    let hosts = |names: &[String]| DeltaDiscoveryRequest {
        type_url: kind::VHDS.into(),
        resource_names_subscribe: names.to_vec(),
        ..Default::default()
    };
    stream.requests.send(hosts(&[])).await.unwrap();
    let many: Vec<String> = (0..20).map(|n| format!("r/{n}.com")).collect();
    let listed = [&["*".to_owned()], &many[..]].concat();
    stream.requests.send(hosts(&listed)).await.unwrap();
    let (names, more) = heard.recv().await.unwrap();
    assert_eq!((&names[..], more), (&many[..16], 4));
}

/// Writes down what it is asked about changes; may refuse those of a name.
struct Judge {
    words: mpsc::UnboundedSender<String>,
    refuses: Option<&'static str>,
}

impl Hooks for Judge {
    fn vetoes_changes(&self) -> bool {
        true
    }

    fn changing(&self, origin: &str, changed: &[Changed]) -> Result<(), String> {
        let names: Vec<&str> = changed.iter().map(|change| change.name.as_str()).collect();
        let _ = self.words.send(format!("{origin} changes {names:?}"));
        match self.refuses {
            Some(refused) if names.contains(&refused) => Err(format!("not {refused}")),
            _ => Ok(()),
        }
    }

    fn withdrawn(&self, origin: &str, reason: &ApplyError) {
        let _ = self.words.send(format!("{origin} withdraws: {reason}"));
    }

    fn changed(&self, _: u64, origin: &str, changed: &[Changed]) {
        let _ = self
            .words
            .send(format!("{origin} changed {}", changed.len()));
    }
}

#[test]
fn a_change_that_a_hook_refuses_is_not_made() {
    let (words, mut told) = mpsc::unbounded_channel();
    let judge = |refuses| Judge {
        words: words.clone(),
        refuses,
    };
    let server = Server::builder()
        .hooks(judge(None))
        .hooks(judge(Some("b")))
        .build();
    server.apply_as("me", vec![put("a", b"1")]).unwrap();
    // An equal one changes nothing, and nobody is asked.
    server.apply_as("me", vec![put("a", b"1")]).unwrap();
    let refused = server.apply_as("me", vec![put("a", b"2"), put("b", b"1")]);
    let reason = "not b".to_owned();
    assert_eq!(refused.unwrap_err(), ApplyError::Vetoed { reason });
    let all = server.all(&kind::EDS.into());
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].body.as_deref(), Some(&b"1"[..]));
    let mut heard = Vec::new();
    while let Ok(word) = told.try_recv() {
        heard.push(word);
    }
    let a = "me changes [\"a\"]";
    let ab = "me changes [\"a\", \"b\"]";
    let expected = [
        a,
        a,
        "me changed 1",
        "me changed 1",
        "me changed 0",
        "me changed 0",
    ];
    let withdrawn = [ab, ab, "me withdraws: not b"];
    assert_eq!(heard, [&expected[..], &withdrawn].concat());
}
