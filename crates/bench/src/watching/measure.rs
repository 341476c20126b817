//! A server in this process, and what a client does of its contents.

use std::time::Duration;

use serde::Serialize;
use trunkline::{Change, Server};

use super::contents::{PREFIX, cluster, endpoints, name, port};
use super::listener::{listener, routes};
use super::options::MeasureOptions;
use super::subject::{ClientPhase, Subject};
use crate::error::{Error, Result};
use crate::options::Variant;

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

/// Starts a server and a client, and measures what the client does of the
/// contents and of their updates.
///
/// # Errors
/// If the client does not start, ends, or says nothing for too long.
pub async fn measure(options: &MeasureOptions) -> Result<ClientReport> {
    // A change leaves at once: it is the client's time that is measured.
    let server = Server::builder().options(|options| options.debounce = Duration::ZERO);
    let server = server.build();
    apply(&server, contents(options)?)?;
    let listener = trunkline::listen::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(listener).await }
    });

    let command = command(options, &address)?;
    let mut phases = Vec::new();
    let mut client = Subject::start(options, &command)?;
    client.expect("held", "first").await?;
    phases.push(client.end_phase("first", delivered(options)).await?);

    client.begin_phase()?;
    for (index, revision) in changes(options, options.updates) {
        if options.routes > 0 {
            let wish = format!("{} {}\n", name(PREFIX, index), port(revision));
            client.tell(&wish).await?;
        }
        client.mark();
        let change = endpoints(index, options.endpoints, revision)?;
        apply(&server, vec![change])?;
        client.expect("+", "updates").await?;
    }
    phases.push(client.end_phase("updates", options.updates).await?);

    // What a tree shows of a cluster's update differs between clients.
    if options.routes == 0 {
        client.begin_phase()?;
        for (index, revision) in changes(options, options.whole_updates) {
            client.mark();
            apply(&server, vec![cluster(index, revision)?])?;
            client.expect("+", "whole updates").await?;
        }
        let whole = client.end_phase("whole updates", options.whole_updates);
        phases.push(whole.await?);
    }
    serving.abort();
    Ok(ClientReport {
        client: command,
        phases,
        warnings: Vec::new(),
    })
}

/// Returns the changes that put all contents.
fn contents(options: &MeasureOptions) -> Result<Vec<Change>> {
    let mut all = Vec::new();
    for index in 0..options.resources {
        all.extend([cluster(index, 0)?, endpoints(index, options.endpoints, 0)?]);
    }
    if options.routes > 0 {
        all.extend([listener()?, routes(options.routes, options.resources)?]);
    }
    Ok(all)
}

/// Returns the number of resources that the client is sent at first.
fn delivered(options: &MeasureOptions) -> usize {
    let above = if options.routes > 0 { 2 } else { 0 };
    2 * options.resources + above
}

/// Returns `count` changes, of one name each, in an order that no table has:
/// the index of the name, and its revision.
fn changes(options: &MeasureOptions, count: usize) -> impl Iterator<Item = (usize, u32)> {
    let resources = options.resources.max(1);
    (0..count).map(move |done| {
        let revision = u32::try_from(done + 1).unwrap_or(1);
        (done * 7919 % resources, revision)
    })
}

/// Applies changes to the server.
fn apply(server: &Server, changes: Vec<Change>) -> Result<()> {
    let applied = server.apply(changes);
    applied.map_err(|error| Error::Driver(error.to_string()))?;
    Ok(())
}

/// Returns the command that starts the client: that of the flags, or this
/// program.
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
                 --resources {{resources}} --routes {{routes}}",
                own.display()
            )
        }
    };
    let text = text.replace("{address}", address);
    let text = text.replace("{prefix}", PREFIX);
    let text = text.replace("{resources}", &options.resources.to_string());
    Ok(text.replace("{routes}", &options.routes.to_string()))
}
