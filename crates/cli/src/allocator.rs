//! The allocator of the program, and the calls by which the memory of a burst
//! goes back to the system.
//!
//! | C library | allocator | what goes back |
//! |---|---|---|
//! | glibc | its own | every page of 4 KiB on which nothing is in use |
//! | another | mimalloc, as musl's is slow | the same of pages of 64 KiB to 4 MiB |
//!
//! Load reports and replaced bodies live on among what a burst lets go of, and
//! each keeps its page. So what is kept in numbers is best kept in blocks, as
//! events are.
#![allow(
    unsafe_code,
    reason = "no crate of the program has safe functions for these calls"
)]

pub(crate) use self::chosen::{IS_BY_THREAD, collect, purge, set_up};

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod chosen {
    use std::ffi::c_int;

    /// Whether each thread has pages that only it can free: here a piece goes
    /// back to its arena at once, whichever thread frees it.
    pub(crate) const IS_BY_THREAD: bool = false;

    /// The parameters of `malloc.h`.
    const TRIM_THRESHOLD: c_int = -1;
    const MMAP_THRESHOLD: c_int = -3;
    const ARENA_MAX: c_int = -8;

    /// The bytes that an arena keeps at its end, where `malloc_trim` looks in one
    /// arena only, and the size from which a piece has pages of its own, which go
    /// back with it. Left alone, both grow with the pieces that are freed, up to
    /// 64 and 32 MiB; smaller than this, lists of some hundred kilobytes cost a
    /// system call each.
    const LARGE: c_int = 4 << 20;

    // Sound: these are the declarations in `malloc.h`. Any thread may call them
    // at any time outside of the allocator, whose locks they take themselves.
    unsafe extern "C" {
        safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
        safe fn malloc_trim(pad: usize) -> c_int;
    }

    /// Bounds what the allocator keeps. To be called before other threads start:
    /// an arena is never given up. Each processor has one, rather than eight.
    /// Huge pages would be made of pages that went back.
    pub(crate) fn set_up() {
        // A system without them does not know the call.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let arenas = c_int::try_from(processors.max(2)).unwrap_or(c_int::MAX);
        mallopt(ARENA_MAX, arenas);
        mallopt(TRIM_THRESHOLD, LARGE);
        mallopt(MMAP_THRESHOLD, LARGE);
    }

    /// Nothing: see [`IS_BY_THREAD`].
    pub(crate) fn collect() {}

    /// Returns free pages of all threads to the system: a millisecond, or some
    /// tens of them after a large burst.
    pub(crate) fn purge() {
        malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod chosen {
    #[global_allocator]
    static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

    /// Whether each thread has pages that only it can free.
    pub(crate) const IS_BY_THREAD: bool = true;

    // Sound: this is the declaration in `mimalloc.h`, in which a C `bool` is a
    // Rust one, and any thread may call it at any time outside of the
    // allocator.
    unsafe extern "C" {
        safe fn mi_collect(force: bool);
    }

    /// Nothing: the defaults are good.
    pub(crate) fn set_up() {}

    /// Frees the pages of the calling thread whose pieces are free, whoever
    /// freed them. They stay with the process until [`purge`].
    pub(crate) fn collect() {
        mi_collect(false);
    }

    /// Returns free pages of all threads to the system: some milliseconds for a
    /// hundred megabytes.
    pub(crate) fn purge() {
        mi_collect(true);
    }
}
