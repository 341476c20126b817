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

mod browser;
#[cfg(test)]
mod tests;

use http::request::Parts;
use http::{Method, StatusCode, header};
use subtle::ConstantTimeEq as _;
use trunkline::{Connection, Identity};

use self::browser::{check_host, check_origin};
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
