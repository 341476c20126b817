//! Responses: from the engine to frames of shared bytes.
//!
//! A body is never encoded or copied as a whole: all streams' frames share the
//! one buffer in the database.

use bytes::Bytes;
use trunkline_core::message::{DeltaResponse, Form, SotwResponse, WireResource};
use trunkline_core::name::Name;
use trunkline_core::resource::{self, TypeUrl};
use trunkline_core::resource_list::{ResourceList, SharedList};
use trunkline_proto::discovery::{
    Any, CacheControl, DeltaDiscoveryResponse, DiscoveryResponse, Field, Frames, Head, Resource,
    encode_delta, encode_sotw,
};

use super::constraints::write_resource_name;
use super::resource_errors::write_errors;
use super::ttl::write_ttl;

/// Encodes a delta response as frames. It names this server, by `identifier`,
/// and as its version the `revision` of the contents: both are for people to
/// read, and clients ignore them (S68). A list that streams share is encoded
/// once for all of them.
pub(crate) fn encode_delta_frames(
    response: &DeltaResponse,
    identifier: &str,
    revision: u64,
) -> Frames {
    let mut digits = itoa::Buffer::new();
    let head = Head {
        type_url: response.type_url.as_str(),
        nonce: response.nonce.as_str(),
        version: digits.format(revision),
        identifier,
    };
    let removals_and_errors = write_removals_and_errors(response);

    let url = &response.type_url;
    let resources = Encoded::new(&response.resources, |wire| Field::delta(&wrap(url, wire)));
    encode_delta(head, removals_and_errors.as_ref(), resources.pieces())
}

/// Returns the removals and errors of a delta response; `None` if it has
/// neither.
fn write_removals_and_errors(response: &DeltaResponse) -> Option<DeltaDiscoveryResponse> {
    let has_any = !response.removed.is_empty()
        || !response.removed_variants.is_empty()
        || !response.errors.is_empty();
    let removed_variants = response.removed_variants.iter();
    has_any.then(|| DeltaDiscoveryResponse {
        removed_resources: response.removed.iter().map(Name::to_string).collect(),
        removed_resource_names: removed_variants
            .map(|(name, constraints)| write_resource_name(name, constraints.as_ref()))
            .collect(),
        resource_errors: write_errors(&response.errors),
        ..DeltaDiscoveryResponse::default()
    })
}

/// Encodes a state-of-the-world response as frames. It names this server, by
/// `identifier`, for people to read (S68). A list that streams share is encoded
/// once for all of them. `removed` is deliberately not encoded: a client removes
/// what a whole set does not list.
pub(crate) fn encode_sotw_frames(response: &SotwResponse, identifier: &str) -> Frames {
    let head = Head {
        type_url: response.type_url.as_str(),
        nonce: response.nonce.as_str(),
        version: response.version.as_str(),
        identifier,
    };
    let has_errors = !response.errors.is_empty();
    let errors = has_errors.then(|| DiscoveryResponse {
        resource_errors: write_errors(&response.errors),
        ..DiscoveryResponse::default()
    });

    let url = &response.type_url;
    let resources = Encoded::new(&response.resources, |wire| sotw_field(url, wire));
    encode_sotw(head, errors.as_ref(), resources.pieces())
}

/// The encoded resources of a response.
enum Encoded<'a> {
    /// Those of one stream.
    Own(Vec<Field>),
    /// Those of a list that streams share, in segments.
    Shared(&'a [Bytes]),
}

impl<'a> Encoded<'a> {
    /// Encodes the resources of a list, each by `field`. For a shared list,
    /// `field` has to be the same function for all its streams.
    fn new(resources: &'a ResourceList, field: impl Fn(&WireResource) -> Field) -> Self {
        match resources {
            ResourceList::Own(resources) => Self::Own(resources.iter().map(field).collect()),
            ResourceList::Shared(list) => Self::Shared(shared_segments(list, field)),
        }
    }

    /// Returns the bytes of all resources, in order.
    fn pieces(&self) -> impl Iterator<Item = &Bytes> + Clone {
        let (fields, segments): (&[Field], &[Bytes]) = match self {
            Self::Own(fields) => (fields, &[]),
            Self::Shared(segments) => (&[], segments),
        };
        fields.iter().flat_map(Field::pieces).chain(segments)
    }
}

