//! `trunkline watch listener:NAME --tree`: one listener or cluster with
//! everything below it, first as a tree, then each change of it.

mod dot;
mod lines;

use std::io;
use std::time::SystemTime;

use tokio::sync::{mpsc, oneshot};
use tokio_stream::{Stream, StreamExt as _};
use trunkline::client::tree::Part;
use trunkline::client::{Cause, Client, Raw};
use trunkline::kind::{CDS, LDS};

use self::lines::Lines;
use super::notices::{Connections, Notice};
use super::{record_failure, unreachable, wait_for_error};
use crate::admin::timestamp;
use crate::cli::{self, WatchOutput};
use crate::command::events::print_line;
use crate::command::selection::parse_words;
use crate::failure::{Failure, Result};
use crate::output::printable;
use crate::signals::Ends;

/// The resource that is followed with everything below it.
pub(super) enum Root {
    Listener(String),
    Cluster(String),
}

impl Root {
    /// Parses the arguments: `listener:NAME`, or a type and a name in any other
    /// form.
    ///
    /// # Errors
    /// The arguments are not one listener or one cluster, or the output format
    /// is for resources only.
    pub(super) fn parse(args: &cli::Watch) -> Result<Self> {
        let usage_failure = || {
            Failure::usage(
                "--tree follows one listener or cluster, such as `trunkline watch listener:front \
                 --tree --server ADDR`",
            )
        };
        if matches!(args.plane.output, WatchOutput::Yaml | WatchOutput::Json) {
            return Err(Failure::usage("--tree is shown as summary or dot"));
        }

        let words = args.words.iter().map(|word| match word.split_once(':') {
            Some((kind, name)) if !kind.contains('/') => format!("{kind}/{name}"),
            _ => word.clone(),
        });
        let selections = parse_words(&words.collect::<Vec<_>>())?;
        let [selection] = selections.as_slice() else {
            return Err(usage_failure());
        };

        match (selection.type_url.as_str(), selection.names.as_slice()) {
            (LDS, [name]) => Ok(Self::Listener(name.clone())),
            (CDS, [name]) => Ok(Self::Cluster(name.clone())),
            _ => Err(usage_failure()),
        }
    }

    /// Returns the stream of snapshots of the root.
    fn into_snapshots(self, client: &Client) -> Box<dyn Stream<Item = Part<Raw>> + Send + Unpin> {
        match self {
            Self::Listener(name) => {
                let snapshots = client.listener(&name).into_stream();
                Box::new(snapshots.map(|snapshot| snapshot.listener().raw()))
            }
            Self::Cluster(name) => {
                let snapshots = client.cluster(&name).into_stream();
                Box::new(snapshots.map(|snapshot| snapshot.raw()))
            }
        }
    }
}

/// Prints snapshots.
pub(super) struct Printer<'a> {
    args: &'a cli::Watch,
    connections: Connections,
    /// What was printed last.
    shown: Option<Lines>,
}

impl<'a> Printer<'a> {
    /// Makes a printer that has shown nothing yet.
    pub(super) fn new(args: &'a cli::Watch, connections: Connections) -> Self {
        Self {
            args,
            connections,
            shown: None,
        }
    }

    /// Prints snapshots until the program is stopped or standard output is
    /// closed. With `--once`, prints only the first.
    pub(super) async fn run(
        &mut self,
        client: &Client,
        root: Root,
        mut notices: mpsc::Receiver<Notice>,
        write_error: Option<oneshot::Receiver<io::Error>>,
    ) -> Result<()> {
        let mut signals = Ends::new()?;
        let mut record_error = std::pin::pin!(wait_for_error(write_error));
        let is_once = self.args.plane.once;
        let mut deadline = std::pin::pin!(tokio::time::sleep(self.args.plane.timeout));
        let mut snapshots = root.into_snapshots(client);

        loop {
            tokio::select! {
                biased;
                () = signals.next() => return Ok(()),
                error = &mut record_error => return Err(record_failure(self.args, &error)),
                Some(notice) = notices.recv() => {
                    if let Some(sentence) = self.connections.describe_notice(notice) {
                        eprintln!("{sentence}");
                    }
                }
                Some(root) = snapshots.next() => {
                    let is_read = self.print_snapshot(&root)?;
                    if is_once {
                        return self.check_root(&root);
                    }
                    if !is_read {
                        return Ok(());
                    }
                }
                () = &mut deadline, if is_once => return Err(self.timeout_failure(client)),
            }
        }
    }

    /// Prints the first snapshot, and the changes of each later one. Returns
    /// `false` if standard output is closed.
    fn print_snapshot(&mut self, root: &Part<Raw>) -> Result<bool> {
        if self.args.plane.output == WatchOutput::Dot {
            return print_line(dot::write_graph(root).as_bytes());
        }
        let lines = Lines::of(root);
        let text = match &self.shown {
            None => lines.text(),
            Some(shown_lines) => {
                let changes = lines.diff_from(shown_lines);
                if changes.is_empty() {
                    return Ok(true);
                }
                format!("{} changed\n{changes}", timestamp(SystemTime::now()))
            }
        };
        self.shown = Some(lines);
        let text = text.lines().map(|line| printable(line) + "\n");
        print_line(text.collect::<String>().as_bytes())
    }

    /// Checks the snapshot that `--once` has printed.
    ///
    /// # Errors
    /// The server is not reached, or a part of the tree has failed.
    fn check_root(&self, root: &Part<Raw>) -> Result<()> {
        if root.is_failed()
            && root
                .error()
                .is_some_and(|error| error.cause == Cause::Unreachable)
        {
            return Err(unreachable(&self.connections));
        }
        let missing = Lines::of(root).failed_labels();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Failure::wrong(format!("not found: {}", missing.join(", ")))),
        }
    }

    /// Makes the failure of `--once` whose time is over, with the resources
    /// that the tree waits for.
    fn timeout_failure(&self, client: &Client) -> Failure {
        let awaited = client.warming().into_iter().flat_map(|root| root.waits_for);
        let mut awaited: Vec<_> = awaited
            .map(|(type_url, name)| format!("{}/{name}", lines::short(&type_url)))
            .collect();
        awaited.sort();
        awaited.dedup();
        let seconds = self.args.plane.timeout.as_secs_f64();
        Failure::timed_out(format!(
            "{} has not answered {} in {seconds} s; wait longer with --timeout",
            self.connections.servers(),
            awaited.join(", ")
        ))
    }
}
