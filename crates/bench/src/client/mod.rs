//! Virtual clients: each is a task with a stream, and a machine that knows what
//! to say on it.
//!
//! | file | concern |
//! |---|---|
//! | `spec` | who a client is and what it asks for |
//! | `full`, `light` | the two machines |
//! | `ledger` | what a client has seen, and whether that is right |
//! | `rejects` | what a client rejects |
//! | `call`, `pool`, `tls` | streams and connections |
//! | `task` | a client's life: connect, hear, answer, lose the stream, again |
//! | `demand` | which name is asked for next |
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
