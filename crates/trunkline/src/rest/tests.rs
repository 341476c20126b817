//! Polls as Envoy makes them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use serde_json::{Value, json};
use trunkline_core::kind;
use trunkline_core::message::{Form, Locator, SotwResponse, WireResource};
use trunkline_core::resource::Resource;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::text::Loss;

use super::*;

fn poll(body: &Value) -> Result<Read, RestError> {
    read(
        kind::CDS,
        body.to_string().as_bytes(),
        &RestLimits::default(),
    )
}

#[test]
fn a_path_gives_one_type() {
    for (path, kind) in PATHS {
        assert_eq!(kind_of_path(path), Some(*kind));
        assert!(trunkline_proto::descriptor::message(kind).is_some());
    }
    assert_eq!(kind_of_path("/v3/discovery:clusters/"), None);
    assert_eq!(kind_of_path("/v2/discovery:clusters"), None);
}

/// The paths are those in the files of Envoy's services.
#[test]
fn paths_are_envoys_own() {
    let pool = trunkline_proto::descriptor::pool();
    let http = pool.get_extension_by_name("google.api.http").unwrap();
    let paths: Vec<_> = pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
        .filter_map(|method| {
            let rule = method.options().get_extension(&http).into_owned();
            let post = rule.as_message()?.get_field_by_name("post")?.into_owned();
            Some(post.as_str()?.to_owned())
        })
        .filter(|path| path.starts_with("/v3/discovery:"))
        .collect();
    for (path, _) in PATHS {
        assert!(paths.iter().any(|known| known == path), "{path}");
    }
    // The others are client status and health discovery.
    assert_eq!(paths.len(), PATHS.len() + 2, "{paths:?}");
}

#[test]
fn a_poll_is_read_and_the_rest_of_the_node_is_passed_over() {
    let request = json!({
        "version_info": "7",
        "node": {
            "id": "n", "cluster": "c", "user_agent_name": "envoy",
            "client_features": ["f"],
            "user_agent_build_version": {"version": {"major_number": 1}},
            "extensions": [{"name": "x", "disabled": null}],
            "metadata": {"deep": [[[1.5, {"a": null}]]]},
        },
        "resource_names": ["a", "b"],
        "type_url": kind::CDS,
        "later": {"unknown": true},
    });
    let read = poll(&request).unwrap();
    assert_eq!(read.refused, 0);
    let request = read.request;
    let node = request.node.unwrap();
    assert_eq!(
        (&*node.id, &*node.cluster, &*node.user_agent),
        ("n", "c", "envoy")
    );
    assert_eq!(node.client_features, ["f"]);
    assert_eq!(request.names, [Locator::from("a"), Locator::from("b")]);
    assert_eq!(request.version, Some("7".into()));
    assert_eq!(request.type_url, Some(kind::CDS.into()));
}

#[test]
fn a_first_poll_says_next_to_nothing() {
    let request = poll(&json!({"resourceNames": null, "versionInfo": ""}))
        .unwrap()
        .request;
    assert_eq!((request.version, request.names.len()), (None, 0));
    assert!(request.node.is_some());
}

#[test]
fn a_poll_that_is_no_poll_is_refused() {
    let wrong = poll(&json!({"type_url": kind::LDS})).unwrap_err();
    assert!(matches!(wrong, RestError::WrongType { .. }));
    let told: Value = serde_json::from_str(&wrong.to_json()).unwrap();
    assert_eq!(told["code"], 400);
    assert!(told["message"].as_str().unwrap().contains(kind::CDS));

    let malformed = poll(&json!({"resource_names": "a"})).unwrap_err();
    assert!(matches!(malformed, RestError::Malformed(_)));
    let long = poll(&json!({"version_info": "x".repeat(20_000)})).unwrap_err();
    assert!(matches!(
        long,
        RestError::TooLong {
            field: "version_info",
            ..
        }
    ));
    let deep = "[".repeat(100_000);
    let deep = read(
        kind::CDS,
        format!("{{\"node\":{{\"metadata\":{deep}").as_bytes(),
        &RestLimits::default(),
    );
    assert!(matches!(deep, Err(RestError::Malformed(_))));
    let limits = RestLimits {
        body_bytes: 10,
        ..RestLimits::default()
    };
    let large = read(kind::CDS, &[b' '; 11], &limits).unwrap_err();
    assert_eq!(large.status(), 413);
}

#[test]
fn s72_names_beyond_a_limit_cost_only_themselves() {
    let limits = RestLimits {
        names: 2,
        name_bytes: 3,
        ..RestLimits::default()
    };
    let body = json!({"resource_names": ["long", "a", "b", "c"]}).to_string();
    let read = read(kind::CDS, body.as_bytes(), &limits).unwrap();
    assert_eq!(read.request.names, [Locator::from("a"), Locator::from("b")]);
    assert_eq!(read.refused, 2);
}

fn cluster(name: &str) -> Resource {
    let cluster = Cluster {
        name: name.into(),
        ..Cluster::default()
    };
    Resource::new(name.into(), cluster.encode_to_vec().into())
}

fn response(type_url: &str, resources: Vec<WireResource>) -> SotwResponse {
    SotwResponse {
        type_url: type_url.into(),
        version: "7".into(),
        nonce: "1".into(),
        resources: resources.into(),
        errors: Vec::new(),
        removed: Vec::new(),
    }
}

fn json(written: &Written) -> Value {
    serde_json::from_str(&written.body).unwrap()
}

#[test]
fn a_response_is_written_as_envoy_reads_it() {
    let wrapped = Resource {
        ttl: Some(Duration::from_millis(1500)),
        ..cluster("b")
    };
    let resources = vec![
        WireResource::full(Arc::new(cluster("a"))),
        WireResource {
            resource: Arc::new(wrapped),
            form: Form::Wrapped,
        },
    ];
    let written = write(&response(kind::CDS, resources), "me");
    assert_eq!(written.left_out, []);
    let json = json(&written);
    assert_eq!(json["version_info"], "7");
    assert_eq!(json["type_url"], kind::CDS);
    assert_eq!(json["control_plane"]["identifier"], "me");
    assert_eq!(
        json["resources"][0],
        json!({"@type": kind::CDS, "name": "a"})
    );
    let wrapped = &json["resources"][1];
    assert!(
        wrapped["@type"]
            .as_str()
            .unwrap()
            .ends_with("discovery.v3.Resource")
    );
    assert_eq!(wrapped["ttl"], "1.5s");
    assert_eq!(wrapped["resource"]["name"], "b");
}

#[test]
fn what_json_cannot_say_is_left_out_and_told() {
    // Field 1000, which is unknown.
    let newer = Resource::new("newer".into(), Bytes::from_static(b"\xc2\x3e\x01x"));
    let all = [cluster("a"), newer];
    let all = all.map(|resource| WireResource::full(Arc::new(resource)));
    let written = write(&response(kind::CDS, all.to_vec()), "me");
    assert_eq!(json(&written)["resources"].as_array().unwrap().len(), 1);
    let [left] = &written.left_out[..] else {
        panic!("{written:?}")
    };
    assert_eq!(left.name.as_str(), "newer");
    assert!(matches!(left.loss, Loss::Field { .. }));

    let opaque = write(&response("t/no.such.Type", all[..1].to_vec()), "me");
    assert_eq!(opaque.left_out.len(), 1);
    assert_eq!(json(&opaque)["resources"], Value::Null);
}
