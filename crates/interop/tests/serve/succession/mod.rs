//! Contents that replace each other under load, by changes and by restarts of
//! the server: no client loses a request.

mod channel;
mod envoy;
mod grpc;
mod start;
