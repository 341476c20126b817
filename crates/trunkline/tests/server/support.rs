//! A running server, and a client with messages and a codec that are not ours.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Streaming};
use trunkline::{Builder, Change, Name, Report, Resource, Server, kind};
use trunkline_proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use trunkline_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A running server, and a connection to it.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) serving: JoinHandle<()>,
    pub(crate) channel: Channel,
    pub(crate) address: SocketAddr,
    endpoint: Endpoint,
    pub(crate) closed: mpsc::UnboundedReceiver<u64>,
}

pub(crate) async fn fixture(contents: Vec<Change>) -> Fixture {
    let fixture = build(Server::builder()).await;
    fixture.server.apply(contents).unwrap();
    fixture
}

pub(crate) async fn build(builder: Builder) -> Fixture {
    let (closes, closed) = mpsc::unbounded_channel();
    let server = builder
        .identifier("under test")
        .observe(move |peer, report| {
            if matches!(report, Report::Closed) {
                // A test that has seen enough does not listen.
                let _ = closes.send(peer.stream);
            }
        })
        .build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(listener).await }
    });
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    Fixture {
        server,
        serving,
        channel: endpoint.connect().await.unwrap(),
        address,
        endpoint,
        closed,
    }
}

impl Fixture {
    /// Another connection.
    pub(crate) async fn connect(&self) -> Channel {
        self.endpoint.connect().await.unwrap()
    }

    /// A connection from another address of this host.
    pub(crate) async fn connect_from(&self, host: [u8; 4]) -> Channel {
        let endpoint = self.endpoint.clone().local_address(Some(host.into()));
        endpoint.connect().await.unwrap()
    }

    /// A connection that takes one byte of each stream, unless more is read.
    pub(crate) async fn connect_narrow(&self) -> Channel {
        let endpoint = self.endpoint.clone().initial_stream_window_size(1);
        endpoint.connect().await.unwrap()
    }
}

/// A delta stream from the client's side.
pub(crate) struct Delta {
    pub(crate) requests: mpsc::Sender<DeltaDiscoveryRequest>,
    pub(crate) responses: Streaming<DeltaDiscoveryResponse>,
}

impl Delta {
    pub(crate) async fn open(fixture: &Fixture) -> Self {
        Self::open_on(fixture.channel.clone()).await
    }

    pub(crate) async fn open_on(channel: Channel) -> Self {
        Self::open_as(channel, None).await
    }

    /// A stream with a header of its own.
    pub(crate) async fn open_with(fixture: &Fixture, header: &'static str) -> Self {
        Self::open_as(fixture.channel.clone(), Some(header)).await
    }

    async fn open_as(channel: Channel, header: Option<&'static str>) -> Self {
        let (requests, stream) = mpsc::channel(8);
        let mut client =
            AggregatedDiscoveryServiceClient::new(channel).max_decoding_message_size(64 << 20);
        let mut call = tonic::Request::new(ReceiverStream::new(stream));
        if let Some(header) = header {
            call.metadata_mut().insert(header, "yes".parse().unwrap());
        }
        let responses = client
            .delta_aggregated_resources(call)
            .await
            .unwrap()
            .into_inner();
        Self {
            requests,
            responses,
        }
    }

    pub(crate) async fn ask(&self, names: &[&str]) {
        let request = DeltaDiscoveryRequest {
            type_url: kind::EDS.into(),
            resource_names_subscribe: names.iter().map(|n| (*n).to_owned()).collect(),
            ..Default::default()
        };
        self.requests.send(request).await.unwrap();
    }

    pub(crate) async fn accept(&self, response: &DeltaDiscoveryResponse) {
        let request = DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            ..Default::default()
        };
        self.requests.send(request).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> DeltaDiscoveryResponse {
        let next = tokio::time::timeout(PATIENCE, self.responses.message());
        next.await.expect("in time").unwrap().expect("a response")
    }

    /// The status with which the stream ends.
    pub(crate) async fn end(&mut self) -> Code {
        let next = tokio::time::timeout(PATIENCE, self.responses.message());
        match next.await.expect("in time") {
            Ok(None) => Code::Ok,
            Ok(Some(response)) => panic!("a response: {response:?}"),
            Err(status) => status.code(),
        }
    }
}

pub(crate) fn put(name: &str, body: &'static [u8]) -> Change {
    let resource = Resource::new(Name::new(name), body.into());
    Change::Upsert(kind::EDS.into(), Arc::new(resource))
}

pub(crate) fn bodies(response: &DeltaDiscoveryResponse) -> Vec<(&str, &[u8])> {
    response
        .resources
        .iter()
        .map(|r| (&*r.name, &*r.resource.as_ref().unwrap().value))
        .collect()
}
