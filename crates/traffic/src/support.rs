//! What is supported of traffic and what is not, as a table. `docs/traffic.md`
//! is made of it, and a test compares the two.

/// How far something is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// As in Envoy, with recorded cases or tables of Envoy as tests.
    Recorded,
    /// As the documents say, with tests of its own.
    Documented,
    /// A finding: a configuration that has it is refused.
    Finding,
    /// Not there.
    Absent,
}

/// One row: what it is, the rules that it is of, and how far it is supported.
pub type Row = (&'static str, &'static str, Level);

/// A group of rows.
pub type Group = (&'static str, &'static [Row]);

/// All groups.
pub const SUPPORT: &[Group] = &[
    (
        "Listeners",
        &[
            (
                "filter chains: ports, addresses, server names, protocols, sources",
                "26",
                Level::Documented,
            ),
            ("`filter_chain_matcher`", "26", Level::Finding),
        ],
    ),
    (
        "Routes",
        &[
            (
                "virtual hosts: exact, suffix, prefix, `*`; `ignore_port_in_host_matching`, `vhost_header`",
                "34",
                Level::Recorded,
            ),
            (
                "virtual hosts on demand, added and removed at the cost of one",
                "53",
                Level::Documented,
            ),
            (
                "`path`, `prefix`, `path_separated_prefix`, `safe_regex`, URI templates, `connect_matcher`, `grpc`",
                "34",
                Level::Recorded,
            ),
            (
                "headers, query parameters, cookies, `runtime_fraction`",
                "34, 46",
                Level::Recorded,
            ),
            (
                "`tls_context`, `dynamic_metadata`, `filter_state` in a match; `matcher` trees",
                "34",
                Level::Finding,
            ),
            (
                "path normalisation, merged and escaped slashes, ports and dots of hosts",
                "34",
                Level::Recorded,
            ),
            (
                "redirects, direct responses, `require_tls`",
                "35-37",
                Level::Recorded,
            ),
            (
                "rewrites of path and host: prefix, regex, URI template, literal, header, path regex",
                "38, 39",
                Level::Recorded,
            ),
            (
                "`path_rewrite` and `host_rewrite` by a format",
                "38, 39",
                Level::Finding,
            ),
            (
                "weighted clusters, `cluster_header`, mirrors, upgrades",
                "47",
                Level::Recorded,
            ),
            (
                "cluster specifier plugins, `runtime_key_prefix`",
                "47",
                Level::Finding,
            ),
            (
                "hash policies: header, cookie, address, query parameter",
                "50",
                Level::Recorded,
            ),
            ("hash policy by filter state", "50", Level::Finding),
            ("scoped routes that are listed", "52", Level::Recorded),
            ("scoped routes by SRDS", "52", Level::Finding),
            (
                "configuration of filters by the most specific place",
                "28",
                Level::Documented,
            ),
            ("internal redirects", "", Level::Finding),
            (
                "virtual clusters, which are for statistics only",
                "48",
                Level::Absent,
            ),
        ],
    ),
    (
        "Headers",
        &[
            (
                "mutations of weighted cluster, route, virtual host, configuration, in order",
                "",
                Level::Recorded,
            ),
            (
                "formats: `%REQ%`, `%RESP%`, response code, flags and details, protocol, addresses, upstream, route",
                "",
                Level::Recorded,
            ),
            (
                "formats: all other operators of the documents; values that only the proxy knows are asked of it",
                "",
                Level::Documented,
            ),
            ("formats: `%CEL%`, `%TYPED_CEL%`", "", Level::Finding),
            (
                "trust: `use_remote_address`, trusted hops, internal addresses, internal headers",
                "54, 55",
                Level::Recorded,
            ),
            ("request ids, `via`, `server`", "", Level::Recorded),
            (
                "`add_user_agent`, `local_reply_config`, `forward_client_cert_details` other than SANITIZE, `internal_only_headers`",
                "54",
                Level::Finding,
            ),
        ],
    ),
    (
        "Balancing",
        &[
            (
                "round robin, least request, random, weights by EDF",
                "62",
                Level::Recorded,
            ),
            (
                "ring hash (xxHash, MurmurHash2) and maglev: the same tables",
                "62",
                Level::Recorded,
            ),
            ("`hash_balance_factor`", "62", Level::Finding),
            ("slow start, override host", "62", Level::Documented),
            (
                "priority load, degraded endpoints, panic, overprovisioning",
                "66-68",
                Level::Recorded,
            ),
            (
                "zone aware routing, locality weights",
                "69, 70",
                Level::Recorded,
            ),
            ("`drop_overloads`", "71", Level::Recorded),
            ("subsets with a fallback", "", Level::Recorded),
            (
                "subsets: other options, `panic_mode_any`, fallback of a selector",
                "",
                Level::Finding,
            ),
            (
                "updates that keep endpoints; the work follows the change, but for rings, maglev tables and subsets",
                "63, 64",
                Level::Documented,
            ),
            (
                "other policies: `client_side_weighted_round_robin`, `cluster_provided`, original destination",
                "62",
                Level::Finding,
            ),
        ],
    ),
    (
        "Attempts",
        &[
            (
                "retry conditions, vetoes, header-driven retries",
                "41-43",
                Level::Recorded,
            ),
            ("back-off, rate-limited back-off", "42", Level::Documented),
            ("previous hosts are avoided", "44", Level::Recorded),
            (
                "other host predicates, `retry_priority`",
                "44",
                Level::Finding,
            ),
            ("hedging on a per-try timeout", "45", Level::Recorded),
            (
                "timeouts: response, per try, idle, stream duration, gRPC",
                "40",
                Level::Recorded,
            ),
            ("circuit breakers, retry budgets", "61", Level::Documented),
            (
                "outlier ejection: in a row, by success rate, by failures",
                "73",
                Level::Documented,
            ),
            (
                "outlier ejection: errors of this side told apart, jitter, degraded",
                "73",
                Level::Finding,
            ),
            ("drain probability", "9", Level::Documented),
            (
                "adaptive concurrency: the limit by latency, measured anew",
                "57",
                Level::Documented,
            ),
        ],
    ),
];
