//! A tonic channel for `xds:///service`: calls go where the control plane says.
//!
//! ```text
//!   call ─▶ Table ── route ─▶ cluster ── Balancer ─▶ Subchannel ─▶ connection
//!             ▲                                          ▲
//!    one for each snapshot               shared by address, from table to table
//! ```
//!
//! | module | concern |
//! |---|---|
//! | `builder`, `service` | the channel, and the life of a call |
//! | `table` | what one snapshot says: routes, and the clusters that they lead to |
//! | `route` | from a call to a cluster: a trait, and a plain one |
//! | `balancer` | from a cluster to an endpoint: round robin in the order of priorities |
//! | `subchannel` | one connection to one endpoint, made again when it is lost |
//!
//! A call uses one table from its route to its endpoint, so it never sees half
//! of a change. A call whose endpoint is being connected to waits; one that was
//! not sent is given to another endpoint.

mod balancer;
mod builder;
mod route;
mod service;
mod subchannel;
mod table;

pub use builder::XdsChannelBuilder;
pub use route::{PathRouter, Router};
pub use service::XdsChannel;
