//! What trees are told, between the client's machine and theirs: the newest of
//! each node.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use trunkline_core::tree::NodeId;

use crate::client::state::ErasedState;

/// What a node is told.
pub(in crate::client) enum News {
    /// The newest state of its resource.
    State(ErasedState),
    /// Names of its collection have changed.
    Names,
    /// The addresses of its host, or why there are none.
    Addresses(Result<Vec<SocketAddr>, String>),
}

/// What nodes are told and have not read yet.
#[derive(Default)]
pub(in crate::client) struct Mailbox {
    news: Mutex<BTreeMap<NodeId, News>>,
    /// Notified when news are put.
    pub(super) notify: Notify,
}

impl Mailbox {
    /// Puts the newest news of a node in place of those that it has not read.
    pub(in crate::client) fn put(&self, node: NodeId, news: News) {
        let mut mail = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        mail.insert(node, news);
        drop(mail);
        self.notify.notify_one();
    }

    /// Takes all news, by node: the order among nodes is lost, and no tree needs
    /// it.
    pub(super) fn take(&self) -> BTreeMap<NodeId, News> {
        let mut mail = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *mail)
    }
}
