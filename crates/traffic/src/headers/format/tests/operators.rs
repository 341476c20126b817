//! Operators of the context, and those whose values are asked for.

use std::borrow::Cow;
use std::time::Duration;

use super::{Format, FormatContext, FormatValues, of, write};

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
