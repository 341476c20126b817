//! What a request says: its headers, its path, its host.

use std::borrow::Cow;
use std::time::Duration;

use super::{Format, FormatContext, FormatValues, Headers, Request, of, request, write};

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
