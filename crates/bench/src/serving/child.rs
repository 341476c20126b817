//! Starts a server as a process, and ends it.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::error::{Error, Result};
use crate::measure::Process;
use crate::options::{self, Options};

/// How long a server may take until it accepts connections.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server that was started, and ends with this.
#[derive(Debug)]
pub(crate) struct Started {
    child: Child,
    /// Where it serves.
    pub(crate) address: String,
    /// Where it takes contents, if the tool knows.
    pub(crate) control: Option<String>,
    /// How long it took until it accepted connections.
    pub(crate) took: Duration,
}

impl Started {
    /// Starts one of this program's own servers, which says where it is.
    pub(crate) async fn start_own(options: &Options, which: options::Child) -> Result<Self> {
        let start = |error: std::io::Error| Error::Start(error.to_string());
        let program = std::env::current_exe().map_err(start)?;
        let name = match which {
            options::Child::Library => "library",
            options::Child::Floor => "floor",
        };
        let mut command = pinned(options, program.as_os_str());
        command.args(&options.command).args(["--child", name]);
        let begun = std::time::Instant::now();
        let mut child = spawn(command.stdout(Stdio::piped())).map_err(start)?;
        let silent = || Error::Start("it said nothing".into());
        let output = child.stdout.take().ok_or_else(silent)?;
        let line = BufReader::new(output).lines().next_line().await;
        let line = line.map_err(start)?.ok_or_else(silent)?;
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["xds", xds, "control", control] => Ok(Self {
                child,
                address: xds.to_owned(),
                control: Some(control.to_owned()),
                took: begun.elapsed(),
            }),
            _ => Err(Error::Start(format!("it said {line:?}"))),
        }
    }

    /// Starts a server by a command of the user's, and waits until it accepts
    /// connections.
    pub(crate) async fn start_command(options: &Options, text: &str) -> Result<Self> {
        let start = |error: std::io::Error| Error::Start(format!("`{text}`: {error}"));
        let address = free_address().await.map_err(start)?;
        let control = match text.contains("{control}") {
            true => Some(free_address().await.map_err(start)?),
            false => None,
        };
        let text = text.replace("{address}", &address);
        let text = text.replace("{control}", control.as_deref().unwrap_or_default());
        // One process, so that its number is the server's.
        let mut command = pinned(options, "sh".as_ref());
        command.args(["-c", &format!("exec {text}")]);
        let begun = std::time::Instant::now();
        let mut child = spawn(command.stdout(Stdio::null())).map_err(start)?;
        while !accepts(&address).await || !accepts(control.as_ref().unwrap_or(&address)).await {
            if let Some(status) = child.try_wait().map_err(start)? {
                return Err(Error::Start(format!("`{text}` ended with {status}")));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::Start(format!(
                    "`{text}` does not listen on {address} after {} s",
                    PATIENCE.as_secs()
                )));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(Self {
            child,
            address,
            control,
            took: begun.elapsed(),
        })
    }

    /// Returns the process of the server, unless it has ended.
    pub(crate) fn process(&self) -> Option<Process> {
        self.child.id().map(Process::new)
    }
}

/// Returns whether an address accepts connections.
async fn accepts(address: &str) -> bool {
    TcpStream::connect(address).await.is_ok()
}

/// Starts a program that ends when the result is dropped.
fn spawn(command: &mut Command) -> std::io::Result<Child> {
    command.stdin(Stdio::piped()).kill_on_drop(true).spawn()
}

/// Returns a program as a command, on the cores that the flags ask for.
fn pinned(options: &Options, program: &std::ffi::OsStr) -> Command {
    let Some(cores) = &options.server_cores else {
        return Command::new(program);
    };
    let mut command = Command::new("taskset");
    command.args(["-c", cores]).arg(program);
    command
}

/// Returns an address that nobody listens on at the moment.
async fn free_address() -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    Ok(listener.local_addr()?.to_string())
}

/// Prints where this server is, for the process that started it. Ends this
/// process when that one is gone, which standard input tells.
pub(super) fn announce(xds: &TcpListener, control: &TcpListener) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "xds {} control {}",
        xds.local_addr()?,
        control.local_addr()?
    )?;
    out.flush()?;
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    Ok(())
}
