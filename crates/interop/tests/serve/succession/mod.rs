//! Contents that replace each other under load, by changes and by restarts of
//! the server: no client loses a request.

mod envoy;
mod grpc;
mod start;
