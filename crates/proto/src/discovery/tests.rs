//! The messages against those of `envoy-types`, and against hostile bytes.

use bytes::Bytes;
use envoy_types::pb::{
    envoy::{config::core::v3 as core, service::discovery::v3 as theirs},
    google::{protobuf, rpc},
    xds,
};
use proptest::prelude::*;
use prost::Message;

use super::*;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A message of `envoy-types`, read and written by ours, is the same again.
fn both_ways<T, O>(theirs: &T) -> O
where
    T: Message + Default + PartialEq + std::fmt::Debug,
    O: Message + Default,
{
    let ours = O::decode(Bytes::from(theirs.encode_to_vec())).unwrap();
    let back = T::decode(Bytes::from(ours.encode_to_vec())).unwrap();
    assert_eq!(&back, theirs);
    ours
}

fn their_constraints() -> theirs::DynamicParameterConstraints {
    use theirs::dynamic_parameter_constraints as c;
    let single = |key: &str, test| theirs::DynamicParameterConstraints {
        r#type: Some(c::Type::Constraint(c::SingleConstraint {
            key: key.into(),
            constraint_type: Some(test),
        })),
    };
    let value = single(
        "env",
        c::single_constraint::ConstraintType::Value("prod".into()),
    );
    let exists = c::single_constraint::Exists {};
    let exists = single("zone", c::single_constraint::ConstraintType::Exists(exists));
    let not = theirs::DynamicParameterConstraints {
        r#type: Some(c::Type::NotConstraints(Box::new(exists))),
    };
    let constraints = vec![value.clone(), not];
    let or = theirs::DynamicParameterConstraints {
        r#type: Some(c::Type::OrConstraints(c::ConstraintList { constraints })),
    };
    let constraints = vec![or, value];
    theirs::DynamicParameterConstraints {
        r#type: Some(c::Type::AndConstraints(c::ConstraintList { constraints })),
    }
}

fn their_name(name: &str) -> theirs::ResourceName {
    theirs::ResourceName {
        name: name.into(),
        dynamic_parameter_constraints: Some(their_constraints()),
    }
}

fn their_any(len: usize) -> protobuf::Any {
    protobuf::Any {
        type_url: CDS.into(),
        value: vec![7; len],
    }
}

fn their_error() -> theirs::ResourceError {
    theirs::ResourceError {
        resource_name: Some(their_name("gone")),
        error_detail: Some(their_status()),
    }
}

fn their_status() -> rpc::Status {
    rpc::Status {
        code: 5,
        message: "no such thing".into(),
        details: vec![their_any(3)],
    }
}

fn their_locator() -> theirs::ResourceLocator {
    theirs::ResourceLocator {
        name: "a".into(),
        dynamic_parameters: [("env".to_owned(), "prod".to_owned())].into(),
    }
}

fn their_resource(len: usize) -> theirs::Resource {
    theirs::Resource {
        name: "c1".into(),
        resource_name: Some(their_name("c1")),
        aliases: vec!["x".into(), "y".into()],
        version: "17".into(),
        resource: Some(their_any(len)),
        ttl: Some(protobuf::Duration {
            seconds: 3,
            nanos: 5,
        }),
        cache_control: Some(theirs::resource::CacheControl { do_not_cache: true }),
        metadata: Some(core::Metadata {
            typed_filter_metadata: [("k".to_owned(), their_any(2))].into(),
            ..Default::default()
        }),
    }
}

fn their_node() -> core::Node {
    let params = [("a".to_owned(), "1".to_owned())].into();
    core::Node {
        id: "n1".into(),
        cluster: "c".into(),
        metadata: Some(protobuf::Struct::default()),
        dynamic_parameters: [(CDS.to_owned(), xds::core::v3::ContextParams { params })].into(),
        locality: Some(core::Locality {
            region: "eu".into(),
            zone: "1".into(),
            sub_zone: "b".into(),
        }),
        user_agent_name: "envoy".into(),
        user_agent_version_type: Some(core::node::UserAgentVersionType::UserAgentBuildVersion(
            core::BuildVersion {
                version: Some(envoy_types::pb::envoy::r#type::v3::SemanticVersion {
                    major_number: 1,
                    minor_number: 40,
                    patch: 2,
                }),
                metadata: None,
            },
        )),
        extensions: vec![
            core::Extension {
                name: "envoy.filters.http.router".into(),
                type_urls: vec!["x".repeat(60)],
                ..Default::default()
            };
            516
        ],
        client_features: vec!["xds.config.resource-in-sotw".into()],
        ..Default::default()
    }
}

