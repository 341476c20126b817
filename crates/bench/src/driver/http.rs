//! Requests of HTTP/1.1, on one connection that is kept.

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::error::{Error, Result};

/// A place that takes requests.
#[derive(Debug)]
pub(crate) struct Http {
    authority: String,
    base: String,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Http {
    /// Makes a client for `http://host:port/path`; the scheme and the path may
    /// be left out. Connects at the first request.
    pub(crate) fn new(url: &str) -> Result<Self> {
        let usage = || Error::Usage(format!("{url}: expected http://host:port"));
        let full = match url.contains("://") {
            true => url.to_owned(),
            false => format!("http://{url}"),
        };
        let uri: Uri = full.parse().map_err(|_| usage())?;
        if uri.scheme_str() != Some("http") {
            return Err(usage());
        }
        let authority = uri.authority().ok_or_else(usage)?.to_string();
        let base = uri.path().trim_end_matches('/').to_owned();
        Ok(Self {
            authority,
            base,
            connection: None,
        })
    }

    /// Makes a request, and returns the body of the response. A status that is
    /// not good is an error, with the beginning of the body.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        kind: &'static str,
        body: Bytes,
    ) -> Result<Bytes> {
        let failed = |error: String| Error::Driver(format!("http://{}: {error}", self.authority));
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::HOST, &self.authority)
            .header(header::CONTENT_TYPE, kind)
            .body(Full::new(body))
            .map_err(|error| failed(error.to_string()))?;
        let usable = self.connection.take().filter(|c| !c.is_closed());
        let mut connection = match usable {
            Some(connection) => connection,
            None => connect(&self.authority).await.map_err(failed)?,
        };
        let sent = async {
            connection.ready().await?;
            let answer = connection.send_request(request).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            Ok::<_, hyper::Error>((status, body))
        };
        let failed = |error: String| Error::Driver(format!("http://{}: {error}", self.authority));
        let (status, body) = sent.await.map_err(|error| failed(error.to_string()))?;
        self.connection = Some(connection);
        match status.is_success() {
            true => Ok(body),
            false => Err(failed(refusal(status, &body))),
        }
    }
}

/// Connects to an address.
async fn connect(authority: &str) -> std::result::Result<SendRequest<Full<Bytes>>, String> {
    let socket = TcpStream::connect(authority).await;
    let socket = socket.map_err(|error| error.to_string())?;
    socket
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    let (sender, connection) = http1::handshake(TokioIo::new(socket))
        .await
        .map_err(|error| error.to_string())?;
    // How it ends shows at the next request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// Writes the status and the beginning of a response that is not good.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(body).chars().take(500).collect();
    format!("{status}: {text}")
}
