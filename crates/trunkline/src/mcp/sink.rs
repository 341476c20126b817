//! A sink: asks a source for collections, and ACKs what its owner has applied.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tonic::Status;
use trunkline_core::mcp::{Delivery, McpSink as Machine, Received, SinkNode, Verdict};
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::BackoffConfig;
use trunkline_proto::mcp::{SINK_METHOD, SOURCE_METHOD};

use super::accept::{Accept, Role};
use super::dial;
use super::link::{Ended, Link, Outgoing, Why, Wire};
use super::sink_codec::SinkCodec;
use super::sink_status::SinkStatus;
use super::wire::Unreadable;
use super::{delta_xds, xds};
use crate::Server;
use crate::bounds::MCP_MESSAGE;
use crate::client::ControlPlane;
use crate::listen::Listening;
use crate::server::{BoxFuture, Limit};

/// Settings of a sink.
#[derive(Clone, Debug)]
pub struct SinkOptions {
    /// Who it is.
    pub node: SinkNode,
    /// The collections that it asks for.
    pub collections: Vec<TypeUrl>,
    /// It asks for incremental updates. A source may send full states all the
    /// same (M6).
    pub incremental: bool,
    /// What it speaks where it dials. By [`Wire::Xds`] there are full states
    /// only, by [`Wire::DeltaXds`] incremental updates only, whatever is asked
    /// for.
    pub wire: Wire,
    /// How it dials a source that it lost.
    pub backoff: BackoffConfig,
}

impl SinkOptions {
    /// Returns the settings of a sink with this name that asks for incremental
    /// updates.
    #[must_use]
    pub fn of<C: AsRef<str>>(id: &str, collections: impl IntoIterator<Item = C>) -> Self {
        Self {
            node: SinkNode {
                id: id.to_owned(),
                ..SinkNode::default()
            },
            collections: collections.into_iter().map(TypeUrl::new).collect(),
            incremental: true,
            wire: Wire::Mcp,
            backoff: BackoffConfig::default(),
        }
    }
}

/// The owner of a sink's contents. A closure that judges at once is one, too.
pub trait McpOwner: Send + Sync + 'static {
    /// Checks the changes, applies all of them, and persists them where there
    /// is a store; or changes nothing, and says which resource is at fault. The
    /// source is told after that (M11).
    fn apply(&self, delivery: Delivery) -> BoxFuture<'_, Verdict>;
}

impl<F: Fn(Delivery) -> Verdict + Send + Sync + 'static> McpOwner for F {
    fn apply(&self, delivery: Delivery) -> BoxFuture<'_, Verdict> {
        Box::pin(std::future::ready(self(delivery)))
    }
}

/// A sink of collections. Clones share its state. It has one source at a time,
/// which it dials or which dials it.
#[derive(Clone)]
pub struct McpSink {
    shared: Arc<Shared>,
}

struct Shared {
    options: SinkOptions,
    owner: Box<dyn McpOwner>,
    /// Locked for as long as a stream lives: there is one at a time.
    machine: tokio::sync::Mutex<Machine>,
    status: Mutex<SinkStatus>,
    /// Notified when rejected collections are to be asked for again.
    resubscribe: Notify,
}

impl fmt::Debug for McpSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("McpSink");
        debug.field("options", &self.shared.options);
        debug.finish_non_exhaustive()
    }
}

impl McpSink {
    /// Makes a sink that holds nothing.
    #[must_use]
    pub fn new(options: SinkOptions, owner: impl McpOwner) -> Self {
        let SinkOptions {
            node,
            collections,
            incremental,
            wire,
            ..
        } = options.clone();
        let incremental = match wire {
            Wire::Mcp => incremental,
            Wire::Xds => false,
            Wire::DeltaXds => true,
        };

        let machine = Machine::new(node, collections, incremental);
        let status = Mutex::new(SinkStatus::of(&options.collections));
        Self {
            shared: Arc::new(Shared {
                options,
                owner: Box::new(owner),
                machine: tokio::sync::Mutex::new(machine),
                status,
                resubscribe: Notify::new(),
            }),
        }
    }

    /// Returns what the sink holds, and what was rejected.
    #[must_use]
    pub fn status(&self) -> SinkStatus {
        self.with_status(|status| status.clone())
    }

    /// Asks anew for each collection whose newest response was rejected: what
    /// was in its way may be gone. The source would not send it again by itself
    /// (M5). After another collection was accepted, that happens by itself.
    pub fn ask_again(&self) {
        self.shared.resubscribe.notify_one();
    }

    /// Dials a source and speaks `ResourceSource`, again and again.
    pub async fn dial(self, source: ControlPlane) {
        let backoff = self.shared.options.backoff;
        dial::dial(self, source, backoff).await;
    }

    /// Serves `ResourceSink` to a source that dials, as `listening` says, TLS
    /// included. A second source is refused while the first is connected: two
    /// would overwrite each other.
    pub async fn listen(self, listener: TcpListener, listening: Listening) {
        self.accept(listener, listening, Accept::alone).await;
    }

    /// Listens as [`Self::listen`] does, beside a server: a stream that is
    /// refused here counts among the limits of the server, and messages that do
    /// not arrive share its bounds.
    pub async fn listen_beside(self, server: &Server, listener: TcpListener, listening: Listening) {
        let bounds = server.request_bounds();
        let make_service = |sink| Accept::with_bounds(sink, bounds);
        self.accept(listener, listening, make_service).await;
    }

