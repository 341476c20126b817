//! Where secrets go, and where they do not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use tonic::Status;
use tonic::codegen::Service as _;
use trunkline::wire::accept;
use trunkline::{
    BoxFuture, Call, Change, Connection, Event, Hooks, Limit, Peer, Report, Server, kind,
};
use trunkline_proto::envoy::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use trunkline_proto::envoy::google::rpc::Status as Rejection;
use trunkline_proto::text;

use crate::support::{Delta, build};

const KEY: &str = "swordfish and other fish";

/// A cluster with a private key in it, another without, and a secret.
fn contents() -> Vec<Change> {
    let text = format!(
        r#"resources:
- "@type": {cluster}
  name: keyed
  transport_socket:
    name: tls
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
      common_tls_context: {{tls_certificates: [{{private_key: {{inline_string: {KEY}}}}}]}}
- "@type": {cluster}
  name: plain
- "@type": {secret}
  name: s
  generic_secret: {{secret: {{inline_string: {KEY}}}}}
"#,
        cluster = kind::CDS,
        secret = kind::SDS,
    );
    let read = text::read("a.yaml", &text, &text::Options::default());
    assert_eq!(read.errors, []);
    let changes = read.resources.into_iter().map(|resource| {
        let url = resource.type_url.as_str().into();
        let accepted = accept(&url, resource.body).unwrap();
        Change::Upsert(url, Arc::new(accepted))
    });
    changes.collect()
}

/// Hooks that know a client by a header, and write down what is withheld and
/// what is said.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Hooks for Notes {
    fn authenticate<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Option<String>, Status>> {
        let name = call
            .headers
            .get("name")
            .map(|name| name.to_str().unwrap().to_owned());
        Box::pin(std::future::ready(Ok(name)))
    }

    fn report(&self, _: Peer<'_>, report: Report<'_>) {
        let note = match report {
            Report::Event(Event::Withheld { name, .. }) => format!("withheld {name}"),
            Report::Event(Event::Nacked { error, .. }) => error.message.clone(),
            Report::Requested {
                details: Some(details),
                ..
            } => match &details.error {
                Some(error) => error.clone(),
                None => return,
            },
            _ => return,
        };
        self.0.lock().unwrap().push(note);
    }

    fn reads_requests(&self) -> bool {
        true
    }

    fn limited(&self, limit: Limit) {
        self.0.lock().unwrap().push(limit.as_str().to_owned());
    }
}

/// Polls once as a client of this address.
async fn poll(server: &Server, kind: &str, connection: Connection, name: Option<&str>) -> String {
    let mut request = Request::post(format!("/v3/discovery:{kind}"));
    if let Some(name) = name {
        request = request.header("name", name);
    }
    // A client gets secrets by name only.
    let names = if kind == "secrets" { r#""s""# } else { "" };
    let body = format!(r#"{{"node":{{"id":"n"}},"resource_names":[{names}]}}"#);
    let body = Full::new(Bytes::from(body));
    let mut request = request.body(tonic::body::Body::new(body)).unwrap();
    request.extensions_mut().insert(connection);
    let response = server.service().call(request).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

fn from(peer: &str, secure: bool, certified: bool) -> Connection {
    let mut connection = Connection::default();
    let address = peer.parse().unwrap();
    connection.peer = Some(SocketAddr::new(address, 1));
    connection.local = Some(SocketAddr::new(address, 2));
    (connection.secure, connection.certified) = (secure, certified);
    connection
}

#[tokio::test]
async fn secrets_go_to_clients_that_are_local_or_have_shown_who_they_are() {
    for (connection, name, gets_secrets) in [
        (from("127.0.0.1", false, false), None, true),
        (from("::ffff:127.0.0.1", false, false), None, true),
        (from("192.0.2.1", false, false), None, false),
        // Anybody can listen.
        (from("192.0.2.1", false, false), Some("token"), false),
        // Anybody can connect.
        (from("192.0.2.1", true, false), None, false),
        (from("192.0.2.1", true, false), Some("token"), true),
        (from("192.0.2.1", true, true), None, true),
        (Connection::default(), None, false),
    ] {
        let notes = Notes::default();
        let server = Server::builder().hooks(notes.clone()).build();
        server.apply(contents()).unwrap();
        let secrets = poll(&server, "secrets", connection.clone(), name).await;
        assert_eq!(
            secrets.contains(KEY),
            gets_secrets,
            "{connection:?} {secrets}"
        );
        let clusters = poll(&server, "clusters", connection.clone(), name).await;
        assert_eq!(
            clusters.contains(KEY),
            gets_secrets,
            "{connection:?} {clusters}"
        );
        assert!(clusters.contains("plain"), "{connection:?} {clusters}");

        let notes = notes.0.lock().unwrap().clone();
        match gets_secrets {
            true => assert_eq!(notes, [""; 0]),
            false => assert_eq!(notes, ["keys", "withheld keyed"]),
        }
    }
}

#[tokio::test]
async fn an_option_lets_secrets_go_to_all() {
    let server = Server::builder()
        .options(|o| o.secrets_in_clear = true)
        .build();
    server.apply(contents()).unwrap();
    for kind in ["secrets", "clusters"] {
        let connection = from("192.0.2.1", false, false);
        let body = poll(&server, kind, connection, None).await;
        assert!(body.contains(KEY), "{body}");
    }
}

#[tokio::test]
async fn a_nack_that_quotes_a_secret_is_scrubbed_before_anybody_sees_it() {
    let notes = Notes::default();
    let fixture = build(Server::builder().hooks(notes.clone())).await;
    fixture.server.apply(contents()).unwrap();
    for (kind, name) in [(kind::SDS, "s"), (kind::CDS, "keyed")] {
        let mut stream = Delta::open(&fixture).await;
        let request = |nonce: String, error: Option<String>| DeltaDiscoveryRequest {
            type_url: kind.into(),
            resource_names_subscribe: vec![name.into()],
            response_nonce: nonce,
            error_detail: error.map(|message| Rejection {
                code: 3,
                message,
                ..Rejection::default()
            }),
            ..DeltaDiscoveryRequest::default()
        };
        stream
            .requests
            .send(request(String::new(), None))
            .await
            .unwrap();
        let response = stream.next().await;
        let error = format!("bad {name}: \"{KEY}\", {:?}", &KEY[4..]);
        let nack = request(response.nonce.clone(), Some(error));
        stream.requests.send(nack).await.unwrap();
        // The name comes again, so the NACK was read.
        stream.next().await;
    }

    let notes = notes.0.lock().unwrap().clone();
    let said = |name: &str| format!("bad {name}: \"[redacted]\", \"[redacted]\"");
    let (secret, cluster) = (said("s"), said("keyed"));
    // Of each, the request and the event.
    assert_eq!(notes, [secret.as_str(), &secret, &cluster, &cluster]);
    let clients = format!("{:?}", trunkline::status::Clients::clients(&fixture.server));
    assert!(!clients.contains("fish"), "{clients}");
}
