//! CSDS responses for made-up clients.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use prost::Message as _;
use tokio_stream::StreamExt as _;
use tonic::{Code, Status};
use trunkline_core::kind;
use trunkline_core::message::{ErrorDetail, Mode, Node};
use trunkline_core::resource::Resource;
use trunkline_proto::envoy::envoy::admin::v3::ClientResourceStatus;
use trunkline_proto::envoy::envoy::config::core::v3::DataSource;
use trunkline_proto::envoy::envoy::config::core::v3::data_source::Specifier;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::secret::Type;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::{
    GenericSecret, Secret,
};
use trunkline_proto::envoy::envoy::service::status::v3::client_status_discovery_service_client::ClientStatusDiscoveryServiceClient;
use trunkline_proto::envoy::envoy::service::status::v3::{
    ClientStatusRequest, ClientStatusResponse, ConfigStatus,
};
use trunkline_proto::envoy::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use trunkline_proto::envoy::envoy::r#type::matcher::v3::{
    NodeMatcher, RegexMatcher, StringMatcher, StructMatcher,
};

use super::csds::{ResponseBuilder, service};
use super::*;
use crate::questions::Questions;

/// Two clients; each has one resource in each state.
struct Two;

const IDS: [&str; 2] = ["Edge-1", "core-2"];

impl Clients for Two {
    fn clients(&self) -> Vec<Client> {
        let one = |(stream, id): (u64, &str)| Client {
            stream,
            node: Node {
                id: id.into(),
                user_agent: "envoy".into(),
                ..Node::default()
            },
            address: Some(([127, 0, 0, 1], 80).into()),
            identity: None,
            mode: Mode::Delta,
            only: None,
            opened: SystemTime::UNIX_EPOCH,
            types: Vec::new(),
        };
        (1..).zip(IDS).map(one).collect()
    }

    fn resources(&self, _: u64) -> Vec<ClientResource> {
        use ResourceState::{Acked, DoesNotExist, Nacked, Requested, Sent};
        let states = [Requested, DoesNotExist, Acked, Sent, Nacked];
        states.map(resource).to_vec()
    }
}

fn secret() -> Bytes {
    let secret = Secret {
        name: "s".into(),
        r#type: Some(Type::GenericSecret(GenericSecret {
            secret: Some(DataSource {
                specifier: Some(Specifier::InlineString("hunter2".into())),
                ..DataSource::default()
            }),
            ..GenericSecret::default()
        })),
    };
    secret.encode_to_vec().into()
}

fn resource(state: ResourceState) -> ClientResource {
    let held = matches!(state, ResourceState::Acked | ResourceState::Sent);
    ClientResource {
        type_url: kind::SDS.into(),
        name: "s".into(),
        state,
        resource: held.then(|| Arc::new(Resource::new("s".into(), secret()))),
        rejected: (state == ResourceState::Nacked).then(|| Rejected {
            version: "v2".into(),
            error: ErrorDetail {
                code: 13,
                message: "bad: inline_string: \"hunter2\"".into(),
            },
        }),
    }
}

fn by_id(pattern: MatchPattern, ignore_case: bool) -> NodeMatcher {
    NodeMatcher {
        node_id: Some(StringMatcher {
            match_pattern: Some(pattern),
            ignore_case,
        }),
        ..NodeMatcher::default()
    }
}

fn regex(regex: &str) -> MatchPattern {
    MatchPattern::SafeRegex(RegexMatcher {
        regex: regex.into(),
        ..RegexMatcher::default()
    })
}

async fn fetch(request: ClientStatusRequest) -> Result<ClientStatusResponse, Status> {
    let mut client = ClientStatusDiscoveryServiceClient::new(service(Arc::new(Two)));
    let answer = client.fetch_client_status(request).await;
    answer.map(tonic::Response::into_inner)
}

async fn matched(matchers: Vec<NodeMatcher>) -> Result<Vec<String>, Code> {
    let request = ClientStatusRequest {
        node_matchers: matchers,
        ..ClientStatusRequest::default()
    };
    let answer = fetch(request).await.map_err(|status| status.code())?;
    let ids = answer
        .config
        .into_iter()
        .map(|config| config.node.unwrap().id);
    Ok(ids.collect())
}

