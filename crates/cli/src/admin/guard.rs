//! Access to the API: who may read, and who may write.
//!
//! ```text
//! Host ──▶ a name of this machine, where only this machine should reach us
//! write ─▶ Origin is ours ─▶ a token or a certificate, or local and neither is set up
//! ```
//!
//! A page in a browser can send requests to addresses of its user's machine. It
//! cannot omit `Origin` when it writes, and when it got here by DNS rebinding,
//! `Host` has the page's own name.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use http::request::Parts;
use http::{Method, StatusCode, Uri, header};
use subtle::ConstantTimeEq as _;
use trunkline::{Connection, Identity};

use super::error::Refusal;

/// Returns whether both ends of a connection are on this machine.
fn is_local(connection: &Connection) -> bool {
    let loopback = |address: SocketAddr| address.ip().to_canonical().is_loopback();
    connection.peer.is_some_and(loopback) && connection.local.is_some_and(loopback)
}

/// Returns the IP address of a connection's client, or `unknown`.
fn client_address(connection: &Connection) -> String {
    let peer = connection.peer;
    peer.map_or_else(|| "unknown".to_owned(), |peer| peer.ip().to_string())
}

/// The conditions for writing.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    token_file: Option<PathBuf>,
}

/// Paths that monitoring requests, by whatever `Host`.
const OPEN: [&str; 2] = ["/ready", "/metrics"];

/// Paths at which a `POST` is a question: it changes nothing.
const QUESTIONS: [&str; 1] = ["/api/v1/explain"];

impl Guard {
    /// Makes a guard with the token of a file, if one is named.
    pub(crate) fn new(token_file: Option<PathBuf>) -> Self {
        Self { token_file }
    }

    /// Reads the token that writes must show; `None` if no file is named. It is
    /// read for each write, because the file is replaced when the token is.
    ///
    /// # Errors
    /// The file cannot be read, or is empty.
    pub(crate) fn read_token(&self) -> Result<Option<String>, String> {
        let Some(path) = &self.token_file else {
            return Ok(None);
        };
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("the token file {shown} cannot be read: {error}"))?;
        match text.trim() {
            "" => Err(format!("the token file {shown} is empty")),
            token => Ok(Some(token.to_owned())),
        }
    }

    /// Admits a request; returns its author, for the audit log. Everybody who
    /// reaches the address may read, but for a browser that DNS rebinding led
    /// here. A write needs more; see [`admit_write`].
    ///
    /// # Errors
    /// The request is refused; the error says why.
    pub(crate) fn admit(
        &self,
        request: &Parts,
        connection: &Connection,
    ) -> Result<String, Refusal> {
        if is_local(connection) && !OPEN.contains(&request.uri.path()) {
            check_host(request)?;
        }

        let author = format!("api {}", client_address(connection));
        if matches!(request.method, Method::GET | Method::HEAD) {
            return Ok(author);
        }

        check_origin(request, connection)?;
        let is_question = request.method == Method::POST && QUESTIONS.contains(&request.uri.path());
        if is_question {
            return Ok(author);
        }

        let token = self.read_token().map_err(|error| {
            tracing::error!("{error}; writes over the admin API are refused until it is there");
            Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server's token file cannot be used; its log says why",
            )
        })?;
        admit_write(request, connection, token.as_deref())
    }
}

