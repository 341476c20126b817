//! Events as they happen: changes, ACKs, NACKs, clients that come and go.
//!
//! ```text
//!  event log ─▶ reader ─▶ filter ─▶ text ─▶ one chunk ─▶ HTTP
//!                                    ▲        (when the client has taken the one before)
//!                 keep-alive, bookmark
//! ```

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use trunkline::Server;
use trunkline::events::{EventId, LogEntry, Reader, Start, StartError};

use super::error::Refusal;
use super::event::{EventForm, GAP, REMEDY};
use super::event_filter::{EventFilter, FILTERS};
use super::query::Query;
use super::{Admin, Shared};

/// How long nothing is sent, at most.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a client may take nothing before its response ends: it would keep
/// others from watching.
const LONGEST_STALL: Duration = Duration::from_secs(60);
/// How long the log of events may lag behind the contents.
const LONGEST_CHANGE: Duration = Duration::from_secs(10);
/// The wait before the log is asked again for a revision that it lags behind.
const BETWEEN_TRIES: Duration = Duration::from_millis(5);
/// The header in which a browser says after which event it goes on.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// `GET /api/v1/watch`: sends events until the client closes the connection or
/// the server drains. The first event is the next one, or the first after a
/// given revision or event.
pub(super) async fn watch(
    State(admin): State<Shared>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let parameters = [&["from", "after"], &FILTERS[..]].concat();
    let query = Query::read(&uri, &parameters)?;
    let filter = EventFilter::read(&query)?;
    let start = read_start(&query, &headers)?;
    if admin.server.is_draining() {
        return Err(Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the server is about to stop; watch another one",
        ));
    }

    let reader = open_reader(&admin, start).await.map_err(start_refusal)?;
    let form = read_form(&headers);
    let (chunks, body) = mpsc::channel(1);
    let writer = Writer {
        server: admin.server.clone(),
        last_position: reader.position(),
        reader,
        filter,
        form,
        chunks,
    };
    tokio::spawn(writer.run());

    let headers = [
        (header::CONTENT_TYPE, form.content_type()),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let body = Body::from_stream(ReceiverStream::new(body));
    Ok((headers, body).into_response())
}

/// Reads where the events begin. The header `Last-Event-ID` takes precedence: a
/// browser that reconnects repeats the parameters of its first request.
fn read_start(query: &Query, headers: &HeaderMap) -> Result<Start, Refusal> {
    let (from, after) = (query.one("from")?, query.one("after")?);
    if let Some(id) = headers.get(LAST_EVENT_ID) {
        // One that is not ASCII is refused as an empty one is.
        let id = id.to_str().unwrap_or_default();
        return parse_id("Last-Event-ID", id);
    }

    match (from, after) {
        (None, None) => Ok(Start::Now),
        (None, Some(id)) => parse_id("after", id),
        (Some(revision), None) => match revision.parse() {
            Ok(0) => Ok(Start::Now),
            Ok(revision) => Ok(Start::Revision(revision)),
            Err(_) => Err(Refusal::bad(format!(
                "from: expected a revision, which is a number, found {revision:?}"
            ))),
        },
        (Some(_), Some(_)) => Err(Refusal::bad(
            "give one of from, a revision, and after, the id of an event",
        )),
    }
}

/// Opens a reader of the event log. A change has its revision a moment before
/// its event is in the log; a reader that starts at that revision waits for the
/// event, at most [`LONGEST_CHANGE`].
async fn open_reader(admin: &Admin, start: Start) -> Result<Reader, StartError> {
    let deadline = Instant::now() + LONGEST_CHANGE;
    loop {
        match admin.events.read(start) {
            Err(StartError::RevisionUnknown { revision, .. })
                if revision <= admin.server.revision() && Instant::now() < deadline =>
            {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            result => return result,
        }
    }
}

/// Parses the id of an event, which `key` has.
fn parse_id(key: &str, id: &str) -> Result<Start, Refusal> {
    let id: Result<EventId, _> = id.parse();
    id.map(Start::After)
        .map_err(|error| Refusal::bad(format!("{key}: {error}")))
}

/// Makes the refusal of a reader that cannot begin: there is no room for it, no
/// event has its id, or its events are not there any more.
fn start_refusal(error: StartError) -> Refusal {
    match error {
        StartError::TooManyReaders { .. } => Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error),
        StartError::IdUnknown { .. } => Refusal::bad(format!("after: {error}")),
        _ => Refusal::new(StatusCode::GONE, format!("{error}; {REMEDY}")),
    }
}