#[test]
fn s61_s62_every_field_equals_envoys() {
    let request: DiscoveryRequest = both_ways(&theirs::DiscoveryRequest {
        version_info: "v".into(),
        node: Some(their_node()),
        resource_names: vec!["a".into(), "b".into()],
        resource_locators: vec![their_locator()],
        type_url: CDS.into(),
        response_nonce: "9".into(),
        error_detail: Some(their_status()),
    });
    assert_eq!(
        request.resource_locators[0].dynamic_parameters["env"],
        "prod"
    );

    let request: DeltaDiscoveryRequest = both_ways(&theirs::DeltaDiscoveryRequest {
        node: Some(their_node()),
        type_url: CDS.into(),
        resource_names_subscribe: vec!["a".into()],
        resource_names_unsubscribe: vec!["b".into()],
        resource_locators_subscribe: vec![their_locator()],
        resource_locators_unsubscribe: vec![their_locator()],
        initial_resource_versions: [("".to_owned(), "8".to_owned())].into(),
        response_nonce: "9".into(),
        error_detail: Some(their_status()),
    });
    assert_eq!(request.initial_resource_versions, [("", "8").into()]);

    let _: DiscoveryResponse = both_ways(&theirs::DiscoveryResponse {
        version_info: "v".into(),
        resources: vec![their_any(10), their_any(0)],
        canary: true,
        type_url: CDS.into(),
        nonce: "n".into(),
        control_plane: Some(core::ControlPlane {
            identifier: "t".into(),
        }),
        resource_errors: vec![their_error()],
    });
    let response: DeltaDiscoveryResponse = both_ways(&their_delta_response());
    let name = response.resources[0].resource_name.as_ref().unwrap();
    assert!(matches!(
        name.dynamic_parameter_constraints.as_ref().unwrap().r#type,
        Some(Constraint::And(_))
    ));
}

fn their_delta_response() -> theirs::DeltaDiscoveryResponse {
    theirs::DeltaDiscoveryResponse {
        system_version_info: "v".into(),
        resources: vec![their_resource(10)],
        type_url: CDS.into(),
        removed_resources: vec!["g".into()],
        removed_resource_names: vec![their_name("g")],
        nonce: "n".into(),
        control_plane: Some(core::ControlPlane {
            identifier: "t".into(),
        }),
        resource_errors: vec![their_error()],
    }
}

#[test]
fn a_node_is_parsed_on_demand_and_its_extensions_are_skipped() {
    let raw = Bytes::from(their_node().encode_to_vec());
    assert!(raw.len() > 40_000);
    let node = Node::parse(&raw, &Limits::DEFAULT).unwrap();
    assert_eq!((node.id.as_str(), node.cluster.as_str()), ("n1", "c"));
    assert_eq!(node.locality.unwrap().sub_zone, "b");
    assert_eq!(node.dynamic_parameters[CDS].params["a"], "1");
    assert_eq!(node.client_features, ["xds.config.resource-in-sotw"]);
    let Some(UserAgentVersion::Build(build)) = node.user_agent_version else {
        panic!("a build version was sent");
    };
    assert_eq!(build.version.unwrap().minor_number, 40);
}

/// Whether `part` lies inside `whole` in memory.
fn shares(whole: &Bytes, part: &Bytes) -> bool {
    whole.as_ptr_range().contains(&part.as_ptr())
        && part.as_ptr_range().end <= whole.as_ptr_range().end
}

#[test]
fn decoded_bodies_are_slices_of_what_was_received() {
    let mut response = their_delta_response();
    response.resources = vec![their_resource(10_000)];
    let raw = Bytes::from(response.encode_to_vec());
    let ours = DeltaDiscoveryResponse::decode_checked(raw.clone(), &Limits::DEFAULT).unwrap();
    let body = &ours.message.resources[0].resource.as_ref().unwrap().value;
    assert_eq!(body.len(), 10_000);
    assert!(shares(&raw, body));

    let request = theirs::DiscoveryRequest {
        node: Some(their_node()),
        ..Default::default()
    };
    let raw = Bytes::from(request.encode_to_vec());
    let ours = DiscoveryRequest::decode_checked(raw.clone(), &Limits::DEFAULT).unwrap();
    assert!(shares(&raw, &ours.message.node.unwrap()));
}

fn our_resource(len: usize) -> Resource {
    both_ways(&their_resource(len))
}

fn sotw_of(field: &Field) -> Frames {
    encode_sotw(Head::default(), None, field.pieces())
}

