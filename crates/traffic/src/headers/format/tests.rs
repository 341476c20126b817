//! What operators write, and which arguments they take.

use std::borrow::Cow;
use std::time::Duration;

use super::{Format, FormatContext, FormatValues};
use crate::headers::Headers;
use crate::request::Request;

fn write(format: &str, context: &FormatContext<'_>) -> String {
    let compiled = Format::new(format).unwrap_or_else(|problem| panic!("{problem}"));
    String::from_utf8(compiled.write(context, "-")).expect("a text")
}

/// Knows every operator, and says what it was asked.
#[derive(Debug)]
struct Echo;

impl FormatValues for Echo {
    fn value(&self, operator: &str, argument: Option<&str>) -> Option<Cow<'_, str>> {
        Some(format!("{operator} {argument:?}").into())
    }
}

#[test]
fn an_operator_of_the_context_writes_its_own_field() {
    let context = FormatContext {
        protocol: "HTTP/2",
        status: 204,
        details: "a b\tc",
        flags: "UF,XY,UT",
        upstream_host: "10.0.0.1:80",
        upstream_cluster: "c",
        route: "r",
        virtual_host: "v",
        virtual_cluster: "vc",
        remote: "10.0.0.2:1",
        local: "10.0.0.3:2",
        direct_remote: "10.0.0.4:3",
        direct_local: "10.0.0.5:4",
        upstream_local: "10.0.0.6:5",
        server_name: "sni",
        start: Some(Duration::from_secs(1)),
        now: Some(Duration::from_secs(2)),
        hostname: "h",
        attempts: 7,
        reply_body: "body",
        ..FormatContext::default()
    };
    for (operator, expected) in [
        ("PROTOCOL", "HTTP/2"),
        ("RESPONSE_CODE", "204"),
        ("RESPONSE_CODE_DETAILS", "a_b_c"),
        ("RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)", "a b\tc"),
        ("RESPONSE_FLAGS", "UF,XY,UT"),
        // A flag without a long name stays.
        (
            "RESPONSE_FLAGS_LONG",
            "UpstreamConnectionFailure,XY,UpstreamRequestTimeout",
        ),
        ("UPSTREAM_HOST", "10.0.0.1:80"),
        ("UPSTREAM_CLUSTER", "c"),
        ("ROUTE_NAME", "r"),
        ("VIRTUAL_HOST_NAME", "v"),
        ("VIRTUAL_CLUSTER_NAME", "vc"),
        ("HOSTNAME", "h"),
        ("UPSTREAM_REQUEST_ATTEMPT_COUNT", "7"),
        ("LOCAL_REPLY_BODY", "body"),
        ("DOWNSTREAM_REMOTE_ADDRESS", "10.0.0.2:1"),
        ("DOWNSTREAM_REMOTE_PORT", "1"),
        ("DOWNSTREAM_LOCAL_ADDRESS", "10.0.0.3:2"),
        ("DOWNSTREAM_LOCAL_PORT", "2"),
        ("DOWNSTREAM_DIRECT_REMOTE_ADDRESS", "10.0.0.4:3"),
        ("DOWNSTREAM_DIRECT_REMOTE_PORT", "3"),
        ("DOWNSTREAM_DIRECT_LOCAL_ADDRESS", "10.0.0.5:4"),
        ("DOWNSTREAM_DIRECT_LOCAL_PORT", "4"),
        ("UPSTREAM_REMOTE_ADDRESS", "10.0.0.1:80"),
        ("UPSTREAM_REMOTE_PORT", "80"),
        ("UPSTREAM_LOCAL_ADDRESS", "10.0.0.6:5"),
        ("UPSTREAM_LOCAL_PORT", "5"),
        ("REQUESTED_SERVER_NAME", "sni"),
        ("START_TIME(%s)", "1"),
        ("EMIT_TIME(%s)", "2"),
    ] {
        assert_eq!(write(&format!("%{operator}%"), &context), expected);
        // Of a context without values only numbers are written.
        let nothing = match operator {
            "RESPONSE_CODE" | "UPSTREAM_REQUEST_ATTEMPT_COUNT" => "0",
            _ => "-",
        };
        let empty = FormatContext::default();
        assert_eq!(
            write(&format!("%{operator}%"), &empty),
            nothing,
            "{operator}"
        );
    }
}