/// Admits a write by the first of these that applies: the server's `token`, a
/// client certificate, a local connection where no token is set up. Returns its
/// author. A wrong token is refused whatever else applies, and so is any token
/// that travels in the clear.
fn admit_write(
    request: &Parts,
    connection: &Connection,
    token: Option<&str>,
) -> Result<String, Refusal> {
    let shown = bearer_token(request);
    let address = client_address(connection);
    let is_in_clear = !connection.secure && !is_local(connection);
    if shown.is_some() && is_in_clear {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "a token that travels in the clear is everybody's: start the server with --tls-cert \
             and --tls-key, and use another token",
        ));
    }

    if let (Some(token), Some(shown)) = (token, shown) {
        return match is_same_token(token, shown) {
            true => Ok(format!("api token from {address}")),
            false => Err(unauthorized("the token is not the right one")),
        };
    }
    if connection.certified {
        let name = connection.identity.as_ref().map(Identity::as_str);
        return Ok(format!("api {}", name.unwrap_or(&address)));
    }
    if token.is_some() {
        return Err(unauthorized(
            "writing needs the token of the server: send it as `Authorization: Bearer <token>` \
             (`trunkline` takes --token-file)",
        ));
    }
    if is_local(connection) {
        return Ok(format!("api {address}"));
    }
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        "writing from another machine needs TLS, and a client certificate or a token: start \
         the server with --tls-cert and --tls-key, and with --tls-client-ca or \
         --admin-token-file",
    ))
}

fn unauthorized(message: &str) -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, message)
}

/// Returns the token that a request shows in its header `Authorization`; `None`
/// if that has none, or another scheme than `Bearer`.
fn bearer_token(request: &Parts) -> Option<&str> {
    let value = request.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}

/// Returns whether two tokens are the same. The time that it takes tells
/// nothing of where they differ.
fn is_same_token(token: &str, shown: &str) -> bool {
    token.as_bytes().ct_eq(shown.as_bytes()).into()
}

/// Returns the host that a request names, with its port: in HTTP/2 by the URI,
/// in HTTP/1.1 by the header `Host`.
fn authority(request: &Parts) -> Option<String> {
    if let Some(authority) = request.uri.authority() {
        return Some(authority.to_string());
    }
    let host = request.headers.get(header::HOST)?.to_str().ok()?;
    Some(host.to_owned())
}

/// Refuses a request that names another host than this machine: DNS rebinding
/// makes the name of a page's own site lead here, and the page's requests have
/// that name.
fn check_host(request: &Parts) -> Result<(), Refusal> {
    let authority = authority(request).unwrap_or_default();
    if is_loopback_name(&authority) {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::MISDIRECTED_REQUEST,
        format!(
            "this address is for this machine only and is called localhost, 127.0.0.1 or [::1], \
             not {authority:?}"
        ),
    ))
}

