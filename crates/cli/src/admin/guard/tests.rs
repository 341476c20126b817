//! Who is let in, and who is not.

use super::*;
use std::io::Write as _;
use tempfile::NamedTempFile;

fn caller(peer: &str, local: &str) -> Connection {
    let mut connection = Connection::default();
    connection.peer = Some(format!("{peer}:5000").parse().unwrap());
    connection.local = Some(format!("{local}:18001").parse().unwrap());
    connection
}

/// A client on another machine, behind TLS.
fn remote() -> Connection {
    let mut connection = caller("10.0.0.2", "10.0.0.1");
    connection.secure = true;
    connection
}

/// The same with a certificate from an authority that the address trusts.
fn operator(name: &str) -> Connection {
    let mut connection = remote();
    connection.certified = true;
    connection.identity = Some(Identity::Uri(name.to_owned()));
    connection
}

fn request(method: Method, headers: &[(&str, &str)]) -> Parts {
    let mut builder = http::Request::builder().method(method).uri("/api/v1/x");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn admit(guard: &Guard, request: &Parts, who: &Connection) -> Result<String, Refusal> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    runtime.block_on(guard.admit(request, who))
}

fn status(guard: &Guard, request: &Parts, connection: &Connection) -> u16 {
    let admitted = admit(guard, request, connection);
    admitted.map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
}

fn token_file() -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "sesame").unwrap();
    file
}

fn with_token(file: &NamedTempFile) -> Guard {
    Guard {
        token: Some(TokenFile::new(file.path().to_owned())),
        ..Guard::default()
    }
}

const HERE: (&str, &str) = ("host", "127.0.0.1:18001");
const SESAME: (&str, &str) = ("authorization", "Bearer sesame");

#[test]
fn writes_from_elsewhere_need_a_right() {
    let open = Guard::default();
    let write = request(Method::POST, &[("host", "10.0.0.1:18001")]);
    let mut plain = remote();
    plain.secure = false;
    assert_eq!(status(&open, &write, &plain), 403);
    let read = request(Method::GET, &[("host", "10.0.0.1:18001")]);
    assert_eq!(status(&open, &read, &plain), 200);
    // TLS alone authenticates the server, not the client.
    assert_eq!(status(&open, &write, &remote()), 403);
    // Nor does a certificate, where no authority of operators is set up.
    assert_eq!(
        status(&open, &write, &operator("spiffe://example/envoy")),
        403
    );
    // One end that is not local is enough to be remote.
    let write = request(Method::POST, &[HERE]);
    assert_eq!(status(&open, &write, &caller("127.0.0.1", "10.0.0.1")), 403);
    let local = caller("127.0.0.1", "127.0.0.1");
    assert_eq!(status(&open, &write, &local), 200);
    let mapped = caller("[::ffff:127.0.0.1]", "[::1]");
    assert_eq!(status(&open, &write, &mapped), 200);
}

#[test]
fn an_operator_has_a_certificate_and_a_name() {
    let mut guard = Guard {
        has_authorities: true,
        ..Guard::default()
    };
    let write = request(Method::POST, &[HERE]);
    let (ops, dev) = (
        operator("spiffe://example/ops"),
        operator("spiffe://example/dev"),
    );
    assert_eq!(
        admit(&guard, &write, &ops).unwrap(),
        "api spiffe://example/ops"
    );
    assert_eq!(status(&guard, &write, &dev), 200);
    // The listener lets nobody in without one; if it did, nobody could write.
    assert_eq!(status(&guard, &write, &remote()), 403);
    assert_eq!(
        status(&guard, &write, &caller("127.0.0.1", "127.0.0.1")),
        403
    );
    guard.allowed = vec!["spiffe://example/ops".parse().unwrap()];
    assert_eq!(status(&guard, &write, &ops), 200);
    assert_eq!(status(&guard, &write, &dev), 403);
    assert_eq!(status(&guard, &request(Method::GET, &[HERE]), &dev), 200);
    let mut nameless = operator("");
    nameless.identity = None;
    assert_eq!(status(&guard, &write, &nameless), 403);
}

