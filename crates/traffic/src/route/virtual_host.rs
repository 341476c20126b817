//! A virtual host and its routes.

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::route::v3::{
    self as message, route::Action as ActionMessage, virtual_host::TlsRequirementType,
};

use super::action::{Action, Forwarding};
use super::criteria::{Criteria, Trial, compile_each};
use super::direct::DirectResponse;
use super::filters::FilterConfigs;
use super::mirror::MirrorPolicy;
use super::mutations::{BothMutations, fields};
use super::path::{PathHead, PathMatcher};
use super::redirect::Redirect;
use crate::findings::Findings;
use crate::request::Request;
use crate::retry::RetryPolicy;

/// A virtual host.
#[derive(Debug)]
pub struct VirtualHost {
    pub(super) name: Box<str>,
    /// In lower case.
    pub(super) domains: Box<[Box<str>]>,
    routes: Box<[Route]>,
    /// The heads of their paths, in the same order: one line of a cache has
    /// those of four routes.
    heads: Box<[PathHead]>,
    pub(super) filters: FilterConfigs,
    pub(super) mutations: BothMutations,
    require_tls: RequireTls,
    counts_attempts: bool,
    counts_attempts_in_response: bool,
}

/// Which requests have to come over TLS (35).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequireTls {
    None,
    ExternalOnly,
    All,
}

/// A route.
#[derive(Debug)]
pub struct Route {
    name: Box<str>,
    pub(super) criteria: Criteria,
    pub(super) action: Action,
    pub(super) filters: FilterConfigs,
    pub(super) mutations: BothMutations,
}

/// What a route takes over from the configuration around it.
pub(super) struct Inherited<'m> {
    pub(super) max_body: usize,
    pub(super) mirrors: &'m [MirrorPolicy],
    pub(super) retry: Option<&'m RetryPolicy>,
    pub(super) hedges: bool,
}

impl VirtualHost {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the domains, in lower case.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.domains.iter().map(|domain| &**domain)
    }

    /// Returns the routes, in order.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Returns whether each attempt says its number in `x-envoy-attempt-count`.
    #[must_use]
    pub fn counts_attempts(&self) -> bool {
        self.counts_attempts
    }

    /// Returns whether the response says how many attempts there were.
    #[must_use]
    pub fn counts_attempts_in_response(&self) -> bool {
        self.counts_attempts_in_response
    }

    /// Compiles a virtual host. A part that cannot be compiled is a finding,
    /// and is left out.
    pub(super) fn compile(
        message: &message::VirtualHost,
        inherited: &Inherited<'_>,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Self {
        findings.unsupported(&place.field("matcher"), message.matcher.is_some());
        if message.domains.is_empty() {
            findings.add(&place.field("domains"), Problem::Missing);
        }

        let own_policies = &message.request_mirror_policies;
        let mirrors = compile_each(
            "request_mirror_policies",
            own_policies,
            place,
            |message, place| MirrorPolicy::compile(message, place, findings),
        );

        let retry = message
            .retry_policy
            .as_ref()
            .map(|policy| RetryPolicy::compile(policy, &place.field("retry_policy"), findings));
        let has_typed_retry = message.retry_policy_typed_config.is_some();
        findings.unsupported(&place.field("retry_policy_typed_config"), has_typed_retry);

        let inherited_by_routes = Inherited {
            retry: retry.as_ref(),
            hedges: hedges(message.hedge_policy.as_ref()),
            max_body: inherited.max_body,
            mirrors: match mirrors.is_empty() {
                true => inherited.mirrors,
                false => &mirrors,
            },
        };
        let routes = compile_each("routes", &message.routes, place, |message, place| {
            Route::compile(message, &inherited_by_routes, place, findings)
        });

        let require_tls = RequireTls::read(message, place, findings);
        let domains = message.domains.iter();
        Self {
            name: message.name.as_str().into(),
            domains: domains
                .map(|domain| domain.to_ascii_lowercase().into())
                .collect(),
            heads: routes
                .iter()
                .map(|route| route.criteria.path.head())
                .collect(),
            routes,
            filters: FilterConfigs::compile(&message.typed_per_filter_config, place, findings),
            mutations: BothMutations::compile(&fields!(message), place, findings),
            require_tls,
            counts_attempts: message.include_request_attempt_count,
            counts_attempts_in_response: message.include_attempt_count_in_response,
        }
    }

    /// Finds the first route that matches, and its place.
    pub(super) fn find(&self, trial: &Trial<'_>) -> Option<(usize, &Route)> {
        let word = PathHead::word(trial.path);
        let mut routes = self.heads.iter().zip(&self.routes).enumerate();
        let first_match = routes
            .find(|(_, (head, route))| head.admits(word) && route.criteria.test(trial).is_ok());
        first_match.map(|(index, (_, route))| (index, route))
    }

    /// Returns whether a request has to come again over TLS.
    pub(super) fn redirects_to_tls(&self, request: &Request<'_>) -> bool {
        match self.require_tls {
            RequireTls::None => false,
            RequireTls::ExternalOnly => !request.is_internal() && request.scheme != "https",
            RequireTls::All => request.scheme != "https",
        }
    }
}

