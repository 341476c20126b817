//! A tonic channel for `xds:///service`: calls go where the control plane says.
//!
//! ```text
//!   call ─▶ Table ── Routes ─▶ Clusters ── Endpoints ─▶ Subchannel ─▶ connection
//!             ▲                                            ▲
//!    one for each snapshot                 shared by address, from table to table
//! ```
//!
//! | module | concern |
//! |---|---|
//! | `builder`, `service` | the channel, as its users see it |
//! | `call` | the life of a call: route, faults, attempts |
//! | `replay`, `reply` | the body of a call, which can be sent again; the body of a reply |
//! | `table` | what one snapshot says: routes, filters, clusters |
//! | `grpc` | what of Envoy's messages counts for gRPC |
//! | `route` | from a call to a cluster |
//! | `cluster`, `endpoints`, `first`, `hosts` | from a cluster to an endpoint, and what is counted of calls |
//! | `outlier`, `fault` | endpoints that are ejected; calls that fail on purpose |
//! | `session` | cookies that keep calls at one endpoint |
//! | `subchannel`, `first_bytes` | one connection to one endpoint, made again when it is lost |
//! | `tls` | how connections to the endpoints of a cluster are made secure |
//!
//! The decisions are those of `trunkline-traffic`, over the fields that gRPC's
//! designs name (A27 and those after it); numbers with an A are theirs.
//!
//! A call uses one table from its route to its endpoint, so it never sees half
//! of a change. A call whose endpoint is being connected to waits; one that was
//! not sent is given to another endpoint.

mod builder;
mod call;
mod cluster;
mod endpoints;
mod fault;
mod first;
mod first_bytes;
mod grpc;
mod hosts;
mod outlier;
mod replay;
mod reply;
mod route;
mod service;
mod session;
mod subchannel;
mod table;
mod tls;

pub use builder::XdsChannelBuilder;
pub use reply::ReplyBody;
pub use service::XdsChannel;