#[tokio::test]
async fn clients_are_found_by_their_ids() {
    use MatchPattern::{Contains, Exact, Prefix, Suffix};
    let one = |pattern, ignore| matched(vec![by_id(pattern, ignore)]);
    assert_eq!(matched(vec![]).await.unwrap(), IDS);
    assert_eq!(matched(vec![NodeMatcher::default()]).await.unwrap(), IDS);
    assert_eq!(
        one(Exact("core-2".into()), false).await.unwrap(),
        ["core-2"]
    );
    assert_eq!(one(Prefix("edge".into()), false).await.unwrap(), [""; 0]);
    assert_eq!(one(Prefix("edge".into()), true).await.unwrap(), ["Edge-1"]);
    assert_eq!(one(Suffix("-2".into()), false).await.unwrap(), ["core-2"]);
    assert_eq!(one(Contains("-".into()), false).await.unwrap(), IDS);
    assert_eq!(one(regex("[a-z]+-2|x"), false).await.unwrap(), ["core-2"]);
    assert_eq!(one(regex("core"), false).await.unwrap(), [""; 0]);
    let either = vec![
        by_id(Suffix("1".into()), false),
        by_id(Suffix("2".into()), false),
    ];
    assert_eq!(matched(either).await.unwrap(), IDS);
}

#[tokio::test]
async fn a_question_that_cannot_be_answered_is_refused() {
    let metadata = NodeMatcher {
        node_metadatas: vec![StructMatcher::default()],
        ..NodeMatcher::default()
    };
    let no_pattern = NodeMatcher {
        node_id: Some(StringMatcher::default()),
        ..NodeMatcher::default()
    };
    let many = vec![NodeMatcher::default(); 101];
    let bad = by_id(regex("("), false);
    let large = by_id(regex("(((a{100}){100}){100})"), false);
    for matchers in [
        vec![metadata],
        vec![no_pattern],
        vec![bad],
        vec![large],
        many,
    ] {
        assert_eq!(matched(matchers).await, Err(Code::InvalidArgument));
    }
}

#[tokio::test]
async fn every_state_is_told_from_both_ends_and_no_secret_with_it() {
    let answer = fetch(ClientStatusRequest::default()).await.unwrap();
    assert!(!answer.encode_to_vec().windows(7).any(|w| w == b"hunter2"));
    let client = &answer.config[0];
    assert_eq!(client.node.as_ref().unwrap().user_agent_name, "envoy");
    assert_eq!(client.client_scope, "stream 1 from 127.0.0.1:80");
    let configs = &client.generic_xds_configs;
    let states: Vec<_> = configs
        .iter()
        .map(|c| (c.config_status(), c.client_status()))
        .collect();
    assert_eq!(
        states,
        [
            (ConfigStatus::NotSent, ClientResourceStatus::Requested),
            (ConfigStatus::NotSent, ClientResourceStatus::DoesNotExist),
            (ConfigStatus::Synced, ClientResourceStatus::Acked),
            (ConfigStatus::Stale, ClientResourceStatus::Unknown),
            (ConfigStatus::Error, ClientResourceStatus::Nacked),
        ]
    );
    let [_, _, acked, _, nacked] = &configs[..] else {
        panic!("five resources")
    };
    assert_eq!((&*acked.name, acked.version_info.len()), ("s", 16));
    assert_eq!(acked.xds_config.as_ref().unwrap().type_url, kind::SDS);
    let error = nacked.error_state.as_ref().unwrap();
    assert_eq!(
        (&*error.version_info, &*error.details),
        ("v2", "bad: [redacted]")
    );
}

#[tokio::test]
async fn a_stream_answers_each_question_and_leaves_contents_out_if_asked() {
    let mut client = ClientStatusDiscoveryServiceClient::new(service(Arc::new(Two)));
    let without = ClientStatusRequest {
        exclude_resource_contents: true,
        ..ClientStatusRequest::default()
    };
    let questions = [ClientStatusRequest::default(), without];
    let answers = client
        .stream_client_status(tokio_stream::iter(questions))
        .await;
    let answers: Vec<_> = answers.unwrap().into_inner().collect().await;
    let shown = |answer: &Result<ClientStatusResponse, Status>| {
        let configs = answer.as_ref().unwrap().config.iter();
        let mut configs = configs.flat_map(|client| &client.generic_xds_configs);
        configs.any(|config| config.xds_config.is_some())
    };
    assert_eq!(answers.iter().map(shown).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn an_answer_has_an_end() {
    let mut answer = ResponseBuilder::new(true, 1000, Questions::default().ask(None));
    let client = &Two.clients()[0];
    let added = || vec![resource(ResourceState::Acked)];
    answer.add_client(client, added()).unwrap();
    let full = (0..10).find_map(|_| answer.add_client(client, added()).err());
    assert_eq!(full.unwrap().code(), Code::ResourceExhausted);
}
