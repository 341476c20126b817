//! What is known of a stream, for people (S16).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Session;
use crate::database::Database;
use crate::message::ErrorDetail;
use crate::name::Name;
use crate::resource::{Nonce, Resource, TypeUrl, Version};

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
    /// What the peer holds of a type, by name: what it accepted, without names
    /// of which it rejected something since and may hold either (S17). Visits
    /// all of it.
    pub fn held(&self, db: &mut Database, type_url: &TypeUrl) -> BTreeMap<Name, Arc<Resource>> {
        let mut all = self.conversations.iter().flatten();
        let Some(conversation) = all.find(|c| c.url == *type_url) else {
            return BTreeMap::new();
        };
        let mut held = BTreeMap::new();
        for cursor in conversation.cursors.iter().flatten() {
            for resource in db.held(cursor.follow, cursor.position) {
                held.insert(resource.name.clone(), resource);
            }
            let answered = cursor
                .walks
                .front()
                .into_iter()
                .flat_map(|walk| &walk.batch.items[..walk.answered]);
            for (name, item) in answered {
                held.remove(name);
                held.extend(item.iter().map(|r| (name.clone(), Arc::clone(r))));
            }
            for (name, slot) in &cursor.members {
                held.remove(name);
                held.extend(slot.told.certain().map(|r| (r.name.clone(), Arc::clone(r))));
            }
        }
        for slot in conversation.asks.values() {
            held.extend(slot.told.certain().map(|r| (r.name.clone(), Arc::clone(r))));
        }
        held
    }

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
