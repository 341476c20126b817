//! The memory that reading a text takes, by the allocator's own count.

use peak_alloc::PeakAlloc;
use trunkline_proto::text::{self, Format, Limits, Options, Problem, TextError};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Runs something; returns how many bytes it held at most, beyond those before.
fn peak_of<T>(run: impl FnOnce() -> T) -> (u64, T) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = run();
    let peak = ALLOCATOR.peak_usage().saturating_sub(before);
    (peak as u64, result)
}

/// Values for the metadata of a node or of a cluster, each of which takes much
/// memory for its bytes.
fn metadata(count: usize) -> Vec<(&'static str, String)> {
    let list = |item: &str| format!("{{a: [{}]}}", item.repeat(count));
    let keys = (0..count).map(|n| format!("k{n}: 0,"));
    vec![
        ("numbers", list("0,")),
        ("nulls", list("~,")),
        ("words", list("a,")),
        ("mappings", list("{},")),
        ("lists", list("[[]],")),
        ("entries", list("{a: 0},")),
        ("keys", format!("{{{}}}", keys.collect::<String>())),
    ]
}

fn clusters(body: &str, count: usize) -> String {
    const TYPE: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    let item = format!("- {{'@type': {TYPE}, {body}}}\n");
    format!("resources:\n{}", item.repeat(count))
}

fn is_too_heavy(errors: &[TextError]) -> bool {
    errors
        .iter()
        .any(|error| matches!(error.problem, Problem::TooHeavy { .. }))
}

/// The only test here, because the allocator counts for the whole process.
#[test]
fn a_text_takes_no_more_memory_than_it_may() {
    const COUNT: usize = 40_000;
    let limits = Limits {
        memory: 8 << 20,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    // What is built once is not the text's.
    let _ = text::read("a.yaml", &clusters("name: a", 1), &options);
    let _ = text::read_node(Format::Yaml, "a", "{id: a, metadata: {}}", &options);

    let check = |what: &str, text: &str, peak: u64, errors: &[TextError]| {
        assert!(is_too_heavy(errors), "{what}: {errors:?}");
        let allowed = limits.memory + limits.memory / 8;
        assert!(peak <= allowed, "{what}: {peak} of {} bytes", text.len());
    };
    for (what, value) in metadata(COUNT) {
        let node = format!("{{id: a, metadata: {value}}}");
        let read = || text::read_node(Format::Yaml, "a", &node, &options);
        let (peak, read) = peak_of(read);
        check(what, &node, peak, &read.unwrap_err());
        let cluster = clusters(&format!("metadata: {{filter_metadata: {{a: {value}}}}}"), 1);
        let (peak, read) = peak_of(|| text::read("a.yaml", &cluster, &options));
        check(what, &cluster, peak, &read.errors);
    }
    for (what, text) in [
        ("resources", clusters("name: a", COUNT)),
        ("texts", format!("resources: [{}]", "a,".repeat(4 * COUNT))),
        (
            "empty messages",
            clusters(
                &format!("transport_socket_matches: [{}]", "{},".repeat(COUNT)),
                1,
            ),
        ),
        ("documents", "--- 0\n".repeat(4 * COUNT)),
    ] {
        let (peak, read) = peak_of(|| text::read("a.yaml", &text, &options));
        check(what, &text, peak, &read.errors);
    }
    let (_, json) = metadata(COUNT).swap_remove(0);
    let json = json.replace("a:", "\"a\":").replace(",]", "]");
    let (peak, read) = peak_of(|| text::parse(Format::Json, "a", &json, &limits));
    assert!(read.is_ok(), "its tree is small: {peak}");
}
