//! The writer of a recording: an observer of a client.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use trunkline::client::{ClientEvent, Observer, StreamInfo};

use super::{Dir, FORMAT, Head, KIND, message, mode_of};
use crate::admin::timestamp;
use crate::version;

/// Writes everything that happens in a client to a file, as it happens.
///
/// A line is written in the task in which its message is carried: a file that is
/// slow slows the client down, and nothing is kept in memory or left out.
pub(crate) struct Recorder {
    began: Instant,
    output: Mutex<Output>,
}

struct Output {
    /// `None` after an error.
    file: Option<File>,
    /// Told of the first error.
    failure_sender: Option<oneshot::Sender<io::Error>>,
}

impl Recorder {
    /// Makes a file that only its owner can read, and begins to record. The
    /// receiver gets the error if a line cannot be written; no line follows
    /// then.
    ///
    /// # Errors
    /// The file cannot be made, or it exists already.
    pub(crate) fn create(path: &Path) -> io::Result<(Self, oneshot::Receiver<io::Error>)> {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;

        let head = Head {
            recording: KIND.to_owned(),
            format: FORMAT,
            began: timestamp(SystemTime::now()),
            program: format!("trunkline {}", version::VERSION),
            warning: "bytes hold secrets as they were received".to_owned(),
        };
        file.write_all(format!("{}\n", json!(head)).as_bytes())?;

        let (failure_sender, failure_receiver) = oneshot::channel();
        let recorder = Self {
            began: Instant::now(),
            output: Mutex::new(Output {
                file: Some(file),
                failure_sender: Some(failure_sender),
            }),
        };
        Ok((recorder, failure_receiver))
    }

    /// Writes a line with the time, the direction, the stream and `fields`.
    /// After an error, tells the receiver and writes no more.
    fn write_line(&self, stream: &StreamInfo, dir: Dir, fields: Value) {
        let micros = self.began.elapsed().as_micros();
        let mut line = json!({
            "t": micros as f64 / 1e6,
            "dir": dir,
            "stream": stream.number,
        });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = &mut output.file else {
            return;
        };
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            output.file = None;
            if let Some(sender) = output.failure_sender.take() {
                // The send fails only if the program is about to end.
                let _ = sender.send(error);
            }
        }
    }
}

impl Observer for Recorder {
    /// Writes a line for each event that a recording has. Other events are not
    /// recorded.
    fn observe(&self, event: &ClientEvent<'_>) {
        match event {
            ClientEvent::Connecting(stream) => {
                let server = stream.server.address.to_string();
                let fields = json!({"server": server, "path": stream.path});
                self.write_line(stream, Dir::Connect, fields);
            }
            ClientEvent::Connected(stream) => self.write_line(stream, Dir::Open, Value::Null),
            ClientEvent::Disconnected(stream, reason) => {
                self.write_line(stream, Dir::Close, json!({"msg": reason}));
            }

            ClientEvent::Sent(stream, bytes) => {
                let msg = message::describe_request(mode_of(&stream.path), bytes);
                let fields = json!({"msg": msg, "bytes": STANDARD.encode(bytes)});
                self.write_line(stream, Dir::Request, fields);
            }
            ClientEvent::Received(stream, bytes) => {
                let msg = message::describe_response(mode_of(&stream.path), bytes);
                let fields = json!({"msg": msg, "bytes": STANDARD.encode(bytes)});
                self.write_line(stream, Dir::Response, fields);
            }

            ClientEvent::Judged {
                stream,
                delivery,
                verdict,
                ..
            } => {
                let msg = message::describe_verdict(delivery, verdict);
                self.write_line(stream, Dir::Verdict, json!({"msg": msg}));
            }
            ClientEvent::Fault(stream, error) => {
                self.write_line(stream, Dir::Fault, json!({"msg": error.to_string()}));
            }
            _ => {}
        }
    }
}
