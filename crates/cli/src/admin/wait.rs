//! Waits until clients have answered all that was sent for a change.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, Uri};
use serde::Serialize;
use tokio::time::Instant;
use trunkline::{Arrival, ArrivalState, Awaited, ClientArrival};

use super::Shared;
use super::error::Refusal;
use super::query::Query;
use super::status::{millis, nack_error};
use crate::settings::parse_duration;

/// The maximum of requests that wait at once.
pub(crate) const MOST_WAITS: usize = 64;
/// The time that a request waits without `timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause between two looks at the clients: so many times as long as the
/// look took, that waiting costs little of one core, within these bounds.
const PAUSE_FACTOR: u32 = 20;
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How far a change has come.
#[derive(Debug, Serialize)]
struct Progress {
    revision: u64,
    /// Whether no client is awaited any more.
    complete: bool,
    counts: Counts,
    /// The clients that have something to tell beside that they answered.
    clients: Vec<Shown>,
}

/// The number of clients in each state.
#[derive(Debug, Default, Serialize)]
struct Counts {
    answered: usize,
    awaited: usize,
    disconnected: usize,
}

/// A client that is or was awaited.
#[derive(Debug, Serialize)]
struct Shown {
    stream: u64,
    node: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outstanding: Vec<Outstanding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<Withheld>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejected: Vec<Rejected>,
}

/// What a client has not answered of one type.
#[derive(Debug, Serialize)]
struct Outstanding {
    #[serde(rename = "type")]
    type_url: String,
    /// How long the client has not answered; missing if it was not sent yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanswered_ms: Option<u64>,
    names: Vec<String>,
    more: usize,
}

/// A resource whose removal is withheld.
#[derive(Debug, Serialize)]
struct Withheld {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
}

/// A resource that the client rejects.
#[derive(Debug, Serialize)]
struct Rejected {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// `GET /api/v1/wait?revision=…`: responds when every client that was connected
/// has answered all that was sent for the change, or at the timeout.
pub(super) async fn wait(State(admin): State<Shared>, uri: Uri) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["revision", "timeout", "removals", "all"])?;
    let revision = read_revision(&query)?;
    let awaited = Awaited {
        all_clients: query.is_on("all")?,
        removals: query.is_on("removals")?,
    };

    let timeout = match query.one("timeout")? {
        Some(text) => {
            parse_duration(text).map_err(|error| Refusal::bad(format!("timeout: {error}")))?
        }
        None => DEFAULT_TIMEOUT,
    };

    let _permit = admin.waits.try_acquire().map_err(|_| {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{MOST_WAITS} requests wait already, and no more may: try again later"),
        )
    })?;

    let arrival = admin.server.arrival(revision, awaited).ok_or_else(|| {
        let current = admin.server.revision();
        Refusal::new(
            StatusCode::GONE,
            format!(
                "the contents are at revision {current}, and have not been at {revision}: was the \
                 server started again?"
            ),
        )
    })?;

    let (arrival, is_complete) = tokio::select! {
        result = poll_arrival(arrival, timeout) => result?,
        () = admin.server.drain_started() => return Err(stopping()),
    };
    let clients = super::run_blocking(move || arrival.clients()).await?;
    Ok(axum::Json(describe_progress(revision, is_complete, clients)).into_response())
}

/// Reads the parameter `revision`, which is required.
fn read_revision(query: &Query) -> Result<u64, Refusal> {
    let text = query.one("revision")?.unwrap_or_default();
    text.parse().map_err(|_| {
        Refusal::bad(format!(
            "revision: expected the number that a change responds with, found {text:?}"
        ))
    })
}

/// Makes the error of a server that is about to stop.
fn stopping() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the server is about to stop, and its clients leave it",
    )
}

/// Looks at the clients again and again, until all have answered or the time is
/// over. Returns whether all have answered.
async fn poll_arrival(mut arrival: Arrival, timeout: Duration) -> Result<(Arrival, bool), Refusal> {
    let deadline = Instant::now() + timeout;
    loop {
        let look_start = Instant::now();
        let looking = super::run_blocking(move || {
            let is_complete = arrival.look();
            (arrival, is_complete)
        });
        let (looked_arrival, is_complete) = looking.await?;
        let now = Instant::now();
        if is_complete || now >= deadline {
            return Ok((looked_arrival, is_complete));
        }
        arrival = looked_arrival;

        let pause = (now - look_start) * PAUSE_FACTOR;
        let pause = pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        tokio::time::sleep_until(deadline.min(now + pause)).await;
    }
}

/// Describes how far a change has come. A client that answered and neither
/// withholds nor rejects a resource is only counted.
fn describe_progress(revision: u64, is_complete: bool, clients: Vec<ClientArrival>) -> Progress {
    let mut counts = Counts::default();
    for client in &clients {
        *match client.state {
            ArrivalState::Answered => &mut counts.answered,
            ArrivalState::Awaited => &mut counts.awaited,
            ArrivalState::Disconnected => &mut counts.disconnected,
        } += 1;
    }

    let has_news = |client: &ClientArrival| {
        client.state != ArrivalState::Answered
            || !client.withheld.is_empty()
            || !client.rejected.is_empty()
    };

    Progress {
        revision,
        complete: is_complete,
        counts,
        clients: clients
            .into_iter()
            .filter(has_news)
            .map(show_client)
            .collect(),
    }
}

/// Shows a client: what it has not answered, what is withheld from it, and what
/// it rejects.
fn show_client(client: ClientArrival) -> Shown {
    let outstanding = client.outstanding.into_iter();
    let outstanding = outstanding.map(|outstanding| Outstanding {
        type_url: outstanding.type_url.to_string(),
        unanswered_ms: outstanding.unanswered.map(millis),
        names: outstanding.names.iter().map(ToString::to_string).collect(),
        more: outstanding.more,
    });

    let withheld = client
        .withheld
        .into_iter()
        .map(|(type_url, name)| Withheld {
            type_url: type_url.to_string(),
            name: name.to_string(),
        });

    let rejected = client.rejected.into_iter().map(|rejected| Rejected {
        type_url: rejected.type_url.to_string(),
        name: rejected.name.to_string(),
        version: rejected.version.to_string(),
        error: rejected.error.map(|error| nack_error(&error.message)),
    });

    Shown {
        stream: client.stream,
        node: client.node,
        status: match client.state {
            ArrivalState::Answered => "ANSWERED",
            ArrivalState::Awaited => "AWAITED",
            ArrivalState::Disconnected => "DISCONNECTED",
        },
        outstanding: outstanding.collect(),
        withheld: withheld.collect(),
        rejected: rejected.collect(),
    }
}
