//! `trunkline replay`: a recording, served again to any client.

mod codec;
mod stream;

use std::collections::BTreeMap;
use std::fs::File;
use std::future::{Ready, ready};
use std::io::BufReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::server::{Grpc, StreamingService};
use tonic::{Status, Streaming};
use trunkline::TypeUrl;
use trunkline::listen::{self, Listening};
use trunkline_core::message::Mode;

use self::codec::Raw;
use self::stream::ReplayStream;
use super::run_request;
use crate::cli::{self, Global};
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::log;
use crate::output::count_of;
use crate::recording::{Recording, mode_of, read_recording};
use crate::settings::{LogFormat, LogLevel};
use crate::signals::Ends;

/// The longest request.
const LONGEST_REQUEST: usize = 64 << 20;

/// Serves a recording until the program is stopped.
///
/// # Errors
/// The file is no recording, or the address cannot be bound.
pub(super) fn run(args: &cli::Replay, global: Global) -> Result<()> {
    let recording = load_recording(args)?;
    let level = global.log_level.unwrap_or(LogLevel::Info);
    log::start(global.log_format.unwrap_or(LogFormat::Text), level)?;
    run_request(serve(args, recording))
}

/// Reads the recording, and keeps only the streams that `--stream` names.
///
/// # Errors
/// The file cannot be read, or no response is left to serve.
fn load_recording(args: &cli::Replay) -> Result<Recording> {
    let path_text = args.file.display();
    let file =
        File::open(&args.file).map_err(|error| Failure::usage(format!("{path_text}: {error}")))?;

    let mut recording = read_recording(BufReader::new(file))
        .map_err(|error| Failure::wrong(format!("{path_text}:{error}")))?;

    if recording.responses.is_empty() {
        return Err(Failure::wrong(format!(
            "{path_text}: the recording has no response; there is nothing to serve"
        )));
    }

    if !args.streams.is_empty() {
        let streams: Vec<String> = recording.streams().iter().map(u64::to_string).collect();
        recording
            .responses
            .retain(|response| args.streams.contains(&response.stream));
        if recording.responses.is_empty() {
            return Err(Failure::usage(format!(
                "--stream: {path_text} has responses of streams {}",
                streams.join(", ")
            )));
        }
    }
    Ok(recording)
}

/// Serves the recording until a signal arrives.
async fn serve(args: &cli::Replay, recording: Recording) -> Result<()> {
    let mut signals = Ends::new()?;
    let listener = listen::bind(&args.listen)
        .await
        .map_err(|error| Failure::usage(format!("--listen {}: {error}", args.listen)))?;
    let address = listener.local_addr().map_err(Failure::wrong)?;
    tracing::info!(listen = %address, file = %args.file.display(), contents = summary(&recording), "replaying");

    let replay = Arc::new(Replay {
        recording: Arc::new(recording),
        speed: args.speed,
        streams: AtomicU64::new(0),
    });
    let router = Router::new().fallback(respond).with_state(replay);

    let listening = Listening::default();
    let stop = listening.stopped.clone();
    let serving = listening.serve(listener, router, |_| {});
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        () = &mut serving => {}
        () = signals.next() => {
            stop.cancel();
            serving.await;
        }
    }
    Ok(())
}

/// Returns the number of responses of each type and protocol.
fn summary(recording: &Recording) -> String {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for response in &recording.responses {
        let key = (response.type_url.as_str(), mode_word(response.mode));
        *counts.entry(key).or_default() += 1;
    }
    let parts = counts.into_iter().map(|((url, mode), count)| {
        let url = TypeUrl::new(url);
        let responses = count_of(count, "response");
        format!("{responses} of {} ({mode})", kinds::short(&url))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns what people call a protocol.
fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Delta => "delta",
        Mode::Sotw => "state of the world",
    }
}

/// A recording that is served.
struct Replay {
    recording: Arc<Recording>,
    speed: Option<f64>,
    /// How many streams were opened.
    streams: AtomicU64,
}

/// Responds to a request with a stream. The path of the request says which
/// protocol and service it is for.
async fn respond(
    State(replay): State<Arc<Replay>>,
    request: Request,
) -> http::Response<tonic::body::Body> {
    let mode = mode_of(request.uri().path());
    let mut grpc = Grpc::new(Raw).max_decoding_message_size(LONGEST_REQUEST);
    grpc.streaming(Service { replay, mode }, request).await
}

/// The method that was called.
struct Service {
    replay: Arc<Replay>,
    mode: Mode,
}

impl StreamingService<Bytes> for Service {
    type Response = Bytes;
    type ResponseStream = ReceiverStream<std::result::Result<Bytes, Status>>;
    type Future = Ready<std::result::Result<tonic::Response<Self::ResponseStream>, Status>>;

    /// Begins to replay the recording to a client. Refuses the client if the
    /// recording has no response of its protocol.
    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        let Self { replay, mode } = self;
        let number = replay.streams.fetch_add(1, Ordering::Relaxed) + 1;
        let mut responses = replay.recording.responses.iter();
        if !responses.any(|response| response.mode == *mode) {
            let mode_name = mode_word(*mode);
            let reason =
                format!("the recording has no responses of {mode_name}; use the other protocol");
            tracing::warn!(stream = number, "refused: {reason}");
            return ready(Err(Status::failed_precondition(reason)));
        }

        // With room for one message, the next is made after the client took it.
        let (sender, receiver) = mpsc::channel(1);
        let recording = Arc::clone(&replay.recording);
        let stream = ReplayStream::new(number, *mode, recording, replay.speed);
        tokio::spawn(stream.run(request.into_inner(), sender));
        ready(Ok(tonic::Response::new(ReceiverStream::new(receiver))))
    }
}
