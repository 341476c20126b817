//! Polls over REST from any text: what is handed on is within the limits, and
//! the same when it is written and read again.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use trunkline::kind::CDS;
use trunkline::rest::{Read, RestLimits, read};

/// Within reach of a short input.
const SMALL: RestLimits = RestLimits {
    body_bytes: 2048,
    text_bytes: 16,
    name_bytes: 8,
    names: 4,
    features: 2,
    metadata: true,
};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    /// The fields of a request, so that not every input has to find an object.
    is_open: bool,
    text: &'a str,
}

fuzz_target!(|input: Input<'_>| {
    let body = match input.is_open {
        true => format!("{{{}}}", input.text),
        false => input.text.to_owned(),
    };
    for limits in [RestLimits::default(), SMALL] {
        match read(CDS, body.as_bytes(), &limits) {
            Ok(read) => check(&read, &limits),
            Err(error) => {
                assert!(error.status().is_client_error());
                assert!(serde_json::from_str::<serde_json::Value>(&error.to_json()).is_ok());
            }
        }
    }
});

fn check(poll: &Read, limits: &RestLimits) {
    let request = &poll.request;
    let node = request.node.as_ref().expect("it always has one");
    let version = request.version.as_ref().map(ToString::to_string);
    let names = request.names.iter().map(|locator| locator.name.as_str());
    let names: Vec<&str> = names.collect();
    assert_eq!(request.type_url, Some(CDS.into()));
    assert!(names.len() <= limits.names && node.client_features.len() <= limits.features);
    assert!(names.iter().all(|name| name.len() <= limits.name_bytes));
    let texts = [&node.id, &node.cluster, &node.user_agent].into_iter();
    let mut texts = texts.chain(&node.client_features).chain(&version);
    assert!(texts.all(|text| text.len() <= limits.text_bytes));

    let written = json!({
        "version_info": version,
        "node": {
            "id": node.id,
            "cluster": node.cluster,
            "user_agent_name": node.user_agent,
            "client_features": node.client_features,
        },
        "resource_names": names,
    });
    let again = read(CDS, written.to_string().as_bytes(), &RestLimits::default());
    let again = again.expect("what was written is a poll");
    assert_eq!((&again.request, again.refused), (request, 0));
}
