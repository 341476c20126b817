//! The events of a server, read line by line while they arrive, and printed so.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write as _};
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::client::OpenResponse;
use crate::failure::{Failure, Result};

/// The wait before the server is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// How long the server may be silent: three times as long as it is when it has
/// nothing to say.
const LONGEST_SILENCE: Duration = Duration::from_secs(45);
/// The longest line, in bytes: the server lists a thousand variants at most.
const LONGEST_LINE: usize = 64 << 20;

/// A response of `GET /api/v1/watch` that is being read.
pub(super) struct Events {
    response: OpenResponse,
    /// The beginning of a line.
    unread: Vec<u8>,
    /// Lines that have arrived.
    lines: VecDeque<Vec<u8>>,
}

impl Events {
    /// Begins to read a response.
    pub(super) fn new(response: OpenResponse) -> Self {
        Self {
            response,
            unread: Vec::new(),
            lines: VecDeque::new(),
        }
    }

    /// Waits for the next event. Returns `None` if the connection is lost or
    /// silent for [`LONGEST_SILENCE`], or the server has ended the response.
    ///
    /// # Errors
    /// A line is too long.
    pub(super) async fn next_line(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Some(line));
            }
            let Ok(Some(chunk)) = timeout(LONGEST_SILENCE, self.response.next_chunk()).await else {
                return Ok(None);
            };
            self.unread.extend_from_slice(&chunk);
            self.move_whole_lines()?;
        }
    }

    /// Moves the complete lines of the unread bytes to the lines. Empty lines
    /// only keep the connection alive, and are dropped.
    ///
    /// # Errors
    /// The incomplete line is longer than [`LONGEST_LINE`].
    fn move_whole_lines(&mut self) -> Result<()> {
        let Some(last_end) = self.unread.iter().rposition(|byte| *byte == b'\n') else {
            return match self.unread.len() > LONGEST_LINE {
                true => Err(Failure::wrong(
                    "the answer is not understood: a line is too long",
                )),
                false => Ok(()),
            };
        };
        let whole_lines: Vec<u8> = self.unread.drain(..=last_end).collect();
        let lines = whole_lines.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        self.lines.extend(lines.map(<[u8]>::to_vec));
        Ok(())
    }
}

/// Parses the line of an event.
pub(super) fn parse_event(line: &[u8]) -> Result<Value> {
    serde_json::from_slice(line)
        .map_err(|error| Failure::wrong(format!("the answer is not understood: {error}")))
}

/// Writes to standard output. Returns `false` if the reader has closed it.
pub(super) fn print_line(bytes: &[u8]) -> Result<bool> {
    let mut output = std::io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::wrong(format!(
            "cannot write to standard output: {error}"
        ))),
    }
}
