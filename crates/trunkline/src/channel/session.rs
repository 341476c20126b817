//! Stateful sessions: a cookie keeps the calls of a caller at one endpoint (A55),
//! and in its cluster where a route has several (A60).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use prost::Message as _;
use trunkline_proto::descriptor::full_name;
use trunkline_proto::envoy::envoy::extensions::filters::http::stateful_session::v3::{
    StatefulSession, StatefulSessionPerRoute, stateful_session_per_route::Override,
};
use trunkline_proto::envoy::envoy::extensions::http::stateful_session::cookie::v3::CookieBasedSessionState;
use trunkline_proto::envoy::google::protobuf::Any;

use super::fault::duration;

const FILTER: &str = "envoy.extensions.filters.http.stateful_session.v3.StatefulSession";
const ROUTE: &str = "envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute";
const COOKIE: &str = "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState";

/// The cookie of sessions, as a filter or a route says it; `None` where there
/// are no sessions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cookie {
    name: String,
    path: String,
    ttl: Option<Duration>,
}

/// The session of one call.
#[derive(Debug)]
pub(super) struct Session {
    cookie: Cookie,
    /// The endpoint that had the calls before, and its cluster.
    pub(super) endpoint: Option<String>,
    pub(super) cluster: Option<String>,
}

impl Cookie {
    /// Reads the configuration of a filter. The outer `None` says that it is
    /// another filter, the inner one that it has no sessions.
    pub(super) fn read_filter(any: &Any) -> Option<Option<Self>> {
        (full_name(&any.type_url) == FILTER).then(|| {
            let filter = StatefulSession::decode(&*any.value).ok()?;
            Self::read_state(filter.session_state?.typed_config.as_ref()?)
        })
    }

    /// Reads the configuration of a route, which replaces the filter's; `None`
    /// if calls of the route have no sessions.
    pub(super) fn read_route(any: &Any) -> Option<Self> {
        if full_name(&any.type_url) != ROUTE {
            return None;
        }
        let route = StatefulSessionPerRoute::decode(&*any.value).ok()?;
        match route.r#override? {
            Override::Disabled(_) => None,
            Override::StatefulSession(filter) => {
                Self::read_state(filter.session_state?.typed_config.as_ref()?)
            }
        }
    }

    /// Reads the cookie in which sessions are kept; `None` if they are kept
    /// elsewhere, or the configuration cannot be read.
    fn read_state(any: &Any) -> Option<Self> {
        if full_name(&any.type_url) != COOKIE {
            return None;
        }
        let cookie = CookieBasedSessionState::decode(&*any.value).ok()?.cookie?;
        Some(Self {
            name: cookie.name,
            path: cookie.path,
            ttl: cookie.ttl.as_ref().map(duration),
        })
    }

    /// Returns whether calls of a path have the cookie: its own path is the
    /// same, or a directory above it.
    fn covers(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.path.as_str());
        rest.is_some_and(|rest| {
            rest.is_empty()
                || self.path.is_empty()
                || self.path.ends_with('/')
                || rest.starts_with('/')
        })
    }
}

impl Session {
    /// Reads the session of a call, from its path and the values of its header
    /// `cookie`. Returns `None` if the path is not one of the cookie's. A call
    /// without the cookie begins a session.
    pub(super) fn read<'h>(
        cookie: Cookie,
        path: &str,
        headers: impl Iterator<Item = &'h str>,
    ) -> Option<Self> {
        if !cookie.covers(path) {
            return None;
        }
        let pairs = headers.flat_map(|line| line.split(';'));
        let mut pairs = pairs.filter_map(|pair| pair.trim().split_once('='));

        let value = pairs.find(|(name, _)| *name == cookie.name);
        let value = value.and_then(|(_, value)| STANDARD.decode(value.trim_matches('"')).ok());
        let value = value.and_then(|value| String::from_utf8(value).ok());
        let value = value.unwrap_or_default();
        let (endpoint, cluster) = value.split_once(';').unwrap_or((&value, ""));
        let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Some(Self {
            endpoint: non_empty(endpoint),
            cluster: non_empty(cluster),
            cookie,
        })
    }

    /// Returns the value of `set-cookie` for a call that went to an endpoint of
    /// a cluster; `None` if the caller has that cookie already.
    pub(super) fn set_cookie(&self, endpoint: &str, cluster: &str) -> Option<HeaderValue> {
        let is_same =
            self.endpoint.as_deref() == Some(endpoint) && self.cluster.as_deref() == Some(cluster);
        if is_same {
            return None;
        }

        let Cookie { name, path, ttl } = &self.cookie;
        let value = STANDARD.encode(format!("{endpoint};{cluster}"));
        let mut text = format!("{name}={value}");
        if let Some(ttl) = ttl.filter(|ttl| !ttl.is_zero()) {
            text.push_str(&format!("; Max-Age={}", ttl.as_secs()));
        }
        if !path.is_empty() {
            text.push_str(&format!("; Path={path}"));
        }
        text.push_str("; HttpOnly");
        HeaderValue::try_from(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(path: &str) -> Cookie {
        Cookie {
            name: "s".to_owned(),
            path: path.to_owned(),
            ttl: Some(Duration::from_secs(9)),
        }
    }

    #[test]
    fn a55_a_cookie_is_for_its_path_and_what_is_below() {
        for (own, path, covers) in [
            ("", "/a/B", true),
            ("/", "/a/B", true),
            ("/a", "/a", true),
            ("/a", "/a/B", true),
            ("/a/", "/a/B", true),
            ("/a", "/ab/B", false),
            ("/a/B", "/a", false),
        ] {
            assert_eq!(cookie(own).covers(path), covers, "{own:?} {path:?}");
        }
    }

    #[test]
    fn a60_a_cookie_has_endpoint_and_cluster_and_is_set_when_they_change() {
        let read = |lines: &[&str]| {
            Session::read(cookie("/"), "/a", lines.iter().copied()).expect("it covers the path")
        };
        let first = read(&["other=x"]);
        let set = first.set_cookie("1.2.3.4:5", "c").expect("it is new");
        let set = set.to_str().expect("text");
        let (pair, rest) = set.split_once(';').expect("attributes");
        assert_eq!(rest, " Max-Age=9; Path=/; HttpOnly");
        let second = read(&["x=y", &format!("a=b; {pair}")]);
        assert_eq!(second.endpoint.as_deref(), Some("1.2.3.4:5"));
        assert_eq!(second.cluster.as_deref(), Some("c"));
        assert_eq!(second.set_cookie("1.2.3.4:5", "c"), None);
        assert!(second.set_cookie("1.2.3.4:5", "d").is_some());
        assert!(read(&["s=%%%"]).endpoint.is_none());
    }
}
