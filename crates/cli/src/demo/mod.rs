//! The demo: everything that xDS takes, in one process and a folder that goes
//! away with it.
//!
//! | file | what it is |
//! |---|---|
//! | `sample` | the resources, as files |
//! | `backend` | the service that traffic reaches |
//! | `view` | a client that prints its responses |
//! | `hosts` | prints on-demand subscriptions |
//! | `envoy` | an Envoy, where there is one |
//! | `words` | the text for the person in front of it |

mod backend;
mod envoy;
mod hosts;
mod sample;
mod view;
mod words;

use std::path::Path;
use std::time::Duration;

use trunkline::listen::bind;

use self::envoy::Envoy;
use crate::cli;
use crate::envoy::find_envoy;
use crate::failure::{Failure, Result};
use crate::running::Running;
use crate::settings::{Address, Settings};
use crate::signals::Ends;

/// The port of Envoy's listener with all routes, if it is free.
const INGRESS: u16 = 10_000;
/// The port of its listener with virtual hosts on demand, if it is free.
const ON_DEMAND: u16 = 10_001;

/// Runs the demo until a signal arrives, its time is over, or Envoy ends. Then
/// stops everything, and removes the folder of the files.
pub(crate) async fn run(args: &cli::Demo) -> Result<()> {
    let mut signals = Ends::new()?;
    let folder_failure = |error| Failure::wrong(format!("no folder for the demo: {error}"));
    let folder = tempfile::Builder::new()
        .prefix("trunkline-demo-")
        .tempdir()
        .map_err(folder_failure)?;

    let ports = sample::Ports {
        ingress: free_port(INGRESS).await?,
        on_demand: free_port(ON_DEMAND).await?,
        v1: backend::start_backend("v1").await?,
        v2: backend::start_backend("v2").await?,
    };
    let config = folder.path().join("resources");
    sample::write_files(&config, &ports).map_err(folder_failure)?;
    let running = serve(&config).await?;

    let envoy_path = find_envoy(args.envoy.as_deref())?;
    let envoy =
        envoy_path.map(|path| envoy::start_envoy(&path, folder.path(), running.listen.port()));
    let mut envoy = envoy.transpose()?;
    words::print_introduction(&running, &config, &ports, envoy.is_some());
    let view = tokio::spawn(view::run(running.listen));

    tokio::select! {
        () = signals.next() => println!("\nstopping"),
        () = sleep_for(args.duration) => println!("\nthe time is over"),
        message = envoy::wait_for_exit(envoy.as_mut()) => println!("\n{message}"),
    }

    view.abort();
    stop(running, envoy).await;
    Ok(())
}

/// Serves the resources of a folder, on the default addresses, or on other
/// ports if those are in use. Returns when all resources are loaded.
async fn serve(config: &Path) -> Result<Running> {
    let mut settings = Settings::new();
    settings.config = vec![config.to_owned()];
    settings.listen = free_address(&settings.listen).await;
    settings.admin = free_address(&settings.admin).await;

    let running =
        Running::start_with(&settings, None, |builder| builder.hooks(hosts::Live)).await?;
    running.server.ready().await;
    Ok(running)
}

/// Stops Envoy, if there is one, and then the server. Returns when both have
/// ended.
async fn stop(running: Running, envoy: Option<Envoy>) {
    if let Some(mut envoy) = envoy {
        // A drop would end it too, but not wait for its end. An Envoy that has
        // ended by itself gives an error, which does not matter.
        let _ = envoy.process.kill().await;
    }
    running.server.stop();
    running.finish().await;
}

/// Waits for a time; for ever, if there is none.
async fn sleep_for(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// Returns the `preferred` address if it is free, or else one of loopback that
/// will take a free port.
async fn free_address(preferred: &Address) -> Address {
    match bind(preferred.as_str()).await {
        Ok(_) => preferred.clone(),
        Err(_) => Address::any_port(),
    }
}

/// Returns the `preferred` port of loopback if it is free, or else another one.
/// Nothing holds the port until Envoy binds it, so another process may still
/// take it.
async fn free_port(preferred: u16) -> Result<u16> {
    let listener = match bind(("127.0.0.1", preferred)).await {
        Ok(listener) => listener,
        Err(_) => backend::bind_free_port().await?,
    };
    Ok(listener.local_addr().map_err(Failure::wrong)?.port())
}
