//! The log: to standard error, for people or for programs.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt, registry};

use crate::color::Palette;
use crate::settings::{LogFormat, LogLevel};

/// Starts logging to standard error, with colours if that has any. A second call
/// in a process changes nothing.
pub(crate) fn start(format: LogFormat, level: LogLevel) {
    let layer = fmt::layer().with_writer(std::io::stderr);
    let layer = match format {
        LogFormat::Text => layer
            .with_target(false)
            .with_ansi(Palette::of_stderr().is_on())
            .boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    // It fails only if a log was started before.
    let _ = registry()
        .with(layer.with_filter(level_filter(level)))
        .try_init();
}

/// Makes the filter of a level. Of other libraries it passes at most warnings,
/// but everything at the level `trace`.
fn level_filter(level: LogLevel) -> Targets {
    let own = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let others = match level {
        LogLevel::Trace => own,
        _ => own.min(LevelFilter::WARN),
    };
    Targets::new()
        .with_default(others)
        .with_target("trunkline", own)
        .with_target("audit", own)
}