/// Reads the form of events from the header `Accept`: lines, unless the header
/// names server-sent events.
fn read_form(headers: &HeaderMap) -> EventForm {
    let mut accepted_types = headers.get_all(header::ACCEPT).iter();
    let accepts_server_sent = accepted_types.any(|value| {
        // No known type is in a value that is not ASCII.
        let value = value.to_str().unwrap_or_default();
        value.contains(EventForm::ServerSent.content_type())
    });
    match accepts_server_sent {
        true => EventForm::ServerSent,
        false => EventForm::Lines,
    }
}

/// Writes events for one response. It holds one batch of events, and one chunk
/// that the client has not taken yet.
struct Writer {
    server: Server,
    reader: Reader,
    filter: EventFilter,
    form: EventForm,
    chunks: mpsc::Sender<Result<Bytes, Infallible>>,
    /// The position up to which the client knows all that it is to know: of the
    /// start, the last event or the last bookmark that was written.
    last_position: EventId,
}

/// The response has to end: the client is gone or too slow, or events that it
/// was to get are forgotten.
struct Ended;

impl Writer {
    /// Writes events until the client disconnects or is too slow, or the server
    /// drains.
    async fn run(mut self) {
        let (server, chunks) = (self.server.clone(), self.chunks.clone());
        tokio::select! {
            _ = self.write_events() => {}
            () = server.drain_started() => {}
            () = chunks.closed() => {}
        }
    }

    /// Writes events as they come, and keeps the connection alive between them.
    /// Returns only when the response is at its end.
    async fn write_events(&mut self) -> Result<(), Ended> {
        self.write_opening().await?;
        let mut next_keep_alive = Instant::now() + KEEP_ALIVE;
        loop {
            let is_written = match timeout_at(next_keep_alive, self.reader.next()).await {
                Err(_) => self.write_keep_alive().await?,
                Ok(Ok(entries)) => {
                    let text = self.entries_to_text(&entries);
                    // Freed before the client takes the text.
                    drop(entries);
                    self.send(text).await?
                }
                Ok(Err(missed)) => {
                    let mut text = String::new();
                    self.form.write_missed(&mut text, missed);
                    self.send(text).await?;
                    return Err(Ended);
                }
            };
            if is_written {
                next_keep_alive = Instant::now() + KEEP_ALIVE;
                continue;
            }
            // The filter held all events back. Others have their turn, and if
            // that goes on, the client is told that the connection is alive.
            tokio::task::yield_now().await;
            if Instant::now() >= next_keep_alive {
                self.write_keep_alive().await?;
                next_keep_alive = Instant::now() + KEEP_ALIVE;
            }
        }
    }

    /// Returns the text of the entries that the filter lets through, and records
    /// the last of them as written. The text is empty if there is none.
    fn entries_to_text(&mut self, entries: &[LogEntry]) -> String {
        let mut text = String::new();
        for entry in entries {
            let length_before = text.len();
            self.form.write(&mut text, entry, &self.filter);
            if text.len() > length_before {
                self.last_position = entry.id;
            }
        }
        text
    }

    /// Writes a bookmark of the place where the response begins, so that a
    /// client whose connection breaks before the first event can resume there.
    /// Writes a `missed` event before it if the log has forgotten events after
    /// that place.
    async fn write_opening(&mut self) -> Result<(), Ended> {
        let mut text = String::new();
        if self.reader.has_gap() {
            self.form.write_missed_message(&mut text, GAP.to_owned());
        }
        let revision = self.reader.revision();
        self.form
            .write_bookmark(&mut text, self.last_position, revision);
        self.send(text).await.map(drop)
    }

    /// Keeps the connection alive. If the filter held events back, writes a
    /// bookmark after them: the log may forget these events, and a client that
    /// resumes does not need them. The result is that of [`Self::send`]; the
    /// text is never empty.
    async fn write_keep_alive(&mut self) -> Result<bool, Ended> {
        let position = self.reader.position();
        let mut text = String::new();
        if position == self.last_position {
            text.push_str(self.form.keep_alive());
        } else {
            self.form
                .write_bookmark(&mut text, position, self.reader.revision());
            self.last_position = position;
        }
        self.send(text).await
    }