/// Returns whether an authority is `localhost` or a loopback address, with or
/// without a port. One that cannot be parsed is neither.
fn is_loopback_name(authority: &str) -> bool {
    let Ok(uri) = format!("http://{authority}/").parse::<Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    // An IPv6 address is in brackets in a URI.
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Refuses a write by a page of another site. A browser sends `Origin` with
/// every write; a request without it comes from a program, and passes.
fn check_origin(request: &Parts, connection: &Connection) -> Result<(), Refusal> {
    let Some(origin) = request.headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let scheme = if connection.secure { "https" } else { "http" };
    let own = authority(request).map(|authority| format!("{scheme}://{authority}"));
    let is_own = own.is_some_and(|own| origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()));
    if is_own {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        "a page of another site may not write here",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn caller(peer: &str, local: &str) -> Connection {
        let mut connection = Connection::default();
        connection.peer = Some(format!("{peer}:5000").parse().unwrap());
        connection.local = Some(format!("{local}:18001").parse().unwrap());
        connection
    }

    fn request(method: Method, headers: &[(&str, &str)]) -> Parts {
        let mut builder = http::Request::builder().method(method).uri("/api/v1/x");
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    fn status(guard: &Guard, request: &Parts, connection: &Connection) -> u16 {
        let admitted = guard.admit(request, connection);
        admitted.map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
    }

    const HERE: (&str, &str) = ("host", "127.0.0.1:18001");

    #[test]
    fn writes_from_elsewhere_need_a_token_or_a_certificate() {
        let open = Guard::default();
        let write = request(Method::POST, &[("host", "10.0.0.1:18001")]);
        let mut remote = caller("10.0.0.2", "10.0.0.1");
        assert_eq!(status(&open, &write, &remote), 403);
        let read = request(Method::GET, &[("host", "10.0.0.1:18001")]);
        assert_eq!(status(&open, &read, &remote), 200);
        // TLS alone authenticates the server, not the client.
        remote.secure = true;
        assert_eq!(status(&open, &write, &remote), 403);
        remote.certified = true;
        remote.identity = Some(Identity::Uri("spiffe://example/ops".into()));
        assert_eq!(
            open.admit(&write, &remote).unwrap(),
            "api spiffe://example/ops"
        );
        // One end that is not local is enough to be remote.
        let write = request(Method::POST, &[HERE]);
        assert_eq!(status(&open, &write, &caller("127.0.0.1", "10.0.0.1")), 403);
        assert_eq!(
            status(&open, &write, &caller("127.0.0.1", "127.0.0.1")),
            200
        );
        assert_eq!(
            status(&open, &write, &caller("[::ffff:127.0.0.1]", "[::1]")),
            200
        );
    }

    #[test]
    fn a_token_that_is_set_up_is_asked_for_everywhere() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "sesame").unwrap();
        let guard = Guard::new(Some(file.path().to_owned()));
        let local = caller("127.0.0.1", "127.0.0.1");
        let mut remote = caller("10.0.0.2", "10.0.0.1");
        let with = |token: &str| {
            let value = format!("Bearer {token}");
            request(Method::DELETE, &[HERE, ("authorization", &value)])
        };
        // In the clear the token would be everybody's.
        assert_eq!(status(&guard, &with("sesame"), &remote), 403);
        remote.secure = true;
        for who in [&local, &remote] {
            assert_eq!(status(&guard, &with("sesame"), who), 200);
            assert_eq!(status(&guard, &with("sesam"), who), 401);
            assert_eq!(status(&guard, &request(Method::POST, &[HERE]), who), 401);
            assert_eq!(status(&guard, &request(Method::GET, &[HERE]), who), 200);
        }
        let gone = Guard::new(Some("no/such/file".into()));
        assert_eq!(status(&gone, &with("sesame"), &local), 500);
    }

    #[test]
    fn a_question_is_no_write() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "sesame").unwrap();
        let guard = Guard::new(Some(file.path().to_owned()));
        let question = |method: Method| {
            let question = http::Request::builder().method(method);
            let question = question
                .uri("/api/v1/explain?host=x")
                .header(HERE.0, HERE.1);
            question.body(()).unwrap().into_parts().0
        };
        for who in [
            caller("127.0.0.1", "127.0.0.1"),
            caller("10.0.0.2", "10.0.0.1"),
        ] {
            assert_eq!(status(&guard, &question(Method::POST), &who), 200);
            assert_ne!(status(&guard, &question(Method::DELETE), &who), 200);
        }
    }

    #[test]
    fn a_page_in_a_browser_may_not_write() {
        let guard = Guard::default();
        let local = caller("127.0.0.1", "127.0.0.1");
        let from = |origin: &str| request(Method::POST, &[HERE, ("origin", origin)]);
        assert_eq!(status(&guard, &from("http://evil.example"), &local), 403);
        assert_eq!(status(&guard, &from("null"), &local), 403);
        assert_eq!(status(&guard, &from("http://127.0.0.1:9"), &local), 403);
        assert_eq!(status(&guard, &from("http://127.0.0.1:18001"), &local), 200);
    }

    #[test]
    fn a_name_that_was_bent_to_this_machine_is_refused() {
        let guard = Guard::default();
        let local = caller("127.0.0.1", "127.0.0.1");
        for (host, expected) in [
            ("evil.example:18001", 421),
            ("localhost.evil.example", 421),
            ("", 421),
            ("127.0.0.1@evil.example", 421),
            ("localhost:18001", 200),
            ("[::1]:18001", 200),
            ("127.1.2.3", 200),
        ] {
            let request = request(Method::GET, &[("host", host)]);
            assert_eq!(status(&guard, &request, &local), expected, "{host}");
        }
        let open = http::Request::get("/metrics").header("host", "node.example");
        let open = open.body(()).unwrap().into_parts().0;
        assert_eq!(status(&guard, &open, &local), 200);
    }
}
