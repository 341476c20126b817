//! A source, a sink and an owner who tells a test what happens.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::Status;
use trunkline::client::ControlPlane;
use trunkline::core::change::{Change, Transaction};
use trunkline::core::sink::BackoffConfig;
use trunkline::listen::{self, Listening};
use trunkline::mcp::{
    Delivery, McpResource, McpSink, McpSource, Rejected, SinkOptions, Verdict, Wire, plaintext,
    resource,
};
use trunkline::proto::mcp as wire;

/// A resource whose body is a text.
pub(crate) fn thing(name: &str, body: &str) -> McpResource {
    resource(name, "type.googleapis.com/example.Thing", body.to_owned())
}

/// Changes in words: all names of a full state, or `+new -gone`.
pub(crate) fn held(changes: &Transaction) -> String {
    let Some(first) = changes.first() else {
        return String::new();
    };
    let mut words = vec![format!("{}:", first.type_url())];
    for change in changes {
        match change {
            Change::ReplaceAll(_, all) => {
                words.extend(all.iter().map(|resource| resource.name.to_string()));
            }
            Change::Upsert(_, resource) => words.push(format!("+{}", resource.name)),
            Change::Remove(_, name) => words.push(format!("-{name}")),
            other => panic!("{other:?}"),
        }
    }
    words.join(" ")
}

/// What the owner was given, and said.
type Told = (Transaction, Verdict);

/// An owner as its test sees it.
pub(crate) struct Owner {
    told: mpsc::UnboundedReceiver<Told>,
    rejection: Arc<Mutex<Option<Rejected>>>,
}

impl Owner {
    /// An owner, and the part of it that a sink has.
    pub(crate) fn new() -> (Self, impl Fn(Delivery) -> Verdict + Send + Sync + 'static) {
        let (tell, told) = mpsc::unbounded_channel();
        let rejection = Arc::new(Mutex::new(None::<Rejected>));
        let next = Arc::clone(&rejection);
        let judge = move |delivery: Delivery| {
            let verdict = match next.lock().unwrap().take() {
                None => Verdict::Accept,
                Some(rejected) => Verdict::Reject(vec![rejected]),
            };
            // Fails when the test is over.
            let _ = tell.send((delivery.changes, verdict.clone()));
            verdict
        };
        (Self { told, rejection }, judge)
    }

    pub(crate) fn reject_next(&self, rejected: Rejected) {
        *self.rejection.lock().unwrap() = Some(rejected);
    }

    pub(crate) async fn next(&mut self) -> Told {
        self.told.recv().await.expect("the sink lives")
    }
}

/// A source and a sink that are connected, and a task that connects them.
pub(crate) struct Peers {
    pub(crate) source: McpSource,
    pub(crate) sink: McpSink,
    pub(crate) owner: Owner,
    /// Tasks that end with the test.
    tasks: Vec<Task>,
    address: SocketAddr,
    listening: Listening,
}

/// A task that is aborted when it is dropped.
pub(crate) struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Task {
    Task(tokio::spawn(task))
}

/// Listens on a free port, and serves it.
pub(crate) async fn listening<F: Future<Output = ()> + Send + 'static>(
    serve: impl FnOnce(TcpListener) -> F,
) -> (SocketAddr, Task) {
    let listener = listen::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (address, spawn(serve(listener)))
}

/// The peer at an address.
pub(crate) fn peer(address: SocketAddr) -> ControlPlane {
    plaintext(address.to_string().parse().unwrap())
}

pub(crate) fn contents() -> McpSource {
    let source = McpSource::default();
    let things = [thing("ns/foo", "0"), thing("ns/bar", "0")];
    source.set("A", things).unwrap();
    source.set("B", [thing("ns/b", "0")]).unwrap();
    source
}

pub(crate) fn sink(incremental: bool) -> (McpSink, Owner) {
    sink_over(Wire::Mcp, incremental)
}

fn sink_over(wire: Wire, incremental: bool) -> (McpSink, Owner) {
    let (owner, judge) = Owner::new();
    let options = SinkOptions {
        incremental,
        wire,
        // Waits of a test are short.
        backoff: BackoffConfig::with_base(Duration::from_millis(1)),
        ..SinkOptions::of("sink", ["A", "B"])
    };
    (McpSink::new(options, judge), owner)
}

impl Peers {
    pub(crate) async fn sink_dials(incremental: bool) -> Self {
        Self::dialled_by(sink(incremental)).await
    }

    /// The sink dials, and speaks this.
    pub(crate) async fn sink_dials_over(wire: Wire) -> Self {
        Self::dialled_by(sink_over(wire, true)).await
    }

    async fn dialled_by((sink, owner): (McpSink, Owner)) -> Self {
        let source = contents();
        let served = source.clone();
        let options = Listening::default();
        let (address, serving) =
            listening(|listener| served.listen(listener, options.clone())).await;
        let dialling = spawn(sink.clone().dial(peer(address)));
        let tasks = vec![serving, dialling];
        Self {
            source,
            sink,
            owner,
            tasks,
            address,
            listening: options,
        }
    }

    pub(crate) async fn source_dials(incremental: bool) -> Self {
        let (source, (sink, owner)) = (contents(), sink(incremental));
        let served = sink.clone();
        let options = Listening::default();
        let (address, serving) =
            listening(|listener| served.listen(listener, options.clone())).await;
        let dialling = spawn(source.clone().dial(peer(address)));
        let tasks = vec![serving, dialling];
        Self {
            source,
            sink,
            owner,
            tasks,
            address,
            listening: options,
        }
    }

    /// Stops the source that listens, and starts another at its address.
    pub(crate) async fn replace_source(&mut self, source: McpSource) {
        self.listening.stopped.cancel();
        let listener = loop {
            // The listener is closed a moment later.
            match listen::bind(self.address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        self.source = source.clone();
        let serving = spawn(source.listen(listener, Listening::default()));
        self.tasks.push(serving);
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the sink has ACKed all.
    pub(crate) async fn source_is_current(&self) {
        let is_current = |peers: &Self| {
            let streams = peers.source.status().streams;
            streams.len() == 1 && streams[0].is_current
        };
        self.until(is_current).await;
    }
}

/// Asks a source for a collection, and returns the status that ends the stream.
pub(crate) async fn ask(source: McpSource, collection: &str) -> Status {
    let (address, _serving) =
        listening(|listener| source.listen(listener, Listening::default())).await;
    let request = wire::RequestResources {
        collection: collection.to_owned(),
        ..wire::RequestResources::default()
    };
    status(address, wire::SOURCE_METHOD, request.encode_to_vec()).await
}

/// Dials a sink, and returns the status that ends the stream.
pub(crate) async fn dial_sink(address: SocketAddr) -> Status {
    status(address, wire::SINK_METHOD, Vec::new()).await
}

async fn status(address: SocketAddr, path: &str, message: Vec<u8>) -> Status {
    use trunkline::client::transport::{Connector, StreamError, TransportOptions};

    let connector = Connector::new(TransportOptions::default());
    let mut stream = connector.open(&peer(address), path).await.unwrap();
    stream.ready().await.unwrap();
    stream.send(message.into());
    loop {
        match stream.next().await {
            Ok(Some(_)) => {}
            Err(StreamError::Status { code, message }) => {
                return Status::new(tonic::Code::from(code.0.cast_signed()), message);
            }
            other => panic!("{other:?}"),
        }
    }
}
