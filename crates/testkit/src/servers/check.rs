//! What must hold in a world of servers.

use trunkline_core::client::State;
use trunkline_core::kind::EDS;
use trunkline_core::message::Mode;
use trunkline_core::name::{Name, Selector};
use trunkline_core::resource::TypeUrl;

use super::World;
use crate::world::Fault;

impl World {
    /// After each step: a watch sees good contents only, which some server has
    /// had, and nothing without a subscription once the stream knows of that.
    pub(super) fn check(&mut self) -> Result<(), Fault> {
        while self.client.poll_watch().is_some() {}
        for (url, name, watch) in &self.watches {
            let state = self.client.state(*watch).cloned().unwrap_or_default();
            let Some(body) = body(&state) else {
                continue;
            };
            if !body.starts_with("good") {
                return Err(format!("{url} {name}: {body} was accepted"));
            }
            if !self
                .servers
                .iter()
                .any(|(_, server)| server.had.contains(&body))
            {
                return Err(format!("{url} {name}: nobody ever had {body}"));
            }
        }
        Ok(())
    }

    /// In quiet: what the best server has, if it has anything for the client.
    pub(super) fn check_quiet(&mut self) -> Result<(), Fault> {
        self.check()?;
        let best = &self.servers[0].1.contents;
        let is_good = |key: &(TypeUrl, Name)| best.get(key).is_some_and(|b| b.starts_with("good"));
        let serves_any = best
            .keys()
            .any(|key| is_good(key) && self.is_subscribed(&key.0, &key.1));
        if !serves_any {
            return Ok(());
        }
        for (url, name, watch) in &self.watches {
            let state = self.client.state(*watch).cloned().unwrap_or_default();
            let key = (url.clone(), name.clone());
            let expected = best.get(&key);
            let held = body(&state);
            let is_right = match (self.is_subscribed(url, name), expected) {
                // A watch without a subscription may see what is not dropped yet.
                (false, _) => true,
                // State of the world cannot say that endpoints are gone (C29).
                (true, None) => held.is_none() || self.mode == Mode::Sotw && url.as_str() == EDS,
                (true, Some(good)) if good.starts_with("good") => held.as_ref() == Some(good),
                // The last good one stays, whoever sent it.
                (true, Some(_)) => true,
            };
            if !is_right {
                return Err(format!("{url} {name}: {state:?} instead of {expected:?}"));
            }
        }
        Ok(())
    }

    fn is_subscribed(&self, url: &TypeUrl, name: &Name) -> bool {
        self.subscribed.iter().any(|(of, selector)| {
            let covers = match selector {
                Selector::Wildcard => true,
                Selector::Name(selected) => selected == name,
                Selector::Glob(glob) => glob.matches(name),
            };
            of == url && covers
        })
    }
}

fn body(state: &State) -> Option<String> {
    let body = state.value.as_ref()?.body.as_deref()?;
    Some(String::from_utf8_lossy(body).into_owned())
}
