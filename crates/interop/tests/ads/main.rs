//! The server against real peers: what it serves takes effect in them.

mod journal;
mod ready;
mod resources;
mod serving;
