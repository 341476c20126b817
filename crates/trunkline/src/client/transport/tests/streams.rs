//! What goes over a stream, and how a stream ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::peer::{PATH, answer_with, echo, headers, listen, serve};
use crate::client::transport::frame::with_prefix;
use crate::client::transport::{
    Code, Connector, HeaderError, Stream, StreamError, TransportOptions,
};
use crate::client::{ControlPlane, Secret};

async fn open(plane: &ControlPlane) -> Stream {
    let connector = Connector::new(TransportOptions::default());
    connector.open(plane, PATH).await.unwrap()
}

async fn error_of(plane: &ControlPlane) -> StreamError {
    let mut stream = open(plane).await;
    loop {
        match stream.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended well"),
            Err(error) => return error,
        }
    }
}

#[tokio::test]
async fn messages_go_both_ways() {
    let (listener, plane) = listen().await;
    serve(listener, None, echo);
    let mut stream = open(&plane).await;
    let long = Bytes::from(vec![7; 300 << 10]);
    for message in [Bytes::from_static(b"one"), Bytes::new(), long] {
        stream.ready().await.unwrap();
        stream.send(message.clone());
        assert_eq!(stream.next().await.unwrap(), Some(message));
    }
}

#[tokio::test]
async fn a_stream_that_ends_with_status_ok_ends_well() {
    let (listener, plane) = listen().await;
    serve(listener, None, answer_with(&[b"one", b"two"], "0", ""));
    let mut stream = open(&plane).await;
    assert_eq!(stream.next().await.unwrap().unwrap(), "one");
    assert_eq!(stream.next().await.unwrap().unwrap(), "two");
    assert_eq!(stream.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_status_has_its_code_and_its_decoded_message() {
    let (listener, plane) = listen().await;
    serve(listener, None, answer_with(&[], "7", "not %22you%22 100%"));
    let StreamError::Status { code, message } = error_of(&plane).await else {
        panic!("not a status");
    };
    assert_eq!(code, Code::PERMISSION_DENIED);
    assert_eq!(message, "not \"you\" 100%");
}

#[tokio::test]
async fn a_status_may_come_at_once() {
    let (listener, plane) = listen().await;
    serve(listener, None, |(_, mut respond)| {
        let answer = Response::builder().header("grpc-status", "12");
        respond
            .send_response(answer.body(()).unwrap(), true)
            .unwrap();
    });
    let error = error_of(&plane).await;
    assert!(
        matches!(error, StreamError::Status { code, .. } if code == Code::UNIMPLEMENTED),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_that_is_not_grpc_is_said_so() {
    let (listener, plane) = listen().await;
    let asked = Arc::new(AtomicUsize::new(0));
    serve(listener, None, move |(_, mut respond)| {
        let answer = match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Response::builder().status(503),
            _ => Response::builder().header("content-type", "text/html"),
        };
        respond
            .send_response(answer.body(()).unwrap(), true)
            .unwrap();
    });
    assert!(matches!(error_of(&plane).await, StreamError::Http(503)));
    let error = error_of(&plane).await;
    assert!(
        matches!(&error, StreamError::NotGrpc(kind) if kind == "text/html"),
        "{error}"
    );
}

#[tokio::test]
async fn a_stream_without_a_status_did_not_end_well() {
    let (listener, plane) = listen().await;
    let asked = Arc::new(AtomicUsize::new(0));
    serve(listener, None, move |(_, mut respond)| {
        let mut out = respond.send_response(headers(), false).unwrap();
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => out.send_data(with_prefix(b"message"), true).unwrap(),
            _ => out.send_reset(h2::Reason::REFUSED_STREAM),
        }
    });
    let error = error_of(&plane).await;
    assert!(matches!(error, StreamError::NoStatus), "{error}");
    let error = error_of(&plane).await;
    assert!(matches!(error, StreamError::Reset(7)), "{error}");
}

#[tokio::test]
async fn a_message_over_the_limit_ends_the_stream() {
    let (listener, plane) = listen().await;
    serve(listener, None, answer_with(&[b"123456789"], "0", ""));
    let options = TransportOptions {
        max_message: 8,
        ..TransportOptions::default()
    };
    let mut stream = Connector::new(options).open(&plane, PATH).await.unwrap();
    let error = stream.next().await.unwrap_err();
    assert!(
        matches!(
            error,
            StreamError::TooLong {
                length: 9,
                limit: 8
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_of_http_1_is_said_so() {
    let (listener, plane) = listen().await;
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut some = [0; 16];
        socket.read_exact(&mut some).await.unwrap();
        let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
        socket.write_all(answer).await.unwrap();
        sleep(Duration::from_secs(10)).await;
    });
    let error = error_of(&plane).await;
    assert!(matches!(error, StreamError::NotHttp2), "{error}");
}

#[tokio::test]
async fn a_stream_says_who_it_is_and_reads_its_token_anew() {
    let (listener, mut plane) = listen().await;
    let (sender, mut seen) = mpsc::unbounded_channel();
    serve(listener, None, move |(request, respond)| {
        let _ = sender.send((request.into_parts().0, respond));
    });
    let token = tempfile::NamedTempFile::new().unwrap();
    plane.authority = Some("xds.example.com".to_owned());
    plane.metadata = vec![("x-key".to_owned(), Secret("value".to_owned()))];
    plane.token_file = Some(token.path().to_owned());
    let connector = Connector::new(TransportOptions::default());
    for text in ["first\n", "second"] {
        std::fs::write(token.path(), text).unwrap();
        let _stream = connector.open(&plane, PATH).await.unwrap();
        let (parts, _respond) = seen.recv().await.unwrap();
        let header = |name: &str| parts.headers[name].to_str().unwrap().to_owned();
        assert_eq!(parts.uri.path(), PATH);
        assert_eq!(parts.uri.authority().unwrap(), "xds.example.com");
        assert_eq!(header("x-key"), "value");
        assert_eq!(header("grpc-accept-encoding"), "identity");
        assert_eq!(header("te"), "trailers");
        assert_eq!(
            header("authorization"),
            format!("Bearer {}", text.trim_end())
        );
    }
    std::fs::write(token.path(), "").unwrap();
    let error = connector.open(&plane, PATH).await.unwrap_err();
    assert!(matches!(error, StreamError::Token { .. }), "{error}");
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_named_without_its_value() {
    let (listener, plane) = listen().await;
    serve(listener, None, echo);
    let with = |name: &str, value: &str| ControlPlane {
        metadata: vec![(name.to_owned(), Secret(value.to_owned()))],
        ..plane.clone()
    };
    let connector = Connector::new(TransportOptions::default());
    for (name, value) in [("a b", "good"), ("TE", "good"), ("grpc-timeout", "1S")] {
        let error = connector.open(&with(name, value), PATH).await.unwrap_err();
        let expected = HeaderError::Name(name.to_owned());
        assert!(
            matches!(&error, StreamError::Header(found) if *found == expected),
            "{error}"
        );
    }
    let bad = with("x-key", "secret\n");
    let error = connector.open(&bad, PATH).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
}

/// C22: what the owner does not read stays with the server.
#[tokio::test]
async fn a_stream_that_is_not_read_takes_one_window() {
    let (listener, plane) = listen().await;
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    serve(listener, None, move |(_, mut respond)| {
        let counted = Arc::clone(&counted);
        tokio::spawn(async move {
            let mut out = respond.send_response(headers(), false).unwrap();
            let message = with_prefix(&[0; 1000]);
            loop {
                out.reserve_capacity(message.len());
                let capacity = std::future::poll_fn(|cx| out.poll_capacity(cx)).await;
                let Some(Ok(_)) = capacity else { return };
                while out.capacity() >= message.len() {
                    out.send_data(message.clone(), false).unwrap();
                    counted.fetch_add(message.len(), Ordering::Relaxed);
                    out.reserve_capacity(message.len());
                }
            }
        });
    });
    let options = TransportOptions {
        stream_window: 65_535,
        ..TransportOptions::default()
    };
    let mut stream = Connector::new(options).open(&plane, PATH).await.unwrap();
    sleep(Duration::from_millis(300)).await;
    assert!(sent.load(Ordering::Relaxed) <= 65_535);
    for _ in 0..1000 {
        assert_eq!(stream.next().await.unwrap().unwrap().len(), 1000);
    }
}

#[tokio::test]
async fn a_stream_whose_server_does_not_read_is_not_ready() {
    let (listener, plane) = listen().await;
    let (sender, mut held) = mpsc::unbounded_channel();
    serve(listener, None, move |stream| sender.send(stream).unwrap());
    let mut stream = open(&plane).await;
    let mut sent = 0;
    while timeout(Duration::from_millis(300), stream.ready())
        .await
        .is_ok()
    {
        stream.send(vec![0; 8 << 10].into());
        sent += 1;
    }
    assert!((1..=12).contains(&sent), "{sent}");
    // The server reads, and it is ready again.
    let (request, _respond) = held.recv().await.unwrap();
    let mut body = request.into_body();
    let read = tokio::spawn(async move {
        while let Some(Ok(data)) = body.data().await {
            let _ = body.flow_control().release_capacity(data.len());
        }
    });
    stream.ready().await.unwrap();
    drop(stream);
    timeout(Duration::from_secs(5), read)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_server_that_goes_away_is_said_so() {
    let (listener, plane) = listen().await;
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(socket).await.unwrap();
        let _stream = connection.accept().await.unwrap().unwrap();
        connection.abrupt_shutdown(h2::Reason::ENHANCE_YOUR_CALM);
        while connection.accept().await.is_some() {}
    });
    let error = error_of(&plane).await;
    assert!(matches!(error, StreamError::GoAway(11)), "{error}");
}
