//! The allocator of the program, and the two calls by which the memory of a
//! burst goes back to the system, whichever C library the program is built for.
#![allow(
    unsafe_code,
    reason = "the crate of the allocator has no safe function for this one"
)]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// Sound: this is the declaration in `mimalloc.h`, in which a C `bool` is a Rust
// one, and any thread may call it at any time outside of the allocator.
unsafe extern "C" {
    safe fn mi_collect(force: bool);
}

/// Frees the pages of the calling thread whose pieces are free, whoever freed
/// them. They stay with the process until [`purge`].
pub(crate) fn collect() {
    mi_collect(false);
}

/// Returns free pages of all threads to the system: some milliseconds for a
/// hundred megabytes.
pub(crate) fn purge() {
    mi_collect(true);
}