/// Returns the encoded resources of a list that streams share. They are encoded
/// for the first stream that is sent the list, so `field` has to be the same
/// function for all of them.
fn shared_segments(list: &SharedList, field: impl Fn(&WireResource) -> Field) -> &[Bytes] {
    list.encode_once(|resources| {
        let fields: Vec<Field> = resources.iter().map(field).collect();
        join_into_segments(&fields)
    })
}

/// The size at which a segment of a shared list ends. Large segments are few
/// for a transport to handle; small ones are soon sent and freed.
const SEGMENT_BYTES: usize = 64 << 10;

/// Joins fields, in their order, into segments. A segment ends with the field
/// that brings it to [`SEGMENT_BYTES`].
fn join_into_segments(fields: &[Field]) -> Vec<Bytes> {
    let mut segments = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (index, field) in fields.iter().enumerate() {
        bytes += field.len();
        let is_last = index + 1 == fields.len();
        if bytes >= SEGMENT_BYTES || is_last {
            segments.push(Field::segment(&fields[start..=index]).to_bytes());
            (start, bytes) = (index + 1, 0);
        }
    }
    segments
}

/// Encodes a resource of a SotW response: its bare body if that is enough, else
/// its wrapper.
fn sotw_field(url: &TypeUrl, wire: &WireResource) -> Field {
    match (wire.form, any_body(url, &wire.resource)) {
        (Form::Full, Some(any)) => Field::sotw(&any),
        // A wrapper was requested, or there is no body to tell the name (S58).
        _ => Field::sotw_wrapped(&wrap(url, wire)),
    }
}

/// Wraps a resource with its name, version, aliases, TTL and constraints (S58,
/// S62). A heartbeat has no body: it only renews the TTL of the resource (S59).
fn wrap(url: &TypeUrl, wire: &WireResource) -> Resource {
    let resource = &wire.resource;
    let body = match wire.form {
        Form::Full | Form::Wrapped => any_body(url, resource),
        Form::Heartbeat => None,
    };

    let constraints = resource.constraints.as_ref();
    let aliases = resource.other_names();
    let rare = resource.facts().rare.as_deref();
    let no_cache = rare.filter(|rare| rare.do_not_cache);

    Resource {
        version: resource.version.to_string(),
        resource: body,
        name: resource.name.to_string(),
        aliases: aliases.map(|name| name.to_string()).collect(),
        ttl: resource.ttl.map(write_ttl),
        cache_control: no_cache.map(|_| CacheControl { do_not_cache: true }),
        resource_name: constraints
            .map(|variant| write_resource_name(&resource.name, Some(variant))),
        metadata: rare.and_then(|rare| rare.metadata.clone()),
    }
}

