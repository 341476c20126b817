//! Virtual clients: each is a task with a stream, and a machine that speaks the
//! protocol on it.
//!
//! | file | concern |
//! |---|---|
//! | `spec` | who a client is and what it subscribes to |
//! | `full`, `light` | the two machines |
//! | `ledger` | the revisions that a client has seen, and whether they are right |
//! | `rejects` | which resources a client rejects |
//! | `call`, `pool`, `tls` | streams and connections |
//! | `task` | a client's life: connect, receive, acknowledge, lose the stream, again |
//! | `demand` | which name is subscribed to next |
//! | `shared` | what all clients have in common |

mod call;
mod demand;
mod full;
mod ledger;
mod light;
mod pool;
mod rejects;
mod shared;
mod spec;
mod task;
mod tls;

pub(crate) use demand::Zipf;
pub(crate) use ledger::Complete;
pub(crate) use pool::Pool;
pub(crate) use shared::{Orders, Shared};
pub(crate) use spec::Spec;
pub(crate) use task::{Ended, run};
pub(crate) use tls::Tls;
pub use tls::TlsFault;
