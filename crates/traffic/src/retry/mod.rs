//! Retries, timeouts and hedging of one request (40-45).
//!
//! A [`RetryPolicy`] comes from a route; a [`RetryState`] judges one request by
//! it; an [`Exchange`] adds the timeouts. Back-off is drawn from a number that
//! the caller brings, and nothing here waits.

mod back_off;
mod conditions;
mod directions;
mod exchange;
mod policy;
mod reply;
mod state;
#[cfg(test)]
mod tests;
mod timeouts;

pub use conditions::{Conditions, Reset};
pub use directions::remove_directions;
pub use exchange::{Exchange, Step};
pub use policy::RetryPolicy;
pub use reply::Reply;
pub use state::{RetryContext, RetryState, RetryVerdict};
pub(crate) use timeouts::RouteTimeouts;
pub use timeouts::{Timeouts, grpc_timeout};
