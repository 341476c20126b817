//! A server by hand, frame by frame, over sockets of the loopback.

use std::sync::Arc;

use bytes::Bytes;
use h2::server::{self, SendResponse};
use http::{HeaderMap, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::client::transport::frame::with_prefix;
use crate::client::{Address, ControlPlane};

pub(super) const PATH: &str = "/a.Service/Method";

/// A stream as the server has it.
pub(super) type Stream = (Request<h2::RecvStream>, SendResponse<Bytes>);

/// A listener on a free port, and its control plane.
pub(super) async fn listen() -> (TcpListener, ControlPlane) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, plane("127.0.0.1", port))
}

pub(super) fn plane(host: &str, port: u16) -> ControlPlane {
    ControlPlane::plaintext(Address::Tcp {
        host: host.to_owned(),
        port,
    })
}

/// Serves each stream of each connection with a function.
pub(super) fn serve<F>(listener: TcpListener, tls: Option<Arc<ServerConfig>>, answer: F)
where
    F: Fn(Stream) + Clone + Send + 'static,
{
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (answer, tls) = (answer.clone(), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => connection(socket, answer).await,
                    Some(config) => {
                        let accepted = TlsAcceptor::from(config).accept(socket).await;
                        if let Ok(socket) = accepted {
                            connection(socket, answer).await;
                        }
                    }
                }
            });
        }
    });
}

pub(super) async fn connection<S>(socket: S, answer: impl Fn(Stream))
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = server::handshake(socket).await.unwrap();
    while let Some(Ok(stream)) = connection.accept().await {
        answer(stream);
    }
}

/// Sends back each message until the client ends the stream.
pub(super) fn echo((request, mut respond): Stream) {
    tokio::spawn(async move {
        let mut out = respond.send_response(headers(), false).unwrap();
        let mut body = request.into_body();
        while let Some(Ok(data)) = body.data().await {
            let _ = body.flow_control().release_capacity(data.len());
            let _ = out.send_data(data, false);
        }
    });
}

/// Sends messages, and ends the stream with a status.
pub(super) fn answer_with(
    messages: &'static [&'static [u8]],
    code: &'static str,
    text: &'static str,
) -> impl Fn(Stream) + Clone + Send + 'static {
    move |(_, mut respond)| {
        let mut out = respond.send_response(headers(), false).unwrap();
        for message in messages {
            out.send_data(with_prefix(message), false).unwrap();
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", code.parse().unwrap());
        trailers.insert("grpc-message", text.parse().unwrap());
        out.send_trailers(trailers).unwrap();
    }
}

/// The headers of an answer of gRPC.
pub(super) fn headers() -> Response<()> {
    let response = Response::builder().header("content-type", "application/grpc");
    response.body(()).unwrap()
}
