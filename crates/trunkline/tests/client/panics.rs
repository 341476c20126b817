//! Code of the program that panics: an observer, a check of a type of its own,
//! a reader of a watch. Each costs itself and nobody else.

use std::sync::Arc;

use prost::Message;
use trunkline::client::{Cause, Client, ClientEvent, Observer, Query};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::proto::acceptance::{Findings, ResourceType};
use trunkline::proto::envoy::google::protobuf::Any;

use super::next;
use super::scripted::Scripted;
use super::server::cluster;

/// Panics at whatever it is told.
struct Panics;

impl Observer for Panics {
    fn observe(&self, event: &ClientEvent<'_>) {
        panic!("{event:?}");
    }
}

/// A type whose check panics at one name.
#[derive(Clone, PartialEq, Message)]
struct Quota {
    #[prost(string, tag = "1")]
    name: String,
}

impl ResourceType for Quota {
    const TYPE_URL: &'static str = "type.googleapis.com/test.Quota";

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn check(&self, _: &mut Findings<'_>) {
        assert_ne!(self.name, "bad", "a check with a fault");
    }
}

fn any<T: ResourceType>(message: &T) -> Any {
    Any {
        type_url: T::TYPE_URL.to_owned(),
        value: message.encode_to_vec(),
    }
}

#[tokio::test]
async fn a_panic_of_the_program_costs_itself_alone() {
    let mut script = Scripted::start().await;
    let client = Client::builder()
        .server(&script.address.to_string())
        .unwrap()
        .state_of_the_world()
        .resource_type::<Quota>()
        .observer(Arc::new(Panics))
        .build();
    let quota = |name: &str| {
        client
            .subscribe(Query::<Quota>::name(name))
            .unwrap()
            .watch()
    };
    let (mut good, mut bad) = (quota("good"), quota("bad"));
    let reader = client.subscribe::<Cluster>("a").unwrap().watch();
    let mut other = reader.clone();
    let reader = tokio::spawn(async move {
        let mut reader = reader;
        panic!("{:?}", reader.changed().await);
    });

    let mut stream = script.stream().await;
    let quotas = ["good", "bad"].map(|name| any(&Quota { name: name.into() }));
    stream.send("1", Quota::TYPE_URL, quotas.into()).await;
    assert!(next(&mut good).await.value().is_some());
    let state = next(&mut bad).await;
    let error = state.error().expect("a rejection");
    assert_eq!(
        (error.cause, &*error.message),
        (Cause::Rejected, "its check panicked")
    );

    for version in ["2", "3"] {
        let seconds = version.parse().unwrap();
        stream
            .send(
                version,
                Cluster::TYPE_URL,
                vec![any(&cluster("a", seconds))],
            )
            .await;
        let state = next(&mut other).await;
        let timeout = state.value().and_then(|a| a.connect_timeout);
        assert_eq!(timeout.map(|timeout| timeout.seconds), Some(seconds));
        while stream.request().await.version_info != version {}
    }
    assert!(reader.await.unwrap_err().is_panic());
}
