//! Load reports from any bytes: what is handed on is within the limits, and the
//! same when it is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use trunkline_proto::load_stats::{ClusterStats, ReportLimits, read};

/// Within reach of a short input.
const SMALL: ReportLimits = ReportLimits {
    clusters: 3,
    entries: 8,
};

fuzz_target!(|data: &[u8]| {
    for limits in [ReportLimits::default(), SMALL] {
        let mut found = Vec::new();
        let read_whole = read(data, &limits, |stats| found.push(stats));
        assert!(found.len() <= limits.clusters);
        for stats in &found {
            assert!(entries(stats) <= limits.entries, "{stats:?}");
        }
        if read_whole.is_ok() {
            again(&found, &limits);
        }
    }
});

/// The nested messages of a cluster.
fn entries(stats: &ClusterStats) -> usize {
    let localities = stats.upstream_locality_stats.iter();
    let inner = localities.map(|locality| {
        let endpoints = locality.upstream_endpoint_stats.iter();
        let metrics = endpoints.map(|endpoint| 1 + endpoint.load_metric_stats.len());
        1 + locality.load_metric_stats.len() + metrics.sum::<usize>()
    });
    stats.dropped_requests.len() + inner.sum::<usize>()
}

fn again(found: &[ClusterStats], limits: &ReportLimits) {
    let mut bytes = Vec::new();
    for stats in found {
        bytes.push(0x12);
        prost::encoding::encode_varint(stats.encoded_len() as u64, &mut bytes);
        stats.encode_raw(&mut bytes);
    }
    let mut again = Vec::new();
    let read = read(&bytes, limits, |stats| again.push(stats));
    // Writing sorts fields, and joins messages that came in parts; it adds none.
    let read = read.expect("what was written is a report");
    assert_eq!(read.refused, 0);
    let bytes_of =
        |all: &[ClusterStats]| all.iter().map(Message::encode_to_vec).collect::<Vec<_>>();
    assert_eq!(bytes_of(&again), bytes_of(found));
}
