//! A service for traffic to reach, which responds with its version.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::failure::{Failure, Result};

/// Starts a backend on a free port, which responds with this version until the
/// program ends. Returns the port.
pub(super) async fn start_backend(version: &'static str) -> Result<u16> {
    let listener = bind_free_port().await?;
    let port = listener.local_addr().map_err(Failure::wrong)?.port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service_fn(move |request| respond(version, request));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            // The error of a client that disconnects early does not matter.
            tokio::spawn(async move { drop(connection.await) });
        }
    });
    Ok(port)
}

/// Binds a free port of loopback.
pub(super) async fn bind_free_port() -> Result<TcpListener> {
    let result = trunkline::listen::bind(("127.0.0.1", 0)).await;
    result.map_err(|error| Failure::wrong(format!("no port is free: {error}")))
}

/// Responds to any request with the version of the backend and the path.
async fn respond(
    version: &str,
    request: Request<Incoming>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let text = format!(
        "hello from {version}, you asked for {}\n",
        request.uri().path()
    );
    Ok(Response::new(Full::new(text.into())))
}
