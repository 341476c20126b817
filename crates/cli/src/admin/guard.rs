//! Access to the API: who may read, and who may write.
//!
//! ```text
//! Host ──▶ a name of this machine, where only this machine should reach us
//! write ─▶ Origin is ours ─▶ token, if one is set up ─▶ operator's certificate,
//!          if authorities are set up ─▶ local, if neither is
//! read ──▶ the same, if it is to be; else whoever reaches the address
//! ```
//!
//! A certificate of an xDS client gives no right here: the admin address has
//! authorities of its own, or asks for no certificate at all.
//!
//! A page in a browser can send requests to addresses of its user's machine. It
//! cannot omit `Origin` when it writes, and when it got here by DNS rebinding,
//! `Host` has the page's own name.

use std::net::IpAddr;

use http::request::Parts;
use http::{Method, StatusCode, Uri, header};
use subtle::ConstantTimeEq as _;
use trunkline::{Connection, Identity};

use super::error::Refusal;
use super::token::TokenFile;
use crate::settings::{OperatorName, Settings};

/// The rules of access.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    token: Option<TokenFile>,
    /// Whether operators have certificates: the listener trusts only their
    /// authorities.
    has_authorities: bool,
    /// The operators who may write; if it is empty, all who have a certificate.
    allowed: Vec<OperatorName>,
    /// Whether reading needs what writing needs.
    auth_reads: bool,
}

/// Paths that monitoring requests, by whatever `Host`.
const OPEN: [&str; 2] = ["/ready", "/metrics"];

/// Paths at which a `POST` is a question: it changes nothing.
const QUESTIONS: [&str; 1] = ["/api/v1/explain"];

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is one of monitoring.
    Monitor,
    Read,
    Write,
}

impl Purpose {
    pub(super) fn of(request: &Parts) -> Self {
        let path = request.uri.path();
        match &request.method {
            &Method::GET | &Method::HEAD if OPEN.contains(&path) => Self::Monitor,
            &Method::GET | &Method::HEAD => Self::Read,
            &Method::POST if QUESTIONS.contains(&path) => Self::Read,
            _ => Self::Write,
        }
    }
}

/// Names whoever makes a request, for the audit log: by the certificate, or else
/// by the address. `token` says whether the right token was shown.
pub(super) fn author(connection: &Connection, token: Option<&Identity>) -> String {
    let peer = connection.peer;
    let address = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.ip().to_string());
    match (&connection.identity, token) {
        (Some(identity), _) => format!("api {identity}"),
        (None, Some(token)) => format!("api {token} from {address}"),
        (None, None) => format!("api {address}"),
    }
}

