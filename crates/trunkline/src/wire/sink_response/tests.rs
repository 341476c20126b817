//! A client reads what a server writes, and rejects what no server should
//! write.

use super::super::response::{encode_delta_frames, encode_sotw_frames};
use super::*;
use prost::Message as _;
use trunkline_core::kind;
use trunkline_core::resource::ErrorCode;

fn resource(name: &str) -> resource::Resource {
    let body = [b"\x0a", &[name.len() as u8][..], name.as_bytes()].concat();
    resource::Resource::new(Name::new(name), body.into())
}

fn read(mode: Mode, bytes: Vec<u8>) -> ReceivedResponse {
    read_response(mode, bytes.into(), &Limits::default()).unwrap()
}

fn reasons(received: &ReceivedResponse) -> Vec<(Option<&str>, &str)> {
    let each = received.unreadable.iter();
    each.map(|r| (r.name.as_ref().map(Name::as_str), r.reason.as_str()))
        .collect()
}

#[test]
fn a_delta_response_is_read_as_it_was_said() {
    let constraints: Constraints = "env=prod".parse().unwrap();
    let variant = resource::Resource {
        aliases: Box::new(["b".into()]),
        ttl: Some(std::time::Duration::from_millis(1500)),
        constraints: Some(constraints.clone()),
        ..resource("a")
    };
    let beat = resource::Resource {
        ttl: Some(std::time::Duration::from_secs(3)),
        body: None,
        ..resource("h")
    };
    let absent = resource::Resource {
        aliases: Box::new(["n".into()]),
        body: None,
        ..resource("n")
    };
    let error = resource::ResourceError {
        code: ErrorCode::PermissionDenied,
        message: "not for you".into(),
    };
    let said = DeltaResponse {
        type_url: kind::CDS.into(),
        nonce: "1".into(),
        resources: vec![
            WireResource::full(Arc::new(variant)),
            WireResource {
                resource: Arc::new(beat),
                form: Form::Heartbeat,
            },
            WireResource::full(Arc::new(absent)),
        ]
        .into(),
        removed: vec!["gone".into()],
        removed_variants: vec![("c".into(), Some(constraints))],
        errors: vec![("e".into(), Arc::new(error))],
    };
    let bytes = encode_delta_frames(&said, "me", 3).to_bytes();
    let received = read(Mode::Delta, bytes.to_vec());
    assert_eq!(received.response, Response::Delta(said));
    assert_eq!(received.unreadable, []);
}

#[test]
fn a_state_of_the_world_response_is_read_wrapped_or_not() {
    let lasting = resource::Resource {
        ttl: Some(std::time::Duration::from_secs(3)),
        ..resource("b")
    };
    let wrapped = WireResource {
        resource: Arc::new(lasting),
        form: Form::Wrapped,
    };
    let bare = WireResource::full(Arc::new(resource("a")));
    let said = |resources: Vec<WireResource>| SotwResponse {
        type_url: kind::CDS.into(),
        version: "v".into(),
        nonce: "1".into(),
        resources: resources.into(),
        errors: Vec::new(),
        removed: Vec::new(),
    };
    let bytes = encode_sotw_frames(&said(vec![bare.clone(), wrapped.clone()]), "me").to_bytes();
    let received = read(Mode::Sotw, bytes.to_vec());
    // A wrapper is no part of the resource.
    let wrapped = WireResource {
        form: Form::Full,
        ..wrapped
    };
    assert_eq!(received.response, Response::Sotw(said(vec![bare, wrapped])));
    assert_eq!(received.unreadable, []);
}

#[test]
fn bodies_are_slices_of_what_was_received() {
    let one = WireResource::full(Arc::new(resource("a")));
    let said = DeltaResponse {
        type_url: kind::CDS.into(),
        nonce: "1".into(),
        resources: vec![one].into(),
        removed: Vec::new(),
        removed_variants: Vec::new(),
        errors: Vec::new(),
    };
    let raw = encode_delta_frames(&said, "me", 3).to_bytes();
    let received = read_response(Mode::Delta, raw.clone(), &Limits::default()).unwrap();
    let Response::Delta(response) = received.response else {
        panic!("a delta response");
    };
    let body = response.resources[0].resource.body.clone().unwrap();
    assert!(raw.as_ptr_range().contains(&body.as_ptr()));
}

