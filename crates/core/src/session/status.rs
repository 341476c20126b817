//! What is known of a stream, for people (S16).

use super::Session;
use crate::message::ErrorDetail;
use crate::name::Name;
use crate::resource::{Nonce, TypeUrl, Version};

/// How one type stands on one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeStatus {
    /// The type.
    pub type_url: TypeUrl,
    /// How many names and globs the peer asks for.
    pub subscriptions: usize,
    /// Whether it asks for all of the type.
    pub wildcard: bool,
    /// The newest response.
    pub sent: Option<Nonce>,
    /// The newest response that was accepted.
    pub acked: Option<Nonce>,
    /// Whether an answer is awaited.
    pub awaits_answer: bool,
    /// What the peer last said of something that it rejects.
    pub error: Option<ErrorDetail>,
    /// What it rejected on its own, and in which version.
    pub parked: Vec<(Name, Version)>,
}

impl Session {
    /// How each type stands, in order of rank.
    pub fn status(&self) -> impl Iterator<Item = TypeStatus> + '_ {
        self.conversations
            .iter()
            .flatten()
            .map(|conversation| TypeStatus {
                type_url: conversation.url.clone(),
                subscriptions: conversation.subscriptions(),
                wildcard: conversation.wildcard.is_on(),
                sent: conversation.last_nonce.clone(),
                acked: conversation.last_acked.clone(),
                awaits_answer: !conversation.outstanding.is_empty(),
                error: conversation.last_error.clone(),
                parked: conversation
                    .parked
                    .iter()
                    .map(|(name, version)| (name.clone(), version.clone()))
                    .collect(),
            })
    }
}
