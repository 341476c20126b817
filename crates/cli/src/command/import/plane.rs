//! What a control plane has for a client: all listeners, clusters and scoped
//! routes, and what they refer to.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::timeout;
use trunkline::client::{Client, Query, Raw, State};
use trunkline::kind::{self, Kind};
use trunkline::{Name, Resource, TypeUrl, wire};
use trunkline_proto::discovery::Any;

use crate::admin::file_form;
use crate::cli;
use crate::command::control_plane::{Dial, Servers};
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::progress::Progress;

/// The node id without `--node`.
const NODE: &str = "trunkline-import";

/// The types of which a control plane is asked for all.
const ROOTS: [&str; 3] = [kind::LDS, kind::CDS, kind::SRDS];

/// Fetches resources, and returns them with what the control plane is called.
///
/// # Errors
/// It is not reached, or does not answer in time.
pub(super) async fn fetch(peer: &cli::Peer) -> Result<(String, Vec<Any>)> {
    let cert = peer.server_tls_cert.as_deref();
    let cert = cert.map(|path| ("--server-tls-cert", path));
    let key = peer.server_tls_key.as_deref();
    let key = key.map(|path| ("--server-tls-key", path));
    let ca = peer.server_tls_ca.as_deref();
    let token = peer.server_token_file.as_deref();
    let dial = Dial {
        servers: &peer.servers,
        bootstrap: peer.bootstrap.as_ref(),
        sotw: peer.sotw,
        params: &peer.params,
        node: (peer.node.as_ref(), NODE),
        ca: ca.map(|path| ("--server-tls-ca", path)),
        certificate: cert.zip(key),
        token: token.map(|path| ("--server-token-file", path)),
        tls_name: peer.server_tls_name.as_ref(),
    };
    let (builder, servers) = dial.builder()?;
    let mut fetching = Fetching {
        client: builder.build(),
        servers,
        patience: peer.patience,
        progress: Progress::new("fetched", 0),
        found: Vec::new(),
        asked: BTreeSet::new(),
        missing: Vec::new(),
    };
    fetching.run().await?;
    let Fetching {
        servers,
        progress,
        found,
        missing,
        ..
    } = fetching;
    progress.end();
    for what in missing {
        eprintln!("warning: {what}");
    }
    let resources = found.iter();
    let resources = resources.map(|(url, resource)| file_form(url, resource));
    Ok((servers.shown, resources.collect()))
}

/// A control plane that is being asked.
struct Fetching {
    client: Client,
    servers: Servers,
    /// How long one answer is waited for.
    patience: Duration,
    progress: Progress,
    found: Vec<(TypeUrl, Resource)>,
    /// Names that were asked for.
    asked: BTreeSet<(TypeUrl, Name)>,
    /// What was asked for and is not there, in sentences.
    missing: Vec<String>,
}

impl Fetching {
    async fn run(&mut self) -> Result<()> {
        for url in ROOTS {
            self.fetch_all(&TypeUrl::from(url)).await?;
        }
        let mut looked_at = 0;
        // What is found may refer to more.
        while looked_at < self.found.len() {
            let wanted = self.references(looked_at);
            looked_at = self.found.len();
            self.fetch_named(wanted).await?;
        }
        Ok(())
    }

    /// Fetches all resources of a type.
    async fn fetch_all(&mut self, type_url: &TypeUrl) -> Result<()> {
        let query = || Query::raw(type_url.as_str(), "*").map_err(Failure::usage);
        let mut watch = self.client.watch_many(query()?);
        let subscription = self.client.subscribe(query()?).map_err(Failure::usage)?;
        match timeout(self.patience, subscription.answered()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(self.unreachable()),
            // Many do not know scoped routes, and are silent.
            Err(_) if type_url.as_str() == kind::SRDS => return Ok(()),
            Err(_) => return Err(self.silent(kinds::short(type_url))),
        }
        for (name, state) in watch.take() {
            self.asked.insert((type_url.clone(), name.clone()));
            self.take(type_url, &name, &state);
        }
        Ok(())
    }

    /// Returns the names that resources from `first` on refer to, and that were
    /// not asked for.
    fn references(&self, first: usize) -> Vec<(TypeUrl, Name)> {
        let mut wanted = BTreeSet::new();
        for (type_url, resource) in &self.found[first..] {
            let body = resource.body.clone().unwrap_or_default();
            let Ok(accepted) = wire::accept(type_url, body) else {
                continue;
            };
            for reference in &accepted.facts().references {
                let key = (reference.type_url.clone(), reference.name.clone());
                let is_new = !self.asked.contains(&key);
                // Clusters that are not among all do not exist.
                let is_asked_for = !ROOTS.contains(&key.0.as_str());
                if is_new && is_asked_for && !Kind::of(&key.0).on_demand {
                    wanted.insert(key);
                }
            }
        }
        wanted.into_iter().collect()
    }

    /// Fetches resources by their names.
    async fn fetch_named(&mut self, wanted: Vec<(TypeUrl, Name)>) -> Result<()> {
        let mut subscriptions = Vec::new();
        for (type_url, name) in &wanted {
            let query = Query::raw(type_url.as_str(), name.as_str());
            let query = query.map_err(Failure::usage)?;
            subscriptions.push(self.client.subscribe(query).map_err(Failure::usage)?);
        }
        self.asked.extend(wanted.iter().cloned());
        for ((type_url, name), subscription) in wanted.iter().zip(&subscriptions) {
            let mut watch = subscription.watch();
            let label = format!("{}/{name}", kinds::short(type_url));
            let Ok(state) = timeout(self.patience, watch.ready()).await else {
                return Err(self.silent(&label));
            };
            self.take(type_url, name, &state);
        }
        Ok(())
    }

    /// Takes what is known of a name.
    fn take(&mut self, type_url: &TypeUrl, name: &Name, state: &State<Raw>) {
        match state.value() {
            Some(value) => {
                let resource = Resource::clone(value.resource());
                self.found.push((type_url.clone(), resource));
            }
            None => {
                let reason = state.error().map(|error| error.message.to_string());
                let reason = reason.unwrap_or_default();
                let short = kinds::short(type_url);
                let reason = trunkline_proto::redact::quoted(&reason);
                self.missing
                    .push(format!("{short}/{name} is left out: {reason}"));
            }
        }
        let count = self.found.len();
        self.progress
            .show_text(|| format!("fetched {count} resources"));
    }

    fn unreachable(&self) -> Failure {
        let Servers { shown, hint } = &self.servers;
        Failure::unreachable(format!("no control plane is reached at {shown}; {hint}"))
    }

    fn silent(&self, what: &str) -> Failure {
        let seconds = self.patience.as_secs_f64();
        let shown = &self.servers.shown;
        Failure::timed_out(format!(
            "{shown} has not answered {what} in {seconds} s; wait longer with --patience"
        ))
    }
}
