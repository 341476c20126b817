//! Real peers for tests.
//!
//! [`Envoy`] starts the released binary, waits until it is ready and asks its
//! admin page; [`Backend`] is what requests through it end at; [`bootstrap`]
//! holds the configurations that make it a client of an ADS server. Everything
//! listens on loopback, waits a bounded time and is gone when its value is
//! dropped.
//!
//! ```no_run
//! use interop::{Backend, Envoy, Mode, assert_no_init_fetch_timeout, bootstrap, http};
//!
//! # fn server(backend: std::net::SocketAddr) -> u16 { 0 }
//! # fn main() -> std::io::Result<()> {
//! let backend = Backend::start("hello");
//! let ads_port = server(backend.address()); // the server under test
//! let envoy = Envoy::start(&bootstrap::ads(ads_port, Mode::Delta, "node-1"));
//! if let Some(listener) = envoy.listener("http") {
//!     assert_eq!(http::get(listener, "/")?.body, "hello");
//! }
//! assert_no_init_fetch_timeout(&envoy);
//! # Ok(())
//! # }
//! ```
//!
//! `cargo xtask setup` installs the peers. All calls block: from an async
//! test, make them on a thread of their own, and let the server under test run
//! on another.
//!
//! This is a harness, so what cannot go on panics with the reason and, for a
//! peer, the end of its log.
#![forbid(unsafe_code)]

mod backend;
pub mod bootstrap;
mod envoy;
pub mod http;
mod place;
mod port;
mod process;
mod script;

pub use backend::Backend;
pub use bootstrap::Mode;
pub use envoy::{Envoy, assert_no_init_fetch_timeout};
pub use place::python;
pub use port::free_port;
pub use script::Script;
