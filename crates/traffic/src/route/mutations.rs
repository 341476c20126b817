//! The header mutations of a request and its response, in Envoy's order (facts
//! 2.3).

use trunkline_proto::acceptance::Place;
use trunkline_proto::envoy::envoy::config::core::v3::HeaderValueOption;

use super::forward::Forward;
use super::table::RouteMatch;
use crate::findings::Findings;
use crate::headers::{FormatContext, Headers, Mutations, Side, apply_all};

/// The mutations of one place.
#[derive(Debug, Clone, Default)]
pub(super) struct BothMutations {
    request: Mutations,
    response: Mutations,
}

/// The fields of a message that mutate headers.
pub(super) struct Fields<'m> {
    pub(super) request_add: &'m [HeaderValueOption],
    pub(super) request_remove: &'m [String],
    pub(super) response_add: &'m [HeaderValueOption],
    pub(super) response_remove: &'m [String],
}

/// Reads the four fields that many messages have.
macro_rules! fields {
    ($message:expr) => {
        $crate::route::mutations::Fields {
            request_add: &$message.request_headers_to_add,
            request_remove: &$message.request_headers_to_remove,
            response_add: &$message.response_headers_to_add,
            response_remove: &$message.response_headers_to_remove,
        }
    };
}
pub(super) use fields;

impl BothMutations {
    /// Compiles the mutations of requests and of responses at one place of the
    /// configuration.
    pub(super) fn compile(fields: &Fields<'_>, place: &Place<'_>, findings: &mut Findings) -> Self {
        Self {
            request: Mutations::compile(
                fields.request_add,
                fields.request_remove,
                ["request_headers_to_add", "request_headers_to_remove"],
                place,
                findings,
            ),
            response: Mutations::compile(
                fields.response_add,
                fields.response_remove,
                ["response_headers_to_add", "response_headers_to_remove"],
                place,
                findings,
            ),
        }
    }
}

impl<'t> RouteMatch<'t> {
    /// Changes the headers of a request before it is forwarded. Formats see
    /// these headers, not those of the context's request.
    pub fn mutate_request(
        &self,
        forward: Option<&Forward<'t>>,
        headers: &mut Headers,
        context: &FormatContext<'_>,
    ) {
        let [cluster_mutations, other_places @ ..] = self.places(forward);
        let cluster_mutations = cluster_mutations.map(|mutations| &mutations.request);
        apply_all(cluster_mutations, headers, Side::Request, context);

        // The mutations of other places see the host of the weighted cluster.
        let host = forward.and_then(|forward| forward.cluster.entry?.host_rewrite());
        let mut context = *context;
        if let (Some(request), Some(authority)) = (&mut context.request, host) {
            request.authority = authority;
        }

        let other_mutations = other_places
            .into_iter()
            .flatten()
            .map(|mutations| &mutations.request);
        apply_all(other_mutations, headers, Side::Request, &context);
    }

    /// Changes the headers of a response, or of a reply of the proxy itself.
    /// Formats see these headers, not those of the context's response.
    pub fn mutate_response(
        &self,
        forward: Option<&Forward<'t>>,
        headers: &mut Headers,
        context: &FormatContext<'_>,
    ) {
        let places = self.places(forward);
        let mutations = places.into_iter().flatten().map(|place| &place.response);
        apply_all(mutations, headers, Side::Response, context);
    }

    /// Returns the mutations of all places, in the order in which they apply.
    /// The last one takes precedence: the least specific place, unless the
    /// configuration reverses this. A weighted cluster is always first.
    fn places(&self, forward: Option<&Forward<'t>>) -> [Option<&'t BothMutations>; 4] {
        let entry = forward.and_then(|forward| forward.cluster.entry);
        let cluster = entry.map(|entry| &entry.mutations);
        let route = Some(&self.route.mutations);
        let host = Some(&self.virtual_host.mutations);
        let (table_mutations, specific_wins) = self.table_mutations();
        match specific_wins {
            false => [cluster, route, host, Some(table_mutations)],
            true => [cluster, Some(table_mutations), host, route],
        }
    }
}
