//! Files as an operator has them: written, replaced, swapped, broken, removed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod broken;
mod compact;
mod edits;
mod forms;
mod hosts;
mod place;
mod random;
mod secrets;
mod set;
