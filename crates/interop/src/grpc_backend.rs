//! The backend of gRPC calls: a server that answers every method with the same
//! text, as a `google.protobuf.StringValue`.
//!
//! It is made of hyper alone, since a test of some twenty clusters starts as
//! many of these, and they share two cores with the clients.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A server on a free port of loopback; it stops when dropped.
#[derive(Debug)]
pub struct GrpcBackend {
    address: SocketAddr,
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl GrpcBackend {
    /// Starts a server that answers every call with this text.
    ///
    /// # Panics
    ///
    /// When the system gives no port or no thread.
    #[must_use]
    pub fn start(text: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap_or_else(|error| panic!("no runtime: {error}"));
        let listener = runtime
            .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .unwrap_or_else(|error| panic!("no port for a backend: {error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("a backend without an address: {error}"));
        let frame = frame(text);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, frame) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for GrpcBackend {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A message as gRPC frames it: not compressed, and its length.
fn frame(text: &str) -> Bytes {
    let message = text.to_owned().encode_to_vec();
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(&message);
    frame.freeze()
}

async fn accept(listener: TcpListener, frame: Bytes) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        // Without it an answer may wait for an acknowledgement of TCP.
        let _ = stream.set_nodelay(true);
        let frame = frame.clone();
        let service = service_fn(move |_| {
            let frame = frame.clone();
            async move { Ok::<_, Infallible>(answer(frame)) }
        });
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service);
        // A connection ends with its peer.
        tokio::spawn(connection);
    }
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

fn answer(frame: Bytes) -> Response<Body> {
    let trailers = async {
        let status = ("grpc-status", HeaderValue::from_static("0"));
        let mut trailers = HeaderMap::new();
        trailers.insert(status.0, status.1);
        Some(Ok(trailers))
    };
    let mut response = Response::new(Full::new(frame).with_trailers(trailers).boxed());
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", grpc);
    response
}
