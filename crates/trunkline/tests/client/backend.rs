//! A real tonic service that channels call: gRPC's health service.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::metadata::MetadataMap;
use tonic::transport::server::Connected;
use tonic::{Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use trunkline::channel::XdsChannel;

use super::PATIENCE;

/// A connection over TLS.
struct Secure(TlsStream<TcpStream>);

impl Connected for Secure {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Secure {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Secure {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A server that counts its calls. It ends when it is dropped.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    calls: Arc<AtomicUsize>,
    task: tokio::task::AbortHandle,
}

impl Backend {
    pub(crate) async fn start() -> Self {
        Self::answering(|_, _| Ok(())).await
    }

    /// A server whose calls have this outcome: by their number and headers.
    pub(crate) async fn answering(
        answer: impl Fn(usize, &MetadataMap) -> Result<(), Status> + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self::serving(address, TcpListenerStream::new(listener), answer)
    }

    /// A server over TLS.
    pub(crate) async fn secure(config: ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let sockets = TcpListenerStream::new(listener).then(move |socket| {
            let acceptor = acceptor.clone();
            async move { Ok(Secure(acceptor.accept(socket?).await?)) }
        });
        // A handshake that fails is the client's to notice.
        let sockets = sockets.filter(std::io::Result::is_ok);
        Self::serving(address, sockets, |_, _| Ok(()))
    }

    fn serving<S: Connected + AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        address: SocketAddr,
        sockets: impl Stream<Item = std::io::Result<S>> + Send + 'static,
        answer: impl Fn(usize, &MetadataMap) -> Result<(), Status> + Clone + Send + Sync + 'static,
    ) -> Self {
        let (_, health) = tonic_health::server::health_reporter();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let count = move |request: Request<()>| {
            let number = counted.fetch_add(1, Ordering::Relaxed);
            answer(number, request.metadata()).map(|()| request)
        };
        let health = tonic::service::interceptor::InterceptedService::new(health, count);
        let server = tonic::transport::Server::builder().add_service(health);
        let serving = server.serve_with_incoming(sockets);
        let task = tokio::spawn(serving).abort_handle();
        Self {
            address,
            calls,
            task,
        }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn port(&self) -> u32 {
        self.address.port().into()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A call without headers of its own.
pub(crate) async fn call(channel: &XdsChannel) -> Result<(), Status> {
    call_with(channel, Request::new(HealthCheckRequest::default())).await
}

/// A call with one header.
pub(crate) async fn call_as(
    channel: &XdsChannel,
    name: &'static str,
    value: &str,
) -> Result<(), Status> {
    let mut request = Request::new(HealthCheckRequest::default());
    request.metadata_mut().insert(name, value.parse().unwrap());
    call_with(channel, request).await
}

pub(crate) async fn call_with(
    channel: &XdsChannel,
    request: Request<HealthCheckRequest>,
) -> Result<(), Status> {
    let mut health = HealthClient::new(channel.clone());
    let called = tokio::time::timeout(PATIENCE, health.check(request)).await;
    called.expect("no call hangs").map(|_| ())
}