    /// Sends a text as one chunk, after the client has taken the previous one.
    /// Returns `false` if the text is empty, and nothing is sent.
    ///
    /// # Errors
    /// The client disconnected, or took nothing for [`LONGEST_STALL`].
    async fn send(&self, text: String) -> Result<bool, Ended> {
        if text.is_empty() {
            return Ok(false);
        }
        let chunk = Ok(Bytes::from(text));
        let result = self.chunks.send_timeout(chunk, LONGEST_STALL).await;
        result.map(|()| true).map_err(|_| Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::sync::Arc;
    use trunkline::events::{EventLog, LogLimits};
    use trunkline::{Change, Resource, kind};

    const LIMITS: LogLimits = LogLimits {
        events: 4,
        bytes: 1 << 20,
        readers: 1,
    };

    type Chunks = mpsc::Receiver<Result<Bytes, Infallible>>;

    fn new_server() -> (Server, EventLog) {
        let log = EventLog::new(LIMITS);
        let server = Server::builder().hooks(log.clone()).build();
        (server, log)
    }

    /// Begins to write events of a log.
    fn write(server: &Server, log: &EventLog, start: Start, query: &str) -> Chunks {
        let uri = format!("/?{query}").parse().unwrap();
        let query = Query::read(&uri, &FILTERS).unwrap();
        let reader = log.read(start).unwrap();
        let (chunks, body) = mpsc::channel(1);
        let writer = Writer {
            server: server.clone(),
            last_position: reader.position(),
            reader,
            filter: EventFilter::read(&query).unwrap(),
            form: EventForm::Lines,
            chunks,
        };
        tokio::spawn(writer.run());
        body
    }

    fn change(server: &Server, number: usize) {
        let resource = Resource::new(number.to_string().as_str().into(), "x".into());
        let change = Change::Upsert(kind::CDS.into(), Arc::new(resource));
        server.apply(vec![change]).unwrap();
    }

    async fn next(body: &mut Chunks) -> String {
        let chunk = body.recv().await.unwrap().unwrap();
        String::from_utf8(chunk.to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_too_slow_is_told_at_the_end() {
        let (server, log) = new_server();
        let mut body = write(&server, &log, Start::Now, "");
        for number in 0..20 {
            change(&server, number);
            tokio::task::yield_now().await;
        }
        let mut text = String::new();
        while let Some(chunk) = body.recv().await {
            text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
        let events: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let (last, before) = events.split_last().unwrap();
        assert_eq!(last["event"], "missed");
        assert_eq!(last["id"], Value::Null);
        assert!(
            last["message"]
                .as_str()
                .unwrap()
                .contains("GET /api/v1/resources")
        );
        assert_eq!(before[0]["event"], "bookmark");
        for (index, event) in before[1..].iter().enumerate() {
            assert_eq!(event["revision"], index + 1, "no gap before it is told");
        }
        assert!(before.len() < 20);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_an_empty_line_or_a_bookmark_after_what_was_held_back() {
        let (server, log) = new_server();
        let mut body = write(&server, &log, Start::Now, "event=nacked");
        assert!(next(&mut body).await.contains("\"bookmark\""));
        assert_eq!(next(&mut body).await, "\n");
        change(&server, 1);
        let bookmark: Value = serde_json::from_str(&next(&mut body).await).unwrap();
        assert_eq!(bookmark["event"], "bookmark");
        assert_eq!(bookmark["revision"], 1);
        assert_eq!(next(&mut body).await, "\n");
        drop(body);
        tokio::time::sleep(Duration::from_millis(1)).await;
        let id: EventId = bookmark["id"].as_str().unwrap().parse().unwrap();
        let mut body = write(&server, &log, Start::After(id), "");
        change(&server, 2);
        next(&mut body).await;
        assert!(next(&mut body).await.contains("\"revision\":2"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_keeps_no_place() {
        let (server, log) = new_server();
        let _body = write(&server, &log, Start::Now, "");
        tokio::time::sleep(KEEP_ALIVE + LONGEST_STALL / 2).await;
        log.read(Start::Now).unwrap_err();
        tokio::time::sleep(LONGEST_STALL).await;
        log.read(Start::Now).unwrap();
    }
}