#[test]
fn other_operators_are_asked_for_with_their_arguments() {
    let context = FormatContext {
        values: Some(&Echo),
        ..FormatContext::default()
    };
    for (operator, expected) in [
        ("BYTES_SENT", "BYTES_SENT None"),
        ("START_TIME_LOCAL", "START_TIME_LOCAL None"),
        ("START_TIME_LOCAL(%s)", "START_TIME_LOCAL Some(\"%s\")"),
        ("METADATA(a:b)", "METADATA Some(\"a:b\")"),
        ("METADATA((a)b)", "METADATA Some(\"(a)b\")"),
        ("METADATA(a):4", "META"),
        ("METADATA(a):0", ""),
    ] {
        assert_eq!(write(&format!("%{operator}%"), &context), expected);
    }
    for wrong in [
        "BYTES_SENT(a)",
        "METADATA()",
        "METADATA",
        "METADATA(a)b",
        "METADATA(a):",
        "METADATA(a):-1",
        "UPSTREAM_HOST(a)",
        "DOWNSTREAM_REMOTE_PORT(a)",
        "DOWNSTREAM_REMOTE_ADDRESS(a)",
        "DOWNSTREAM_REMOTE",
        "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT()",
    ] {
        assert!(Format::new(&format!("%{wrong}%")).is_err(), "{wrong}");
    }
}

#[test]
fn an_address_is_written_without_its_port_or_as_its_network() {
    for (address, argument, expected) in [
        ("10.1.2.3:80", "", "10.1.2.3"),
        ("10.1.2.3:80", "(32)", "10.1.2.3/32"),
        ("10.1.2.3:80", "(31)", "10.1.2.2/31"),
        ("10.1.2.3:80", "(0)", "0.0.0.0/0"),
        // More bits than there are.
        ("10.1.2.3:80", "(128)", "10.1.2.3/32"),
        ("[fd00::3]:80", "", "fd00::3"),
        ("[fd00::3]:80", "(128)", "fd00::3/128"),
        ("[fd00::3]:80", "(127)", "fd00::2/127"),
        // An address that is not of IP has no port.
        ("/a/socket", "", "/a/socket"),
        ("/a/socket", "(8)", "/a/socket"),
    ] {
        let context = FormatContext {
            remote: address,
            ..FormatContext::default()
        };
        let format = format!("%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT{argument}%");
        assert_eq!(write(&format, &context), expected, "{address} {argument}");
    }
    let socket = FormatContext {
        remote: "/a/socket",
        ..FormatContext::default()
    };
    assert_eq!(write("%DOWNSTREAM_REMOTE_PORT%", &socket), "-");
    assert_eq!(write("%DOWNSTREAM_REMOTE_ADDRESS%", &socket), "/a/socket");
}

fn of(lines: &[(&'static str, &'static str)]) -> Headers {
    lines.iter().copied().collect()
}

fn request<'r>(headers: &'r Headers, path: &'r str) -> FormatContext<'r> {
    FormatContext {
        request: Some(Request {
            method: "GET",
            scheme: "http",
            authority: "v.test",
            path,
            headers,
        }),
        ..FormatContext::default()
    }
}