impl Guard {
    /// Makes the guard of the settings, with the token of a file if one is
    /// named.
    ///
    /// # Errors
    /// The file cannot be read, or is empty. It is read for each write; here, a
    /// mistake is found early.
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        let token = settings.admin_token_file.clone().map(TokenFile::new);
        if let Some(file) = &token {
            file.read()?;
        }
        Ok(Self {
            token,
            has_authorities: settings.admin_tls_client_ca.is_some(),
            allowed: settings.admin_allow.clone(),
            auth_reads: settings.admin_auth_reads,
        })
    }

    /// Admits a request; returns its author, for the audit log. Unless reading
    /// is restricted, everybody who reaches the address may read, but for a
    /// browser that DNS rebinding led here. A write needs more; see
    /// [`Self::authorise`].
    ///
    /// # Errors
    /// The request is refused; the error says why.
    pub(crate) async fn admit(
        &self,
        request: &Parts,
        connection: &Connection,
    ) -> Result<String, Refusal> {
        let purpose = Purpose::of(request);
        if connection.is_local() && purpose != Purpose::Monitor {
            check_host(request)?;
        }
        if !matches!(request.method, Method::GET | Method::HEAD) {
            check_origin(request, connection)?;
        }
        let needs_right = match purpose {
            Purpose::Monitor => false,
            Purpose::Read => self.auth_reads,
            Purpose::Write => true,
        };
        match needs_right {
            true => self.authorise(request, connection).await,
            false => Ok(author(connection, None)),
        }
    }

    /// Checks that a request has every right that is set up: the token, and the
    /// certificate of an operator. Without either, it has to be local. Returns
    /// its author.
    async fn authorise(&self, request: &Parts, connection: &Connection) -> Result<String, Refusal> {
        let token = self.check_token(request, connection).await?;
        self.check_certificate(connection)?;
        if token.is_none() && !self.has_authorities && !connection.is_local() {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "this needs a right that nobody on another machine has: start the server with \
                 --tls-cert and --tls-key, and with --admin-token-file or --admin-tls-client-ca",
            ));
        }
        Ok(author(connection, token.as_ref()))
    }

    /// Checks the token of a request, where one is set up; then it is needed
    /// from everybody. A token that travels in the clear is refused, whether it
    /// is the right one or not.
    async fn check_token(
        &self,
        request: &Parts,
        connection: &Connection,
    ) -> Result<Option<Identity>, Refusal> {
        let shown = bearer_token(request);
        if shown.is_some() && !connection.secure && !connection.is_local() {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "a token that travels in the clear is everybody's: start the server with \
                 --tls-cert and --tls-key, and use another token",
            ));
        }
        let Some(file) = &self.token else {
            return Ok(None);
        };
        let shown = shown.ok_or_else(|| {
            unauthorized(
                "this needs the token of the server: send it as `Authorization: Bearer <token>` \
                 (`trunkline` takes --token-file)",
            )
        })?;
        let token = file.read_aside().await.map_err(|error| {
            tracing::error!("{error}; writes over the admin API are refused until it is there");
            Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server's token file cannot be used; its log says why",
            )
        })?;
        match is_same_token(&token, shown) {
            true => Ok(Some(Identity::Token)),
            false => Err(unauthorized("the token is not the right one")),
        }
    }

    /// Checks that a client has the certificate of an operator, where these have
    /// some, with a name that is allowed.
    fn check_certificate(&self, connection: &Connection) -> Result<(), Refusal> {
        if !self.has_authorities {
            return Ok(());
        }
        let forbidden = |message: String| Err(Refusal::new(StatusCode::FORBIDDEN, message));
        if !connection.certified {
            return forbidden("this needs the certificate of an operator".to_owned());
        }
        let identity = connection.identity.as_ref();
        let is_allowed = |name: &Identity| self.allowed.iter().any(|allowed| allowed.matches(name));
        match self.allowed.is_empty() || identity.is_some_and(is_allowed) {
            true => Ok(()),
            false => forbidden(match identity {
                Some(name) => format!("{name:?} may not do this: --admin-allow does not name it"),
                None => "the certificate has no name, and --admin-allow asks for one".to_owned(),
            }),
        }
    }
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
    use tempfile::NamedTempFile;

    fn caller(peer: &str, local: &str) -> Connection {
        let mut connection = Connection::default();
        connection.peer = Some(format!("{peer}:5000").parse().unwrap());
        connection.local = Some(format!("{local}:18001").parse().unwrap());
        connection
    }

    /// A client on another machine, behind TLS.
    fn remote() -> Connection {
        let mut connection = caller("10.0.0.2", "10.0.0.1");
        connection.secure = true;
        connection
    }

    /// The same with a certificate from an authority that the address trusts.
    fn operator(name: &str) -> Connection {
        let mut connection = remote();
        connection.certified = true;
        connection.identity = Some(Identity::Uri(name.to_owned()));
        connection
    }

    fn request(method: Method, headers: &[(&str, &str)]) -> Parts {
        let mut builder = http::Request::builder().method(method).uri("/api/v1/x");
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    fn admit(guard: &Guard, request: &Parts, who: &Connection) -> Result<String, Refusal> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        runtime.block_on(guard.admit(request, who))
    }

    fn status(guard: &Guard, request: &Parts, connection: &Connection) -> u16 {
        let admitted = admit(guard, request, connection);
        admitted.map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
    }

    fn token_file() -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        writeln!(file, "sesame").unwrap();
        file
    }

    fn with_token(file: &NamedTempFile) -> Guard {
        Guard {
            token: Some(TokenFile::new(file.path().to_owned())),
            ..Guard::default()
        }
    }

    const HERE: (&str, &str) = ("host", "127.0.0.1:18001");
    const SESAME: (&str, &str) = ("authorization", "Bearer sesame");

    #[test]
    fn writes_from_elsewhere_need_a_right() {
        let open = Guard::default();
        let write = request(Method::POST, &[("host", "10.0.0.1:18001")]);
        let mut plain = remote();
        plain.secure = false;
        assert_eq!(status(&open, &write, &plain), 403);
        let read = request(Method::GET, &[("host", "10.0.0.1:18001")]);
        assert_eq!(status(&open, &read, &plain), 200);
        // TLS alone authenticates the server, not the client.
        assert_eq!(status(&open, &write, &remote()), 403);
        // Nor does a certificate, where no authority of operators is set up.
        assert_eq!(
            status(&open, &write, &operator("spiffe://example/envoy")),
            403
        );
        // One end that is not local is enough to be remote.
        let write = request(Method::POST, &[HERE]);
        assert_eq!(status(&open, &write, &caller("127.0.0.1", "10.0.0.1")), 403);
        let local = caller("127.0.0.1", "127.0.0.1");
        assert_eq!(status(&open, &write, &local), 200);
        let mapped = caller("[::ffff:127.0.0.1]", "[::1]");
        assert_eq!(status(&open, &write, &mapped), 200);
    }

    #[test]
    fn an_operator_has_a_certificate_and_a_name() {
        let mut guard = Guard {
            has_authorities: true,
            ..Guard::default()
        };
        let write = request(Method::POST, &[HERE]);
        let (ops, dev) = (
            operator("spiffe://example/ops"),
            operator("spiffe://example/dev"),
        );
        assert_eq!(
            admit(&guard, &write, &ops).unwrap(),
            "api spiffe://example/ops"
        );
        assert_eq!(status(&guard, &write, &dev), 200);
        // The listener lets nobody in without one; if it did, nobody could write.
        assert_eq!(status(&guard, &write, &remote()), 403);
        assert_eq!(
            status(&guard, &write, &caller("127.0.0.1", "127.0.0.1")),
            403
        );
        guard.allowed = vec!["spiffe://example/ops".parse().unwrap()];
        assert_eq!(status(&guard, &write, &ops), 200);
        assert_eq!(status(&guard, &write, &dev), 403);
        assert_eq!(status(&guard, &request(Method::GET, &[HERE]), &dev), 200);
        let mut nameless = operator("");
        nameless.identity = None;
        assert_eq!(status(&guard, &write, &nameless), 403);
    }

    #[test]
    fn a_token_that_is_set_up_is_asked_for_everywhere() {
        let file = token_file();
        let guard = with_token(&file);
        let local = caller("127.0.0.1", "127.0.0.1");
        let mut plain = remote();
        plain.secure = false;
        let with = |token: &str| {
            let value = format!("Bearer {token}");
            request(Method::DELETE, &[HERE, ("authorization", &value)])
        };
        // In the clear the token would be everybody's.
        assert_eq!(status(&guard, &with("sesame"), &plain), 403);
        for who in [&local, &remote(), &operator("spiffe://example/envoy")] {
            assert_eq!(status(&guard, &with("sesame"), who), 200);
            assert_eq!(status(&guard, &with("sesam"), who), 401);
            assert_eq!(status(&guard, &request(Method::POST, &[HERE]), who), 401);
            assert_eq!(status(&guard, &request(Method::GET, &[HERE]), who), 200);
        }
        let both = Guard {
            has_authorities: true,
            ..with_token(&file)
        };
        let ops = operator("spiffe://example/ops");
        assert_eq!(status(&both, &with("sesame"), &remote()), 403);
        assert_eq!(status(&both, &request(Method::POST, &[HERE]), &ops), 401);
        assert_eq!(
            admit(&both, &with("sesame"), &ops).unwrap(),
            "api spiffe://example/ops"
        );
        let gone = Guard {
            token: Some(TokenFile::new("no/such/file".into())),
            ..Guard::default()
        };
        assert_eq!(status(&gone, &with("sesame"), &local), 500);
    }

    #[test]
    fn reading_may_need_the_same_right() {
        let file = token_file();
        let guard = Guard {
            auth_reads: true,
            ..with_token(&file)
        };
        let read = |path: &str, headers: &[(&str, &str)]| {
            let mut request = request(Method::GET, headers);
            request.uri = path.parse().unwrap();
            status(&guard, &request, &remote())
        };
        assert_eq!(read("/config_dump", &[HERE]), 401);
        assert_eq!(read("/config_dump", &[HERE, SESAME]), 200);
        assert_eq!(read("/ready", &[HERE]), 200);
        assert_eq!(read("/metrics", &[HERE]), 200);
        let local = Guard {
            auth_reads: true,
            ..Guard::default()
        };
        let read = request(Method::GET, &[HERE]);
        assert_eq!(
            status(&local, &read, &caller("127.0.0.1", "127.0.0.1")),
            200
        );
        assert_eq!(status(&local, &read, &remote()), 403);
    }

    #[test]
    fn a_question_is_no_write() {
        let file = token_file();
        let guard = with_token(&file);
        let question = |method: Method| {
            let mut question = request(method, &[HERE]);
            question.uri = "/api/v1/explain?host=x".parse().unwrap();
            question
        };
        for who in [caller("127.0.0.1", "127.0.0.1"), remote()] {
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
