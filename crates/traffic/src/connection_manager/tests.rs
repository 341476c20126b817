//! What is taken off and put on at the two ends of a proxy (facts 2.1).

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};

use super::{Connection, ConnectionManager, Message, is_upgrade};
use crate::headers::Headers;
use crate::json::message;

fn manager(fields: &Value) -> ConnectionManager {
    let of = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let mut json = fields.clone();
    json["stat_prefix"] = "s".into();
    json["route_config"] = json!({"virtual_hosts": []});
    let message: Message = message(of, &json);
    ConnectionManager::compile(&message).expect("a manager")
}

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

fn connection(is_tls: bool) -> Connection {
    Connection {
        peer: PEER,
        node_address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        listener_port: 8443,
        is_tls,
    }
}

fn of(lines: &[(&'static str, &'static str)]) -> Headers {
    lines.iter().copied().collect()
}

fn lines(headers: &Headers) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("a text");
    headers
        .iter()
        .map(|line| (text(line.name()), text(line.value())))
        .collect()
}

fn names(headers: &Headers) -> Vec<String> {
    lines(headers).into_iter().map(|(name, _)| name).collect()
}

/// What of these headers of a request reaches the upstream.
fn kept(sent: &[(&'static str, &'static str)]) -> Vec<String> {
    let manager = manager(&json!({"generate_request_id": false}));
    let mut headers = of(sent);
    manager.prepare_request(&mut headers, &connection(false), "id");
    headers.remove("x-forwarded-proto");
    names(&headers)
}

#[test]
fn headers_of_the_connection_of_a_request_end_there() {
    for (sent, expected) in [
        (
            &[
                ("connection", "keep-alive, X-Mine"),
                ("x-mine", "1"),
                ("keep-alive", "2"),
                ("a", "3"),
            ][..],
            &["a"][..],
        ),
        (
            &[("proxy-connection", "close"), ("http2-settings", "x")],
            &[],
        ),
        (&[("x-forwarded-client-cert", "x"), ("a", "1")], &["a"]),
        // The word is judged by its value, though it is named.
        (&[("connection", "te"), ("te", "trailers")], &["te"]),
        (&[("te", "gzip")], &[]),
        (
            &[("connection", "Upgrade"), ("upgrade", "websocket")],
            &["connection", "upgrade"],
        ),
        (&[("connection", "upgrade"), ("upgrade", "H2C")], &[]),
        (&[("connection", "close"), ("upgrade", "websocket")], &[]),
        (&[("connection", "upgrade")], &[]),
    ] {
        assert_eq!(kept(sent), expected, "{sent:?}");
    }
}

#[test]
fn a_referer_is_an_absolute_url() {
    for (value, is_kept) in [
        ("http://a.test", true),
        ("https://a.test/b?c#d", true),
        ("http://a.test?c", true),
        ("ftp://a.test", false),
        ("/b", false),
        ("http:///b", false),
        ("https://?c", false),
        ("http://a.test/b c", false),
        ("http://a.test,http://b.test", false),
    ] {
        assert_eq!(kept(&[("referer", value)]).len() == 1, is_kept, "{value}");
    }
}

#[test]
fn an_upgrade_needs_both_headers() {
    for (sent, expected) in [
        (
            &[("connection", "upgrade"), ("upgrade", "websocket")][..],
            true,
        ),
        (
            &[("connection", "keep-alive, Upgrade"), ("upgrade", "x")],
            true,
        ),
        (&[("connection", "upgraded"), ("upgrade", "x")], false),
        (&[("upgrade", "x")], false),
        (&[("connection", "upgrade"), ("upgrade", "")], false),
        (&[("connection", "upgrade"), ("upgrade", "h2c")], false),
    ] {
        assert_eq!(is_upgrade(&of(sent)), expected, "{sent:?}");
    }
}

#[test]
fn headers_of_the_connection_of_a_response_end_there() {
    let mut headers = of(&[
        ("connection", "keep-alive"),
        ("a", "1"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "close"),
        ("upgrade", "h2c"),
        ("server", "b"),
    ]);
    manager(&json!({})).clean_response(&mut headers);
    assert_eq!(names(&headers), ["a", "server"]);
}

