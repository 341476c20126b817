//! `trunkline watch TYPE --server ADDR`: what a control plane sends to a client.
//!
//! ```text
//! flags ── connect ──▶ Client ── follow, one task a type ──▶ Live ── seen, form ──▶ output
//!                        └────── observers: notices, Recorder ──▶ standard error, a file
//! ```

mod connect;
mod follow;
mod form;
mod notices;
mod seen;
mod select;
mod tree;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use trunkline::client::{Cause, Client, ClientBuilder, Raw, State};
use trunkline::{Name, TypeUrl};

use self::follow::{News, forward_news};
use self::notices::{Connections, Notice, notices};
use self::seen::{NameEvent, TypeRecord};
use self::select::{TypeSelection, parse_selections};
use crate::cli;
use crate::command::control_plane::Servers;
use crate::command::events::print_line;
use crate::command::run_request;
use crate::descriptors;
use crate::failure::{Failure, Result};
use crate::recording::Recorder;
use crate::signals::Ends;

/// How many batches of news wait for the printer. Beyond it states are skipped,
/// and the newest is told.
const WAITING: usize = 16;

/// Prints what the control plane sends until the program is stopped, nobody
/// reads it, or with `--once` it has answered.
pub(super) fn run(args: &cli::Watch) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    match args.plane.tree {
        true => run_tree(args),
        false => run_types(args),
    }
}

/// Follows one listener or cluster, with all resources below it.
fn run_tree(args: &cli::Watch) -> Result<()> {
    let root = tree::Root::parse(args)?;
    let parts = prepare(args)?;
    run_request(async {
        let client = parts.builder.build();
        let connections = Connections::new(parts.servers, args.plane.once);

        let mut printer = tree::Printer::new(args, connections);
        let write_error = parts.write_error;
        printer.run(&client, root, parts.notices, write_error).await
    })
}

/// A client, and what tells of it.
struct ClientParts {
    builder: ClientBuilder,
    servers: Servers,
    notices: mpsc::Receiver<Notice>,
    write_error: Option<oneshot::Receiver<io::Error>>,
}

/// Makes the builder of the client from the flags, with the observers for
/// notices and for the recording.
fn prepare(args: &cli::Watch) -> Result<ClientParts> {
    let (builder, servers) = connect::make_builder(args)?;
    let (narrator, notices) = notices();
    let mut builder = builder.observer(Arc::new(narrator));
    let mut write_error = None;
    if let Some(path) = &args.plane.record {
        let path_text = path.display();
        let (recorder, write_failure) = Recorder::create(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::usage(format!(
                "--record {path_text}: there is such a file, and it is not overwritten; remove it, or \
                 name another"
            )),
            _ => Failure::usage(format!("--record {path_text}: {error}")),
        })?;
        eprintln!("warning: {path_text} will hold secrets as they are received");
        builder = builder.observer(Arc::new(recorder));
        write_error = Some(write_failure);
    }

    Ok(ClientParts {
        builder,
        servers,
        notices,
        write_error,
    })
}

/// Follows resources by their types.
fn run_types(args: &cli::Watch) -> Result<()> {
    let selections = parse_selections(args)?;
    let parts = prepare(args)?;
    run_request(async {
        let client = parts.builder.build();
        let (sender, news) = mpsc::channel(WAITING);
        let mut live = Live {
            args,
            types: selections.iter().map(TypeRecord::new).collect(),
            unanswered_count: selections.len(),
            connections: Connections::new(parts.servers, args.plane.once),
        };
        for (index, selection) in selections.iter().enumerate() {
            let task = subscribe(&client, selection)?;
            tokio::spawn(forward_news(index, task, sender.clone()));
        }

        let (notices, write_error) = (parts.notices, parts.write_error);
        live.run(news, notices, write_error).await
    })
}

/// Subscribes to the selected resources of a type.
fn subscribe(client: &Client, selection: &TypeSelection) -> Result<follow::TypeWatch> {
    let mut subscriptions = Vec::new();
    for query in selection.queries()? {
        subscriptions.push(client.subscribe(query).map_err(Failure::usage)?);
    }
    let (scopes, names) = subscriptions
        .into_iter()
        .zip(&selection.selectors)
        .partition::<Vec<_>, _>(|(_, selector)| selector.is_scope);
    Ok(follow::TypeWatch {
        watch: client.watch_many(selection.all()?),
        scopes: scopes
            .into_iter()
            .map(|(subscription, _)| subscription)
            .collect(),
        _names: names
            .into_iter()
            .map(|(subscription, _)| subscription)
            .collect(),
        is_doubtful: selection.is_doubtful(),
    })
}

/// The state of the command.
struct Live<'a> {
    args: &'a cli::Watch,
    /// What was told, by type.
    types: Vec<TypeRecord>,
    /// Types whose wildcards and collections have no full answer yet.
    unanswered_count: usize,
    connections: Connections,
}

/// Why the command goes on no further.
enum End {
    /// It was stopped, or nobody reads what is printed.
    Stopped,
    /// All is answered, and that was asked for.
    Answered,
}

