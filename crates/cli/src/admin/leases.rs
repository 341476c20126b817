//! Leases over the API: resources that stay only as long as their writer
//! renews them.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, Uri};
use serde::Serialize;
use trunkline::checked::Finding;
use trunkline::{LeaseState, LeaseStatus, LeaseTtl, Lifetime};

use super::error::Refusal;
use super::outcome::{self, DEFAULT_ORIGIN, Options};
use super::query::Query;
use super::{Shared, Who};
use crate::settings::parse_duration;

/// All leases.
#[derive(Serialize)]
struct List {
    leases: Vec<Shown>,
}

/// The lease of an origin.
#[derive(Serialize)]
struct Shown {
    origin: String,
    ttl_seconds: f64,
    /// Zero if it has ended.
    remaining_seconds: f64,
    status: &'static str,
    /// The removal that is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
}

/// A removal that is held.
#[derive(Serialize)]
struct Held {
    message: String,
    hash: Option<String>,
}

/// `GET /api/v1/leases`: shows each lease.
pub(super) async fn list(State(admin): State<Shared>) -> Response {
    let leases = admin.server.leases();
    let leases = leases.iter().map(show_lease).collect();
    axum::Json(List { leases }).into_response()
}

/// `POST /api/v1/leases/{origin}`: renews the lease of an origin.
pub(super) async fn renew(
    State(admin): State<Shared>,
    Path(origin): Path<String>,
    uri: Uri,
) -> Result<StatusCode, Refusal> {
    Query::read(&uri, &[])?;
    match admin.server.renew(&origin) {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_lease(&origin)),
    }
}

/// `DELETE /api/v1/leases/{origin}`: ends a lease at once, as if its time were
/// over.
pub(super) async fn end(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    Path(origin): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["yes", "summary"])?;
    let options = Options::read(&query, &headers)?;
    super::run_blocking(move || {
        let settlement = admin.server.end_lease(&who.0, &origin, options.guard);
        let settlement = settlement.ok_or_else(|| no_lease(&origin))?;
        outcome::respond(&admin.server, &options, settlement, Vec::new())
    })
    .await?
}

/// Reads what a change does to the lease of its origin: the parameter `lease`
/// starts or renews a lease, and without the parameter the origin becomes
/// permanent.
///
/// # Errors
/// The duration cannot be parsed or is out of bounds, the origin is the default
/// one, or the change is a dry run.
pub(super) fn read_lifetime(query: &Query, options: &Options) -> Result<Lifetime, Refusal> {
    let Some(text) = query.one("lease")? else {
        return Ok(Lifetime::Permanent);
    };
    if options.origin == DEFAULT_ORIGIN {
        return Err(Refusal::bad(format!(
            "lease: {DEFAULT_ORIGIN:?} is everyone's origin, and would be emptied with the lease; \
             name one of the writer's own as `origin`"
        )));
    }
    if options.dry_run {
        return Err(Refusal::bad(
            "lease: a dry run changes nothing, so there is nothing to lease; leave one out",
        ));
    }

    let invalid_lease = |error: &dyn std::fmt::Display| Refusal::bad(format!("lease: {error}"));
    let ttl = parse_duration(text).map_err(|error| invalid_lease(&error))?;
    let ttl = LeaseTtl::new(ttl).map_err(|error| invalid_lease(&error))?;
    Ok(Lifetime::Leased(ttl))
}

/// Shows a lease: its state, the time that remains, and the finding that holds
/// its removal.
fn show_lease(lease: &LeaseStatus) -> Shown {
    let (status, remaining, held_finding) = match &lease.state {
        LeaseState::Active { remaining } => ("ACTIVE", remaining.as_secs_f64(), None),
        LeaseState::Expiring => ("EXPIRING", 0.0, None),
        LeaseState::Held { finding } => ("HELD", 0.0, Some(show_held(finding))),
    };
    Shown {
        origin: lease.origin.to_string(),
        ttl_seconds: lease.ttl.get().as_secs_f64(),
        remaining_seconds: remaining,
        status,
        held: held_finding,
    }
}

/// Shows the removal that is held, with the hash that confirms it.
fn show_held(finding: &Finding) -> Held {
    Held {
        message: finding.fault.to_string(),
        hash: finding.fault.held_hash().map(str::to_owned),
    }
}

/// Makes the error that an origin has no lease.
fn no_lease(origin: &str) -> Refusal {
    let message = format!("origin {origin:?} has no lease; apply its resources again with `lease`");
    Refusal::new(StatusCode::NOT_FOUND, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Lifetime, String> {
        let uri = format!("/x?{query}").parse().unwrap();
        let query = Query::read(&uri, &["lease", "origin", "dry_run"]).unwrap();
        let options = Options::read(&query, &HeaderMap::new()).unwrap();
        read_lifetime(&query, &options).map_err(|refusal| refusal.message)
    }

    #[test]
    fn a_lease_is_of_an_origin_and_has_a_time() {
        assert_eq!(read("origin=pod-7"), Ok(Lifetime::Permanent));
        let ttl = LeaseTtl::new(std::time::Duration::from_secs(30)).unwrap();
        assert_eq!(read("origin=pod-7&lease=30s"), Ok(Lifetime::Leased(ttl)));
        for (bad, why) in [
            ("lease=30s", "everyone's"),
            ("origin=api&lease=30s", "everyone's"),
            ("origin=pod-7&lease=30s&dry_run=true", "dry run"),
            ("origin=pod-7&lease=30", "such as"),
            ("origin=pod-7&lease=0s", "from 1s to 24h"),
            ("origin=pod-7&lease=25h", "from 1s to 24h"),
        ] {
            let message = read(bad).unwrap_err();
            assert!(message.contains(why), "{message}");
        }
    }
}