#[test]
fn c27_what_cannot_be_read_costs_itself_only() {
    let any = |type_url: &str, value: &'static [u8]| Any {
        type_url: type_url.into(),
        value: Bytes::from_static(value),
    };
    let message = DiscoveryResponse {
        type_url: kind::CDS.into(),
        resources: vec![
            any(kind::CDS, b"\x0a\x01a"),
            any(kind::CDS, b""),
            any(kind::EDS, b"\x0a\x01b"),
            any(Resource::TYPE_URL, b"\xff"),
        ],
        ..DiscoveryResponse::default()
    };
    let received = read(Mode::Sotw, message.encode_to_vec());
    let Response::Sotw(response) = &received.response else {
        panic!("a state-of-the-world response");
    };
    let names: Vec<_> = response
        .resources
        .iter()
        .map(|d| d.resource.name.as_str())
        .collect();
    assert_eq!(names, ["a"]);
    let reasons = reasons(&received);
    assert_eq!(reasons.len(), 3);
    assert_eq!(reasons[0], (None, "a resource without a name"));
    assert_eq!(reasons[1].0, Some("b"));
    assert_eq!(reasons[2].0, None);
}

#[test]
fn s62_a_constraint_that_says_nothing_rejects_its_resource() {
    use trunkline_proto::discovery::{Constraint, DynamicParameterConstraints, SingleConstraint};
    let single = SingleConstraint {
        key: "env".into(),
        test: None,
    };
    let said = DynamicParameterConstraints {
        r#type: Some(Constraint::Single(single)),
    };
    let message = DeltaDiscoveryResponse {
        type_url: kind::CDS.into(),
        resources: vec![Resource {
            name: "a".into(),
            resource_name: Some(ResourceName {
                name: "a".into(),
                dynamic_parameter_constraints: Some(said),
            }),
            ..Resource::default()
        }],
        ..DeltaDiscoveryResponse::default()
    };
    let received = read(Mode::Delta, message.encode_to_vec());
    assert_eq!(reasons(&received)[0].0, Some("a"));
}

#[test]
fn a_removal_without_constraints_is_of_the_name() {
    let message = DeltaDiscoveryResponse {
        removed_resources: vec!["a".into()],
        removed_resource_names: ["a", "b"]
            .map(|name| ResourceName {
                name: name.into(),
                dynamic_parameter_constraints: None,
            })
            .to_vec(),
        ..DeltaDiscoveryResponse::default()
    };
    let Response::Delta(response) = read(Mode::Delta, message.encode_to_vec()).response else {
        panic!("a delta response");
    };
    assert_eq!(response.removed, ["a".into(), "b".into()]);
}

#[test]
fn s62_a_removal_without_constraints_beside_variants_is_of_the_one_for_all() {
    let variant = resource::Resource {
        constraints: Some("env=prod".parse().unwrap()),
        ..resource("a")
    };
    let said = DeltaResponse {
        type_url: kind::CDS.into(),
        nonce: "1".into(),
        resources: vec![WireResource::full(Arc::new(variant))].into(),
        removed: Vec::new(),
        removed_variants: vec![("a".into(), None)],
        errors: Vec::new(),
    };
    let frames = encode_delta_frames(&said, "me", 3).to_bytes();
    let received = read(Mode::Delta, frames.to_vec());
    let Response::Delta(response) = received.response else {
        panic!("a delta response");
    };
    assert_eq!(response.removed, []);
    assert_eq!(response.removed_variants, said.removed_variants);
}

#[test]
fn what_is_no_response_is_an_error() {
    let raw = Bytes::from_static(b"\x12\x09");
    for mode in [Mode::Delta, Mode::Sotw] {
        assert!(read_response(mode, raw.clone(), &Limits::default()).is_err());
    }
}
