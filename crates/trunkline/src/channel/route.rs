//! Which cluster a call goes to.

use http::request::Parts;
use trunkline_proto::envoy::envoy::config::route::v3::route_match::PathSpecifier;
use trunkline_proto::envoy::envoy::config::route::v3::{
    Route, RouteMatch, VirtualHost, WeightedCluster, route, route_action,
};

/// Chooses the cluster of a call. `random` is drawn anew for each call.
pub trait Router: Send + Sync + 'static {
    /// The name of the cluster; `None` if no route matches, or one that leads to
    /// no cluster.
    fn route<'a>(&self, host: &'a VirtualHost, call: &Parts, random: u64) -> Option<&'a str>;
}

/// Routes by path: exact, or by prefix. A route with any other condition, which
/// this one could not check, is passed over.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathRouter;

impl Router for PathRouter {
    fn route<'a>(&self, host: &'a VirtualHost, call: &Parts, random: u64) -> Option<&'a str> {
        let path = call.uri.path();
        let mut routes = host.routes.iter();
        let found = routes.find(|route| matches(route, path))?;
        let Some(route::Action::Route(action)) = &found.action else {
            return None;
        };
        match action.cluster_specifier.as_ref()? {
            route_action::ClusterSpecifier::Cluster(name) => Some(name),
            route_action::ClusterSpecifier::WeightedClusters(clusters) => {
                weighted(clusters, random)
            }
            _ => None,
        }
    }
}

fn matches(route: &Route, path: &str) -> bool {
    let Some(conditions) = &route.r#match else {
        return false;
    };
    if has_more_than_a_path(conditions) {
        return false;
    }
    let is_case_sensitive = conditions.case_sensitive.is_none_or(|of| of.value);
    let same = |a: &str, b: &str| match is_case_sensitive {
        true => a == b,
        false => a.eq_ignore_ascii_case(b),
    };
    match &conditions.path_specifier {
        Some(PathSpecifier::Path(exact)) => same(path, exact),
        Some(PathSpecifier::Prefix(prefix)) => path
            .get(..prefix.len())
            .is_some_and(|head| same(head, prefix)),
        _ => false,
    }
}

/// Whether anything but the path decides. Defaults are left out, as the wire
/// does, so a field of a later release is found, too.
fn has_more_than_a_path(conditions: &RouteMatch) -> bool {
    let path_only = RouteMatch {
        path_specifier: conditions.path_specifier.clone(),
        case_sensitive: conditions.case_sensitive,
        ..RouteMatch::default()
    };
    path_only != *conditions
}

fn weighted(clusters: &WeightedCluster, random: u64) -> Option<&str> {
    let weight = |index: usize| {
        let weight = clusters.clusters.get(index)?.weight?;
        Some(u64::from(weight.value))
    };
    let weights = (0..clusters.clusters.len()).map(|index| weight(index).unwrap_or(0));
    let total: u64 = weights.clone().sum();
    let mut left = random.checked_rem(total)?;
    let chosen = weights.into_iter().position(|weight| match left < weight {
        true => true,
        false => {
            left -= weight;
            false
        }
    })?;
    Some(&clusters.clusters[chosen].name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_proto::envoy::envoy::config::route::v3::weighted_cluster::ClusterWeight;
    use trunkline_proto::envoy::envoy::config::route::v3::{HeaderMatcher, RouteAction};
    use trunkline_proto::envoy::google::protobuf::{BoolValue, UInt32Value};

    fn to(specifier: PathSpecifier, cluster: &str) -> Route {
        let cluster = route_action::ClusterSpecifier::Cluster(cluster.to_owned());
        Route {
            r#match: Some(RouteMatch {
                path_specifier: Some(specifier),
                ..RouteMatch::default()
            }),
            action: Some(route::Action::Route(RouteAction {
                cluster_specifier: Some(cluster),
                ..RouteAction::default()
            })),
            ..Route::default()
        }
    }

    fn prefix(text: &str, cluster: &str) -> Route {
        to(PathSpecifier::Prefix(text.to_owned()), cluster)
    }

    fn conditions(route: &mut Route) -> &mut RouteMatch {
        route.r#match.as_mut().unwrap()
    }

    fn routed(routes: &[Route], path: &str, random: u64) -> Option<String> {
        let host = VirtualHost {
            routes: routes.to_vec(),
            ..VirtualHost::default()
        };
        let (call, ()) = http::Request::get(path).body(()).unwrap().into_parts();
        let name = PathRouter.route(&host, &call, random);
        name.map(ToOwned::to_owned)
    }

    #[test]
    fn the_first_route_whose_path_matches_counts() {
        let exact = to(PathSpecifier::Path("/s/M".to_owned()), "exact");
        let mut loose = prefix("/Loose", "loose");
        conditions(&mut loose).case_sensitive = Some(BoolValue { value: false });
        let routes = [exact, loose, prefix("/s/", "service"), prefix("", "rest")];
        let cases = [
            ("/s/M", "exact"),
            ("/s/m", "service"),
            ("/LOOSE/x", "loose"),
            ("/other", "rest"),
        ];
        for (path, cluster) in cases {
            assert_eq!(routed(&routes, path, 0).as_deref(), Some(cluster), "{path}");
        }
        assert_eq!(routed(&routes[..1], "/other", 0), None);
    }

    #[test]
    fn a_route_with_a_condition_that_is_not_checked_is_passed_over() {
        let mut by_header = prefix("", "by-header");
        conditions(&mut by_header)
            .headers
            .push(HeaderMatcher::default());
        let routes = [by_header, prefix("", "rest")];
        assert_eq!(routed(&routes, "/", 0).as_deref(), Some("rest"));
    }

    #[test]
    fn weights_share_calls() {
        let share = |name: &str, weight: u32| ClusterWeight {
            name: name.to_owned(),
            weight: Some(UInt32Value { value: weight }),
            ..ClusterWeight::default()
        };
        let mut both = prefix("", "");
        let Some(route::Action::Route(action)) = &mut both.action else {
            unreachable!()
        };
        let clusters = WeightedCluster {
            clusters: vec![share("a", 3), share("none", 0), share("b", 1)],
            ..WeightedCluster::default()
        };
        action.cluster_specifier = Some(route_action::ClusterSpecifier::WeightedClusters(clusters));
        let names: Vec<_> = (0..8)
            .filter_map(|random| routed(std::slice::from_ref(&both), "/", random))
            .collect();
        assert_eq!(names.join(""), "aaabaaab");
    }
}
