//! Virtual clients: each is a task with a stream, and a machine that speaks the
//! protocol on it.
//!
//! | file | concern |
//! |---|---|
//! | `spec` | who a client is and what it subscribes to |
//! | `full`, `light` | the two machines |
//! | `ledger` | the revisions that a client has seen, and whether they are right |
//! | `rejects` | which resources a client rejects |
//! | `pool` | connections: those of the library, shared or one each |
//! | `task` | a client's life: connect, receive, acknowledge, lose the stream, again |
//! | `demand` | which name is subscribed to next |
//! | `shared` | what all clients have in common |

mod demand;
mod full;
mod ledger;
mod light;
mod pool;
mod rejects;
mod shared;
mod spec;
mod task;

pub(crate) use demand::Zipf;
pub(crate) use ledger::Complete;
pub(crate) use pool::Pool;
pub(crate) use shared::{Orders, Shared};
pub(crate) use spec::Spec;
pub(crate) use task::{Ended, run};
