//! A client as a process, and what it uses of the machine.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use super::options::MeasureOptions;
use crate::error::{Error, Result};
use crate::measure::{Latencies, Process, Quantiles, Usage};

/// How long a client has for what it does after it was given everything: what
/// it frees then is not held.
const REST: Duration = Duration::from_secs(1);

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
    /// From the change at the server to what the client says of it.
    pub latency: Quantiles,
}

/// A client that runs, and ends with this.
pub(super) struct Subject {
    _child: Child,
    process: Process,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    patience: Duration,
    begun: Instant,
    before: Usage,
    /// When the last change was made.
    marked: Instant,
    latencies: Latencies,
}

impl Subject {
    /// Starts a client, whose first phase begins.
    pub(super) fn start(options: &MeasureOptions, command: &str) -> Result<Self> {
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
        let input = child.stdin.take().ok_or_else(gone)?;
        let output = child.stdout.take().ok_or_else(gone)?;
        Ok(Self {
            _child: child,
            process,
            input,
            lines: BufReader::new(output).lines(),
            patience: Duration::from_secs(options.patience),
            begun,
            before: Usage::default(),
            marked: begun,
            latencies: Latencies::default(),
        })
    }

    /// Writes a line to the client's input. The line ends with its newline.
    pub(super) async fn tell(&mut self, line: &str) -> Result<()> {
        self.input.write_all(line.as_bytes()).await?;
        Ok(self.input.flush().await?)
    }

    /// Notes that a change is made now.
    pub(super) fn mark(&mut self) {
        self.marked = Instant::now();
    }

    /// Waits for the next line of the client, which has to be this one, and
    /// notes the time since the last [`Self::mark`].
    pub(super) async fn expect(&mut self, line: &str, phase: &str) -> Result<()> {
        let failed = |why: String| Error::Driver(format!("{phase}: the client {why}"));
        let next = timeout(self.patience, self.lines.next_line()).await;
        let next = next.map_err(|_| failed("says nothing".to_owned()))??;
        match next {
            Some(said) if said == line => {
                let nanoseconds = self.marked.elapsed().as_nanos();
                let nanoseconds = nanoseconds.try_into().unwrap_or(u64::MAX);
                self.latencies.note(0, nanoseconds);
                Ok(())
            }
            Some(said) => Err(failed(format!("says {said:?} and not {line:?}"))),
            None => Err(failed("has ended; see above".to_owned())),
        }
    }

    /// Returns what the client has used so far.
    fn usage(&self) -> Result<Usage> {
        let gone = || Error::Driver("the system does not tell what the client uses".to_owned());
        self.process.usage().ok_or_else(gone)
    }

    /// Begins a phase.
    pub(super) fn begin_phase(&mut self) -> Result<()> {
        self.before = self.usage()?;
        self.begun = Instant::now();
        Ok(())
    }

    /// Ends a phase, in which so many resources were delivered. What the client
    /// does at rest is part of it.
    pub(super) async fn end_phase(
        &mut self,
        name: &'static str,
        delivered: usize,
    ) -> Result<ClientPhase> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let latency = self.latencies.take();
        sleep(REST).await;
        let client = self.usage()?.since(&self.before);
        Ok(ClientPhase {
            name,
            seconds,
            delivered,
            client,
            cpu_per_resource: client.cpu() * 1e6 / delivered.max(1) as f64,
            latency,
        })
    }
}
