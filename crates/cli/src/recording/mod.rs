//! Recordings: all exchanges of an xDS client, in lines of JSON.
//!
//! The first line says what the file is. Each line after it has a time `t`, in
//! seconds since the beginning, the number of a `stream`, and in `dir` what it
//! is:
//!
//! | `dir` | what happened | beside it |
//! |---|---|---|
//! | `CONNECT` | a stream is about to be opened | `server`, `path`: the method of gRPC, empty if it is polled |
//! | `OPEN` | it is open | |
//! | `C>S` | the client sent a request | `msg` for people, `bytes` in base64 |
//! | `S>C` | the server sent a response | the same |
//! | `VERDICT` | the response was judged; it is ACKed if nothing is rejected | `msg` |
//! | `FAULT` | the server has broken the protocol | `msg` |
//! | `CLOSE` | the stream has ended, or could not be opened | `msg`: why |
//!
//! `bytes` are those of the message, without the prefix of gRPC. `msg` lists
//! names, versions and sizes, and no contents.

mod message;
mod read;
mod write;

pub(crate) use self::read::{RecordedResponse, Recording, read_recording};
pub(crate) use self::write::Recorder;

use serde::{Deserialize, Serialize};
use trunkline_core::message::Mode;

/// The version of the form.
const FORMAT: u32 = 1;
/// What is recorded: the first key of a recording has this value.
const KIND: &str = "xds";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    recording: String,
    format: u32,
    #[serde(default)]
    began: String,
    #[serde(default)]
    program: String,
    #[serde(default)]
    warning: String,
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Dir {
    #[serde(rename = "CONNECT")]
    Connect,
    #[serde(rename = "OPEN")]
    Open,
    #[serde(rename = "C>S")]
    Request,
    #[serde(rename = "S>C")]
    Response,
    #[serde(rename = "VERDICT")]
    Verdict,
    #[serde(rename = "FAULT")]
    Fault,
    #[serde(rename = "CLOSE")]
    Close,
}

/// Returns the protocol of a stream, by its path. A poll has an empty path.
pub(crate) fn mode_of(path: &str) -> Mode {
    let method = path.rsplit('/').next().unwrap_or_default();
    match method.starts_with("Delta") {
        true => Mode::Delta,
        false => Mode::Sotw,
    }
}
