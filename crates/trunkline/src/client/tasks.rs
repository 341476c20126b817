//! Starts and ends the tasks of a client's servers: streams, polls and files.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use trunkline_core::client::ServerId;
use trunkline_core::message::Mode;
use trunkline_core::resource::TypeUrl;

use super::config_source::Transport;
use super::control_plane::ControlPlane;
use super::events::StreamInfo;
use super::exchange::Exchange;
use super::file::FileTask;
use super::handle::{Running, lock};
use super::poll::PollTask;
use super::sources::ServerInfo;
use super::stream::StreamTask;
use super::transport::PathWatch;
use crate::paths::path_of_stream;

impl Running {
    /// Starts the task of a server, in place of the one before. A server that
    /// cannot be asked for what it is to serve is refused instead.
    pub(super) fn connect(self: &Arc<Self>, id: ServerId) {
        let Some(info) = lock(&self.sources).info.get(&id).cloned() else {
            return;
        };
        let Some(task) = self.start_task(id, info) else {
            return self.refuse(id);
        };
        let previous = lock(&self.tasks).servers.insert(id, task.abort_handle());
        // A task before it has ended, unless the machine gave up its stream at
        // that moment.
        if let Some(previous) = previous {
            previous.abort();
        }
    }

    /// Starts the task of a server: a stream, polls, or the watch of a file.
    /// Returns `None`, and starts nothing, if there is no service for the only
    /// type of its streams, or if it is polled and is to serve all types.
    fn start_task(&self, id: ServerId, info: ServerInfo) -> Option<JoinHandle<()>> {
        match info {
            ServerInfo::Api {
                control_plane,
                transport,
                single_type,
            } => match transport {
                Transport::Grpc { mode, .. } => {
                    self.start_stream(id, control_plane, mode, single_type)
                }
                Transport::Rest {
                    refresh_delay,
                    request_timeout,
                } => {
                    let task = PollTask {
                        type_url: single_type?,
                        exchange: self.exchange(id, Mode::Sotw, Some((&control_plane, ""))),
                        connector: self.connector.clone(),
                        server: control_plane,
                        refresh_delay,
                        request_timeout,
                    };
                    Some(self.runtime.spawn(task.run()))
                }
            },
            ServerInfo::File { path, source } => {
                let task = FileTask {
                    exchange: self.exchange(id, Mode::Sotw, None),
                    source,
                    watch: PathWatch::new(&path, self.limits.message_bytes),
                };
                Some(self.runtime.spawn(task.run()))
            }
        }
    }

    /// Starts the task of a stream. Returns `None` if there is no service for
    /// its only type.
    fn start_stream(
        &self,
        id: ServerId,
        server: Arc<ControlPlane>,
        mode: Mode,
        single_type: Option<TypeUrl>,
    ) -> Option<JoinHandle<()>> {
        let path = path_of_stream(mode, single_type.as_ref())?;
        let task = StreamTask {
            exchange: self.exchange(id, mode, Some((&server, &path))),
            connector: self.connector.clone(),
            server,
            path,
        };
        Some(self.runtime.spawn(task.run()))
    }

    /// Makes the exchange of requests and responses with a server, and registers
    /// its waker. `stream` is the control plane and the path that observers see;
    /// a file has none.
    fn exchange(
        &self,
        id: ServerId,
        mode: Mode,
        stream: Option<(&Arc<ControlPlane>, &str)>,
    ) -> Exchange {
        let waker = Arc::new(Notify::new());
        self.shared
            .read(|state, _| state.wakers.insert(id, Arc::clone(&waker)));

        let info = stream.map(|(server, path)| StreamInfo {
            server: Arc::clone(server),
            path: path.to_owned(),
            number: self.attempts.fetch_add(1, Ordering::Relaxed) + 1,
        });
        Exchange {
            shared: Arc::clone(&self.shared),
            id,
            info,
            mode,
            node: self.manners.node.clone(),
            waker,
            limits: self.limits,
            observers: Arc::clone(&self.observers),
        }
    }

    /// Tells the machine that a server cannot be asked for the type, as if an
    /// attempt to connect had failed. It is for the driver's task, which polls for
    /// what follows.
    fn refuse(&self, id: ServerId) {
        let reason = "the type has no service of its own; use an aggregated stream";
        self.shared.change_without_waking(|state, now| {
            state.machine.handle_disconnected(id, reason, now);
        });
    }

    /// Ends the task of a server, and with it its stream. The machine has decided
    /// it, and is not told.
    pub(super) fn close(&self, id: ServerId) {
        self.shared.read(|state, _| state.wakers.remove(&id));
        if let Some(task) = lock(&self.tasks).servers.remove(&id) {
            task.abort();
        }
    }
}
