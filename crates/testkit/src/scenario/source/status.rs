//! The status of a session, compared with the one that a line expects.

use trunkline_core::resource::Nonce;
use trunkline_core::session::TypeStatus;

use super::super::client::find;
use super::super::contents::short;
use super::Stage;

impl Stage {
    /// Every clause of the line must hold.
    pub(super) fn status(
        &mut self,
        name: &str,
        of: &str,
        clauses: &[(String, String)],
    ) -> Result<(), String> {
        let (stream, ..) = self.parts(name)?;
        let session = stream.session().ok_or("the stream is closed")?;
        let mut all = session.status();
        let status = all.find(|status| short(&status.type_url) == of);
        let status = status.ok_or_else(|| format!("nothing is known of {of}"))?;
        drop(all);
        for (key, expected) in clauses {
            let got = self.clause(&status, key)?;
            if got != *expected {
                return Err(format!("expected  {key}={expected}\ngot       {key}={got}"));
            }
        }
        Ok(())
    }

    fn clause(&self, status: &TypeStatus, key: &str) -> Result<String, String> {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        Ok(match key {
            "sent" => self.label(status.last_nonce.as_ref()),
            "acked" => self.label(status.last_acked.as_ref()),
            "waits" => yes(status.has_pending_ack),
            "wildcard" => yes(status.wildcard),
            "subscriptions" => status.subscriptions.to_string(),
            "error" => match &status.error {
                None => "none".to_owned(),
                Some(error) => format!("\"{}\"", error.message),
            },
            "parked" => {
                let parked = status.quarantined.iter().map(|(name, version)| {
                    let body = self.bodies.get(version).map_or("?", String::as_str);
                    format!("{name}@{body}")
                });
                match parked.collect::<Vec<_>>() {
                    none if none.is_empty() => "none".to_owned(),
                    some => some.join(","),
                }
            }
            _ => return Err(format!("`{key}` is nothing that is known of a type")),
        })
    }

    /// A response by the label that it got.
    fn label(&self, nonce: Option<&Nonce>) -> String {
        let Some(nonce) = nonce else {
            return "none".to_owned();
        };
        let mut labels = self.labels.keys();
        let known = labels.find(|label| find(&self.labels, label).is_ok_and(|s| s.nonce == *nonce));
        known.cloned().unwrap_or_else(|| format!("\"{nonce}\""))
    }
}
