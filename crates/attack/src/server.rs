//! The server that is attacked: a process of its own, which ends with this.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::process::{Child, ChildStderr, Command};

use crate::attacks::mcp;
use crate::door::{Door, Doors, OTHERS};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::process::Process;
use crate::tls::Certificates;
use crate::{admin, contents};

/// How long a server may take until it is ready, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The ceiling of memory that the server is given, and held to: bytes, and as a
/// flag.
pub(crate) const CEILING: u64 = 768 << 20;
const CEILING_FLAG: [&str; 2] = ["--memory-limit", "768MiB"];

/// What an attack needs of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    /// The defaults.
    Plain,
    /// The defaults with these flags.
    Flags(&'static [&'static str]),
    /// The defaults behind TLS.
    Tls,
    /// A log with every line, into a pipe that nobody reads.
    FullPipe,
    /// `mcp source` in the place of `serve`.
    Source,
    /// A source of collections has brought contents, and left.
    Sink,
}

/// The collections that a control plane asks its source for.
const COLLECTIONS: [&str; 2] = ["clusters", "listeners"];

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) process: Process,
    pub(crate) doors: Doors,
    /// Held open, and not read.
    _pipe: Option<ChildStderr>,
    folder: TempDir,
}

impl Server {
    /// Starts a server with contents, and waits until it is ready.
    pub(crate) async fn start(options: &Options, setup: Setup) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (xds, admin, mcp) = (free()?, free()?, free()?);
        let certificates = match setup {
            Setup::Tls => Some(Certificates::make(folder.path())?),
            _ => None,
        };
        let program = options.program.as_deref().unwrap_or(Path::new("trunkline"));
        let mut command = pinned(options.server_cores.as_deref(), program);
        command.args(match setup {
            Setup::Source => &["mcp", "source", "--allow-empty"][..],
            _ => &["serve"],
        });
        // What an attack writes is of no use to the next.
        command.env("XDG_STATE_HOME", folder.path());
        command.args(["--listen", &xds.to_string(), "--admin", &admin.to_string()]);
        if setup != Setup::Source && has_ceiling(program).await {
            command.args(CEILING_FLAG);
        }
        match setup {
            Setup::Plain | Setup::Tls => {}
            Setup::Source => {
                let empty = folder.path().join("empty");
                std::fs::create_dir(&empty)?;
                command.arg("--config").arg(empty);
            }
            Setup::Sink => {
                command.args(["--mcp-listen", &mcp.to_string()]);
                command.args(["--collections", &COLLECTIONS.join(",")]);
            }
            Setup::Flags(flags) => {
                command.args(flags);
            }
            Setup::FullPipe => {
                command.args(["--log-level", "debug"]);
            }
        }
        if let Some(certificates) = &certificates {
            command.args(certificates.flags());
        }
        command.stderr(match setup {
            Setup::FullPipe => Stdio::piped(),
            _ => File::create(folder.path().join("log"))?.into(),
        });
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.kill_on_drop(true).spawn()?;
        let pid = child.id().ok_or_else(|| Error::Start("it ended".into()))?;
        let mut server = Self {
            process: Process(pid),
            _pipe: child.stderr.take(),
            child,
            doors: Doors {
                xds: door(xds, certificates.as_ref()),
                admin: door(admin, certificates.as_ref()),
                mcp: door(mcp, certificates.as_ref()),
            },
            folder,
        };
        server.await_answer().await?;
        if setup == Setup::Sink {
            mcp::feed(&server.doors.mcp, COLLECTIONS.len()).await?;
        }
        contents::fill(&server.doors.admin).await?;
        Ok(server)
    }

    /// Waits until the admin address answers.
    async fn await_answer(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Err(Error::Start(format!("{status}\n{}", self.last_lines())));
            }
            if self.answers().await {
                break;
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::Start("it does not answer".into()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn answers(&self) -> bool {
        admin::get(&self.doors.admin, "/metrics").await.is_ok()
    }

    /// Whether the process has not ended.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None)) && self.process.is_alive()
    }

    /// Asks the process to end, and returns whether it did in time.
    pub(crate) async fn ends_by_signal(&mut self) -> bool {
        let pid = i32::try_from(self.process.0).unwrap_or_default();
        let Some(pid) = rustix::process::Pid::from_raw(pid) else {
            return false;
        };
        if rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_err() {
            return false;
        }
        let ended = tokio::time::timeout(PATIENCE / 2, self.child.wait()).await;
        ended.is_ok()
    }

    /// The last lines of the log, for a server that died.
    pub(crate) fn last_lines(&self) -> String {
        let log: PathBuf = self.folder.path().join("log");
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(8);
        lines[from..].join("\n")
    }
}

/// An address, as those enter it who do no harm.
fn door(address: SocketAddr, certificates: Option<&Certificates>) -> Door {
    Door {
        address,
        certificates: certificates.cloned(),
        source: OTHERS,
    }
}

/// Whether the program can be given a ceiling of memory.
async fn has_ceiling(program: &Path) -> bool {
    let help = Command::new(program).args(["serve", "--help"]).output();
    let help = help.await.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&help).contains(CEILING_FLAG[0])
}

/// A program, on these cores.
fn pinned(cores: Option<&str>, program: &Path) -> Command {
    let Some(cores) = cores else {
        return Command::new(program);
    };
    let mut command = Command::new("taskset");
    command.args(["-c", cores]).arg(program);
    command
}

/// An address that nobody listens on.
fn free() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?)
}
