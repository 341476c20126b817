//! Real clients for tests.
//!
//! [`Envoy`] starts the released binary, waits until it is ready and asks its
//! admin page; [`Script`] runs gRPC in Python; [`Backend`] and [`GrpcBackend`]
//! are where requests end, and [`Flow`] sends them; [`Gate`] stands before a
//! server, near or far; [`bootstrap`] holds the configurations that make Envoy
//! a client of a server; [`Serving`] is that server, and its [`Journal`] the
//! reports of it; [`Served`] is the program as a server; [`succession`] is
//! contents that replace each other under load; [`control_plane`] is the other
//! way round, a server of go-control-plane for Trunkline's client. Everything listens on loopback, waits a bounded time and ends when its
//! value is dropped.
//!
//! ```no_run
//! use interop::{Backend, Envoy, Mode, Serving, assert_no_init_fetch_timeout, bootstrap, http};
//!
//! # fn contents(backend: std::net::SocketAddr) -> Vec<trunkline::Change> { Vec::new() }
//! # fn main() -> std::io::Result<()> {
//! let backend = Backend::start("hello");
//! let serving = Serving::start(contents(backend.address()));
//! let envoy = Envoy::start(&bootstrap::ads(serving.port, Mode::Delta, "node-1"));
//! if let Some(listener) = envoy.listener("http") {
//!     assert_eq!(http::get(listener, "/")?.body, "hello");
//! }
//! assert_no_init_fetch_timeout(&envoy);
//! # Ok(())
//! # }
//! ```
//!
//! `cargo xtask setup` installs the clients. All calls block: from an async
//! test, make them on a thread of their own.
//!
//! This is a harness: it panics where it cannot go on, with the reason and, for
//! a client, the end of its log.
#![forbid(unsafe_code)]

mod backend;
pub mod bootstrap;
pub mod control_plane;
mod envoy;
mod flow;
mod gate;
mod grpc_backend;
pub mod http;
mod journal;
mod late;
mod place;
mod port;
mod process;
mod program;
mod script;
mod serving;
pub mod succession;

pub use backend::Backend;
pub use bootstrap::Mode;
pub use envoy::{Envoy, assert_no_init_fetch_timeout};
pub use flow::{Flow, Flowed};
pub use gate::Gate;
pub use grpc_backend::GrpcBackend;
pub use journal::{Entry, Journal, Sent};
pub use place::{envoy, folder, python, venv};
pub use port::free_port;
pub use program::{Served, trunkline};
pub use script::Script;
pub use serving::{Serving, of_files, of_store};
