//! Each slip is told at its place, in words that name the remedy.

use crate::text::{Options, read};

/// The first mistake of a text.
fn mistake(file: &str, text: &str) -> String {
    let read = read(file, text, &Options::default());
    let first = read.errors.first();
    first.map(ToString::to_string).unwrap_or_default()
}

const HEAD: &str = "\
resources:
- \"@type\": type.googleapis.com/envoy.config.route.v3.VirtualHost
  name: shop
";

/// Compares the mistake of a virtual host whose further lines, from line 4 on,
/// are `lines`.
#[track_caller]
fn check(lines: &str, expected: &str) {
    let found = mistake("f.yaml", &format!("{HEAD}{lines}"));
    assert_eq!(found, format!("f.yaml:{expected}"), "{lines}");
}

#[track_caller]
fn check_json(text: &str, expected: &str) {
    assert_eq!(
        mistake("f.json", text),
        format!("f.json:{expected}"),
        "{text}"
    );
}

#[test]
fn a_tab_indents_nothing() {
    let expected = "a tab cannot indent YAML; use spaces";
    for lines in [
        "\tdomains: [a]\n",
        "\tdomains:\n\t- a\n",
        "\t- a\n",
        "\n\tdomains: [a]\n",
    ] {
        let line = if lines.starts_with('\n') { 5 } else { 4 };
        check(lines, &format!("{line}:1: {expected}"));
    }
    check("  domains:\n\t- a\n", &format!("5:1: {expected}"));
    check("  domains:\n  \t- a\n", &format!("5:3: {expected}"));
    check("  domains: [a,\n\tb]\n", &format!("5:1: {expected}"));
    check(
        "  name2:\tabc\n",
        "4:10: a tab after the colon of a key; write a space",
    );
    let all_tabs = "resources:\n\t- name: a\n";
    assert_eq!(
        mistake("f.yaml", all_tabs),
        format!("f.yaml:2:1: {expected}")
    );
}

#[test]
fn a_colon_needs_a_space() {
    let expected = |key: &str| {
        format!("a space is missing after the colon of \"{key}\"; write `{key}: ` before its value")
    };
    let require = expected("require_tls");
    check("  require_tls:ALL\n", &format!("4:14: {require}"));
    check(
        "  require_tls:ALL\n  domains: [a]\n",
        &format!("4:14: {require}"),
    );
    check(
        "  \"require_tls\":ALL\n  domains: [a]\n",
        &format!("4:16: {require}"),
    );
    check("  domains:[a]\n", &format!("4:10: {}", expected("domains")));
    check(
        "  routes:\n  - name:r\n    match: {prefix: /}\n",
        &format!("5:9: {}", expected("name")),
    );
    let field = format!("5:9: resources[0].routes[0]: {}", expected("name"));
    check("  routes:\n  - name:r\n", &field);
    let field = format!("4:17: resources[0].cors: {}", expected("max_age"));
    check("  cors: {max_age:1}\n", &field);
    let top = format!("f.yaml:1:10: {}", expected("resources"));
    assert_eq!(mistake("f.yaml", "resources:[]\n"), top);
}

#[test]
fn a_quote_is_closed() {
    let expected = "this quote is not closed; add the closing \"";
    for lines in [
        "  domains: [\"a]\n",
        "  domains: [\"a]\n  routes: []\n",
        "  domains: [\"a]\n  include_request_attempt_count: true\n  routes: [{name: \"r\"}]\n",
    ] {
        check(lines, &format!("4:13: {expected}"));
    }
    check(
        "  domains: [\"a, \"b\"]\n",
        "4:18: the text goes on after its closing quote; put all of it in the quotes, with \\\" for a quote inside",
    );
    check("  matcher: \"\n", &format!("4:12: {expected}"));
    check(
        "  routes:\n  - name: \"r\n    match: {prefix: \"/\"}\n",
        &format!("5:11: {expected}"),
    );
    check(
        "  routes:\n  - name: 'r\n---\nresources: []\n",
        "5:11: this quote is not closed; add the closing '",
    );
    check(
        "  routes:\n  - name: 'it's'\n",
        "5:15: the text goes on after its closing quote; put all of it in the quotes, with '' for a quote inside",
    );
}

#[test]
fn a_star_is_an_alias() {
    let star = "YAML takes * for an alias; if it is a text, put it in quotes: \"*\"";
    check("  domains: [*]\n", &format!("4:13: {star}"));
    check("  domains: *\n", &format!("4:12: {star}"));
    check("  domains:\n  - *\n", &format!("5:5: {star}"));
    check(
        "  domains: [a, *.shop.example]\n",
        "4:16: YAML takes *.shop.example for an alias; if it is a text, put it in quotes: \"*.shop.example\"",
    );
    assert_eq!(
        mistake(
            "f.yaml",
            "@type: type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
        ),
        "f.yaml:1:1: a key that begins with @ has to be in quotes: \"@type\"",
    );
    check(
        "  routes:\n  - name: %REQ(x)% y\n",
        "5:11: a text that begins with % has to be in quotes",
    );
}

