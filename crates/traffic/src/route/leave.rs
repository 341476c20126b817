//! A request on its way out: mutations, host and path, in Envoy's order.

use super::forward::Forward;
use super::rewrite::HostRewrite;
use super::table::RouteMatch;
use crate::headers::{FormatContext, Headers};
use crate::request::Request;

/// The request line of a request that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// The host.
    pub host: String,
    /// The path and the query.
    pub path: String,
}

impl<'t> RouteMatch<'t> {
    /// Makes the request to the upstream from the received one: first the
    /// mutations of headers, then the host, then the path. All mutations but
    /// those of the weighted cluster see the cluster's host.
    ///
    /// `headers` are those of the received request, with the additions of the
    /// proxy itself, and become those of the new request. `endpoint` is the
    /// host name of the endpoint, for `auto_host_rewrite`.
    #[must_use]
    pub fn leave(
        &self,
        forward: &Forward<'t>,
        request: &Request<'_>,
        headers: &mut Headers,
        endpoint: Option<&str>,
        context: &FormatContext<'_>,
    ) -> Leaving {
        self.mutate_request(Some(forward), headers, context);

        let cluster_host = forward.cluster.entry.and_then(|entry| entry.host_rewrite());
        let authority = cluster_host.unwrap_or(request.authority);
        let host = self.rewrite_host(authority, request, headers, endpoint);
        if host.is_some() {
            if forward.appends_forwarded_host && !authority.is_empty() {
                headers.join("x-forwarded-host", ",", authority);
            }
            headers.set("x-envoy-original-host", authority.to_owned());
        }

        if forward.path.is_some() {
            headers.set("x-envoy-original-path", request.path.to_owned());
        }
        Leaving {
            host: host.unwrap_or_else(|| authority.to_owned()),
            path: forward
                .path
                .clone()
                .unwrap_or_else(|| request.path.to_owned()),
        }
    }

    /// Returns the host by the rewrite of the route. The rewrite sees the
    /// headers after the mutations. Returns `None` if the host stays.
    fn rewrite_host(
        &self,
        authority: &str,
        request: &Request<'_>,
        headers: &Headers,
        endpoint: Option<&str>,
    ) -> Option<String> {
        match &self.forwarding()?.host {
            HostRewrite::Endpoint => {
                let name = endpoint.filter(|name| !name.is_empty());
                name.map(str::to_owned)
            }
            rewrite => {
                let current_request = Request {
                    authority,
                    headers,
                    ..*request
                };
                rewrite.apply_to(&current_request)
            }
        }
    }
}
