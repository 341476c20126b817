//! A client of the admin API: one connection for each request.

mod address;
mod detail;
mod envoy_admin;
mod open;
mod reach;
mod refused;
mod tls;

pub(crate) use self::detail::{Detail, DetailPrinter};
pub(crate) use self::envoy_admin::EnvoyAdmin;
pub(crate) use self::open::{OpenResponse, Opening};
pub(crate) use self::refused::{Answer, Refused};

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use trunkline_proto::text::Format;

use self::address::{address_of, connect, parse_base};
use self::refused::{Envelope, refusal, refusal_without_file};
use crate::cli::Remote;
use crate::failure::{Failure, Result};
use crate::report::Report;

/// The maximum of bytes in a response: a longer one is none that a person asked
/// for.
const LONGEST: usize = 1 << 30;

/// The content type of a binary `DiscoveryResponse`.
pub(crate) const BINARY: &str = "application/x-protobuf";

/// The admin API of a server.
#[derive(Debug)]
pub(crate) struct Client {
    base: Uri,
    token: Option<String>,
    tls: Option<Arc<ClientConfig>>,
}

/// A request to the admin API.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// The path, with its query.
    pub(crate) path: &'a str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// The file of the body, by which mistakes in it are reported.
    pub(crate) file: &'a str,
}

impl<'a> Call<'a> {
    /// Makes a call without a body.
    pub(crate) fn bare(method: Method, path: &'a str) -> Self {
        Self {
            method,
            path,
            content_type: content_type(Format::Json),
            body: Vec::new(),
            file: "",
        }
    }
}

/// Returns the content type of a text in this format.
pub(crate) fn content_type(format: Format) -> &'static str {
    match format {
        Format::Json => "application/json",
        Format::Yaml => "application/yaml",
    }
}

impl Client {
    /// Makes a client of the server that the flags name, without a connection
    /// yet. Reads the files with its token and its certificates.
    pub(crate) fn new(remote: &Remote) -> Result<Self> {
        let (base, is_secure) = parse_base(&remote.admin)?;
        let token = remote.token_file.as_deref().map(read_token).transpose()?;
        let tls = is_secure.then(|| tls::make_config(remote)).transpose()?;
        Ok(Self { base, token, tls })
    }