fn delta_of<'a>(fields: impl IntoIterator<Item = &'a Field, IntoIter: Clone>) -> Frames {
    let pieces = fields.into_iter().flat_map(Field::pieces);
    encode_delta(Head::default(), None, pieces)
}

#[test]
fn frames_are_the_message_and_splice_the_shared_body() {
    let resources: Vec<_> = [0, 1, 127, 128, 2047, 2048, 300_000]
        .map(our_resource)
        .into();
    let fields: Vec<_> = resources.iter().map(Field::delta).collect();
    let rest = DeltaDiscoveryResponse {
        removed_resources: vec!["gone".into()],
        ..Default::default()
    };
    let head = Head {
        nonce: "n1",
        type_url: CDS,
        identifier: "me",
        ..Head::default()
    };
    let frames = encode_delta(head, Some(&rest), fields.iter().flat_map(Field::pieces));
    let bytes = frames.to_bytes();
    assert_eq!(frames.len(), bytes.len());
    let expected = DeltaDiscoveryResponse {
        nonce: "n1".into(),
        type_url: CDS.into(),
        resources: resources.clone(),
        control_plane: Some(ControlPlane {
            identifier: "me".into(),
        }),
        ..rest.clone()
    };
    assert_eq!(
        DeltaDiscoveryResponse::decode(bytes.clone()).unwrap(),
        expected
    );
    let read = theirs::DeltaDiscoveryResponse::decode(bytes).unwrap();
    assert_eq!(read.resources[6], their_resource(300_000));

    // The body is the same memory in the store and in both responses.
    let any = resources[6].resource.as_ref().unwrap();
    let sotw = sotw_of(&Field::sotw(any));
    for frames in [&frames, &sotw] {
        assert!(frames.iter().any(|f| f.as_ptr() == any.value.as_ptr()));
    }
    assert_eq!(
        DiscoveryResponse::decode(sotw.to_bytes())
            .unwrap()
            .resources,
        std::slice::from_ref(any)
    );
}

#[test]
fn a_segment_is_the_same_entries_in_one_piece() {
    let resources: Vec<_> = [10, 3_000, 20].map(our_resource).into();
    let fields: Vec<_> = resources.iter().map(Field::delta).collect();
    let frames = delta_of([&Field::segment(&fields)]);
    // The first is the gRPC prefix.
    assert_eq!(
        frames.iter().map(Bytes::len).collect::<Vec<_>>(),
        [5, frames.len()]
    );
    assert_eq!(frames.to_bytes(), delta_of(&fields).to_bytes());
}

#[test]
fn s59_a_heartbeat_has_no_body() {
    let beat = Resource {
        name: "a".into(),
        version: "1".into(),
        ..Default::default()
    };
    let frames = delta_of([&Field::delta(&beat)]);
    let read = DeltaDiscoveryResponse::decode(frames.to_bytes()).unwrap();
    assert_eq!(read.resources, [beat]);
}

#[test]
fn s58_a_ttl_travels_in_the_wrapper_on_sotw() {
    let resource = our_resource(5);
    let field = Field::sotw_wrapped(&resource);
    let bytes = sotw_of(&field).to_bytes();
    let read = DiscoveryResponse::decode(bytes).unwrap();
    assert_eq!(read.resources[0].type_url, Resource::TYPE_URL);
    assert_eq!(
        Resource::decode(read.resources[0].value.clone()).unwrap(),
        resource
    );
}

#[test]
fn s44_s80_batches_stay_under_the_limit() {
    assert_eq!(
        batches([4, 4, 4, 20, 1, 9, 1], 10),
        [0..2, 2..3, 3..4, 4..6, 6..7]
    );
    assert_eq!(batches([], 10), Vec::<std::ops::Range<usize>>::new());
}

#[test]
fn s72_a_name_that_is_too_long_costs_only_itself() {
    let long = "é".repeat(9_000);
    let request = DeltaDiscoveryRequest {
        resource_names_subscribe: vec!["a".into(), long.clone(), "b".into()],
        initial_resource_versions: vec![(long, "1").into()],
        error_detail: Some(Status {
            message: "é".repeat(100_000),
            ..Default::default()
        }),
        ..Default::default()
    };
    let checked =
        DeltaDiscoveryRequest::decode_checked(request.encode_to_vec().into(), &Limits::DEFAULT)
            .unwrap();
    assert_eq!(checked.message.resource_names_subscribe, ["a", "b"]);
    assert!(checked.message.initial_resource_versions.is_empty());
    assert_eq!(
        checked.message.error_detail.unwrap().message.len(),
        64 << 10
    );
    let fields: Vec<_> = checked.refused.iter().map(|r| r.field).collect();
    assert_eq!(
        fields,
        ["resource_names_subscribe", "initial_resource_versions"]
    );
}

