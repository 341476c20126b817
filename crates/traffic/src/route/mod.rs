//! Routes: from a request to a virtual host, a route and what it does (34-39,
//! 46-53).
//!
//! ```text
//! RouteConfiguration ── compile ──▶ RouteTable
//!                                      │ find(request, random)
//!                                      ▼
//!            domains ─▶ VirtualHost ─▶ criteria of each Route, in order
//!                                      │
//!                                      ▼
//!     RouteMatch ── forward ──▶ cluster, path, host, hash, mirrors
//!                │                └─ leave ─▶ the request that leaves
//!                └─ location ─▶ redirect        └─ direct response
//! ```
//!
//! A table is immutable. Virtual hosts that come on demand make a new table
//! that shares all but a few branches with the one before.

mod action;
mod cluster;
mod criteria;
mod direct;
mod domains;
mod filters;
mod forward;
mod hash_policy;
mod header;
mod leave;
mod mirror;
mod mutations;
mod path;
mod query;
mod redirect;
mod rewrite;
mod scope;
mod table;
#[cfg(test)]
mod tests;
mod virtual_host;

pub use action::{Action, Forwarding, Priority};
pub use cluster::{ChosenCluster, WeightedEntry};
pub use criteria::Mismatch;
pub(crate) use criteria::compile_each;
pub use direct::DirectResponse;
pub use filters::FilterConfig;
pub use forward::{Context, Forward};
pub(crate) use header::HeaderMatcher;
pub use leave::Leaving;
pub use mirror::Mirror;
pub(crate) use query::parameter;
pub use redirect::Redirect;
pub use scope::ScopedRoutes;
pub use table::{NoRoute, RouteMatch, RouteTable};
pub use virtual_host::{Route, VirtualHost};
