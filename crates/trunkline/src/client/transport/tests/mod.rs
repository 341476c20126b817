//! Streams over real sockets of the loopback.

mod certs;
mod connections;
mod peer;
mod streams;
mod tls;
