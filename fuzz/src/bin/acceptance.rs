//! Bodies of any bytes, by every policy: accepted or rejected, within bounds,
//! and twice the same.
#![no_main]

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use trunkline_proto::acceptance::{
    MAX_FINDINGS, MAX_TEXT, Policy, Rejection, Report, Unsupported, accept,
};
use trunkline_proto::descriptor::types;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    of_type: u8,
    profile: u8,
    is_strict: bool,
    body: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut policy = match input.profile % 3 {
        0 => Policy::generic(),
        1 => Policy::grpc(),
        _ => Policy::envoy(),
    };
    policy.certificate_providers.insert("a".to_owned());
    if input.is_strict {
        policy.unsupported = Unsupported::Strict;
    }
    let url = types::ALL[usize::from(input.of_type) % types::ALL.len()];
    let body = Bytes::copy_from_slice(input.body);
    let first = judge(url, &body, &policy);
    assert_eq!(first, judge(url, &body, &policy));

    // What a strict policy takes, any takes.
    policy.unsupported = Unsupported::Lenient;
    if first.is_ok() {
        assert!(judge(url, &body, &policy).is_ok());
    }
});

fn judge(url: &str, body: &Bytes, policy: &Policy) -> Result<Report, Rejection> {
    let result = accept(url, body, policy).map(|accepted| accepted.report);
    match &result {
        Ok(report) => {
            assert!(report.ignored.len() <= MAX_FINDINGS);
            assert!(report.unsupported.len() <= MAX_FINDINGS);
            for ignored in &report.ignored {
                let _ = ignored.to_string();
            }
        }
        Err(rejection) => {
            assert!(!rejection.reasons.is_empty());
            assert!(rejection.reasons.len() <= MAX_FINDINGS);
            assert!(rejection.to_string().len() <= MAX_TEXT);
        }
    }
    result
}
