//! The log: to standard error, for people or for programs. It never blocks: a
//! thread writes the lines, and those that it is too slow for are lost and
//! counted.

mod queue;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::panic::PanicHookInfo;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

pub(crate) use self::queue::MOST_BYTES;
use tracing_subscriber::{Layer as _, fmt, registry};

use self::queue::Queue;
use crate::color::Palette;
use crate::failure::{Failure, Result};
use crate::settings::{LogFormat, LogLevel};

/// How long the end of the program waits for lines that are not written yet.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The target of lines that belong to the audit.
pub(crate) const AUDIT: &str = "audit";

/// The queue of the log, once it was started.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();

/// Starts logging to standard error, in colours if it is a terminal that has
/// them. Panics are logged too. Further calls change nothing.
///
/// # Errors
/// Standard error is closed, or the thread that writes cannot be started.
pub(crate) fn start(format: LogFormat, level: LogLevel) -> Result<()> {
    let queue = start_queue()
        .map_err(|error| Failure::wrong(format!("the log cannot be started: {error}")))?;
    let layer = fmt::layer()
        .with_writer(Lines(Arc::clone(queue)))
        .log_internal_errors(false);
    let layer = match format {
        LogFormat::Text => layer
            .with_target(false)
            .with_ansi(Palette::of_stderr().is_on())
            .boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    // This fails only if a log was started before, which stays then.
    let _ = registry()
        .with(layer.with_filter(level_filter(level)))
        .try_init();
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Returns how many lines were lost since the start, because standard error did
/// not take them.
pub(crate) fn lost_lines() -> u64 {
    QUEUE.get().map_or(0, |queue| queue.lost_count())
}

/// Writes the last words of the program to standard error, after all lines of
/// the log if there is one. With a log, it gives up after [`LAST_LINES`].
pub(crate) fn finish(last_words: &str) {
    let Some(queue) = QUEUE.get() else {
        return eprint!("{last_words}");
    };
    queue.push(last_words.as_bytes(), true);
    queue.flush(LAST_LINES);
}

/// Returns the queue. The first call starts the thread that writes its lines.
fn start_queue() -> io::Result<&'static Arc<Queue>> {
    if let Some(queue) = QUEUE.get() {
        return Ok(queue);
    }
    let queue = Arc::new(Queue::default());
    // The thread has its own file, since a write to `std::io::stderr` holds a
    // lock that other writers would wait for.
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let thread = std::thread::Builder::new().name("trunkline-log".to_owned());
    let lines = Arc::clone(&queue);
    thread.spawn(move || lines.write_to(stderr, tell_lost))?;
    Ok(QUEUE.get_or_init(|| queue))
}

/// Logs that lines were lost.
fn tell_lost(lines: u64) {
    tracing::warn!(
        lines,
        "lines of the log were lost before this one: standard error did not take them in time"
    );
}

/// Logs a panic. Its usual message would wait for standard error.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let text = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(tracing::field::display);
    tracing::error!(place, "a task panicked: {text}");
}

/// Makes writers that add to the queue.
struct Lines(Arc<Queue>);

/// Adds what is written to the queue, which is a whole line at a time.
struct Line<'a> {
    queue: &'a Queue,
    is_important: bool,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        let is_important = false;
        Line {
            queue: &self.0,
            is_important,
        }
    }

    /// Makes the writer of a line. Warnings, errors and the audit are important.
    fn make_writer_for(&'a self, line: &Metadata<'_>) -> Line<'a> {
        Line {
            is_important: *line.level() <= Level::WARN || line.target() == AUDIT,
            ..self.make_writer()
        }
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.queue.push(bytes, self.is_important);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the filter of a level. From other libraries it lets only warnings and
/// errors pass, but everything at the level `trace`.
fn level_filter(level: LogLevel) -> Targets {
    let own_level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let library_level = match level {
        LogLevel::Trace => own_level,
        _ => own_level.min(LevelFilter::WARN),
    };
    Targets::new()
        .with_default(library_level)
        .with_target("trunkline", own_level)
        .with_target(AUDIT, own_level)
}