    /// Listens with the service that `service` makes of this.
    async fn accept(
        self,
        listener: TcpListener,
        listening: Listening,
        service: impl FnOnce(Self) -> Accept<Self>,
    ) {
        let service = service(self);
        let report_limit = service.limit_reporter();
        listening.serve(listener, service, report_limit).await;
    }

    /// Looks at the status, or changes it, while it is locked.
    fn with_status<T>(&self, look: impl FnOnce(&mut SinkStatus) -> T) -> T {
        let status = self.shared.status.lock();
        look(&mut status.unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks, and takes responses one after the other, until the stream ends.
    /// Sets `heard` when the first message comes.
    async fn serve(
        &self,
        link: &mut Link,
        machine: &mut Machine,
        heard: &mut bool,
    ) -> Result<std::convert::Infallible, Why> {
        let mut codec = SinkCodec::new(link.wire);
        let (mut outgoing, mut incoming) = link.halves();
        loop {
            say(machine, &mut outgoing, &mut codec).await?;
            tokio::select! {
                message = incoming.next() => {
                    let message = message?;
                    *heard = true;
                    self.handle_response(machine, &codec, message).await?;
                }
                () = self.shared.resubscribe.notified() => machine.ask_again(),
            }
        }
    }

    /// Handles a response: gives its changes to the owner, and notes the
    /// verdict. An error means that the source broke the protocol, and ends the
    /// stream.
    async fn handle_response(
        &self,
        machine: &mut Machine,
        codec: &SinkCodec,
        message: Bytes,
    ) -> Result<(), Why> {
        let response = match codec.read_resources(message) {
            Ok(response) => response,
            Err(Unreadable::Malformed(collection, nonce, fault)) => {
                let verdict = Verdict::Reject(vec![fault.clone()]);
                self.note(machine, &collection, &verdict);
                let outcome = machine.handle_malformed(&collection, nonce, &fault);
                return outcome.map_err(|error| refuse_stream(&error));
            }
            Err(Unreadable::Undecodable(error)) => return Err(refuse_stream(&error)),
        };

        let collection = response.collection.clone();
        let received = machine.handle_resources(response);
        match received.map_err(|error| refuse_stream(&error))? {
            Received::Rejected(fault) => {
                self.note(machine, &collection, &Verdict::Reject(vec![fault]));
            }
            Received::Delivered(delivery) => {
                let is_change = !delivery.changes.is_empty();
                let verdict = self.shared.owner.apply(delivery).await;
                machine.handle_verdict(&collection, &verdict);
                self.note(machine, &collection, &verdict);
                if is_change && verdict == Verdict::Accept {
                    // Another collection may have waited for it.
                    machine.ask_again();
                }
            }
        }
        Ok(())
    }

    /// Notes a verdict; a rejection is an alarm (M11).
    fn note(&self, machine: &Machine, collection: &TypeUrl, verdict: &Verdict) {
        if let Verdict::Reject(faults) = verdict {
            for fault in faults {
                tracing::warn!(%collection, reason = %fault, "rejected");
            }
        }
        let resources = machine.versions(collection).count();
        self.with_status(|status| status.note(collection, resources, verdict));
    }
}

/// Sends the requests that the sink has to make now.
async fn say(
    machine: &mut Machine,
    outgoing: &mut Outgoing<'_>,
    codec: &mut SinkCodec,
) -> Result<(), Why> {
    while let Some(request) = machine.poll_request() {
        outgoing.ready().await?;
        outgoing.send(codec.write_request(request));
    }
    Ok(())
}

/// Returns how a stream ends whose other end broke the protocol.
fn refuse_stream(error: &impl fmt::Display) -> Why {
    Why::Refused(Status::invalid_argument(error.to_string()))
}

impl Role for McpSink {
    const SERVED: &'static [(&'static str, Wire)] = &[(SINK_METHOD, Wire::Mcp)];

    const LONGEST: usize = MCP_MESSAGE;

    const IS_ASKED: bool = false;

    fn dialled_method(&self) -> (&'static str, Wire) {
        match self.shared.options.wire {
            Wire::Mcp => (SOURCE_METHOD, Wire::Mcp),
            Wire::Xds => (xds::METHOD, Wire::Xds),
            Wire::DeltaXds => (delta_xds::METHOD, Wire::DeltaXds),
        }
    }

    /// Serves one stream at a time; a stream beside another one is refused.
    async fn run(self, link: &mut Link) -> Ended {
        let mut heard = false;
        let Ok(mut machine) = self.shared.machine.try_lock() else {
            link.report_limit(Limit::Streams);
            let status = Status::unavailable("another source is connected to this sink");
            return Ended {
                heard,
                why: Why::Refused(status),
            };
        };
        machine.begin_stream();
        let _connected = Connected::new(&self, &link.peer);
        let Err(why) = self.serve(link, &mut machine, &mut heard).await;
        Ended { heard, why }
    }
}

/// Shows a stream in the status for as long as it is served, however it ends.
struct Connected<'a>(&'a McpSink);

impl<'a> Connected<'a> {
    /// Shows the address of the source, until the value is dropped.
    fn new(sink: &'a McpSink, peer: &str) -> Self {
        sink.with_status(|status| status.source = Some(peer.to_owned()));
        Self(sink)
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.0.with_status(|status| status.source = None);
    }
}
