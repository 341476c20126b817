//! Streams and polls over real sockets of the loopback, and files.

mod certs;
mod connections;
mod path_watch;
mod peer;
mod rest;
mod streams;
mod tls;
