//! The HTTP requests of a connection.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use ::http::Request;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::activity::Activity;
use super::lanes::LaneExecutor;
use super::sending::Sending;
use super::watched_io::WatchedIo;
use super::{Answers, BoxError, Closing, Listening, OnLimit};
use crate::bounds::{CONNECTION_WINDOW, HEADERS, HTTP1_IDLE, RESET_STREAMS, STREAM_WINDOW};
use crate::server::{Connection, Limit};
use crate::wake::{WakeFlags, WakeListener};

/// The bytes of a response that a stream has beside the piece that it sends,
/// while the peer has no room for them.
const SEND_BUFFER: usize = 64 << 10;

/// The bytes that an HTTP/1.1 connection reads or writes at once.
const HTTP1_BUFFER: usize = 64 << 10;

impl Listening {
    /// Serves the HTTP requests of a connection until it ends. A connection
    /// that has to close takes no more requests, and tells the open ones by
    /// [`Closing`]. `report_limit` is called if the connection is cut because
    /// it made no request.
    pub(super) async fn serve_http<B>(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        connection: Connection,
        activity: &Arc<Activity>,
        service: impl Answers<B>,
        report_limit: &OnLimit,
    ) where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let closing = CancellationToken::new();
        let extension = Closing(closing.clone());
        let requests = Arc::clone(activity);
        let executor = self.executor(activity);

        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            let open = requests.begin_request();
            request.extensions_mut().insert(connection.clone());
            request.extensions_mut().insert(extension.clone());
            request.extensions_mut().insert(Arc::clone(&requests));
            request.extensions_mut().insert(executor.clone());
            let response = service.clone().call(request);
            async move {
                let sending = |body| Sending::new(body, open);
                response.await.map(|response| response.map(sending))
            }
        });

        let io = TokioIo::new(WatchedIo::new(io, Arc::clone(activity)));
        let protocol = self.http_protocol(self.executor(activity));
        let mut serving = pin!(protocol.serve_connection(io, service));
        let mut until_closing = pin!(self.wait_until_closing(activity));
        let mut until_cut = pin!(wait_until_cut(activity, report_limit));

        // A connection is polled for every message and closes once, so the wait
        // for its close is polled only when its own waker raised a flag.
        let mut flags = WakeListener::new(WakeFlags::new());
        let mut is_closing = false;
        std::future::poll_fn(|cx| {
            if flags.take_raised(cx) != 0 {
                let cx = &mut flags.context();
                if until_cut.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                if !is_closing && until_closing.as_mut().poll(cx).is_ready() {
                    // New streams go elsewhere; open ones end one by one.
                    is_closing = true;
                    serving.as_mut().graceful_shutdown();
                    closing.cancel();
                }
            }
            // The error of a connection concerns nobody else.
            serving.as_mut().poll(cx).map(drop)
        })
        .await;
    }

    /// Waits until a connection has to close: it is too old or idle, or the
    /// server drains or stops.
    async fn wait_until_closing(&self, activity: &Activity) {
        tokio::select! {
            () = self.wait_until_too_old() => {}
            () = activity.wait_until_idle() => {}
            () = self.draining.cancelled() => {}
            () = self.stopped.cancelled() => {}
        }
    }

    /// Returns a server of HTTP/1.1 and HTTP/2 with the timeouts and limits of
    /// the listener.
    fn http_protocol(&self, executor: LaneExecutor) -> auto::Builder<LaneExecutor> {
        let mut protocol = auto::Builder::new(executor);

        protocol
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HTTP1_IDLE)
            .max_buf_size(HTTP1_BUFFER);
        protocol
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(u32::try_from(self.streams).unwrap_or(u32::MAX))
            .max_header_list_size(HEADERS)
            .max_pending_accept_reset_streams(RESET_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .keep_alive_interval(Some(self.keep_alive))
            .keep_alive_timeout(self.keep_alive_timeout);
        protocol
    }
}

/// Waits until a connection has to end at once: somebody cuts it, or it makes
/// no request in time, which is reported.
async fn wait_until_cut(activity: &Activity, report_limit: &OnLimit) {
    tokio::select! {
        () = activity.wait_until_cut() => {}
        () = activity.wait_without_request() => report_limit(Limit::SilentConnections),
    }
}
