//! Where an operator begins and ends, and what is none.

use std::time::Duration;

use super::{Format, FormatContext, Headers, Request, write};

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
