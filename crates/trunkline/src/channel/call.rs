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
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};
use trunkline_traffic::headers::Headers;
use trunkline_traffic::retry::{RetryContext, RetryPolicy, RetryState, RetryVerdict};
use trunkline_traffic::route::FilterConfig;

use super::cluster::{Guard, Outcome, Pick};
use super::fault::{Active, Fault};
use super::replay::Replay;
use super::reply::{ReplyBody, early_status, is_refused, status_of, too_late};
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
    pub(super) faults: Active,
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
    /// The cookie that its caller gets, if it goes to another endpoint than its
    /// session says.
    fn cookie(&self, guard: &Guard, cluster: &str) -> Option<HeaderValue> {
        self.session?.set_cookie(guard.address()?, cluster)
    }
}

/// A random name for a channel.
pub(super) fn identity() -> String {
    RandomState::new().hash_one(0).to_string()
}

/// Waits for a result until a deadline, if there is one.
async fn until<T>(
    deadline: Option<Instant>,
    result: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match deadline {
        None => result.await,
        Some(at) => tokio::time::timeout_at(at, result)
            .await
            .map_err(|_| too_late())?,
    }
}

impl Inner {
    /// Sends a call, when there is a connection for it.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<ReplyBody>, Status> {
        let (call, body) = request.into_parts();
        let asked = call.headers.get("grpc-timeout");
        let asked = asked.and_then(|asked| asked.to_str().ok());
        let asked = asked.and_then(trunkline_traffic::retry::grpc_timeout);
        let deadline = asked.and_then(|asked| Instant::now().checked_add(asked));
        until(deadline, self.run(call, body, deadline)).await
    }

    async fn run(
        &self,
        mut call: Parts,
        body: Body,
        asked: Option<Instant>,
    ) -> Result<Response<ReplyBody>, Status> {
        let head = Head::new(&call, &self.name, &self.id, self.pool.random());
        let table = self.first_table().await?;
        let decision = table.route(&head)?;
        self.harm(&table, &decision, &head).await?;
        let limit = decision.limit(&head, table.manager().limit);
        let limit = limit.and_then(|limit| Instant::now().checked_add(limit));
        let deadline = asked.into_iter().chain(limit).min();
        if let Some(deadline) = deadline.filter(|_| limit.is_some()) {
            let left = deadline.saturating_duration_since(Instant::now());
            call.headers.insert("grpc-timeout", in_millis(left));
        }
        let session = decision.session(table.manager(), &head);
        let outgoing = Outgoing {
            call,
            head: &head,
            body: Replay::new(body),
            session: session.as_ref(),
        };
        let attempts = self.attempts(&outgoing, decision.retry(), deadline);
        until(deadline, attempts).await
    }

    /// Waits for the first table.
    async fn first_table(&self) -> Result<Arc<Table>, Status> {
        let mut tables = self.tables.clone();
        let first = tables.wait_for(Option::is_some).await;
        let first = first.map_err(|_| ended())?.clone();
        first.ok_or_else(ended)
    }

    /// Does to a call what the fault filters say (A33).
    async fn harm(
        &self,
        table: &Table,
        decision: &Decision<'_>,
        head: &Head,
    ) -> Result<(), Status> {
        for (name, fault) in &table.manager().faults {
            let own = match decision.filter(name) {
                Some(FilterConfig::Disabled) => continue,
                Some(FilterConfig::Config(any)) => Fault::read(any),
                None => None,
            };
            if let Some(fault) = own.as_ref().or(fault.as_ref()) {
                let random = || self.pool.random();
                self.faults.apply(fault, head.headers(), random).await?;
            }
        }
        Ok(())
    }

    async fn attempts(
        &self,
        outgoing: &Outgoing<'_>,
        policy: Option<&RetryPolicy>,
        deadline: Option<Instant>,
    ) -> Result<Response<ReplyBody>, Status> {
        let body = &outgoing.body;
        let mut retries = policy.map(|policy| outgoing.head.retries(policy));
        let (mut done, mut was_refused) = (0_u32, false);
        loop {
            let (status, response) = match self.attempt(outgoing, done).await {
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
            let pushback = response
                .as_ref()
                .and_then(|(of, _)| of.headers().get(PUSHBACK));
            let pushback = pushback.map(|value| value.to_str().ok()?.parse().ok());
            let delay = match retries.as_mut().filter(|_| !body.is_committed()) {
                Some(retries) => self.delay(retries, status.code(), pushback),
                None => None,
            };
            match (delay, response) {
                (Some(delay), _) => tokio::time::sleep(delay).await,
                (None, Some((response, guard))) => {
                    body.commit();
                    return Ok(ReplyBody::wrap(response, guard, deadline));
                }
                (None, None) => return Err(status),
            }
            done += 1;
        }
    }

    /// How long to wait before another attempt; `None` if there is none. A
    /// server may say when, or that there shall be none.
    fn delay(
        &self,
        retries: &mut RetryState<'_>,
        code: Code,
        pushback: Option<Option<u64>>,
    ) -> Option<Duration> {
        let headers: Headers = [("grpc-status", (code as i32).to_string())]
            .into_iter()
            .collect();
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let context = RetryContext {
            random: self.pool.random(),
            unix: unix.unwrap_or_default(),
        };
        match (retries.judge_response(200, &headers, &context), pushback) {
            (RetryVerdict::Retry(delay), None) => Some(delay),
            (RetryVerdict::Retry(_), Some(asked)) => asked.map(Duration::from_millis),
            _ => None,
        }
    }

    /// Makes one attempt. One that was not sent is given to another endpoint.
    async fn attempt(&self, outgoing: &Outgoing<'_>, done: u32) -> Ended {
        let mut tables = self.tables.clone();
        let mut changes = self.pool.next_change();
        loop {
            changes.borrow_and_update();
            let Some(table) = tables.borrow_and_update().clone() else {
                return Ended::Final(ended());
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
                        return Ended::Final(ended());
                    },
                    _ = changes.changed() => {}
                },
                Pick::Ready(mut sender, mut guard) => {
                    let cookie = outgoing.cookie(&guard, cluster);
                    let request = match self.request(outgoing, done, guard.scheme()) {
                        Ok(request) => request,
                        Err(status) => return Ended::Final(status),
                    };
                    let mut error = match sender.try_send_request(request).await {
                        Ok(mut response) => {
                            let lines = cookie.map(|cookie| (SET_COOKIE, cookie));
                            response.headers_mut().extend(lines);
                            return Ended::Response(response, guard);
                        }
                        Err(error) => error,
                    };
                    if error.take_message().is_some() {
                        guard.end(Outcome::Unsent);
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                    let error = error.into_error();
                    if is_refused(&error) {
                        guard.end(Outcome::Unsent);
                        return Ended::Refused(Status::unavailable(error.to_string()));
                    }
                    return Ended::Failed(status_of(&error));
                }
            }
        }
    }

    /// The request of an attempt.
    fn request(
        &self,
        outgoing: &Outgoing<'_>,
        done: u32,
        scheme: Scheme,
    ) -> Result<Request<Body>, Status> {
        let mut call = outgoing.call.clone();
        let mut uri = call.uri.into_parts();
        uri.scheme = Some(scheme);
        uri.authority = Some(self.authority.clone());
        let uri = http::Uri::from_parts(uri);
        call.uri = uri.map_err(|error| Status::invalid_argument(error.to_string()))?;
        if done > 0 {
            let name = "grpc-previous-rpc-attempts";
            call.headers.insert(name, HeaderValue::from(done));
        }
        Ok(Request::from_parts(call, outgoing.body.attempt()))
    }
}

fn ended() -> Status {
    Status::unavailable("the client of this channel has ended")
}

/// A duration as `grpc-timeout` has it, which takes eight digits.
fn in_millis(left: Duration) -> HeaderValue {
    let millis = left.as_millis().max(1);
    let text = match millis {
        ..100_000_000 => format!("{millis}m"),
        _ => format!("{}S", left.as_secs().min(99_999_999)),
    };
    // Digits and a letter are a value of a header.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("1H"))
}