impl RequireTls {
    /// Reads which requests need TLS. An unknown value is a finding, and means
    /// all of them.
    fn read(message: &message::VirtualHost, place: &Place<'_>, findings: &mut Findings) -> Self {
        match TlsRequirementType::try_from(message.require_tls) {
            Ok(TlsRequirementType::None) => Self::None,
            Ok(TlsRequirementType::ExternalOnly) => Self::ExternalOnly,
            Ok(TlsRequirementType::All) => Self::All,
            Err(_) => {
                findings.add(&place.field("require_tls"), Problem::Unsupported);
                Self::All
            }
        }
    }
}

/// Returns whether an attempt that takes too long goes on beside the next one.
pub(super) fn hedges(policy: Option<&message::HedgePolicy>) -> bool {
    policy.is_some_and(|policy| policy.hedge_on_per_try_timeout)
}

impl Route {
    /// Returns the name; often empty.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what is done with a request.
    #[must_use]
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// Compiles a route. Returns `None` if its match or its action is missing
    /// or cannot be compiled.
    fn compile(
        message: &message::Route,
        inherited: &Inherited<'_>,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let Some(match_message) = &message.r#match else {
            findings.add(&place.field("match"), Problem::Missing);
            return None;
        };

        let criteria = Criteria::compile(match_message, &place.field("match"), findings);
        let path = criteria.as_ref().map(|criteria| &criteria.path);

        let action = Action::compile(message, path, inherited, place, findings);

        Some(Self {
            name: message.name.as_str().into(),
            criteria: criteria?,
            action: action?,
            filters: FilterConfigs::compile(&message.typed_per_filter_config, place, findings),
            mutations: BothMutations::compile(&fields!(message), place, findings),
        })
    }
}

impl Action {
    /// Compiles the action of a route, whose path is `path`. Returns `None` if
    /// it is missing, not supported or cannot be compiled.
    fn compile(
        message: &message::Route,
        path: Option<&PathMatcher>,
        inherited: &Inherited<'_>,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        match &message.action {
            Some(ActionMessage::Route(route)) => {
                let place = place.field("route");
                let forwarding = Forwarding::compile(route, path, inherited, &place, findings);
                forwarding.map(|forwarding| Action::Forward(Box::new(forwarding)))
            }
            Some(ActionMessage::Redirect(redirect)) => {
                let redirect = Redirect::compile(redirect, &place.field("redirect"), findings);
                redirect.map(|redirect| Action::Redirect(Box::new(redirect)))
            }
            Some(ActionMessage::DirectResponse(direct)) => {
                let place = place.field("direct_response");
                DirectResponse::compile(direct, inherited.max_body, &place, findings)
                    .map(Action::DirectResponse)
            }
            Some(ActionMessage::NonForwardingAction(_)) => Some(Action::None),
            Some(ActionMessage::FilterAction(_)) => {
                findings.add(&place.field("filter_action"), Problem::Unsupported);
                None
            }
            None => {
                findings.add(place, Problem::Missing);
                None
            }
        }
    }
}
