//! The log: to standard error, for people or for programs.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt, registry};

use crate::settings::{LogFormat, LogLevel};

/// Starts logging. Once in a process; a second time changes nothing.
pub(crate) fn start(format: LogFormat, level: LogLevel) {
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines
            .with_target(false)
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // It fails only if a log was started before.
    let _ = registry().with(lines.with_filter(filter(level))).try_init();
}

/// Makes the filter of a level. Of libraries it passes warnings only, but
/// everything at the most verbose level.
fn filter(level: LogLevel) -> Targets {
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
