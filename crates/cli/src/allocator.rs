//! The allocator of the program, whichever C library it is built for. Its own
//! threads return memory that nobody uses to the system, a second after the end
//! of a burst.
//!
//! What lives long, such as the events that are kept, is allocated among what a
//! burst lets go of. So it matters how much memory one such value keeps: here a
//! few pages of the system, and only its own pages if it has 16 KiB or more.
#![allow(
    unsafe_code,
    reason = "the allocator finds its configuration by the name of a symbol"
)]

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The configuration. Few arenas, as each has partly used pages of its own, and
/// no huge pages, which are partly used for longer.
// Sound: no other symbol has this name, and the allocator reads a text that ends
// with a zero.
#[unsafe(export_name = "_rjem_malloc_conf")]
static CONFIGURATION: &[u8; 80] =
    b"background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:4,thp:never\0";

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use trunkline::memory::Memory;

    /// Values of a burst, and one of so many that lives on: some 64 KiB lie
    /// between two of these.
    const BURST: usize = 1_000_000;
    const EACH: usize = 512;
    const BYTES: usize = 128;

    #[test]
    fn a_few_values_that_live_on_keep_little_of_a_burst() {
        let resident = || Memory::new(None).resident();
        let before = resident();
        let burst: Vec<Box<[u8; BYTES]>> = (0..BURST).map(|n| Box::new([n as u8; BYTES])).collect();
        assert!(resident() > before + (BURST * BYTES) as u64 * 3 / 4);
        let lasting: Vec<_> = burst.into_iter().step_by(EACH).collect();
        let begun = Instant::now();
        // Other tests take some meanwhile.
        let most = before + (BURST * BYTES) as u64 / 2;
        while resident() > most {
            let kept = (resident() - before) >> 20;
            assert!(begun.elapsed() < Duration::from_secs(30), "{kept} MiB");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(lasting.len(), BURST.div_ceil(EACH));
    }
}