impl Live<'_> {
    /// Prints news and notices until a signal arrives or standard output is
    /// closed. With `--once`, ends when every subscription has an answer.
    async fn run(
        &mut self,
        mut news: mpsc::Receiver<(usize, News)>,
        mut notices: mpsc::Receiver<Notice>,
        write_error: Option<oneshot::Receiver<io::Error>>,
    ) -> Result<()> {
        let mut signals = Ends::new()?;
        let mut record_error = std::pin::pin!(wait_for_error(write_error));
        let is_once = self.args.plane.once;
        let mut deadline = std::pin::pin!(tokio::time::sleep(self.args.plane.timeout));

        loop {
            let end = tokio::select! {
                biased;
                () = signals.next() => return Ok(()),
                error = &mut record_error => return Err(record_failure(self.args, &error)),
                Some(notice) = notices.recv() => {
                    if let Some(sentence) = self.connections.describe_notice(notice) {
                        eprintln!("{sentence}");
                    }
                    None
                }
                Some((index, news)) = news.recv() => self.print_news(index, news)?,
                () = &mut deadline, if is_once => return Err(self.timeout_failure()),
            };
            match end {
                None => {}
                Some(End::Stopped) => return Ok(()),
                Some(End::Answered) => return self.check_missing(),
            }
        }
    }

    /// Prints news of a type. Returns whether and why the command ends with
    /// them.
    fn print_news(&mut self, index: usize, news: News) -> Result<Option<End>> {
        match news {
            News::Changes(changes) => {
                for (name, state) in changes {
                    if !self.print_state(index, &name, &state)? {
                        return Ok(Some(End::Stopped));
                    }
                }
            }
            News::Answered => self.unanswered_count -= 1,
            News::Unreachable if self.args.plane.once => {
                return Err(unreachable(&self.connections));
            }
            News::Unreachable => {}
            News::Silent => eprintln!(
                "nothing is received of {}; many control planes send all of a type for listeners \
                 and clusters only: name the resources",
                self.types[index].short()
            ),
        }
        let is_answered =
            self.unanswered_count == 0 && self.types.iter().all(TypeRecord::is_answered);
        Ok((self.args.plane.once && is_answered).then_some(End::Answered))
    }

    /// Prints the events of a name that a new state means. Returns `false` if
    /// standard output is closed.
    fn print_state(&mut self, index: usize, name: &Name, state: &State<Raw>) -> Result<bool> {
        let is_once = self.args.plane.once;
        for event in self.types[index].record_state(name, state) {
            if is_once && matches!(event, NameEvent::Failed(Cause::Unreachable, _)) {
                return Err(unreachable(&self.connections));
            }
            let type_url: &TypeUrl = &self.types[index].type_url;
            let text = form::write_event(self.args.plane.output, type_url, name, &event, state)?;
            if !print_line(text.as_bytes())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks what `--once` has printed.
    ///
    /// # Errors
    /// A name has no resource.
    fn check_missing(&self) -> Result<()> {
        let missing: Vec<String> = self.types.iter().flat_map(TypeRecord::missing).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Failure::wrong(format!("not found: {}", missing.join(", ")))),
        }
    }

    /// Makes the failure of `--once` whose time is over, with the names that
    /// have no answer.
    fn timeout_failure(&self) -> Failure {
        let unanswered_names: Vec<String> =
            self.types.iter().flat_map(TypeRecord::unanswered).collect();
        let seconds = self.args.plane.timeout.as_secs_f64();
        let servers = self.connections.servers();
        let awaited = match unanswered_names.is_empty() {
            true => "all that was asked for".to_owned(),
            false => unanswered_names.join(", "),
        };
        Failure::timed_out(format!(
            "{servers} has not answered {awaited} in {seconds} s; wait longer with --timeout, or name \
             the resources: many control planes send all of a type for listeners and clusters only"
        ))
    }
}

/// Makes the failure of a recording that cannot be continued.
fn record_failure(args: &cli::Watch, error: &io::Error) -> Failure {
    let path = args.plane.record.as_deref().unwrap_or("".as_ref());
    Failure::wrong(format!(
        "--record {}: {error}; what is there can be replayed but for its last line",
        path.display()
    ))
}

/// Returns the failure of a client that reaches no server; why was told of
/// each.
fn unreachable(connections: &Connections) -> Failure {
    let (servers, hint) = (connections.servers(), connections.hint());
    Failure::unreachable(format!("no control plane is reached at {servers}; {hint}"))
}

/// Waits for the error of a recording. Never returns without a recording, or if
/// the recording ends without an error.
async fn wait_for_error(receiver: Option<oneshot::Receiver<io::Error>>) -> io::Error {
    if let Some(receiver) = receiver
        && let Ok(error) = receiver.await
    {
        return error;
    }
    std::future::pending().await
}

/// What is known of each name, in order.
type ByName<T> = BTreeMap<Name, T>;
