//! A client of the admin API: one connection for each request.

mod tls;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::cli::Remote;
use crate::failure::{Failure, Result};

/// A longer response is none that a person asked for.
const LONGEST: usize = 1 << 30;

/// The admin API of a server.
#[derive(Debug)]
pub(crate) struct Client {
    base: Uri,
    token: Option<String>,
    tls: Option<Arc<ClientConfig>>,
}

/// The body of an error response.
#[derive(Debug, Deserialize)]
struct Envelope {
    error: Refused,
}

#[derive(Debug, Deserialize)]
struct Refused {
    message: String,
    #[serde(default)]
    details: Vec<Detail>,
}

/// One mistake, with its place in the request's body.
#[derive(Debug, Deserialize)]
pub(crate) struct Detail {
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    #[serde(default)]
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Detail {
    /// The mistake as a compiler would print it.
    pub(crate) fn in_file(&self, file: &str) -> String {
        let mut text = match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            // In a binary file.
            _ if !self.field.is_empty() => format!("{file}: "),
            _ => String::new(),
        };
        if !self.field.is_empty() {
            text.push_str(&format!("{}: ", self.field));
        }
        text + &self.message
    }
}

impl Client {
    /// The server that the flags name.
    pub(crate) fn new(remote: &Remote) -> Result<Self> {
        let text = &remote.admin;
        let bad = || {
            Failure::usage(format!(
                "--admin {text}: expected host:port, http://host:port or https://host:port"
            ))
        };
        let url = match text.contains("://") {
            true => text.clone(),
            false => format!("http://{text}"),
        };
        let base: Uri = url.parse().map_err(|_| bad())?;
        let secure = match base.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad()),
        };
        base.host().ok_or_else(bad)?;
        let token = remote.token_file.as_deref().map(token).transpose()?;
        let tls = secure.then(|| tls::config(remote)).transpose()?;
        Ok(Self { base, token, tls })
    }

    /// Sends a request; returns the body of a good response.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        kind: &'static str,
        body: Vec<u8>,
        file: &str,
    ) -> Result<Bytes> {
        let as_it_is = |detail| detail;
        self.ask_about((method, path, kind), body, file, &as_it_is)
            .await
    }

    /// The same for a part of a file: mistakes are reported with their places
    /// in the file.
    pub(crate) async fn ask_about(
        &self,
        (method, path, kind): (Method, &str, &'static str),
        body: Vec<u8>,
        file: &str,
        place: &dyn Fn(Detail) -> Detail,
    ) -> Result<Bytes> {
        let request = self.request(method, path, kind, body)?;
        let (status, body) = self.send(request).await?;
        match status.is_success() {
            true => Ok(body),
            false => Err(refused(status, &body, file, place)),
        }
    }

    /// Sends a `GET` request.
    pub(crate) async fn get(&self, path: &str) -> Result<Bytes> {
        self.ask(Method::GET, path, "application/json", Vec::new(), "")
            .await
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        kind: &'static str,
        body: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>> {
        let authority = self.base.authority().map_or("", |a| a.as_str());
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, authority)
            .header(header::CONTENT_TYPE, kind);
        if let Some(token) = &self.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| Failure::usage("the token holds what no header can"))?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        request
            .body(Full::new(Bytes::from(body)))
            .map_err(Failure::usage)
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes)> {
        let host = self.base.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.base.port_u16();
        let port = port.unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let failed = |error: &dyn std::fmt::Display| {
            Failure::unreachable(format!(
                "cannot reach the server at {}: {error}; is it running, and is --admin right?",
                self.base
            ))
        };
        let socket = TcpStream::connect((bare, port))
            .await
            .map_err(|e| failed(&e))?;
        let Some(tls) = &self.tls else {
            return exchange(socket, request).await.map_err(|e| failed(&e));
        };
        let name = ServerName::try_from(bare.to_owned()).map_err(|e| failed(&e))?;
        let stream = TlsConnector::from(Arc::clone(tls))
            .connect(name, socket)
            .await
            .map_err(|e| failed(&e))?;
        exchange(stream, request).await.map_err(|e| failed(&e))
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> std::result::Result<(StatusCode, Bytes), BoxError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await?;
    let driving = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), LONGEST)
        .collect()
        .await?;
    drop(sender);
    driving.abort();
    Ok((status, body.to_bytes()))
}

fn refused(
    status: StatusCode,
    body: &[u8],
    file: &str,
    place: &dyn Fn(Detail) -> Detail,
) -> Failure {
    let Ok(Envelope { error }) = serde_json::from_slice(body) else {
        return Failure::wrong(format!(
            "the server answers {status}; is --admin the admin address of a trunkline server?"
        ));
    };
    let mut text = error.message;
    for detail in error.details {
        text.push_str("\n  ");
        text.push_str(&place(detail).in_file(file));
    }
    Failure::wrong(text)
}

fn token(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("--token-file {}: {error}", path.display())))?;
    Ok(text.trim().to_owned())
}
