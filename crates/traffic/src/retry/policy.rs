//! Retry and hedge policies, as a route or a virtual host has them.

use std::time::Duration;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::route::v3::{
    RetryPolicy as Message, retry_policy::ResetHeaderFormat,
};

use super::back_off::{BackOff, RateLimited, ResetFormat};
use super::conditions::Conditions;
use crate::balance::duration;
use crate::findings::Findings;
use crate::route::{HeaderMatcher, compile_each};

const PREVIOUS_HOSTS: &str = "envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate";

/// When and how often a request is tried again.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    pub(super) conditions: Conditions,
    pub(super) retries: u32,
    pub(super) per_try_timeout: Option<Duration>,
    pub(super) per_try_idle_timeout: Option<Duration>,
    pub(super) status_codes: Box<[u16]>,
    pub(super) response_headers: Box<[HeaderMatcher]>,
    pub(super) request_headers: Box<[HeaderMatcher]>,
    pub(super) back_off: BackOff,
    pub(super) rate_limited: Option<RateLimited>,
    avoids_previous_hosts: bool,
    host_attempts: u32,
}

impl Default for RetryPolicy {
    /// Makes the policy of a route that has none: only headers of the request can
    /// ask for retries.
    fn default() -> Self {
        Self {
            conditions: Conditions::default(),
            retries: 1,
            per_try_timeout: None,
            per_try_idle_timeout: None,
            status_codes: Box::default(),
            response_headers: Box::default(),
            request_headers: Box::default(),
            back_off: BackOff::default(),
            rate_limited: None,
            avoids_previous_hosts: false,
            host_attempts: 1,
        }
    }
}

impl RetryPolicy {
    /// Compiles a retry policy. A part that cannot be compiled is a finding, and
    /// is left out.
    pub(crate) fn compile(message: &Message, place: &Place<'_>, findings: &mut Findings) -> Self {
        let extensions = !message.retry_options_predicates.is_empty();
        findings.unsupported(&place.field("retry_options_predicates"), extensions);
        findings.unsupported(
            &place.field("retry_priority"),
            message.retry_priority.is_some(),
        );

        let response_headers = compile_each(
            "retriable_headers",
            &message.retriable_headers,
            place,
            |matcher, place| HeaderMatcher::compile(matcher, place, findings),
        );

        let request_matchers = &message.retriable_request_headers;
        let request_headers = compile_each(
            "retriable_request_headers",
            request_matchers,
            place,
            |matcher, place| HeaderMatcher::compile(matcher, place, findings),
        );

        let codes = message.retriable_status_codes.iter();
        Self {
            conditions: Conditions::parse(&message.retry_on),
            retries: message.num_retries.map_or(1, |count| count.value),
            per_try_timeout: message.per_try_timeout.as_ref().map(duration),
            per_try_idle_timeout: message.per_try_idle_timeout.as_ref().map(duration),
            status_codes: codes.filter_map(|code| u16::try_from(*code).ok()).collect(),
            response_headers,
            request_headers,
            back_off: back_off(message, place, findings),
            rate_limited: rate_limited(message),
            avoids_previous_hosts: avoids_previous_hosts(message, place, findings),
            host_attempts: match message.host_selection_retry_max_attempts {
                0 => 1,
                attempts => u32::try_from(attempts).unwrap_or(u32::MAX),
            },
        }
    }

    /// Returns how often an endpoint is chosen again if it was tried before;
    /// `None` if that does not matter (44). After the last time, the endpoint
    /// is taken all the same.
    #[must_use]
    pub fn host_attempts(&self) -> Option<u32> {
        self.avoids_previous_hosts.then_some(self.host_attempts)
    }

    /// Returns how long an attempt may be idle.
    #[must_use]
    pub fn per_try_idle_timeout(&self) -> Option<Duration> {
        self.per_try_idle_timeout
    }
}

/// Reads the back-off. Without a `max_interval`, the longest wait is ten times
/// `base_interval`.
fn back_off(message: &Message, place: &Place<'_>, findings: &mut Findings) -> BackOff {
    let Some(back_off) = &message.retry_back_off else {
        return BackOff::default();
    };
    let place = place.field("retry_back_off");
    let Some(base) = back_off.base_interval.as_ref().map(duration) else {
        findings.add(&place.field("base_interval"), Problem::Missing);
        return BackOff::default();
    };
    let max = back_off.max_interval.as_ref().map_or(base * 10, duration);
    if max < base {
        let problem = "is below base_interval; raise it".to_owned();
        findings.add(&place.field("max_interval"), Problem::Other(problem));
    }
    BackOff { base, max }
}

/// Reads which headers of a response say when to try again; `None` if the policy
/// heeds none.
fn rate_limited(message: &Message) -> Option<RateLimited> {
    let back_off = message.rate_limited_retry_back_off.as_ref()?;
    let headers = back_off.reset_headers.iter().map(|header| {
        let format = match header.format() {
            ResetHeaderFormat::Seconds => ResetFormat::Seconds,
            ResetHeaderFormat::UnixTimestamp => ResetFormat::UnixTimestamp,
        };
        (header.name.to_ascii_lowercase().into(), format)
    });
    Some(RateLimited {
        headers: headers.collect(),
        max: back_off
            .max_interval
            .as_ref()
            .map_or(Duration::from_secs(300), duration),
    })
}

/// Returns whether endpoints that were tried are avoided (44). A predicate of
/// another kind is a finding.
fn avoids_previous_hosts(message: &Message, place: &Place<'_>, findings: &mut Findings) -> bool {
    use trunkline_proto::envoy::envoy::config::route::v3::retry_policy::retry_host_predicate::ConfigType;
    let mut avoids = false;
    for (index, predicate) in message.retry_host_predicate.iter().enumerate() {
        let ConfigType::TypedConfig(any) = match &predicate.config_type {
            Some(config) => config,
            None => continue,
        };
        match any.type_url.ends_with(PREVIOUS_HOSTS) {
            true => avoids = true,
            false => findings.add(
                &place.item("retry_host_predicate", index),
                Problem::Extension(predicate.name.clone()),
            ),
        }
    }
    avoids
}
