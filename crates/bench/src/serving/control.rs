//! The way contents get into a server that the tool started.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use trunkline_proto::discovery::{DiscoveryResponse, Inbound, Limits};

/// Takes what is put until the process ends. `put` gets the resources of one
/// type and says what is wrong with them.
pub(super) async fn serve<F>(listener: TcpListener, put: F)
where
    F: Fn(DiscoveryResponse) -> Result<(), String> + Clone + Send + 'static,
{
    while let Ok((socket, _)) = listener.accept().await {
        let put = put.clone();
        let service = service_fn(move |request| answer(request, put.clone()));
        tokio::spawn(async move {
            let _ = socket.set_nodelay(true);
            // Whoever put something knows how that ended.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

async fn answer<F>(request: Request<Incoming>, put: F) -> Result<Response<Full<Bytes>>, Infallible>
where
    F: Fn(DiscoveryResponse) -> Result<(), String>,
{
    let outcome = match request.into_body().collect().await {
        Err(error) => Err(error.to_string()),
        Ok(body) => DiscoveryResponse::decode_checked(body.to_bytes(), &Limits::DEFAULT)
            .map_err(|error| error.to_string())
            .and_then(|read| put(read.message)),
    };
    let (status, text) = match outcome {
        Ok(()) => (StatusCode::OK, String::new()),
        Err(error) => (StatusCode::BAD_REQUEST, error),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    Ok(response)
}
