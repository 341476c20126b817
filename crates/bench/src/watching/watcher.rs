//! Trunkline's own client, as an application uses it, with the checks of gRPC:
//! a watch and a task for each name, or a tree.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

use trunkline::client::{Client, State, Subscription, Watch};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::endpoint::v3::ClusterLoadAssignment;
use trunkline_proto::acceptance::{Policy, ResourceType};

use super::contents::name;
use super::options::WatchOptions;
use super::tree;
use crate::error::{Error, Result};
use crate::options::Variant;

/// Watches each cluster and its endpoints by name, or a listener's tree, until
/// this process's input ends.
///
/// # Errors
/// If the address is none.
pub async fn watch(options: &WatchOptions) -> Result<()> {
    let usage = |error: &dyn std::error::Error| Error::Usage(error.to_string());
    let builder = Client::builder().server(&options.address);
    let builder = builder.map_err(|error| usage(&error))?;
    let builder = builder.node_id("bench").policy(Policy::grpc());
    let client = match options.mode {
        Variant::Sotw => builder.state_of_the_world().build(),
        Variant::Delta => builder.build(),
    };
    if options.routes > 0 {
        return tree::watch(&client, &options.prefix, options.resources).await;
    }
    let tally = Arc::new(Tally {
        missing: Mutex::new(2 * options.resources),
    });
    for index in 0..options.resources {
        let name = name(&options.prefix, index);
        follow(subscribe::<Cluster>(&client, &name)?, &tally);
    }
    for index in 0..options.resources {
        let name = name(&options.prefix, index);
        follow(subscribe::<ClusterLoadAssignment>(&client, &name)?, &tally);
    }
    let end =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    end.await.map_err(std::io::Error::other)??;
    Ok(())
}

/// Watches a resource by its name.
fn subscribe<T: ResourceType + Send + Sync + 'static>(
    client: &Client,
    name: &str,
) -> Result<Watch<T>> {
    let subscription = client.subscribe::<T>(name);
    let subscription = subscription.map_err(|error| Error::Usage(error.to_string()))?;
    Ok(Subscription::watch(&subscription))
}

/// Starts a task that notes each state of a watch.
fn follow<T: Send + Sync + 'static>(mut watch: Watch<T>, tally: &Arc<Tally>) {
    let tally = Arc::clone(tally);
    tokio::spawn(async move {
        let mut is_first = true;
        loop {
            match watch.changed().await {
                State::Ready(_) => tally.note(is_first),
                other => tally.fail(&other),
            }
            is_first = false;
        }
    });
}

/// Counts what watches are given.
struct Tally {
    missing: Mutex<usize>,
}

impl Tally {
    /// Notes a resource that a watch was given, and prints what that means.
    fn note(&self, is_first: bool) {
        if !is_first {
            return print_line("+");
        }
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing -= 1;
        if *missing == 0 {
            print_line("held");
        }
    }

    /// Ends the process, because what it would measure means nothing.
    #[expect(clippy::print_stderr, reason = "it says why it fails")]
    fn fail<T>(&self, state: &State<T>) {
        eprintln!("a resource was not accepted: {:?}", state.error());
        std::process::exit(1);
    }
}

/// Prints a line at once.
pub(super) fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that is gone ends this process by its input.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
