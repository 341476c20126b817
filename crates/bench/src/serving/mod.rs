//! Servers that are started for a measurement, each a process of its own, so
//! that its CPU and memory can be told apart from the tool's.
//!
//! ```text
//! tool ── spawn ──▶ child: "xds ADDRESS control ADDRESS" on its first line
//!      ── POST /resources ──▶ control: the contents
//!      ── streams ──▶ xds
//! ```

mod child;
mod control;
mod floor;
mod library;

pub(crate) use child::Started;

use tokio::net::TcpListener;

use crate::error::Result;
use crate::options::Child;

/// Runs a server that another process of this program started, until that one
/// ends it.
pub(crate) async fn serve(child: Child) -> Result<()> {
    let (xds, control) = (listen().await?, listen().await?);
    child::announce(&xds, &control)?;
    match child {
        Child::Library => library::serve(xds, control).await,
        Child::Floor => floor::serve(xds, control).await,
    }
    Ok(())
}

/// Listens on a free port of this machine.
async fn listen() -> std::io::Result<TcpListener> {
    trunkline::listen::bind(("127.0.0.1", 0)).await
}
