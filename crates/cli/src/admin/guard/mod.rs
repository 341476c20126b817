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
    /// Returns the purpose of a request, by its method and path.
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

/// Returns the name of a request's author, for the audit log: the identity of
/// the certificate, else of the token, with the address; else the address
/// alone. `token` is the identity of a token that was checked.
pub(super) fn author_name(connection: &Connection, token: Option<&Identity>) -> String {
    let peer = connection.peer;
    let ip_text = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.ip().to_string());
    match (&connection.identity, token) {
        (Some(identity), _) => format!("api {identity}"),
        (None, Some(token)) => format!("api {token} from {ip_text}"),
        (None, None) => format!("api {ip_text}"),
    }
}

impl Guard {
    /// Makes the guard of the settings, with the token of a file if the
    /// settings name one.
    ///
    /// # Errors
    /// The file cannot be read, or is empty. The file is read again for each
    /// write; reading it here reports a mistake at the start.
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

    /// Admits a request, and returns its author for the audit log. Whoever
    /// reaches the address may read, unless reading is restricted, or DNS
    /// rebinding led a browser here. A write needs the rights that
    /// [`Self::authorise`] checks.
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
        let needs_authority = match purpose {
            Purpose::Monitor => false,
            Purpose::Read => self.auth_reads,
            Purpose::Write => true,
        };

        match needs_authority {
            true => self.authorise(request, connection).await,
            false => Ok(author_name(connection, None)),
        }
    }

    /// Checks that a request has every right that is set up: the token, and the
    /// certificate of an operator. If neither is set up, the request has to
    /// come from this machine. Returns the author of the request.
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
        Ok(author_name(connection, token.as_ref()))
    }

    /// Checks the token of a request, and returns its identity; `None` if the
    /// server has no token. A token that travels in the clear is refused
    /// whether or not it is right: others may have read it.
    async fn check_token(
        &self,
        request: &Parts,
        connection: &Connection,
    ) -> Result<Option<Identity>, Refusal> {
        let request_token = bearer_token(request);
        if request_token.is_some() && !connection.secure && !connection.is_local() {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "a token that travels in the clear is everybody's: start the server with \
                 --tls-cert and --tls-key, and use another token",
            ));
        }
        let Some(file) = &self.token else {
            return Ok(None);
        };

        let request_token = request_token.ok_or_else(|| {
            unauthorized(
                "this needs the token of the server: send it as `Authorization: Bearer <token>` \
                 (`trunkline` takes --token-file)",
            )
        })?;

        // The file is read for each request, so a new token needs no restart.
        let server_token = file.read_in_background().await.map_err(|error| {
            tracing::error!("{error}; writes over the admin API are refused until it is there");
            Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server's token file cannot be used; its log says why",
            )
        })?;
        match is_same_token(&server_token, request_token) {
            true => Ok(Some(Identity::Token)),
            false => Err(unauthorized("the token is not the right one")),
        }
    }

    /// Checks that a client has the certificate of an operator, with a name
    /// that is allowed. Does nothing if operators have no certificates here.
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

/// Makes the error of a request that has no token, or not the right one.
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
