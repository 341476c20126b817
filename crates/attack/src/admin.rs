//! Requests over HTTP/1.1, each on a connection of its own, as a tool makes them.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;

use crate::door::{Door, Protocol};
use crate::error::{Error, Result};

/// How long an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An answer: its status and its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Gets a page.
pub(crate) async fn get(door: &Door, path: &str) -> Result<Answer> {
    send(door, Method::GET, path, "", Bytes::new()).await
}

/// Posts a body.
pub(crate) async fn post(
    door: &Door,
    path: &str,
    content_type: &str,
    body: Bytes,
) -> Result<Answer> {
    send(door, Method::POST, path, content_type, body).await
}

async fn send(
    door: &Door,
    method: Method,
    path: &str,
    content_type: &str,
    body: Bytes,
) -> Result<Answer> {
    let request = request(door, method, path, content_type, body)?;
    let exchange = exchange(door, request);
    let answer = tokio::time::timeout(PATIENCE, exchange).await;
    answer.map_err(|_| Error::Late(PATIENCE.as_secs()))?
}

fn request(
    door: &Door,
    method: Method,
    path: &str,
    content_type: &str,
    body: Bytes,
) -> Result<Request<Full<Bytes>>> {
    let uri: Uri = path.parse().map_err(http::Error::from)?;
    let mut builder = Request::builder().method(method).uri(uri);
    builder = builder.header("host", door.address.to_string());
    if !content_type.is_empty() {
        builder = builder.header("content-type", content_type);
    }
    Ok(builder.body(Full::new(body))?)
}

async fn exchange(door: &Door, request: Request<Full<Bytes>>) -> Result<Answer> {
    let io = TokioIo::new(door.enter(Protocol::Http1).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
    let answer = async {
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer { status, body })
    };
    // The connection is driven here, so that it ends with this future.
    tokio::pin!(answer, connection);
    tokio::select! {
        answer = &mut answer => answer,
        ended = &mut connection => match ended {
            Ok(()) => answer.await,
            Err(error) => Err(error.into()),
        },
    }
}
