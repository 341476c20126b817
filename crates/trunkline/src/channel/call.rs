//! The life of a call: its route, its faults, and its attempts until one is
//! committed (A6, A44).

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::SET_COOKIE;
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};
use trunkline_traffic::headers::Headers;
use trunkline_traffic::retry::{RetryContext, RetryPolicy, RetryState, RetryVerdict};
use trunkline_traffic::route::FilterConfig;

use super::cluster::{Guard, Outcome, Pick};
use super::fault::{ActiveFaults, Fault};
use super::replay::Replay;
use super::reply::{ReplyBody, early_status, is_refused, status_of, too_late_status};
use super::route::{Decision, Head};
use super::session::Session;
use super::subchannel::Pool;
use super::table::Table;

/// How long a call that was not sent waits before it is given to an endpoint
/// again: a connection that is about to close says so a moment later.
const PAUSE: Duration = Duration::from_millis(1);

/// The header by which a server asks for a retry at another time, or for none.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// What the calls of a channel share.
pub(super) struct Inner {
    pub(super) tables: watch::Receiver<Option<Arc<Table>>>,
    pub(super) pool: Arc<Pool>,
    /// The authority by which routes are chosen, and that of requests.
    pub(super) name: String,
    pub(super) authority: Authority,
    /// The identity of the channel, for hash policies.
    pub(super) id: String,
    pub(super) faults: ActiveFaults,
    pub(super) follower: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

/// How one attempt has ended.
enum Ended {
    Response(Response<Incoming>, Guard),
    /// The peer did nothing of it.
    Refused(Status),
    /// Another attempt may go better.
    Failed(Status),
    /// No other attempt is made.
    Final(Status),
}

/// A call on its way, by as many attempts as it takes.
struct Outgoing<'c> {
    call: Parts,
    head: &'c Head,
    body: Replay,
    session: Option<&'c Session>,
}

impl Outgoing<'_> {
    /// Returns the cookie that the caller gets, if the call goes to another
    /// endpoint than its session says. Returns `None` also without a session.
    fn cookie(&self, guard: &Guard, cluster: &str) -> Option<HeaderValue> {
        self.session?.set_cookie(guard.address()?, cluster)
    }
}

/// Returns a random identity for a channel.
pub(super) fn random_id() -> String {
    RandomState::new().hash_one(0).to_string()
}

/// Waits for a result until a deadline, if there is one. A result that comes
/// too late is an error.
async fn with_deadline<T>(
    deadline: Option<Instant>,
    result: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match deadline {
        None => result.await,
        Some(deadline) => tokio::time::timeout_at(deadline, result)
            .await
            .map_err(|_| too_late_status())?,
    }
}

