//! The parameters of a request that changes resources.

use super::encode_url;
use crate::cli;

impl cli::Change {
    /// Returns the parameters of the flags that are set, such as
    /// `origin=team-a&dry_run=true`.
    pub(super) fn query_parameters(&self) -> String {
        let mut query = format!("origin={}", encode_url(&self.origin));
        for (is_set, name) in [(self.take_over, "take_over"), (self.dry_run, "dry_run")] {
            if is_set {
                query.push_str(&format!("&{name}=true"));
            }
        }
        if let Some(revision) = self.if_revision {
            query.push_str(&format!("&if_revision={revision}"));
        }
        query
    }
}
