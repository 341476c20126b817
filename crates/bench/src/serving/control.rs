//! The address at which a server that the tool started takes contents, and
//! tells what it did.
//!
//! | request | answer |
//! |---|---|
//! | `POST /resources`, a `DiscoveryResponse` | its resources are put, together |
//! | `DELETE /resources`, a `DeltaDiscoveryResponse` | the names in it are removed |
//! | `GET /work` | what the server did so far, as JSON |

use std::convert::Infallible;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use trunkline_proto::discovery::{DeltaDiscoveryResponse, DiscoveryResponse, Inbound, Limits};

use crate::measure::Work;

/// A server that is controlled.
pub(super) trait Controlled: Clone + Send + Sync + 'static {
    /// Puts resources of one type. The error says what is wrong with them.
    fn put(&self, put: DiscoveryResponse) -> Result<(), String>;

    /// Removes resources of one type. The error says why not.
    fn remove(&self, gone: DeltaDiscoveryResponse) -> Result<(), String>;

    /// Returns what the server did so far; `None` if it does not count that.
    fn work(&self) -> Option<Work> {
        None
    }
}

/// Serves requests on a listener until the process ends.
pub(super) async fn serve(listener: TcpListener, server: impl Controlled) {
    while let Ok((socket, _)) = listener.accept().await {
        let server = server.clone();
        let service = service_fn(move |request| serve_request(request, server.clone()));
        tokio::spawn(async move {
            let _ = socket.set_nodelay(true);
            // Whoever put something knows how that ended.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

/// Serves a request; an error of the server is a bad request.
async fn serve_request(
    request: Request<Incoming>,
    server: impl Controlled,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let method = request.method().clone();
    let outcome = match request.into_body().collect().await {
        Err(error) => Err(error.to_string()),
        Ok(body) => handle(&method, body.to_bytes(), &server),
    };
    let (status, text) = match outcome {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::BAD_REQUEST, error),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    Ok(response)
}

/// Does what a request asks for, and returns the body of the response.
fn handle(method: &Method, body: Bytes, server: &impl Controlled) -> Result<String, String> {
    fn read<M: Inbound>(body: Bytes) -> Result<M, String> {
        let read = M::decode_checked(body, &Limits::DEFAULT);
        read.map(|read| read.message).map_err(|e| e.to_string())
    }
    let nothing = |()| String::new();
    match *method {
        Method::GET => serde_json::to_string(&server.work()).map_err(|e| e.to_string()),
        Method::DELETE => server.remove(read(body)?).map(nothing),
        _ => server.put(read(body)?).map(nothing),
    }
}