#[test]
fn a_response_says_who_served_it_and_when() {
    let finish =
        |settings: &Value, request: &Headers, response: &[(&'static str, &'static str)]| {
            let mut headers = of(response);
            manager(settings).finish_response(&mut headers, request, "now");
            lines(&headers)
        };
    let pairs = |expected: &[(&str, &str)]| -> Vec<(String, String)> {
        let pairs = expected.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let request = of(&[("x-request-id", "r")]);
    let cases = [
        (
            json!({}),
            &[][..],
            &[("date", "now"), ("server", "envoy")][..],
        ),
        (
            json!({"server_name": "n"}),
            &[("server", "up"), ("date", "then")],
            &[("server", "n"), ("date", "then")],
        ),
        (
            json!({"server_header_transformation": "APPEND_IF_ABSENT"}),
            &[("server", "up"), ("date", "then")],
            &[("server", "up"), ("date", "then")],
        ),
        (
            json!({"server_header_transformation": "APPEND_IF_ABSENT"}),
            &[("date", "then")],
            &[("date", "then"), ("server", "envoy")],
        ),
        (
            json!({"server_header_transformation": "PASS_THROUGH"}),
            &[("date", "then")],
            &[("date", "then")],
        ),
        (
            json!({"server_header_transformation": "PASS_THROUGH", "via": "v",
                "always_set_request_id_in_response": true}),
            &[("date", "then"), ("via", "u")],
            &[("date", "then"), ("via", "u, v"), ("x-request-id", "r")],
        ),
    ];
    for (settings, response, expected) in cases {
        assert_eq!(
            finish(&settings, &request, response),
            pairs(expected),
            "{settings}"
        );
    }
    // Who is traced gets the id back.
    let traced = of(&[("x-request-id", "r"), ("x-envoy-force-trace", "1")]);
    let settings = json!({"server_header_transformation": "PASS_THROUGH"});
    let expected = pairs(&[("date", "then"), ("x-request-id", "r")]);
    assert_eq!(finish(&settings, &traced, &[("date", "then")]), expected);
}

#[test]
fn d54_an_edge_gives_requests_ids_of_its_own() {
    let edge = |more: &Value| {
        let mut settings = json!({"use_remote_address": true});
        for (key, value) in more.as_object().expect("fields") {
            settings[key] = value.clone();
        }
        settings
    };
    for (settings, sent, expected) in [
        (json!({}), Some("theirs"), Some("theirs")),
        (json!({}), None, Some("fresh")),
        (json!({"generate_request_id": false}), None, None),
        (edge(&json!({})), Some("theirs"), Some("fresh")),
        (
            edge(&json!({"preserve_external_request_id": true})),
            Some("theirs"),
            Some("theirs"),
        ),
        (
            edge(&json!({"preserve_external_request_id": true})),
            None,
            Some("fresh"),
        ),
        (
            edge(&json!({"generate_request_id": false})),
            Some("theirs"),
            Some("theirs"),
        ),
    ] {
        let mut headers = Headers::new();
        if let Some(id) = sent {
            headers.append("x-request-id", id);
        }
        manager(&settings).prepare_request(&mut headers, &connection(false), "fresh");
        assert_eq!(
            headers.text("x-request-id"),
            expected,
            "{settings} {sent:?}"
        );
    }
}

#[test]
fn d54_d55_who_sent_a_request_is_told_by_hops_and_ranges() {
    let inside = json!({"cidr_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]});
    let settings = |uses_remote: bool, hops: u32| {
        json!({
            "use_remote_address": uses_remote,
            "xff_num_trusted_hops": hops,
            "internal_address_config": inside,
        })
    };
    // remote address used, hops, x-forwarded-for; who it is, inside, at the edge
    for (uses_remote, hops, forwarded, address, is_internal, is_edge) in [
        (true, 0, None, "192.0.2.7", false, true),
        (true, 0, Some("10.1.1.1"), "192.0.2.7", false, true),
        (true, 1, Some("10.1.1.1"), "10.1.1.1", false, true),
        (true, 2, Some("10.1.1.1, 10.2.2.2"), "10.1.1.1", false, true),
        (
            true,
            3,
            Some("10.1.1.1, 10.2.2.2"),
            "192.0.2.7",
            false,
            true,
        ),
        (false, 0, Some("10.1.1.1"), "10.1.1.1", true, false),
        (false, 0, Some("11.1.1.1"), "11.1.1.1", false, false),
        (
            false,
            0,
            Some("10.1.1.1,10.2.2.2"),
            "10.2.2.2",
            false,
            false,
        ),
        (
            false,
            1,
            Some("10.1.1.1,10.2.2.2"),
            "10.1.1.1",
            false,
            false,
        ),
        (false, 0, None, "192.0.2.7", false, false),
        (false, 0, Some("nobody"), "192.0.2.7", false, false),
    ] {
        let mut headers = of(&[("x-envoy-retry-on", "5xx"), ("x-envoy-original-path", "/")]);
        if let Some(forwarded) = forwarded {
            headers.append("x-forwarded-for", forwarded);
        }
        let manager = manager(&settings(uses_remote, hops));
        let sender = manager.prepare_request(&mut headers, &connection(false), "id");
        let case = format!("{uses_remote} {hops} {forwarded:?}");
        assert_eq!(sender.address.to_string(), address, "{case}");
        assert_eq!(
            (sender.is_internal, sender.is_edge),
            (is_internal, is_edge),
            "{case}"
        );
        assert_eq!(headers.has("x-envoy-internal"), is_internal, "{case}");
        assert_eq!(headers.has("x-envoy-retry-on"), is_internal, "{case}");
        assert_eq!(headers.has("x-envoy-original-path"), !is_edge, "{case}");
        let outside = headers.text("x-envoy-external-address");
        assert_eq!(outside, is_edge.then_some(address), "{case}");
        // An edge, and every hop that uses the address, adds it.
        let list = headers.text("x-forwarded-for").map(str::to_owned);
        let before = forwarded.map(str::to_owned);
        let expected = match (uses_remote, before) {
            (true, Some(before)) => Some(format!("{before},192.0.2.7")),
            (true, None) => Some("192.0.2.7".to_owned()),
            (false, before) => before,
        };
        assert_eq!(list, expected, "{case}");
    }
}

#[test]
fn d55_the_scheme_is_that_of_the_connection_unless_a_hop_is_trusted() {
    let scheme = |settings: &Value, is_tls: bool, sent: Option<&'static str>| {
        let mut headers = Headers::new();
        if let Some(sent) = sent {
            headers.append("x-forwarded-proto", sent);
        }
        manager(settings).prepare_request(&mut headers, &connection(is_tls), "id");
        headers
            .text("x-forwarded-proto")
            .expect("a scheme")
            .to_owned()
    };
    let edge = json!({"use_remote_address": true});
    let behind = json!({"use_remote_address": true, "xff_num_trusted_hops": 1});
    let fixed = json!({"scheme_header_transformation": {"scheme_to_overwrite": "https"}});
    for (settings, is_tls, sent, expected) in [
        (&json!({}), false, None, "http"),
        (&json!({}), true, None, "https"),
        (&json!({}), true, Some("http"), "http"),
        (&edge, true, Some("http"), "https"),
        (&edge, false, Some("https"), "http"),
        (&behind, false, Some("https"), "https"),
        (&behind, false, None, "http"),
        (&fixed, false, Some("http"), "https"),
        (&fixed, false, None, "https"),
    ] {
        assert_eq!(
            scheme(settings, is_tls, sent),
            expected,
            "{settings} {sent:?}"
        );
    }
}

#[test]
fn d55_what_an_edge_adds_may_be_left_out_or_more() {
    let settings = json!({"use_remote_address": true, "skip_xff_append": true, "append_x_forwarded_port": true});
    let mut headers = Headers::new();
    manager(&settings).prepare_request(&mut headers, &connection(true), "id");
    assert_eq!(headers.text("x-forwarded-for"), None);
    assert_eq!(headers.text("x-forwarded-port"), Some("8443"));
    // The next hop cannot use a loopback address.
    let mut headers = Headers::new();
    let local = Connection {
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        ..connection(false)
    };
    let edge = manager(&json!({"use_remote_address": true, "via": "v"}));
    edge.prepare_request(&mut headers, &local, "id");
    assert_eq!(headers.text("x-forwarded-for"), Some("192.0.2.1"));
    assert_eq!(headers.text("x-forwarded-port"), None);
    assert_eq!(headers.text("via"), Some("v"));
}

#[test]
fn an_upgrade_is_allowed_by_its_type() {
    let upgrades = json!([
        {"upgrade_type": "WebSocket"},
        {"upgrade_type": "connect", "enabled": false},
    ]);
    let manager = manager(&json!({"upgrade_configs": upgrades}));
    for (name, is_allowed) in [
        ("websocket", true),
        ("WEBSOCKET", true),
        ("CONNECT", false),
        ("x", false),
    ] {
        assert_eq!(manager.allows_upgrade(name), is_allowed, "{name}");
    }
}
