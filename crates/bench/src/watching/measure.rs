//! A client as a process, fed by a server in this one.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};
use trunkline::{Change, Server};

use super::contents::{PREFIX, cluster, endpoints};
use super::options::MeasureOptions;
use crate::error::{Error, Result};
use crate::measure::{Process, Usage};
use crate::options::Variant;

/// How long a client has for what it does after it was given everything: what
/// it frees then is not held.
const REST: Duration = Duration::from_secs(1);

/// What was found of a client.
#[derive(Clone, Debug, Serialize)]
pub struct ClientReport {
    /// The client, as it was started.
    pub client: String,
    /// What happened, one after the other.
    pub phases: Vec<ClientPhase>,
    /// What a reader of the numbers has to know.
    pub warnings: Vec<String>,
}

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
pub struct ClientPhase {
    /// What.
    pub name: &'static str,
    /// Seconds it took.
    pub seconds: f64,
    /// Resources that watchers were given.
    pub delivered: usize,
    /// What the client used.
    pub client: Usage,
    /// Microseconds of its CPU for each of them.
    pub cpu_per_resource: f64,
}

/// Measures a client.
///
/// # Errors
/// If the client does not start, ends, or says nothing for too long.
pub async fn measure(options: &MeasureOptions) -> Result<ClientReport> {
    let server = Server::builder().build();
    let mut all = Vec::new();
    for index in 0..options.resources {
        all.extend([cluster(index, 0)?, endpoints(index, 0)?]);
    }
    apply(&server, all)?;
    let listener = trunkline::listen::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(listener).await }
    });

    let command = command(options, &address)?;
    let mut phases = Vec::new();
    let mut client = Watching::start(options, &command)?;
    client.expect("held", "first").await?;
    phases.push(client.phase("first", 2 * options.resources).await?);
    for (name, count, make) in [
        ("updates", options.updates, endpoints as fn(usize, u32) -> _),
        ("whole updates", options.whole_updates, cluster),
    ] {
        client.begin()?;
        for done in 0..count {
            // Each to another name, in an order that no table has.
            let index = done * 7919 % options.resources.max(1);
            let revision = u32::try_from(done + 1).unwrap_or(1);
            apply(&server, vec![make(index, revision)?])?;
            client.expect("+", name).await?;
        }
        phases.push(client.phase(name, count).await?);
    }
    serving.abort();
    Ok(ClientReport {
        client: command,
        phases,
        warnings: Vec::new(),
    })
}

fn apply(server: &Server, changes: Vec<Change>) -> Result<()> {
    let applied = server.apply(changes);
    applied.map_err(|error| Error::Driver(error.to_string()))?;
    Ok(())
}

/// The client as a command: another's, or this program.
fn command(options: &MeasureOptions, address: &str) -> Result<String> {
    let text = match &options.client {
        Some(text) => text.clone(),
        None => {
            let own = std::env::current_exe()?;
            let mode = match options.mode {
                Variant::Sotw => "sotw",
                Variant::Delta => "delta",
            };
            format!(
                "{} watch --mode {mode} --address {{address}} --prefix {{prefix}} \
                 --resources {{resources}}",
                own.display()
            )
        }
    };
    let text = text.replace("{address}", address);
    let text = text.replace("{prefix}", PREFIX);
    Ok(text.replace("{resources}", &options.resources.to_string()))
}

/// A client that runs, and ends with this.
struct Watching {
    _child: Child,
    process: Process,
    lines: Lines<BufReader<ChildStdout>>,
    patience: Duration,
    begun: Instant,
    before: Usage,
}

impl Watching {
    fn start(options: &MeasureOptions, command: &str) -> Result<Self> {
        let start = |error: String| Error::Start(format!("`{command}`: {error}"));
        let pinned = match &options.client_cores {
            Some(cores) => format!("exec taskset -c {cores} {command}"),
            None => format!("exec {command}"),
        };
        let begun = Instant::now();
        // One process, so that its number is the client's.
        let mut child = Command::new("sh")
            .args(["-c", &pinned])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| start(error.to_string()))?;
        let gone = || start("it is gone".to_owned());
        let process = Process::new(child.id().ok_or_else(gone)?);
        let output = child.stdout.take().ok_or_else(gone)?;
        Ok(Self {
            _child: child,
            process,
            lines: BufReader::new(output).lines(),
            patience: Duration::from_secs(options.patience),
            begun,
            before: Usage::default(),
        })
    }

    /// Waits for the next line, which is to be this one.
    async fn expect(&mut self, line: &str, phase: &str) -> Result<()> {
        let failed = |why: String| Error::Driver(format!("{phase}: the client {why}"));
        let next = timeout(self.patience, self.lines.next_line()).await;
        let next = next.map_err(|_| failed("says nothing".to_owned()))??;
        match next {
            Some(said) if said == line => Ok(()),
            Some(said) => Err(failed(format!("says {said:?} and not {line:?}"))),
            None => Err(failed("has ended; see above".to_owned())),
        }
    }

    fn usage(&self) -> Result<Usage> {
        let gone = || Error::Driver("the system does not tell what the client uses".to_owned());
        self.process.usage().ok_or_else(gone)
    }

    /// Begins a phase.
    fn begin(&mut self) -> Result<()> {
        self.before = self.usage()?;
        self.begun = Instant::now();
        Ok(())
    }

    /// Ends a phase. What the client does at rest is part of it.
    async fn phase(&mut self, name: &'static str, delivered: usize) -> Result<ClientPhase> {
        let seconds = self.begun.elapsed().as_secs_f64();
        sleep(REST).await;
        let client = self.usage()?.since(&self.before);
        Ok(ClientPhase {
            name,
            seconds,
            delivered,
            client,
            cpu_per_resource: client.cpu() * 1e6 / delivered.max(1) as f64,
        })
    }
}