#[test]
fn a_path_is_the_one_before_a_rewrite_or_the_one_after() {
    let rewritten = of(&[("x-envoy-original-path", "/before?a")]);
    let plain = Headers::new();
    // argument, with a rewrite, without
    for (argument, expected, expected_plain) in [
        ("", "/before?a", "/now?b"),
        ("()", "/before?a", "/now?b"),
        ("(WQ)", "/before?a", "/now?b"),
        ("(NQ)", "/before", "/now"),
        ("(WQ:ORIG)", "/before?a", "-"),
        ("(NQ:ORIG)", "/before", "-"),
        ("(WQ:PATH)", "/now?b", "/now?b"),
        ("(:PATH)", "/now?b", "/now?b"),
        ("(NQ:ORIG_OR_PATH)", "/before", "/now"),
    ] {
        let format = format!("%PATH{argument}%");
        assert_eq!(write(&format, &request(&rewritten, "/now?b")), expected);
        assert_eq!(write(&format, &request(&plain, "/now?b")), expected_plain);
    }
    for wrong in ["X", "WQ:X", "WQ:HOST", "WQ:ORIG_OR_HOST", ":"] {
        let is_wrong = Format::new(&format!("%PATH({wrong})%")).is_err();
        assert_eq!(is_wrong, wrong != ":", "{wrong}");
    }
}

#[test]
fn a_server_name_is_that_of_tls_or_the_host() {
    let rewritten = of(&[("x-envoy-original-host", "o.test")]);
    // argument, with a name of TLS, without
    for (argument, expected, expected_without) in [
        ("", "sni", "-"),
        ("(SNI_ONLY)", "sni", "-"),
        ("(SNI_FIRST)", "sni", "o.test"),
        ("(SNI_FIRST:HOST)", "sni", "v.test"),
        ("(HOST_FIRST)", "o.test", "o.test"),
        ("(HOST_FIRST:ORIG)", "o.test", "o.test"),
        ("(HOST_FIRST:HOST)", "v.test", "v.test"),
        ("(HOST_FIRST:ORIG_OR_HOST)", "o.test", "o.test"),
    ] {
        let format = format!("%REQUESTED_SERVER_NAME{argument}%");
        let without = request(&rewritten, "/");
        let with = FormatContext {
            server_name: "sni",
            ..without
        };
        assert_eq!(write(&format, &with), expected, "{argument}");
        assert_eq!(write(&format, &without), expected_without, "{argument}");
    }
    for wrong in ["X", "SNI_ONLY:PATH", "SNI_ONLY:X"] {
        assert!(Format::new(&format!("%REQUESTED_SERVER_NAME({wrong})%")).is_err());
    }
}

#[test]
fn a_query_is_written_as_it_was_sent_or_decoded() {
    let headers = Headers::new();
    for (path, plain, decoded) in [
        ("/a", "-", "-"),
        ("/a?", "-", "-"),
        ("/a?b=%41%7e&c", "b=%41%7e&c", "b=A~&c"),
        ("/a?%4", "%4", "%4"),
        ("/a?%4g%+1%%41", "%4g%+1%%41", "%4g%+1%A"),
        ("/a?b+c?d", "b+c?d", "b+c?d"),
    ] {
        let context = request(&headers, path);
        assert_eq!(write("%QUERY_PARAMS%", &context), plain, "{path}");
        assert_eq!(write("%QUERY_PARAMS(ORIG)%", &context), plain, "{path}");
        assert_eq!(
            write("%QUERY_PARAMS(DECODED)%", &context),
            decoded,
            "{path}"
        );
    }
    assert!(Format::new("%QUERY_PARAMS(X)%").is_err());
    assert_eq!(
        write("%QUERY_PARAM(b)%", &request(&headers, "/a?a=1&b=2&b=3")),
        "2"
    );
    assert_eq!(write("%QUERY_PARAM(b)%", &request(&headers, "/a?b")), "-");
}