#[test]
fn a_bracket_is_closed() {
    check("  domains: [a\n", "4:12: this [ is not closed; add the ]");
    check(
        "  domains: [a\n  routes: []\n",
        "4:12: this [ is not closed; add the ]",
    );
    check(
        "  domains: [a, \"b\"\n  routes:\n  - {name: r}\n",
        "4:12: this [ is not closed; add the ]",
    );
    check(
        "  cors: {max_age: \"1\"\n  domains: [a]\n",
        "4:9: this { is not closed; add the }",
    );
    check(
        "  domains: [a}\n",
        "4:12: this [ is closed by }, at 4:14; write ]",
    );
    check(
        "  domains: a]\n  routes: ]\n",
        "5:11: this ] closes nothing; take it out",
    );
    check(
        "  cors: {max_age: \"1\" enabled: 1}\n",
        "4:23: a comma is missing before this",
    );
    check(
        "  domains: [\"a\"\n    \"b\"]\n",
        "5:5: a comma is missing before this",
    );
}

#[test]
fn lines_are_aligned() {
    check(
        "    domains: [a]\n",
        "4:5: indented deeper than the line above, whose key has a value already; align the two, or take that value out",
    );
    check(
        "   domains: [a]\n",
        "4:4: indented deeper than the line above, whose key has a value already; align the two, or take that value out",
    );
    check(
        "  routes:\n  - match:\n      prefix: /\n     name: r\n",
        "7:6: indented by 5 spaces, which fits no line above; indent it by 0, 2, 4 or 6",
    );
    check(
        " domains: [a]\n",
        "4:2: indented by 1 space, which fits no line above; indent it by 0 or 2",
    );
    check(
        "  domains: - a\n",
        "4:12: a list cannot begin on the line of its key; put its items on the lines below",
    );
    check(
        "  routes: name: r\n",
        "4:15: a second key on one line; put it on the next line, indented, or, if it is a text with a colon in it, put the text in quotes",
    );
    check(
        "  include_request_attempt_count\n  domains: [a]\n",
        "4:3: \"include_request_attempt_count\" has no colon; write a key as `include_request_attempt_count:`, and a list item as `- include_request_attempt_count`",
    );
}

#[test]
fn a_key_is_there_once() {
    check(
        "  domains: [a]\n  name: b\n",
        "5:3: the key \"name\" occurs twice, first at 3:3; keep one",
    );
    check(
        "  cors: {max_age: \"1\", max_age: \"2\"}\n",
        "4:24: the key \"max_age\" occurs twice, first at 4:10; keep one",
    );
    check_json(
        "{\"a\": 1,\n \"a\": 2}",
        "2:2: the key \"a\" occurs twice, first at 1:2; keep one",
    );
}

#[test]
fn code_and_certificates_are_no_slips() {
    let lua = "  metadata:\n    filter_metadata:\n      a:\n        code: |\n          if x then\n          \tlocal s = \"[\"\n        pem: >-\n          'x {\n  domains: [*]\n";
    check(
        lua,
        "12:13: YAML takes * for an alias; if it is a text, put it in quotes: \"*\"",
    );
    let plain = "  # it's [not] \"read\n  name2: it's a 5\" [pipe\n  domains: [*]\n";
    check(
        plain,
        "6:13: YAML takes * for an alias; if it is a text, put it in quotes: \"*\"",
    );
}

#[test]
fn a_template_is_filled_in() {
    assert_eq!(
        mistake("f.yaml", "{{- if .Values.x }}\nresources: []\n{{- end }}\n"),
        "f.yaml:1:1: `{{` begins a template that was not filled in; render it first",
    );
    check(
        "  domains: [{{ .Values.domain }}]\n",
        "4:13: `{{` begins a template that was not filled in; render it first",
    );
    check(
        "  cors: {{ .Values.cors }}\n",
        "4:9: `{{` begins a template that was not filled in; render it first",
    );
}

#[test]
fn json_is_strict() {
    check_json(
        "{\"resources\": [],\n}",
        "1:17: a comma before the closing }; JSON has none there, take it out",
    );
    check_json(
        "{\"resources\": [\n 1,\n]}",
        "2:3: a comma before the closing ]; JSON has none there, take it out",
    );
    check_json(
        "{\"a\": 1\n \"b\": 2}",
        "2:2: a comma is missing before this",
    );
    check_json("[1 2]", "1:4: a comma is missing before this");
    let comment =
        "JSON has no comments; take it out, or name the file .yaml, where # begins a comment";
    for (text, at) in [
        ("// a\n{}", "1:1"),
        ("{ /* a */ }", "1:3"),
        ("{\"a\": 1, // b\n \"b\": 2}", "1:10"),
        ("{\"a\": 1 // b\n}", "1:9"),
        ("[\n# a\n]", "2:1"),
    ] {
        check_json(text, &format!("{at}: {comment}"));
    }
    check_json(
        "{\"a\": \"b,\n \"c\": 1}",
        "1:7: this quote is not closed; add the closing \"",
    );
    check_json(
        "{\"a\": [1, 2}",
        "1:7: this [ is closed by }, at 1:12; write ]",
    );
    check_json("{\"a\": {\"b\": 1}", "1:1: this { is not closed; add the }");
    check_json("[1,", "1:1: this [ is not closed; add the ]");
    check_json(
        "{name: 1}",
        "1:2: a key of JSON is in quotes; write \"name\"",
    );
}

/// Nobody knows what is a secret in a text that cannot be read.
#[test]
fn values_are_not_repeated() {
    for lines in [
        "  a: @hunter\n",
        "  a: *hunter\n",
        "  a: %hunter\n",
        "  password:hunter\n",
        "  key: -----BEGIN\nMIIEhunter\n  b: c\n",
        "  key: 'hunter\n",
        "  key: hunter: 2\n",
        "  key: a\n    hunter2: b\n",
    ] {
        let found = mistake("f.yaml", &format!("{HEAD}{lines}"));
        assert!(!found.is_empty() && !found.contains("hunter"), "{found}");
    }
}
