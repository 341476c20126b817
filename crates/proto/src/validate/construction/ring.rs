//! The sizes of the rings and tables of load balancers that hash.

use prost_reflect::DynamicMessage;

use super::read::{
    Part, enum_number, has, inner, inner_along, messages, report_at, wrapped_number,
};
use super::rejected::Rejected;
use crate::canonical::any_parts;
use crate::descriptor::{self, full_name};
use crate::validate::walk::Walk;

/// `Cluster.LbPolicy.RING_HASH`.
pub(super) const RING_HASH: i32 = 2;
/// `Cluster.LbPolicy.MAGLEV`.
pub(super) const MAGLEV: i32 = 5;
const DEFAULT_MINIMUM: u64 = 1024;
const DEFAULT_MAXIMUM: u64 = 8 << 20;

const POLICIES: &str = "envoy.extensions.load_balancing_policies.";

/// Reports sizes that the load balancer of a cluster cannot have. Only the
/// first of several policies is used; without policies, the one that
/// `lb_policy` names, unless the cluster has subsets.
pub(super) fn check_sizes(walk: &mut Walk, cluster: &DynamicMessage) {
    if let Some(policy) = inner(cluster, "load_balancing_policy") {
        return check_first_policy(walk, cluster, policy);
    }
    if has(cluster, "lb_subset_config") {
        return;
    }
    let (field, find): (_, fn(&DynamicMessage) -> _) = match enum_number(cluster, "lb_policy") {
        RING_HASH => ("ring_hash_lb_config", find_ring_mistake),
        MAGLEV => ("maglev_lb_config", find_table_mistake),
        _ => return,
    };
    if let Some(rejected) = inner(cluster, field).and_then(find) {
        report_at(walk, cluster, &[Part::Field(field)], rejected);
    }
}

/// Reports invalid sizes in the first policy of a cluster.
fn check_first_policy(walk: &mut Walk, cluster: &DynamicMessage, policy: &DynamicMessage) {
    let first_policy = messages(policy, "policies").first().copied();
    let fields = ["typed_extension_config", "typed_config"];
    let config = first_policy.and_then(|policy| inner_along(policy, &fields));
    if let Some(rejected) = config.and_then(find_policy_mistake) {
        let place = [
            Part::Field("load_balancing_policy"),
            Part::Field("policies"),
            Part::Index(0),
            Part::Field("typed_extension_config"),
            Part::Field("typed_config"),
        ];
        report_at(walk, cluster, &place, rejected);
    }
}

/// Returns the mistake in the configuration of a policy, which is an `Any`.
/// Returns `None` for other policies, and for one that cannot be decoded.
fn find_policy_mistake(config: &DynamicMessage) -> Option<Rejected> {
    let (type_url, body) = any_parts(config)?;
    let find_mistake = match full_name(&type_url).strip_prefix(POLICIES)? {
        "ring_hash.v3.RingHash" => find_ring_mistake,
        "maglev.v3.Maglev" => find_table_mistake,
        _ => return None,
    };
    let policy = DynamicMessage::decode(descriptor::message(&type_url)?, body).ok()?;
    find_mistake(&policy)
}

/// Returns the mistake of a ring whose minimum size is above its maximum.
fn find_ring_mistake(config: &DynamicMessage) -> Option<Rejected> {
    let minimum = wrapped_number(config, "minimum_ring_size").unwrap_or(DEFAULT_MINIMUM);
    let maximum = wrapped_number(config, "maximum_ring_size").unwrap_or(DEFAULT_MAXIMUM);
    (minimum > maximum).then_some(Rejected::RingSizes { minimum, maximum })
}

/// Returns the mistake of a Maglev table whose size is no prime.
fn find_table_mistake(config: &DynamicMessage) -> Option<Rejected> {
    let size = wrapped_number(config, "table_size")?;
    (!is_prime(size)).then_some(Rejected::NotPrime { found: size })
}

/// Returns whether a number is prime. A number above the limit of a table
/// counts as prime, since the rules of its field reject it.
fn is_prime(number: u64) -> bool {
    const LARGEST_TABLE: u64 = 5_000_011;
    if number > LARGEST_TABLE {
        return true;
    }
    let has_divisor = (2..)
        .take_while(|divisor| divisor * divisor <= number)
        .any(|divisor| number.is_multiple_of(divisor));
    number > 1 && !has_divisor
}