impl Inner {
    /// Routes a call and sends it, when there is a connection for it, by as
    /// many attempts as it takes. The deadline that its caller asked for counts
    /// from now.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<ReplyBody>, Status> {
        let (call, body) = request.into_parts();
        let timeout = call.headers.get("grpc-timeout");
        let timeout = timeout.and_then(|timeout| timeout.to_str().ok());
        let timeout = timeout.and_then(trunkline_traffic::retry::grpc_timeout);
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        with_deadline(deadline, self.run(call, body, deadline)).await
    }

    /// Routes a call, injects faults into it, and makes its attempts, until the
    /// earlier of the deadlines of caller and route. A deadline of the route is
    /// passed on to the server in `grpc-timeout`.
    async fn run(
        &self,
        mut call: Parts,
        body: Body,
        caller_deadline: Option<Instant>,
    ) -> Result<Response<ReplyBody>, Status> {
        let head = Head::new(&call, &self.name, &self.id, self.pool.random());
        let table = self.first_table().await?;
        let decision = table.route(&head)?;
        self.inject_faults(&table, &decision, &head).await?;

        let limit = decision.limit(&head, table.manager().limit);
        let limit = limit.and_then(|limit| Instant::now().checked_add(limit));
        let deadline = caller_deadline.into_iter().chain(limit).min();
        if let Some(deadline) = deadline.filter(|_| limit.is_some()) {
            let remaining = deadline.saturating_duration_since(Instant::now());
            call.headers
                .insert("grpc-timeout", format_timeout(remaining));
        }

        let session = decision.session(table.manager(), &head);
        let outgoing = Outgoing {
            call,
            head: &head,
            body: Replay::new(body),
            session: session.as_ref(),
        };
        let attempts = self.make_attempts(&outgoing, decision.retry(), deadline);
        with_deadline(deadline, attempts).await
    }

    /// Waits until there is a table, and returns it. An error means that the
    /// client of the channel has ended, so that none will come.
    async fn first_table(&self) -> Result<Arc<Table>, Status> {
        let mut tables = self.tables.clone();
        let table = tables.wait_for(Option::is_some).await;
        let table = table.map_err(|_| client_ended_status())?.clone();
        table.ok_or_else(client_ended_status)
    }

    /// Injects the faults that the fault filters of the listener say, each
    /// configured by the route or else by itself (A33). An error is the status
    /// of a call that was made to fail.
    async fn inject_faults(
        &self,
        table: &Table,
        decision: &Decision<'_>,
        head: &Head,
    ) -> Result<(), Status> {
        for (name, fault) in &table.manager().faults {
            let route_fault = match decision.filter(name) {
                Some(FilterConfig::Disabled) => continue,
                Some(FilterConfig::Config(any)) => Fault::read(any),
                None => None,
            };
            if let Some(fault) = route_fault.as_ref().or(fault.as_ref()) {
                let random = || self.pool.random();
                self.faults.inject(fault, head.headers(), random).await?;
            }
        }
        Ok(())
    }

    /// Makes attempts until one is committed, or no other may be made; returns
    /// the response of the last one, or its status if it has none. A call that
    /// a peer has refused without doing anything of it is tried once more at
    /// once, whatever the policy.
    async fn make_attempts(
        &self,
        outgoing: &Outgoing<'_>,
        policy: Option<&RetryPolicy>,
        deadline: Option<Instant>,
    ) -> Result<Response<ReplyBody>, Status> {
        let body = &outgoing.body;
        let mut retry_state = policy.map(|policy| outgoing.head.retries(policy));
        let (mut attempts_made, mut was_refused) = (0_u32, false);
        loop {
            let (status, response) = match self.make_attempt(outgoing, attempts_made).await {
                Ended::Final(status) => return Err(status),
                Ended::Refused(_) if !was_refused && !body.is_committed() => {
                    was_refused = true;
                    continue;
                }
                Ended::Refused(status) | Ended::Failed(status) => (status, None),
                Ended::Response(response, guard) => match early_status(&response) {
                    None | Some(Code::Ok) => {
                        body.commit();
                        return Ok(ReplyBody::wrap(response, guard, deadline));
                    }
                    Some(code) => (Status::new(code, ""), Some((response, guard))),
                },
            };

            // A failed attempt: another one follows if policy and server allow
            // it.
            let pushback = response
                .as_ref()
                .and_then(|(response, _)| read_pushback(response));
            let retries = retry_state.as_mut().filter(|_| !body.is_committed());
            let delay =
                retries.and_then(|retries| self.retry_delay(retries, status.code(), pushback));

            match (delay, response) {
                (Some(delay), _) => tokio::time::sleep(delay).await,
                (None, Some((response, guard))) => {
                    body.commit();
                    return Ok(ReplyBody::wrap(response, guard, deadline));
                }
                (None, None) => return Err(status),
            }
            attempts_made += 1;
        }
    }

    /// Returns how long to wait before another attempt; `None` if there is
    /// none. A server may say when, or that there shall be none (`pushback`).
    fn retry_delay(
        &self,
        retries: &mut RetryState<'_>,
        code: Code,
        pushback: Option<Option<u64>>,
    ) -> Option<Duration> {
        // The rules of traffic read the status from a response, so one is made.
        let headers: Headers = [("grpc-status", (code as i32).to_string())]
            .into_iter()
            .collect();
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let context = RetryContext {
            random: self.pool.random(),
            unix: since_epoch.unwrap_or_default(),
        };
        match (retries.judge_response(200, &headers, &context), pushback) {
            (RetryVerdict::Retry(delay), None) => Some(delay),
            (RetryVerdict::Retry(_), Some(delay)) => delay.map(Duration::from_millis),
            _ => None,
        }
    }

    /// Makes one attempt, after `attempts_made` others. Waits while the
    /// endpoint is being connected to. A request that its connection has not
    /// taken is given to an endpoint again, by the newest table.
    async fn make_attempt(&self, outgoing: &Outgoing<'_>, attempts_made: u32) -> Ended {
        let mut tables = self.tables.clone();
        let mut changes = self.pool.next_change();
        loop {
            changes.borrow_and_update();
            let Some(table) = tables.borrow_and_update().clone() else {
                return Ended::Final(client_ended_status());
            };
            let decision = match table.route(outgoing.head) {
                Ok(decision) => decision,
                Err(status) => return Ended::Final(status),
            };

            let cluster = decision.cluster(outgoing.session);
            let session_endpoint = outgoing
                .session
                .and_then(|session| session.endpoint.as_deref());
            let pick = match table.clusters(cluster) {
                Ok(clusters) => clusters.pick(decision.hash, session_endpoint, &self.pool),
                Err(status) => return Ended::Failed(status),
            };

            match pick {
                Pick::Dropped(status) => return Ended::Final(status),
                Pick::Failed(why) => return Ended::Failed(Status::unavailable(why.to_string())),
                Pick::Wait => tokio::select! {
                    next = tables.changed() => if next.is_err() {
                        return Ended::Final(client_ended_status());
                    },
                    _ = changes.changed() => {}
                },
                Pick::Ready(sender, guard) => {
                    let sending =
                        self.send_attempt(outgoing, attempts_made, cluster, sender, guard);
                    match sending.await {
                        Some(ended) => return ended,
                        None => tokio::time::sleep(PAUSE).await,
                    }
                }
            }
        }
    }

    /// Sends an attempt to an endpoint of a cluster, by a connection. Returns
    /// `None` if the connection is about to close and has not taken the
    /// request.
    async fn send_attempt(
        &self,
        outgoing: &Outgoing<'_>,
        attempts_made: u32,
        cluster: &str,
        mut sender: SendRequest<Body>,
        mut guard: Guard,
    ) -> Option<Ended> {
        let cookie = outgoing.cookie(&guard, cluster);
        let request = match self.make_request(outgoing, attempts_made, guard.scheme()) {
            Ok(request) => request,
            Err(status) => return Some(Ended::Final(status)),
        };
        let mut error = match sender.try_send_request(request).await {
            Ok(mut response) => {
                let lines = cookie.map(|cookie| (SET_COOKIE, cookie));
                response.headers_mut().extend(lines);
                return Some(Ended::Response(response, guard));
            }
            Err(error) => error,
        };
        if error.take_message().is_some() {
            guard.end(Outcome::Unsent);
            return None;
        }

        let error = error.into_error();
        if is_refused(&error) {
            guard.end(Outcome::Unsent);
            return Some(Ended::Refused(Status::unavailable(error.to_string())));
        }
        Some(Ended::Failed(status_of(&error)))
    }

    /// Returns the request of an attempt, with the scheme and authority of its
    /// connection. The server is told of `attempts_made` others before.
    fn make_request(
        &self,
        outgoing: &Outgoing<'_>,
        attempts_made: u32,
        scheme: Scheme,
    ) -> Result<Request<Body>, Status> {
        let mut call = outgoing.call.clone();
        let mut uri = call.uri.into_parts();
        uri.scheme = Some(scheme);
        uri.authority = Some(self.authority.clone());
        let uri = http::Uri::from_parts(uri);
        call.uri = uri.map_err(|error| Status::invalid_argument(error.to_string()))?;

        if attempts_made > 0 {
            let name = "grpc-previous-rpc-attempts";
            call.headers.insert(name, HeaderValue::from(attempts_made));
        }
        Ok(Request::from_parts(call, outgoing.body.attempt()))
    }
}

/// Returns what a response asks for of a retry: the delay in milliseconds, or,
/// where that is no number, that there be none. The outer `None` means that it
/// asks for nothing.
fn read_pushback(response: &Response<Incoming>) -> Option<Option<u64>> {
    let value = response.headers().get(PUSHBACK)?;
    Some(value.to_str().ok().and_then(|text| text.parse().ok()))
}

/// Returns the status of a call whose configuration nobody follows any more.
fn client_ended_status() -> Status {
    Status::unavailable("the client of this channel has ended")
}

/// Returns a duration as a value of `grpc-timeout`, which has eight digits at
/// most.
fn format_timeout(remaining: Duration) -> HeaderValue {
    let millis = remaining.as_millis().max(1);
    let text = match millis {
        ..100_000_000 => format!("{millis}m"),
        _ => format!("{}S", remaining.as_secs().min(99_999_999)),
    };
    // Digits and a letter are a value of a header.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("1H"))
}