#[test]
fn a_token_that_is_set_up_is_asked_for_everywhere() {
    let file = token_file();
    let guard = with_token(&file);
    let local = caller("127.0.0.1", "127.0.0.1");
    let mut plain = remote();
    plain.secure = false;
    let with = |token: &str| {
        let value = format!("Bearer {token}");
        request(Method::DELETE, &[HERE, ("authorization", &value)])
    };
    // In the clear the token would be everybody's.
    assert_eq!(status(&guard, &with("sesame"), &plain), 403);
    for who in [&local, &remote(), &operator("spiffe://example/envoy")] {
        assert_eq!(status(&guard, &with("sesame"), who), 200);
        assert_eq!(status(&guard, &with("sesam"), who), 401);
        assert_eq!(status(&guard, &request(Method::POST, &[HERE]), who), 401);
        assert_eq!(status(&guard, &request(Method::GET, &[HERE]), who), 200);
    }
    let both = Guard {
        has_authorities: true,
        ..with_token(&file)
    };
    let ops = operator("spiffe://example/ops");
    assert_eq!(status(&both, &with("sesame"), &remote()), 403);
    assert_eq!(status(&both, &request(Method::POST, &[HERE]), &ops), 401);
    assert_eq!(
        admit(&both, &with("sesame"), &ops).unwrap(),
        "api spiffe://example/ops"
    );
    let gone = Guard {
        token: Some(TokenFile::new("no/such/file".into())),
        ..Guard::default()
    };
    assert_eq!(status(&gone, &with("sesame"), &local), 500);
}

#[test]
fn reading_may_need_the_same_right() {
    let file = token_file();
    let guard = Guard {
        auth_reads: true,
        ..with_token(&file)
    };
    let read = |path: &str, headers: &[(&str, &str)]| {
        let mut request = request(Method::GET, headers);
        request.uri = path.parse().unwrap();
        status(&guard, &request, &remote())
    };
    assert_eq!(read("/config_dump", &[HERE]), 401);
    assert_eq!(read("/config_dump", &[HERE, SESAME]), 200);
    assert_eq!(read("/ready", &[HERE]), 200);
    assert_eq!(read("/metrics", &[HERE]), 200);
    let local = Guard {
        auth_reads: true,
        ..Guard::default()
    };
    let read = request(Method::GET, &[HERE]);
    assert_eq!(
        status(&local, &read, &caller("127.0.0.1", "127.0.0.1")),
        200
    );
    assert_eq!(status(&local, &read, &remote()), 403);
}

#[test]
fn a_question_is_no_write() {
    let file = token_file();
    let guard = with_token(&file);
    let question = |method: Method| {
        let mut question = request(method, &[HERE]);
        question.uri = "/api/v1/explain?host=x".parse().unwrap();
        question
    };
    for who in [caller("127.0.0.1", "127.0.0.1"), remote()] {
        assert_eq!(status(&guard, &question(Method::POST), &who), 200);
        assert_ne!(status(&guard, &question(Method::DELETE), &who), 200);
    }
}

#[test]
fn a_page_in_a_browser_may_not_write() {
    let guard = Guard::default();
    let local = caller("127.0.0.1", "127.0.0.1");
    let from = |origin: &str| request(Method::POST, &[HERE, ("origin", origin)]);
    assert_eq!(status(&guard, &from("http://evil.example"), &local), 403);
    assert_eq!(status(&guard, &from("null"), &local), 403);
    assert_eq!(status(&guard, &from("http://127.0.0.1:9"), &local), 403);
    assert_eq!(status(&guard, &from("http://127.0.0.1:18001"), &local), 200);
}

#[test]
fn a_name_that_was_bent_to_this_machine_is_refused() {
    let guard = Guard::default();
    let local = caller("127.0.0.1", "127.0.0.1");
    for (host, expected) in [
        ("evil.example:18001", 421),
        ("localhost.evil.example", 421),
        ("", 421),
        ("127.0.0.1@evil.example", 421),
        ("localhost:18001", 200),
        ("[::1]:18001", 200),
        ("127.1.2.3", 200),
    ] {
        let request = request(Method::GET, &[("host", host)]);
        assert_eq!(status(&guard, &request, &local), expected, "{host}");
    }
    let open = http::Request::get("/metrics").header("host", "node.example");
    let open = open.body(()).unwrap().into_parts().0;
    assert_eq!(status(&guard, &open, &local), 200);
}
