//! Lists of header lines.

use super::{Format, FormatContext, Headers};

fn of(lines: &[(&'static str, &'static str)]) -> Headers {
    lines.iter().copied().collect()
}

fn lines(headers: &Headers) -> Vec<(&str, &str)> {
    let text = |bytes| str::from_utf8(bytes).expect("a text");
    headers
        .iter()
        .map(|line| (text(line.name()), text(line.value())))
        .collect()
}

#[test]
fn a_header_that_is_set_keeps_its_place() {
    let mut headers = of(&[("A", "1"), ("b", " 2\t"), ("a", "3"), ("c", ""), ("a", "5")]);
    headers.set("a", " 4 ");
    assert_eq!(lines(&headers), [("a", "4"), ("b", "2"), ("c", "")]);
    headers.set("c", "6");
    headers.set("d", "7");
    assert_eq!(
        lines(&headers),
        [("a", "4"), ("b", "2"), ("c", "6"), ("d", "7")]
    );
}

#[test]
fn names_are_in_lower_case_and_values_without_space_around() {
    let headers = of(&[("X-Ab", "\t a b \t"), ("x-ab", "  "), ("x", "y")]);
    assert_eq!(lines(&headers), [("x-ab", "a b"), ("x-ab", ""), ("x", "y")]);
    assert_eq!((headers.len(), headers.is_empty()), (3, false));
    assert_eq!((Headers::new().len(), Headers::new().is_empty()), (0, true));
    assert_eq!(headers.get("x-ab"), Some(&b"a b"[..]));
    let all: Vec<_> = headers.all("x-ab").collect();
    assert_eq!(all, [&b"a b"[..], b""]);
    assert!(headers.has("x") && !headers.has("X") && !headers.has("y"));
}

#[test]
fn a_value_that_is_no_text_is_none() {
    let mut headers = Headers::new();
    headers.append("a", &b"\xff"[..]);
    headers.append("a", "b");
    assert_eq!(headers.text("a"), None);
    assert_eq!(headers.get("a"), Some(&b"\xff"[..]));
}

#[test]
fn texts_are_joined_to_the_first_line() {
    let mut headers = of(&[("a", "1"), ("b", ""), ("a", "2")]);
    headers.join("a", ", ", "x");
    headers.join("b", ", ", "y");
    headers.join("c", ", ", "z");
    let expected = [("a", "1, x"), ("b", "y"), ("a", "2"), ("c", "z")];
    assert_eq!(lines(&headers), expected);
}

#[test]
fn lines_of_a_name_become_one() {
    let mut headers = of(&[("a", "1"), ("b", "x"), ("a", "2"), ("a", "3")]);
    headers.merge("a");
    headers.merge("b");
    headers.merge("c");
    assert_eq!(lines(&headers), [("a", "1,2,3"), ("b", "x")]);
}

#[test]
fn lines_are_removed_by_name() {
    let mut headers = of(&[
        ("x-envoy-a", "1"),
        ("x-envoy-b", "2"),
        ("a", "3"),
        ("x-envoy-a", "4"),
    ]);
    headers.remove_of_envoy(&["x-envoy-a", "a"]);
    assert_eq!(lines(&headers), [("x-envoy-b", "2"), ("a", "3")]);
    headers.remove("a");
    headers.remove("b");
    assert_eq!(lines(&headers), [("x-envoy-b", "2")]);
    headers.retain(|line| line.value() != b"2");
    assert!(headers.is_empty());
}

/// An absent value is told from one that is there, wherever it stands.
#[test]
fn an_absent_value_behind_a_literal_is_marked() {
    let headers = of(&[("a", "value")]);
    let request = crate::Request {
        method: "GET",
        scheme: "http",
        authority: "host",
        path: "/",
        headers: &headers,
    };
    let context = FormatContext {
        request: Some(request),
        ..FormatContext::default()
    };
    for (format, expected) in [
        ("%REQ(a)%", "value"),
        ("x%REQ(a):2%y", "xvay"),
        ("x%REQ(a):9%y", "xvaluey"),
        ("%REQ(b)%", "-"),
        ("x%REQ(b)%y", "x-y"),
        ("x%REQ(b)%%REQ(b):0%y", "x--y"),
    ] {
        let format = Format::new(format).expect("a format");
        let written = format.write(&context, "-");
        assert_eq!(String::from_utf8(written).expect("a text"), expected);
    }
}

#[test]
fn an_operator_without_what_it_needs_is_refused() {
    for format in [
        "%QUERY_PARAM%",
        "%QUERY_PARAM()%",
        "%REQ%",
        "%NOTHING%",
        "%REQ(a%",
    ] {
        assert!(Format::new(format).is_err(), "{format}");
    }
    assert!(Format::new("%QUERY_PARAM(a)%").is_ok());
}
