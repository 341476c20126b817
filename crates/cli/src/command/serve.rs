//! `trunkline serve`: a server, from its settings to its end.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use trunkline::listen::Lanes;

use crate::cli::{self, Global};
use crate::descriptors;
use crate::failure::{Failure, Result};
use crate::log;
use crate::running::Running;
use crate::runtimes::{LAST_WORK, Runtimes};
use crate::settings::{Choice as _, Raw, Settings, resolve};
use crate::signals::Ends;

/// How long the first load takes at most, unless something is wrong.
const FIRST_LOAD: Duration = Duration::from_millis(500);

/// Resolves the settings, then serves until a signal ends the program.
pub(super) fn run(args: cli::Serve, global: Global) -> Result<()> {
    let settings = resolve_settings(args, global)?;
    log::start(settings.log_format, settings.log_level)?;
    descriptors::load(&settings.descriptors)?;
    trunkline::listen::raise_descriptors();
    let runtimes = Runtimes::start()?;
    let result = runtimes.front.block_on(serve(&settings, runtimes.lanes()));
    // A write to a disk that hangs must not delay the end of the program.
    runtimes.shut_down(LAST_WORK);
    result
}

/// Resolves the settings from flags, the settings file, and defaults. The flags
/// for the log, which all commands have, count as flags of this command.
fn resolve_settings(args: cli::Serve, global: Global) -> Result<Settings> {
    let mut flags = args.flags.0;
    if let Some(format) = global.log_format {
        flags.set("log_format", vec![format.name().to_owned()]);
    }
    if let Some(level) = global.log_level {
        flags.set("log_level", vec![level.name().to_owned()]);
    }
    let file = args.settings.as_deref().map(read_settings).transpose()?;
    resolve(file.as_ref(), &flags).map_err(Failure::usage)
}

/// Reads the settings file of `--settings`. Its rules are parsed, its values
/// not yet.
fn read_settings(path: &Path) -> Result<Raw> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("--settings {shown}: {error}")))?;
    Raw::read(&shown, &text).map_err(Failure::usage)
}

/// Serves until a signal arrives, then drains and stops.
async fn serve(settings: &Settings, lanes: Lanes) -> Result<()> {
    let start = Instant::now();
    let mut signals = Ends::new()?;
    let mut running = Running::start(settings, lanes).await?;

    let log_and_wait = async {
        log_ready(&running, start).await;
        // The branch must never end: only a signal ends the selection.
        std::future::pending().await
    };
    tokio::select! {
        () = log_and_wait => {}
        () = signals.next() => {}
    }

    drain(&mut running, settings, &mut signals).await;
    running.finish().await;
    tracing::info!("stopped");
    Ok(())
}

/// Waits until clients are served, and logs that, with the time since `start`.
/// If the first contents take longer than [`FIRST_LOAD`], first logs that the
/// server waits for them.
async fn log_ready(running: &Running, start: Instant) {
    let Running {
        server,
        listen,
        admin,
        health,
        ..
    } = running;
    let health = health.map(tracing::field::display);
    if timeout(FIRST_LOAD, server.ready()).await.is_err() {
        tracing::info!(
            %listen, %admin, health,
            "waiting for the first contents, from files or by `trunkline apply`; until then \
             clients are told UNAVAILABLE, unless --allow-empty is given"
        );
        server.ready().await;
    }

    let resources: usize = server.read(|db| db.types().map(|(id, _)| db.len(id)).sum());
    let millis = start.elapsed().as_millis();
    tracing::info!(%listen, %admin, health, resources, millis, "ready");
}

/// Drains until no client is connected, or the drain time is over. A second
/// signal stops the server at once.
async fn drain(running: &mut Running, settings: &Settings, signals: &mut Ends) {
    let seconds = settings.times.drain.as_secs_f64();
    tracing::info!(seconds, "draining; a second signal stops at once");
    tokio::select! {
        // All streams have ended.
        _ = &mut running.serving => {}
        () = running.server.drain() => {}
        () = signals.next() => running.server.stop(),
    }
}