#[test]
fn limits_are_typed_errors() {
    let limits = Limits {
        entries: 3,
        text_bytes: 8,
        message_bytes: 64,
        ..Limits::DEFAULT
    };
    let read = |request: DiscoveryRequest| {
        DiscoveryRequest::decode_checked(request.encode_to_vec().into(), &limits).map(|_| ())
    };
    let named = |names: &[&str], type_url: &str| DiscoveryRequest {
        resource_names: names.iter().map(|n| (*n).to_owned()).collect(),
        type_url: type_url.into(),
        ..Default::default()
    };
    assert_eq!(read(named(&["", ""], "t")), Ok(()));
    let message = "DiscoveryRequest";
    let max = 3;
    assert_eq!(
        read(named(&["", "", ""], "t")),
        Err(DecodeError::TooMany { message, max })
    );
    assert!(matches!(
        read(named(&[], "too long a type")),
        Err(DecodeError::TextTooLong {
            field: "type_url",
            ..
        })
    ));
    assert!(matches!(
        read(named(&[&"n".repeat(70)], "")),
        Err(DecodeError::MessageTooLong {
            len: 72,
            max: 64,
            ..
        })
    ));
}

fn nested(depth: usize) -> DeltaDiscoveryResponse {
    let mut inner = DynamicParameterConstraints { r#type: None };
    for _ in 1..depth {
        let not = Constraint::Not(Box::new(inner));
        inner = DynamicParameterConstraints { r#type: Some(not) };
    }
    DeltaDiscoveryResponse {
        removed_resource_names: vec![ResourceName {
            name: "a".into(),
            dynamic_parameter_constraints: Some(inner),
        }],
        ..Default::default()
    }
}

#[test]
fn constraints_nest_to_a_stated_depth() {
    let read = |depth| {
        let raw = nested(depth).encode_to_vec().into();
        DeltaDiscoveryResponse::decode_checked(raw, &Limits::DEFAULT).map(|_| ())
    };
    assert_eq!(read(16), Ok(()));
    let message = "DeltaDiscoveryResponse";
    assert_eq!(read(17), Err(DecodeError::TooDeep { message, max: 16 }));
    assert_eq!(read(5_000), Err(DecodeError::TooDeep { message, max: 16 }));
    // Without the limit it is prost that stops, at 100 levels.
    let raw = Bytes::from(nested(200).encode_to_vec());
    assert!(DeltaDiscoveryResponse::decode(raw).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let raw = Bytes::from(bytes);
        let _ = DiscoveryRequest::decode_checked(raw.clone(), &Limits::DEFAULT);
        let _ = DiscoveryResponse::decode_checked(raw.clone(), &Limits::DEFAULT);
        let _ = DeltaDiscoveryRequest::decode_checked(raw.clone(), &Limits::DEFAULT);
        let _ = DeltaDiscoveryResponse::decode_checked(raw.clone(), &Limits::DEFAULT);
        let _ = Node::parse(&raw, &Limits::DEFAULT);
    }

    /// Bytes that are nearly right reach further into the decoder.
    #[test]
    fn a_flipped_byte_never_panics(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = their_delta_response().encode_to_vec();
        let at = at.index(bytes.len());
        bytes[at] = to;
        let _ = DeltaDiscoveryResponse::decode_checked(bytes.into(), &Limits::DEFAULT);
    }

    #[test]
    fn frames_equal_the_plain_encoding(lens in proptest::collection::vec(0usize..5_000, 0..8)) {
        let resources: Vec<_> = lens.into_iter().map(our_resource).collect();
        let fields: Vec<_> = resources.iter().map(Field::delta).collect();
        let frames = delta_of(&fields);
        let framed: Vec<u8> = frames.iter().flatten().copied().collect();
        prop_assert_eq!(framed[0], 0);
        prop_assert_eq!(&framed[1..5], (frames.len() as u32).to_be_bytes());
        let whole = DeltaDiscoveryResponse { resources, ..Default::default() };
        prop_assert_eq!(frames.len(), whole.encoded_len());
        prop_assert_eq!(DeltaDiscoveryResponse::decode(frames.to_bytes()).unwrap(), whole);
    }
}
