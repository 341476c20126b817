//! `trunkline watch` without a control plane: events of a server, as they happen.

use http::StatusCode;

use crate::cli;
use crate::client::{Client, OpenResponse, Opening};
use crate::command::event_line::event_line;
use crate::command::events::{Events, RETRY, parse_event, print_line};
use crate::command::{encode_url, run_request};
use crate::failure::Result;

/// Prints events until the program is stopped or standard output is closed.
pub(super) fn run(args: &cli::Watch) -> Result<()> {
    let client = Client::new(&args.remote)?;
    let watching = Watching {
        client,
        args,
        filter: filter_query(args),
        start: first_start(args),
        was_open: false,
        is_lost: false,
    };
    run_request(watching.run())
}

/// The state of the command.
struct Watching<'a> {
    client: Client,
    args: &'a cli::Watch,
    /// The parameters of the filter, each with its `&`.
    filter: String,
    /// The parameter that says where to begin: after the last event, once there
    /// is one; empty from now on.
    start: String,
    /// Whether the server has responded. From then on it is tried again and
    /// again.
    was_open: bool,
    /// Whether the user was told that the connection is lost.
    is_lost: bool,
}

/// Why a response was not read further.
enum End {
    /// The connection is lost, or the server has ended the response.
    Lost,
    /// Nobody reads what is printed.
    NoReader,
}

impl Watching<'_> {
    /// Prints events until standard output is closed. After each loss of the
    /// connection, continues after the last event.
    async fn run(mut self) -> Result<()> {
        loop {
            if let Some(response) = self.open_stream().await? {
                match self.print_events(response).await? {
                    End::NoReader => return Ok(()),
                    End::Lost => self.report_loss(),
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Opens a response that continues after the last event. Returns `None` if
    /// the server is not reached at present, and the caller has to retry.
    ///
    /// # Errors
    /// The server has never responded, or it refuses the flags.
    async fn open_stream(&mut self) -> Result<Option<OpenResponse>> {
        let path = format!("/api/v1/watch?{}{}", self.start, self.filter);
        match self.client.open(&path).await {
            Ok(Opening::Open(response)) => {
                self.was_open = true;
                if std::mem::take(&mut self.is_lost) {
                    eprintln!("connected again");
                }
                Ok(Some(response))
            }
            Ok(Opening::Refused(StatusCode::GONE, failure)) if self.was_open => {
                eprintln!("warning: events were missed, going on from now: {failure}");
                self.start.clear();
                Ok(None)
            }
            Ok(Opening::Refused(StatusCode::SERVICE_UNAVAILABLE, _)) if self.was_open => Ok(None),
            Ok(Opening::Refused(_, failure)) => Err(failure),
            Err(_) if self.was_open => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Prints the events of a response, until it ends or standard output is
    /// closed.
    async fn print_events(&mut self, response: OpenResponse) -> Result<End> {
        let mut events = Events::new(response);
        while let Some(line) = events.next_line().await? {
            if !self.print_event(&line)? {
                return Ok(End::NoReader);
            }
        }
        Ok(End::Lost)
    }

    /// Prints an event, and stores its id to continue after it. Returns `false`
    /// if standard output is closed.
    fn print_event(&mut self, line: &[u8]) -> Result<bool> {
        let event = parse_event(line)?;
        let is_read = match self.args.events.json {
            true => print_line(&[line, b"\n"].concat())?,
            false => match event_line(&event) {
                Some(text) => print_line(text.as_bytes())?,
                None => true,
            },
        };
        if let Some(id) = event["id"].as_str() {
            self.start = format!("after={}", encode_url(id));
        }
        Ok(is_read)
    }

    /// Tells the user that the connection is lost, once for each time.
    fn report_loss(&mut self) {
        self.is_lost = true;
        eprintln!("the connection is lost; trying again");
    }
}

/// Writes where the flags say to begin, as a parameter.
fn first_start(args: &cli::Watch) -> String {
    match (args.events.from, &args.events.after) {
        (Some(revision), _) => format!("from={revision}"),
        (None, Some(id)) => format!("after={}", encode_url(id)),
        (None, None) => String::new(),
    }
}

/// Returns the filter of the flags as parameters of a request.
fn filter_query(args: &cli::Watch) -> String {
    let filters = [
        ("type", &args.events.of_types),
        ("event", &args.events.of_events),
        ("node", &args.nodes),
    ];
    let mut query = String::new();
    for (key, values) in filters {
        for value in values {
            query.push_str(&format!("&{key}={}", encode_url(value)));
        }
    }
    query
}