    /// Makes a call, and returns the body of a response with a status of
    /// success.
    ///
    /// # Errors
    /// The server is not reached, or refuses the request.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Bytes> {
        let file = call.file;
        let printer = DetailPrinter {
            report: &Report::new(),
            locate: &|detail| detail.in_file(file),
        };
        self.call_with_places(call, &printer).await
    }

    /// Makes a call, and returns the body of a response with a status of
    /// success. Returns `None` if the status is 404.
    ///
    /// # Errors
    /// The server is not reached, or refuses the request for another reason.
    pub(crate) async fn call_if_found(&self, call: Call<'_>) -> Result<Option<Bytes>> {
        let request = self.make_request(call)?;
        let (status, body) = self.send(request).await?;
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => Ok(Some(body)),
            status => Err(refusal_without_file(status, &body)),
        }
    }

    /// Makes a call whose body was encoded from files, and returns the body of
    /// a response with a status of success. `printer` shows the mistakes that
    /// the server finds, with their places in the files.
    pub(crate) async fn call_with_places(
        &self,
        call: Call<'_>,
        printer: &DetailPrinter<'_>,
    ) -> Result<Bytes> {
        let request = self.make_request(call)?;
        let (status, body) = self.send(request).await?;
        match status.is_success() {
            true => Ok(body),
            false => Err(refusal(status, &body, printer)),
        }
    }

    /// Makes a call, and returns the response, whether it is a success or a
    /// refusal.
    ///
    /// # Errors
    /// The server is not reached, or its response has another form than ours.
    pub(crate) async fn call_for_answer(&self, call: Call<'_>) -> Result<Answer> {
        let request = self.make_request(call)?;
        let (status, body) = self.send(request).await?;
        if status.is_success() {
            return Ok(Answer::Good(body));
        }
        match serde_json::from_slice(&body) {
            Ok(Envelope { error }) => Ok(Answer::Refused(status, error)),
            Err(_) => Err(refusal_without_file(status, &body)),
        }
    }

    /// Makes a `GET` call.
    pub(crate) async fn get(&self, path: &str) -> Result<Bytes> {
        self.call(Call::bare(Method::GET, path)).await
    }

    /// Makes the request of a call, with the client's token if it has one.
    fn make_request(&self, call: Call<'_>) -> Result<Request<Full<Bytes>>> {
        let authority = self
            .base
            .authority()
            .map_or("", |authority| authority.as_str());
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(header::HOST, authority)
            .header(header::CONTENT_TYPE, call.content_type);

        if let Some(token) = &self.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| Failure::usage("the token holds what no header can"))?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }

        request
            .body(Full::new(Bytes::from(call.body)))
            .map_err(Failure::usage)
    }

    /// Makes a `GET` call whose response is read while it arrives.
    ///
    /// # Errors
    /// The server is not reached.
    pub(crate) async fn open(&self, path: &str) -> Result<Opening> {
        self.open_call(Call::bare(Method::GET, path)).await
    }

    /// Makes a call, and returns after the head of the response; the caller
    /// reads the body while it arrives.
    ///
    /// # Errors
    /// The server is not reached.
    pub(crate) async fn open_call(&self, call: Call<'_>) -> Result<Opening> {
        let request = self.make_request(call)?;
        let response = match self.connect_and_send(request).await {
            Ok(response) => response,
            Err(error) => return Err(self.unreachable(&*error).await),
        };
        if response.status().is_success() {
            return Ok(Opening::Open(response));
        }

        let status = response.status();
        let (_, body) = match collect(response).await {
            Ok(response) => response,
            Err(error) => return Err(self.unreachable(&*error).await),
        };
        let failure = refusal_without_file(status, &body);
        Ok(Opening::Refused(status, failure))
    }

    /// Sends a request, and returns the status and the body of the response. A
    /// refusal by the server is such a status; whatever keeps a response from
    /// arriving is [`Failure::unreachable`].
    async fn send(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes)> {
        let exchange = async { collect(self.connect_and_send(request).await?).await };
        match exchange.await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.unreachable(&*error).await),
        }
    }

    /// Makes the failure of a server that does not respond, with what to do.
    async fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> Failure {
        let (host, port) = self.address();
        let address = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let reason = reach::explain_failure(error, self.tls.is_some(), &address).await;
        let base_url = self.base.to_string();
        let base_url = base_url.trim_end_matches('/');
        Failure::unreachable(format!("cannot reach the server at {base_url}: {reason}"))
    }

    /// Returns the host and the port of the server.
    fn address(&self) -> (&str, u16) {
        address_of(&self.base, if self.tls.is_some() { 443 } else { 80 })
    }

    /// Opens a connection, with TLS if the URL has the scheme `https`. Sends a
    /// request, and reads the head of its response.
    async fn connect_and_send(&self, request: Request<Full<Bytes>>) -> Exchanged<OpenResponse> {
        let (host, port) = self.address();
        let socket = connect(host, port).await?;
        let Some(tls) = &self.tls else {
            return OpenResponse::send_request(socket, request).await;
        };
        let name = ServerName::try_from(host.to_owned())?;
        let connector = TlsConnector::from(Arc::clone(tls));
        OpenResponse::send_request(connector.connect(name, socket).await?, request).await
    }
}

/// A response, or a part of it, or why there is none.
type Exchanged<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Reads a response to the end, up to [`LONGEST`] bytes. Its connection is
/// closed then.
async fn collect(response: OpenResponse) -> Exchanged<(StatusCode, Bytes)> {
    collect_within(response, LONGEST).await
}

/// Reads a response to the end, up to `max_bytes` bytes; a longer one is an error.
async fn collect_within(
    mut response: OpenResponse,
    max_bytes: usize,
) -> Exchanged<(StatusCode, Bytes)> {
    let body = Limited::new(response.body_mut(), max_bytes)
        .collect()
        .await?;
    Ok((response.status(), body.to_bytes()))
}

/// Reads the token of `--token-file`, without white space around it.
fn read_token(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("--token-file {}: {error}", path.display())))?;
    Ok(text.trim().to_owned())
}
