//! The judgement of a response: each body is decoded and checked, the good ones
//! are kept with their messages, the bad ones become reasons to NACK (C26).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use trunkline_core::kind;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::sink::{Delivery, Rejection, Verdict};
use trunkline_proto::acceptance::{Policy, Report, Types};

use super::raw::Raw;
use super::values::{KnownBodies, Message};

/// How many bodies are decoded before other tasks have their turn.
const TURN: usize = 256;

/// How responses are judged.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub(super) types: Arc<Types>,
    pub(super) policy: Arc<Policy>,
}

/// A judged response.
#[derive(Default)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    /// The messages of the good resources.
    pub(super) messages: Vec<(Arc<Resource>, Message)>,
    /// What is set in good resources and not used (C57).
    pub(super) reports: Vec<(Arc<Resource>, Report)>,
}

impl Judge {
    /// Decodes and validates the resources of a delivery. `unreadable` are
    /// rejections of resources that could not even be parsed, and
    /// `known_bodies` has the messages of bodies that were accepted before.
    /// Yields to other tasks between slices.
    pub(super) async fn judge(
        &self,
        delivery: &Delivery,
        unreadable: Vec<Rejection>,
        known_bodies: &KnownBodies,
    ) -> Judgement {
        let mut judgement = Judgement {
            verdict: Verdict::reject(unreadable),
            ..Judgement::default()
        };
        for (index, resource) in delivery.resources.iter().enumerate() {
            // A long delivery must not keep other tasks from running.
            if index % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
            if resource.body.is_none() && delivery.type_url.as_str() == kind::VHDS {
                // The host does not exist (S35): there is nothing to check.
                continue;
            }
            let result = match resource
                .body
                .as_ref()
                .and_then(|body| known_bodies.get(body))
            {
                Some(message) => Ok(message.clone()),
                None => self.decode(&delivery.type_url, resource),
            };
            match result {
                Ok(message) => {
                    if let Some(report) = &message.report {
                        let report = Report::clone(report);
                        judgement.reports.push((Arc::clone(resource), report));
                    }
                    judgement.messages.push((Arc::clone(resource), message));
                }
                Err(rejection) => judgement.verdict.rejected.push(rejection),
            }
        }
        judgement
    }

    /// Decodes and validates one body. A body of an unregistered type is
    /// accepted as it is. If a check panics, the body is rejected, and the stream
    /// goes on.
    pub(super) fn decode(
        &self,
        type_url: &TypeUrl,
        resource: &Resource,
    ) -> Result<Message, Rejection> {
        if !self.types.contains(type_url.as_str()) {
            return Ok(Message {
                value: Arc::new(Raw),
                report: None,
            });
        }
        // Of other types than VHDS, a resource without a body is a mistake: it is
        // read as an empty message, which most checks reject.
        let body = resource.body.clone().unwrap_or_default();
        let check = || self.types.accept(type_url.as_str(), &body, &self.policy);
        // A check may be the program's own; it gets the body alone.
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(check)) else {
            return Err(Rejection::of(&resource.name, "its check panicked"));
        };

        match outcome {
            Ok(acceptance) => {
                let report = Some(acceptance.report).filter(|report| !report.is_empty());
                Ok(Message {
                    value: acceptance.message,
                    report: report.map(Arc::new),
                })
            }
            Err(rejection) => Err(Rejection::of(&resource.name, rejection.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use trunkline_core::name::Name;
    use trunkline_core::resource::Nonce;

    use super::*;

    /// Judges a response that has one resource without a body.
    async fn judge_bodiless(type_url: &str) -> Judgement {
        let judge = Judge {
            types: Arc::new(Types::standard().clone()),
            policy: Arc::new(Policy::envoy()),
        };
        let name = Name::from("routes/host");
        let resource = Resource {
            body: None,
            ..Resource::new(name, Bytes::new())
        };
        let delivery = Delivery {
            type_url: TypeUrl::from(type_url),
            nonce: Nonce::from("1"),
            resources: vec![Arc::new(resource)],
            heartbeats: Vec::new(),
            removed: Vec::new(),
            removed_variants: Vec::new(),
            errors: Vec::new(),
        };
        judge
            .judge(&delivery, Vec::new(), &KnownBodies::default())
            .await
    }

    #[tokio::test]
    async fn s35_a_host_that_does_not_exist_is_no_mistake() {
        let judgement = judge_bodiless(kind::VHDS).await;
        assert!(judgement.verdict.rejected.is_empty());
        assert!(judgement.messages.is_empty());
        let judgement = judge_bodiless(kind::CDS).await;
        assert_eq!(judgement.verdict.rejected.len(), 1);
    }
}