/// Returns the body of a resource with its type; `None` if it has none.
fn any_body(url: &TypeUrl, resource: &resource::Resource) -> Option<Any> {
    resource.body.as_ref().map(|body| Any {
        type_url: url.to_string(),
        value: body.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use std::sync::Arc;
    use trunkline_core::facts::{Facts, RareFacts};
    use trunkline_core::hosts::Domains;
    use trunkline_core::kind;
    use trunkline_core::params::Constraints;
    use trunkline_core::resource::ErrorCode;

    fn resource(name: &str, body: Bytes) -> resource::Resource {
        resource::Resource::new(Name::new(name), body)
    }

    fn delta(resources: Vec<WireResource>) -> DeltaResponse {
        DeltaResponse {
            type_url: "t".into(),
            nonce: "1".into(),
            resources: resources.into(),
            removed: vec!["gone".into()],
            removed_variants: Vec::new(),
            errors: Vec::new(),
        }
    }

    #[test]
    fn a_large_body_is_shared_by_every_response() {
        let body = Bytes::from(vec![7; 100_000]);
        let all = vec![WireResource::full(Arc::new(resource("a", body.clone())))];
        let delta = encode_delta_frames(&delta(all.clone()), "me", 3);
        let sotw = SotwResponse {
            type_url: "t".into(),
            version: "v".into(),
            nonce: "1".into(),
            resources: all.into(),
            errors: Vec::new(),
            removed: Vec::new(),
        };
        for frames in [delta, encode_sotw_frames(&sotw, "me")] {
            let shares = |frame: &Bytes| frame.as_ptr() == body.as_ptr();
            assert!(frames.iter().any(shares));
        }
    }

    #[test]
    fn a_whole_set_is_written_once_for_all_its_streams() {
        use trunkline_core::change::Change;
        use trunkline_core::database::Database;
        use trunkline_core::message::{Mode, SotwRequest};
        use trunkline_core::session::{Config, Session};

        let mut db = Database::new();
        let url = TypeUrl::from(kind::CDS);
        let put = |n: usize| {
            let body = Bytes::from(vec![7; 1000]);
            Change::Upsert(url.clone(), Arc::new(resource(&format!("{n:03}"), body)))
        };
        db.apply((0..100).map(put).collect()).unwrap();
        let mut first = || {
            let mut session = Session::open(&mut db, Config::new(Mode::Sotw));
            let request = SotwRequest {
                type_url: Some(url.clone()),
                ..SotwRequest::default()
            };
            let now = trunkline_core::Moment::START;
            session.handle_sotw(&mut db, request, now).unwrap();
            encode_sotw_frames(
                &session
                    .poll(&mut db, now)
                    .and_then(trunkline_core::message::Response::into_sotw)
                    .unwrap(),
                "me",
            )
        };
        let (one, other) = (first(), first());
        assert_eq!(one, other);
        let large = |frames: &Frames| -> Vec<*const u8> {
            let all = frames.iter();
            all.filter(|f| f.len() > 10_000)
                .map(|f| f.as_ptr())
                .collect()
        };
        assert_eq!(large(&one).len(), 2);
        assert_eq!(large(&one), large(&other));
        let message = DiscoveryResponse::decode(one.to_bytes()).unwrap();
        assert_eq!(message.resources.len(), 100);
    }

    #[test]
    fn s68_a_response_says_for_people_from_which_contents_it_is() {
        let all = vec![WireResource::full(Arc::new(resource("a", Bytes::new())))];
        let bytes = |revision| encode_delta_frames(&delta(all.clone()), "me", revision).to_bytes();
        let message = DeltaDiscoveryResponse::decode(bytes(41)).unwrap();
        assert_eq!(message.system_version_info, "41");
        assert_eq!(message.control_plane.unwrap().identifier, "me");
        // Nothing else depends on the revision.
        let of = |revision| DeltaDiscoveryResponse {
            system_version_info: String::new(),
            ..DeltaDiscoveryResponse::decode(bytes(revision)).unwrap()
        };
        assert_eq!(of(41), of(1042));
    }

    #[test]
    fn a_delta_response_says_everything() {
        let constraints: Constraints = "env=prod".parse().unwrap();
        let full = resource::Resource {
            aliases: Box::new(["b".into()]),
            ttl: Some(std::time::Duration::from_millis(1500)),
            constraints: Some(constraints.clone()),
            facts: Some(Box::new(Facts {
                rare: Some(Box::new(RareFacts {
                    metadata: Some(Bytes::from_static(b"meta")),
                    do_not_cache: true,
                    ..RareFacts::default()
                })),
                ..Facts::default()
            })),
            ..resource("a", Bytes::from_static(b"body"))
        };
        let heartbeat = WireResource {
            resource: Arc::new(resource("h", Bytes::from_static(b"body"))),
            form: Form::Heartbeat,
        };
        let mut response = delta(vec![WireResource::full(Arc::new(full)), heartbeat]);
        response.removed_variants = vec![("a".into(), Some(constraints))];
        let error = resource::ResourceError {
            code: ErrorCode::PermissionDenied,
            message: "not for you".into(),
        };
        response.errors = vec![("e".into(), Arc::new(error))];

        let bytes = encode_delta_frames(&response, "me", 3).to_bytes();
        let message = DeltaDiscoveryResponse::decode(bytes).unwrap();
        assert_eq!((&*message.type_url, &*message.nonce), ("t", "1"));
        assert_eq!(message.removed_resources, ["gone"]);
        assert_eq!(message.control_plane.unwrap().identifier, "me");
        assert_eq!(message.removed_resource_names.len(), 1);
        let [a, h] = &message.resources[..] else {
            panic!("two resources");
        };
        assert_eq!(a.resource.as_ref().unwrap().type_url, "t");
        assert_eq!(a.resource.as_ref().unwrap().value, "body");
        assert_eq!((&*a.name, &*a.aliases), ("a", &["b".to_owned()][..]));
        assert_eq!(a.version.len(), 16);
        let ttl = a.ttl.unwrap();
        assert_eq!((ttl.seconds, ttl.nanos), (1, 500_000_000));
        assert_eq!(a.metadata.as_deref(), Some(&b"meta"[..]));
        assert_eq!(a.cache_control, Some(CacheControl { do_not_cache: true }));
        assert_eq!((&h.metadata, h.cache_control), (&None, None));
        assert_eq!(
            a.resource_name,
            message.removed_resource_names.first().cloned()
        );
        assert_eq!((&*h.name, &h.resource), ("h", &None));
        let error = &message.resource_errors[0];
        assert_eq!(error.resource_name.as_ref().unwrap().name, "e");
        assert_eq!(error.error_detail.as_ref().unwrap().code, 7);
    }

    #[test]
    fn s36_a_virtual_host_answers_to_every_host_that_it_names() {
        let host = resource::Resource {
            facts: Some(Box::new(Facts {
                domains: Domains::new(["a.com", "*.a.com", "b.com:80"]),
                ..Facts::default()
            })),
            ..resource("r/1/v", Bytes::from_static(b"body"))
        };
        let written = wrap(&kind::VHDS.into(), &WireResource::full(Arc::new(host)));
        assert_eq!(written.aliases, ["r/1/a.com", "r/1/b.com:80"]);
    }

    #[test]
    fn s58_a_state_of_the_world_response_wraps_what_must_be_wrapped() {
        let one = |form| WireResource {
            resource: Arc::new(resource("a", Bytes::from_static(b"body"))),
            form,
        };
        let response = SotwResponse {
            type_url: "t".into(),
            version: "v".into(),
            nonce: "1".into(),
            resources: vec![one(Form::Full), one(Form::Wrapped)].into(),
            errors: Vec::new(),
            removed: Vec::new(),
        };
        let bytes = encode_sotw_frames(&response, "me").to_bytes();
        let message = DiscoveryResponse::decode(bytes).unwrap();
        assert_eq!(message.version_info, "v");
        assert_eq!(message.resources[0].type_url, "t");
        assert_eq!(message.resources[0].value, "body");
        let wrapper = Resource::decode(message.resources[1].value.clone()).unwrap();
        assert_eq!((&*wrapper.name, wrapper.resource.is_some()), ("a", true));
    }

    #[test]
    fn s62_a_variant_has_its_constraints_and_its_name_besides() {
        use super::super::constraints::read_constraints;

        let constraints: Constraints = "env=prod AND NOT version exists".parse().unwrap();
        let variant = |form| WireResource {
            resource: Arc::new(resource::Resource {
                constraints: Some(constraints.clone()),
                ..resource("a", Bytes::from_static(b"body"))
            }),
            form,
        };
        let says = |resource: &Resource| {
            assert_eq!(resource.name, "a", "Envoy files it under this name");
            let name = resource.resource_name.clone().unwrap();
            assert_eq!(name.name, "a");
            let read = name.dynamic_parameter_constraints.unwrap();
            let read = Constraints::new(&read_constraints(&read).unwrap()).unwrap();
            assert_eq!(read, constraints);
        };
        for form in [Form::Full, Form::Heartbeat] {
            let bytes = encode_delta_frames(&delta(vec![variant(form)]), "me", 3).to_bytes();
            says(&DeltaDiscoveryResponse::decode(bytes).unwrap().resources[0]);
        }
        let response = SotwResponse {
            type_url: "t".into(),
            version: "v".into(),
            nonce: "1".into(),
            resources: vec![variant(Form::Wrapped)].into(),
            errors: Vec::new(),
            removed: Vec::new(),
        };
        let bytes = encode_sotw_frames(&response, "me").to_bytes();
        let message = DiscoveryResponse::decode(bytes).unwrap();
        assert_eq!(
            message.resources[0].type_url,
            "type.googleapis.com/envoy.service.discovery.v3.Resource"
        );
        says(&Resource::decode(message.resources[0].value.clone()).unwrap());
    }

    #[test]
    fn s62_a_variant_goes_by_its_constraints_and_only_there() {
        let mut response = delta(Vec::new());
        response.removed = Vec::new();
        response.removed_variants = vec![("a".into(), Some("env=prod".parse().unwrap()))];
        let bytes = encode_delta_frames(&response, "me", 3).to_bytes();
        let message = DeltaDiscoveryResponse::decode(bytes).unwrap();
        assert!(message.removed_resources.is_empty());
        let [gone] = &message.removed_resource_names[..] else {
            panic!("one variant");
        };
        assert_eq!(gone.name, "a");
        assert!(gone.dynamic_parameter_constraints.is_some());
    }
}
