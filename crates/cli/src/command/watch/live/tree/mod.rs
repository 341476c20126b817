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
use super::{fails, record_failure, unreachable};
use crate::admin::timestamp;
use crate::cli::{self, WatchOutput};
use crate::command::events::print_line;
use crate::command::selected::parse_words;
use crate::failure::{Failure, Result};
use crate::output::printable;
use crate::signals::Ends;

/// The resource that is followed with everything below it.
pub(super) enum Root {
    Listener(String),
    Cluster(String),
}

impl Root {
    /// Reads the words of the command line: `listener:NAME`, or a type and a
    /// name in any other form.
    ///
    /// # Errors
    /// They are not one listener and not one cluster, or the form is of
    /// resources only.
    pub(super) fn parse(args: &cli::Watch) -> Result<Self> {
        let wrong = || {
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
        let selected = parse_words(&words.collect::<Vec<_>>())?;
        let [one] = selected.as_slice() else {
            return Err(wrong());
        };
        match (one.type_url.as_str(), one.names.as_slice()) {
            (LDS, [name]) => Ok(Self::Listener(name.clone())),
            (CDS, [name]) => Ok(Self::Cluster(name.clone())),
            _ => Err(wrong()),
        }
    }

    /// Its snapshots.
    fn follow(self, client: &Client) -> Box<dyn Stream<Item = Part<Raw>> + Send + Unpin> {
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
    pub(super) fn new(args: &'a cli::Watch, connections: Connections) -> Self {
        Self {
            args,
            connections,
            shown: None,
        }
    }

    /// Prints snapshots until the program is stopped, nobody reads them, or with
    /// `--once` the first is printed.
    pub(super) async fn run(
        &mut self,
        client: &Client,
        root: Root,
        mut notices: mpsc::Receiver<Notice>,
        record_failed: Option<oneshot::Receiver<io::Error>>,
    ) -> Result<()> {
        let mut ends = Ends::new()?;
        let mut record_failed = std::pin::pin!(fails(record_failed));
        let once = self.args.plane.once;
        let mut deadline = std::pin::pin!(tokio::time::sleep(self.args.plane.timeout));
        let mut snapshots = root.follow(client);
        loop {
            tokio::select! {
                biased;
                () = ends.next() => return Ok(()),
                error = &mut record_failed => return Err(record_failure(self.args, &error)),
                Some(notice) = notices.recv() => {
                    if let Some(sentence) = self.connections.tell(notice) {
                        eprintln!("{sentence}");
                    }
                }
                Some(root) = snapshots.next() => {
                    let is_read = self.print(&root)?;
                    if once {
                        return self.outcome(&root);
                    }
                    if !is_read {
                        return Ok(());
                    }
                }
                () = &mut deadline, if once => return Err(self.timed_out(client)),
            }
        }
    }

    /// Prints a snapshot, or what has changed in it. Returns whether somebody
    /// reads it.
    fn print(&mut self, root: &Part<Raw>) -> Result<bool> {
        if self.args.plane.output == WatchOutput::Dot {
            return print_line(dot::write(root).as_bytes());
        }
        let lines = Lines::of(root);
        let text = match &self.shown {
            None => lines.text(),
            Some(shown) => {
                let changes = lines.changes(shown);
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

    /// What `--once` has found.
    fn outcome(&self, root: &Part<Raw>) -> Result<()> {
        if root.is_failed()
            && root
                .error()
                .is_some_and(|error| error.cause == Cause::Unreachable)
        {
            return Err(unreachable(&self.connections));
        }
        let missing = Lines::of(root).missing();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Failure::wrong(format!("not found: {}", missing.join(", ")))),
        }
    }

    fn timed_out(&self, client: &Client) -> Failure {
        let waiting = client.warming().into_iter().flat_map(|of| of.waits_for);
        let mut waiting: Vec<_> = waiting
            .map(|(type_url, name)| format!("{}/{name}", lines::short(&type_url)))
            .collect();
        waiting.sort();
        waiting.dedup();
        let seconds = self.args.plane.timeout.as_secs_f64();
        Failure::timed_out(format!(
            "{} has not answered {} in {seconds} s; wait longer with --timeout",
            self.connections.servers(),
            waiting.join(", ")
        ))
    }
}