#[test]
fn a_header_is_one_of_two_of_the_request_the_response_or_its_trailers() {
    let sent = of(&[("a", "1?2"), ("b", "3")]);
    let response = of(&[("a", "4"), ("c", "")]);
    let trailers = of(&[("a", "5")]);
    let context = FormatContext {
        response: Some(&response),
        trailers: Some(&trailers),
        ..request(&sent, "/p?q")
    };
    for (format, expected) in [
        ("%REQ(A)%", "1?2"),
        ("%REQUEST_HEADER(a)%", "1?2"),
        ("%REQ_WITHOUT_QUERY(a)%", "1"),
        ("%REQ_WITHOUT_QUERY(b)%", "3"),
        ("%REQ(X?B)%", "3"),
        ("%REQ(a?b)%", "1?2"),
        ("%REQ(:path)%", "/p?q"),
        ("%RESP(a)%", "4"),
        ("%RESPONSE_HEADER(a)%", "4"),
        ("%RESP(b)%", "-"),
        // One that is there is taken, though it is empty.
        ("%RESP(c?a)%", "-"),
        ("%TRAILER(a)%", "5"),
        ("%RESPONSE_TRAILER(a)%", "5"),
    ] {
        assert_eq!(write(format, &context), expected, "{format}");
        assert_eq!(write(format, &FormatContext::default()), "-", "{format}");
    }
}

#[test]
fn a_status_of_grpc_has_three_forms() {
    for (status, camel, snake) in [
        ("0", "OK", "OK"),
        ("1", "Canceled", "CANCELLED"),
        ("16", "Unauthenticated", "UNAUTHENTICATED"),
        ("17", "17", "17"),
        ("x", "x", "x"),
    ] {
        let lines = of(&[("grpc-status", status)]);
        let context = FormatContext {
            response: Some(&lines),
            ..FormatContext::default()
        };
        for (format, expected) in [
            ("%GRPC_STATUS%", camel),
            ("%GRPC_STATUS()%", camel),
            ("%GRPC_STATUS(CAMEL_STRING)%", camel),
            ("%GRPC_STATUS(SNAKE_STRING)%", snake),
            ("%GRPC_STATUS(NUMBER)%", status),
            ("%GRPC_STATUS_NUMBER%", status),
        ] {
            assert_eq!(write(format, &context), expected, "{format}");
        }
    }
    assert!(Format::new("%GRPC_STATUS_NUMBER(NUMBER)%").is_err());
    assert_eq!(write("%GRPC_STATUS%", &FormatContext::default()), "-");
}

