//! The reader of a recording: its responses, by protocol and type.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read as _};
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Buf as _, Bytes, BytesMut};
use prost::encoding::{DecodeContext, decode_key, skip_field};
use serde::Deserialize;
use trunkline_core::message::Mode;
use trunkline_proto::discovery::Glance;

use super::{Dir, FORMAT, Head, KIND, mode_of};

/// The longest line, in bytes.
const LONGEST_LINE: u64 = 1 << 30;
/// The field of the nonce, in responses of both protocols.
const NONCE: u32 = 5;

/// The responses of a recording, in their order.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) responses: Vec<RecordedResponse>,
}

/// One recorded response.
#[derive(Debug, PartialEq)]
pub(crate) struct RecordedResponse {
    pub(crate) stream: u64,
    pub(crate) mode: Mode,
    pub(crate) type_url: String,
    /// The time since the beginning of the recording.
    pub(crate) at: Duration,
    /// The message as it was received, but for its nonce, which is left out.
    pub(crate) message: Bytes,
}

/// Why a file is no recording.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{line}: {reason}")]
    Line { line: usize, reason: String },
}

/// One line after the first, as far as it matters.
#[derive(Deserialize)]
struct Line {
    t: f64,
    dir: Dir,
    stream: u64,
    path: Option<String>,
    bytes: Option<String>,
}

/// Reads a recording.
///
/// # Errors
/// The file cannot be read, or a line is not one of a recording.
pub(crate) fn read_recording(mut file: impl BufRead) -> Result<Recording, ReadError> {
    let mut recording = Recording::default();
    let mut modes = BTreeMap::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let line_reader = &mut file.by_ref().take(LONGEST_LINE);
        if line_reader.read_until(b'\n', &mut line)? == 0 && number > 1 {
            break;
        }

        let outcome = match (number, line.ends_with(b"\n")) {
            (1, _) => check_head(&line),
            (_, true) => recording.add_line(&line, &mut modes),
            (_, false) => Err(
                "the line has no end: the recording was cut here; remove the line to replay \
                 those before it"
                    .to_owned(),
            ),
        };

        outcome.map_err(|reason| ReadError::Line {
            line: number,
            reason,
        })?;
    }
    Ok(recording)
}

/// Checks that the first line is that of a recording in our format.
fn check_head(line: &[u8]) -> Result<(), String> {
    let head: Option<Head> = serde_json::from_slice(line).ok();
    match head {
        Some(head) if head.recording != KIND => {
            let kind = head.recording;
            Err(format!(
                "it is a recording of {kind:?}, and not of {KIND:?}"
            ))
        }
        Some(head) if head.format != FORMAT => {
            let format = head.format;
            Err(format!(
                "its format is {format}, and this program knows {FORMAT}; use the one that wrote \
                 it, or a newer one"
            ))
        }
        Some(_) => Ok(()),
        None => Err(
            "no recording begins like this; make one with `trunkline watch TYPE --server ADDR \
             --record FILE`"
                .to_owned(),
        ),
    }
}

impl Recording {
    /// Returns the streams that have responses.
    pub(crate) fn streams(&self) -> BTreeSet<u64> {
        let responses = self.responses.iter();
        responses.map(|response| response.stream).collect()
    }

    /// Adds the response of a line. Of a CONNECT, notes the protocol of the
    /// stream in `modes`. Ignores other lines.
    fn add_line(&mut self, line: &[u8], modes: &mut BTreeMap<u64, Mode>) -> Result<(), String> {
        let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let Line { stream, .. } = line;
        if line.dir == Dir::Connect {
            let path = line.path.ok_or("a CONNECT needs a path")?;
            modes.insert(stream, mode_of(&path));
        }
        if line.dir != Dir::Response {
            return Ok(());
        }

        let no_stream = || format!("a response of stream {stream}, which has no CONNECT before it");
        let mode = *modes.get(&stream).ok_or_else(no_stream)?;
        let bytes = line.bytes.ok_or("a response needs bytes")?;
        let bytes = STANDARD.decode(bytes);
        let bytes = Bytes::from(bytes.map_err(|error| format!("bytes: {error}"))?);
        let glance = match mode {
            Mode::Delta => Glance::delta(&bytes),
            Mode::Sotw => Glance::sotw(&bytes),
        };
        let type_url = glance.type_url.to_owned();

        let time = Duration::try_from_secs_f64(line.t);
        self.responses.push(RecordedResponse {
            stream,
            mode,
            type_url,
            at: time.map_err(|error| format!("t: {error}"))?,
            message: without_nonce(&bytes).ok_or("bytes: they are no response")?,
        });
        Ok(())
    }
}

/// Returns a response without its nonce, and otherwise byte for byte. Returns
/// `None` if the bytes are not a message.
fn without_nonce(message: &Bytes) -> Option<Bytes> {
    let mut unread = message.clone();
    let mut remaining_fields = BytesMut::with_capacity(message.len());

    while unread.has_remaining() {
        let field = unread.clone();
        let (number, wire_type) = decode_key(&mut unread).ok()?;
        skip_field(wire_type, number, &mut unread, DecodeContext::default()).ok()?;
        if number != NONCE {
            remaining_fields.extend_from_slice(&field[..field.len() - unread.len()]);
        }
    }
    Some(remaining_fields.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use trunkline_proto::discovery::{Any, DiscoveryResponse};

    const HEAD: &str = "{\"recording\":\"xds\",\"format\":1}\n";
    const CONNECT: &str = "{\"t\":0,\"dir\":\"CONNECT\",\"stream\":1,\"path\":\"/a/DeltaX\"}\n";

    fn fails(text: &str) -> String {
        read_recording(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_file_that_is_no_recording_is_refused_with_line_and_reason() {
        assert!(fails("").starts_with("1: no recording begins like this"));
        assert!(fails("resources: []\n").starts_with("1: no recording begins"));
        assert!(fails("{\"recording\":\"xds\",\"format\":9}\n").contains("its format is 9"));
        let cut = format!("{HEAD}{CONNECT}{{\"t\":1,");
        assert!(fails(&cut).starts_with("3: the line has no end"));
        let other = format!("{HEAD}{CONNECT}{{\"t\":1,\"dir\":\"X\",\"stream\":1}}\n");
        assert!(fails(&other).starts_with("3: unknown variant"));
        let lost = format!("{HEAD}{{\"t\":1,\"dir\":\"S>C\",\"stream\":7,\"bytes\":\"\"}}\n");
        assert!(fails(&lost).contains("has no CONNECT before it"));
        for (bytes, reason) in [("!", "bytes: Invalid"), ("/w==", "bytes: they are no")] {
            let line = format!(
                "{HEAD}{CONNECT}{{\"t\":1,\"dir\":\"S>C\",\"stream\":1,\"bytes\":\"{bytes}\"}}\n"
            );
            assert!(fails(&line).contains(reason), "{}", fails(&line));
        }
        assert!(
            read_recording(HEAD.as_bytes())
                .unwrap()
                .responses
                .is_empty()
        );
    }

    #[test]
    fn all_but_the_nonce_stays_byte_for_byte() {
        let response = DiscoveryResponse {
            version_info: "7".into(),
            resources: vec![Any {
                type_url: "t".into(),
                value: "body".into(),
            }],
            type_url: "t".into(),
            nonce: "n".into(),
            ..DiscoveryResponse::default()
        };
        let without = without_nonce(&response.encode_to_vec().into()).unwrap();
        let expected = DiscoveryResponse {
            nonce: String::new(),
            ..response
        };
        assert_eq!(without, expected.encode_to_vec());
    }
}
