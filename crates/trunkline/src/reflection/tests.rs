//! Requests as `grpcurl` sends them.

use std::collections::HashSet;

use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ExtensionRequest, ServerReflectionRequest};
use trunkline_proto::prost_reflect::prost_types::FileDescriptorProto;

use super::*;

const ADS: &str = "envoy.service.discovery.v3.AggregatedDiscoveryService";

async fn ask(questions: Vec<MessageRequest>) -> Vec<MessageResponse> {
    let reflection = Reflection::new([ADS, NAME]);
    let mut client = ServerReflectionClient::new(reflection.v1());
    let requests = questions
        .into_iter()
        .map(|question| ServerReflectionRequest {
            host: String::new(),
            message_request: Some(question),
        });
    let requests: Vec<_> = requests.collect();
    let answers = client
        .server_reflection_info(tokio_stream::iter(requests))
        .await;
    let answers: Vec<_> = answers.unwrap().into_inner().collect().await;
    let answers = answers
        .into_iter()
        .map(|answer| answer.unwrap().message_response);
    answers.map(Option::unwrap).collect()
}

fn files(response: &MessageResponse) -> Vec<FileDescriptorProto> {
    let MessageResponse::FileDescriptorResponse(response) = response else {
        panic!("{response:?}")
    };
    let files = response.file_descriptor_proto.iter();
    files
        .map(|file| FileDescriptorProto::decode(&**file).unwrap())
        .collect()
}

fn symbol(name: &str) -> MessageRequest {
    MessageRequest::FileContainingSymbol(name.into())
}

#[tokio::test]
async fn services_are_listed_and_each_can_be_described() {
    let answers = ask(vec![MessageRequest::ListServices(String::new())]).await;
    let MessageResponse::ListServicesResponse(list) = &answers[0] else {
        panic!("{answers:?}")
    };
    let names: Vec<_> = list.service.iter().map(|service| &*service.name).collect();
    assert_eq!(names, [ADS, NAME]);
    let named = [ADS, NAME, NAME_V1ALPHA, crate::health::NAME];
    for answer in ask(named.map(symbol).to_vec()).await {
        assert!(!files(&answer)[0].service.is_empty());
    }
}

#[tokio::test]
async fn a_file_comes_with_all_that_it_needs_and_nothing_twice() {
    let answers = ask(vec![symbol(ADS), symbol(ADS)]).await;
    let all = files(&answers[0]);
    let names: HashSet<_> = all.iter().map(|file| file.name().to_owned()).collect();
    assert_eq!(names.len(), all.len());
    assert!(names.contains("envoy/service/discovery/v3/ads.proto"));
    let needed = all.iter().flat_map(|file| &file.dependency);
    assert!(needed.into_iter().all(|file| names.contains(file)));
    assert_eq!(files(&answers[1]).len(), 1);
}

#[tokio::test]
async fn files_are_found_in_every_way() {
    let by_name = "envoy/config/cluster/v3/cluster.proto";
    let extension = ExtensionRequest {
        containing_type: "google.protobuf.FieldOptions".into(),
        extension_number: 76_569_463,
    };
    let found = ask(vec![
        MessageRequest::FileByFilename(by_name.into()),
        symbol("envoy.config.cluster.v3.Cluster.LbPolicy"),
        symbol("envoy.config.cluster.v3.Cluster.name"),
        symbol(&format!("{ADS}.StreamAggregatedResources")),
        MessageRequest::FileContainingExtension(extension),
    ])
    .await;
    let names: Vec<_> = found
        .iter()
        .map(|answer| files(answer)[0].name().to_owned())
        .collect();
    let ads = "envoy/service/discovery/v3/ads.proto";
    let sensitive = "udpa/annotations/sensitive.proto";
    assert_eq!(names, [by_name, by_name, by_name, ads, sensitive]);
}

#[tokio::test]
async fn what_is_not_known_is_an_error_and_the_stream_goes_on() {
    let all = |name: &str| MessageRequest::AllExtensionNumbersOfType(name.into());
    let answers = ask(vec![
        symbol("no.such.Thing"),
        symbol("envoy.config.cluster.v3.Cluster.no_such_field"),
        MessageRequest::FileByFilename("no.proto".into()),
        all("no.such.Thing"),
        all("google.protobuf.FieldOptions"),
    ])
    .await;
    for answer in &answers[..4] {
        assert!(matches!(answer, MessageResponse::ErrorResponse(e) if e.error_code == 5));
    }
    let MessageResponse::AllExtensionNumbersResponse(numbers) = &answers[4] else {
        panic!("{answers:?}")
    };
    assert!(numbers.extension_number.contains(&76_569_463));
}

#[tokio::test]
async fn the_older_version_says_the_same() {
    use tonic_reflection::pb::v1alpha::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1alpha::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1alpha::server_reflection_response::MessageResponse;
    let mut client = ServerReflectionClient::new(Reflection::new([ADS]).v1alpha());
    let request = v1alpha::ServerReflectionRequest {
        host: "h".into(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = client
        .server_reflection_info(tokio_stream::iter([request]))
        .await;
    let answer = answers
        .unwrap()
        .into_inner()
        .message()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer.valid_host, "h");
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("{answer:?}")
    };
    assert_eq!(list.service[0].name, ADS);
}