#[test]
fn the_first_of_several_operators_that_has_a_value_is_written() {
    let context = FormatContext {
        route: "route",
        ..FormatContext::default()
    };
    for (operators, expected) in [
        (r#"["UPSTREAM_HOST", "ROUTE_NAME"]"#, "route"),
        (r#"["UPSTREAM_HOST"]"#, "-"),
        ("[]", "-"),
        (r#"[{"command": "ROUTE_NAME"}]"#, "route"),
        (r#"[{"command": "ROUTE_NAME", "max_length": 2}]"#, "ro"),
        (r#"[{"command": "ROUTE_NAME", "max_length": 9}]"#, "route"),
        // Nothing of a value is no value.
        (
            r#"[{"command": "ROUTE_NAME", "max_length": 0}, "RESPONSE_CODE"]"#,
            "0",
        ),
    ] {
        let format = format!(r#"%COALESCE({{"operators": {operators}}})%"#);
        assert_eq!(write(&format, &context), expected, "{operators}");
    }
    for wrong in [
        "%COALESCE%",
        "%COALESCE()%",
        "%COALESCE([])%",
        r#"%COALESCE({"operators": {}})%"#,
        r#"%COALESCE({"operators": [1]})%"#,
        r#"%COALESCE({"operators": [{"param": "a"}]})%"#,
        r#"%COALESCE({"operators": [{"command": 1}]})%"#,
        r#"%COALESCE({"operators": [{"command": "REQ"}]})%"#,
        r#"%COALESCE({"operators": [{"command": "ROUTE_NAME", "max_length": -1}]})%"#,
    ] {
        assert!(Format::new(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_percent_sign_is_written_twice_and_ends_an_operator_outside_of_parentheses() {
    let context = FormatContext {
        start: Some(Duration::from_secs(86_399)),
        route: "r",
        ..FormatContext::default()
    };
    for (format, expected) in [
        ("", ""),
        ("a", "a"),
        ("%%", "%"),
        ("%%a%%%ROUTE_NAME%%%b", "%a%r%b"),
        ("%START_TIME(%H:%M)%%%", "23:59%"),
        ("%START_TIME(%%)%", "%"),
        // A parenthesis that opens nothing is passed over.
        ("%ROUTE_NAME%)%ROUTE_NAME%", "r)r"),
    ] {
        assert_eq!(write(format, &context), expected, "{format}");
    }
    for wrong in [
        "%ROUTE_NAME",
        "%%%",
        "%REQ(a%)",
        "%ROUTE_NAME)%",
        "%START_TIME(%H%",
    ] {
        assert!(Format::new(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn values_are_written_and_absent_ones_are_marked() {
    let headers: Headers = [("x-in", "value")].into_iter().collect();
    let context = FormatContext {
        request: Some(Request {
            method: "GET",
            scheme: "http",
            authority: "v.test",
            path: "/a?b",
            headers: &headers,
        }),
        remote: "10.0.0.1:5000",
        status: 200,
        ..FormatContext::default()
    };
    let cases = [
        ("%REQ(x-in)%", "value"),
        ("%REQ(X-None?x-in)%", "value"),
        ("%REQ(x-in):3%", "val"),
        ("%REQ(x-none)%", "-"),
        ("a%%b", "a%b"),
        ("[%REQ(:METHOD)% %REQ(:PATH)%]", "[GET /a?b]"),
        ("%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", "10.0.0.1"),
        ("%RESPONSE_CODE% %RESPONSE_FLAGS%", "200 -"),
        ("%RESP(x)%", "-"),
    ];
    for (format, expected) in cases {
        let format = Format::new(format).expect(format);
        assert_eq!(
            String::from_utf8_lossy(&format.write(&context, "-")),
            expected
        );
    }
}

#[derive(Debug)]
struct Known;

impl FormatValues for Known {
    fn value(&self, operator: &str, argument: Option<&str>) -> Option<Cow<'_, str>> {
        match (operator, argument) {
            ("DOWNSTREAM_TLS_VERSION", None) => Some("TLSv1.3".into()),
            ("METADATA", Some(key)) => Some(format!("<{key}>").into()),
            _ => None,
        }
    }
}

#[test]
fn all_that_a_request_says_is_written() {
    let request: Headers = [
        ("x-envoy-original-path", "/before?a"),
        ("x-envoy-original-host", "o.test"),
    ]
    .into_iter()
    .collect();
    let response: Headers = [("grpc-status", "5")].into_iter().collect();
    let trailers: Headers = [("x-t", "t"), ("grpc-status", "16")].into_iter().collect();
    let context = FormatContext {
        request: Some(Request {
            method: "GET",
            scheme: "http",
            authority: "v.test",
            path: "/now?q=a%20b&r",
            headers: &request,
        }),
        response: Some(&response),
        remote: "10.1.10.23:5000",
        local: "[2001:db8:1234:5678:9abc::1]:80",
        direct_remote: "10.9.9.9:1",
        upstream_host: "10.0.0.1:80",
        upstream_local: "10.0.0.2:4000",
        server_name: "",
        start: Some(Duration::new(1_527_590_590, 528_000_000)),
        details: "a b",
        flags: "UF,URX",
        values: Some(&Known),
        ..FormatContext::default()
    };
    let with_trailers = FormatContext {
        trailers: Some(&trailers),
        server_name: "sni.test",
        ..context
    };
    let cases = [
        ("%REQUEST_HEADER(:path)%", "/now?q=a%20b&r"),
        ("%REQ_WITHOUT_QUERY(:path)%", "/now"),
        ("%PATH%", "/before?a"),
        ("%PATH(NQ)%", "/before"),
        ("%PATH(NQ:PATH)%", "/now"),
        ("%PATH(:ORIG):3%", "/be"),
        ("%QUERY_PARAM(q)%", "a%20b"),
        ("%QUERY_PARAM(none)%", "-"),
        ("%QUERY_PARAMS%", "q=a%20b&r"),
        ("%QUERY_PARAMS(DECODED)%", "q=a b&r"),
        ("%RESPONSE_CODE_DETAILS%", "a_b"),
        ("%RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)%", "a b"),
        (
            "%RESPONSE_FLAGS_LONG%",
            "UpstreamConnectionFailure,UpstreamRetryLimitExceeded",
        ),
        ("%GRPC_STATUS%", "NotFound"),
        ("%GRPC_STATUS(SNAKE_STRING)%", "NOT_FOUND"),
        ("%GRPC_STATUS_NUMBER%", "5"),
        ("%TRAILER(x-t)%", "-"),
        (
            "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(16)%",
            "10.1.0.0/16",
        ),
        (
            "%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(64)%",
            "2001:db8:1234:5678::/64",
        ),
        (
            "%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%",
            "2001:db8:1234:5678:9abc::1",
        ),
        ("%DOWNSTREAM_DIRECT_REMOTE_PORT%", "1"),
        ("%UPSTREAM_REMOTE_PORT%", "80"),
        ("%UPSTREAM_LOCAL_ADDRESS%", "10.0.0.2:4000"),
        ("%REQUESTED_SERVER_NAME%", "-"),
        ("%REQUESTED_SERVER_NAME(SNI_FIRST)%", "o.test"),
        ("%REQUESTED_SERVER_NAME(HOST_FIRST:HOST)%", "v.test"),
        ("%START_TIME%", "2018-05-29T10:43:10.528Z"),
        ("%START_TIME(%s.%3f)%", "1527590590.528"),
        (
            "%START_TIME(%Y/%m/%dT%H:%M:%S%z)%",
            "2018/05/29T10:43:10+0000",
        ),
        ("%EMIT_TIME%", "-"),
        ("%DOWNSTREAM_TLS_VERSION%", "TLSv1.3"),
        ("%UPSTREAM_TLS_VERSION%", "-"),
        ("%METADATA(ROUTE:a:b)%", "<ROUTE:a:b>"),
        (
            "%COALESCE({\"operators\": [\"REQUESTED_SERVER_NAME\", {\"command\": \"REQ\", \"param\": \":authority\", \"max_length\": 3}]})%",
            "v.t",
        ),
    ];
    let write = |format: &str, context: &FormatContext<'_>| {
        let format = Format::new(format).unwrap_or_else(|problem| panic!("{problem}"));
        String::from_utf8_lossy(&format.write(context, "-")).into_owned()
    };
    for (format, expected) in cases {
        assert_eq!(write(format, &context), expected, "{format}");
    }
    for (format, expected) in [
        ("%RESPONSE_TRAILER(x-t)%", "t"),
        ("%GRPC_STATUS(CAMEL_STRING)%", "Unauthenticated"),
        ("%REQUESTED_SERVER_NAME(SNI_FIRST)%", "sni.test"),
    ] {
        assert_eq!(write(format, &with_trailers), expected, "{format}");
    }
}

#[test]
fn an_operator_that_is_not_known_is_refused() {
    for wrong in [
        "%",
        "a%REQ(x)",
        "%NO_SUCH%",
        "%REQ(x):a%",
        "%REQ(x%",
        "%REQ%",
        "%PROTOCOL(x)%",
        "%CEL(response.code)%",
        "%GRPC_STATUS(x)%",
        "%PATH(X)%",
        "%START_TIME(%Q)%",
        "%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(129)%",
        "%COALESCE({})%",
        "%COALESCE({\"operators\": [\"NO_SUCH\"]})%",
        "%METADATA%",
    ] {
        assert!(Format::new(wrong).is_err(), "{wrong}");
    }
}
