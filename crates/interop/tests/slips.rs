//! Slips in YAML, judged by a real Envoy: it refuses what is refused here.
#![allow(clippy::expect_used, reason = "all of this is tests")]

use interop::Envoy;
use trunkline_proto::text::{self, Problem};

/// A bootstrap, up to the fields of a cluster.
const HEAD: &str = "static_resources:\n  clusters:\n  - name: c\n";

/// Lines that follow it, each text with one slip.
const SLIPS: [&str; 26] = [
    "\talt_stat_name: a\n",
    "    \talt_stat_name: a\n",
    "    metadata:\n\t  filter_metadata: {}\n",
    "    alt_stat_name:a\n    connect_timeout: 1s\n",
    "    \"alt_stat_name\":a\n",
    "    alt_stat_name: \"a\n    connect_timeout: \"1s\"\n",
    "    alt_stat_name: \"a\" b\n",
    "    alt_stat_name: 'it's'\n",
    "    alt_stat_name: *\n",
    "    alt_stat_name: *a\n",
    "    @x: a\n",
    "    alt_stat_name: @a\n",
    "    alt_stat_name: %a\n",
    "    alt_stat_name: `a\n",
    "    health_checks: [\n",
    "    health_checks: [\n    connect_timeout: 1s\n",
    "    health_checks: [}\n",
    "    health_checks: ]\n",
    "    metadata: {filter_metadata: {} typed_filter_metadata: {}}\n",
    "    metadata: {filter_metadata: {a: {b: \"1\"\n      c: 2}}}\n",
    "      alt_stat_name: a\n",
    "   alt_stat_name: a\n",
    "    health_checks: - a\n",
    "    alt_stat_name: a: b\n",
    "    alt_stat_name\n    connect_timeout: 1s\n",
    "    alt_stat_name: {{ .Values.name }}\n",
];

#[test]
fn envoy_refuses_every_slip() {
    for lines in SLIPS {
        let bootstrap = format!("{HEAD}{lines}");
        let read = text::read("b.yaml", &bootstrap, &text::Options::default());
        let problem = &read.errors.first().expect("a mistake").problem;
        assert!(matches!(problem, Problem::Slip(_)), "{lines}: {problem}");
        assert!(Envoy::judge(&bootstrap, "slip").is_err(), "{lines}");
    }
    assert_eq!(Envoy::judge(HEAD, "slip"), Ok(()), "without a slip");
}
