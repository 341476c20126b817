//! Shares, answers and bodies, with a clock that stands still.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, StreamBody};

use super::*;

const LIMITS: QuestionLimits = QuestionLimits {
    at_once: 2,
    peer_at_once: 1,
    peer_waiting: 2,
    patience: Duration::from_secs(10),
    bytes: 1_000_000,
    peer_bytes: 600_000,
    stall: Duration::from_secs(30),
};

fn peer(last: u8) -> Option<IpAddr> {
    Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)))
}

/// Questions that count how often each limit is met.
fn counted() -> (Questions, Arc<AtomicUsize>) {
    let met = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&met);
    let count = move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    (Questions::new(LIMITS, count), met)
}

#[tokio::test(start_paused = true)]
async fn one_address_takes_no_turn_of_another() {
    let (questions, met) = counted();
    let busy = questions.ask(peer(1));
    let work = busy.work().await.unwrap();
    let waiting = questions.ask(peer(1));
    let waiting = tokio::spawn(async move { waiting.work().await.map(drop) });
    tokio::task::yield_now().await;
    // Another address has its turn at once, and so has a light question.
    questions.ask(peer(2)).work().await.unwrap();
    questions.ask_light(peer(1)).work().await.unwrap();
    assert_eq!(waiting.await.unwrap(), Err(Busy::Work));
    assert_eq!(met.load(Ordering::Relaxed), 1);
    drop(work);
    questions.ask(peer(1)).work().await.unwrap();
}

#[tokio::test]
async fn near_the_memory_limit_only_light_questions_are_answered() {
    let (met, counter) = {
        let met = Arc::new(AtomicUsize::new(0));
        (Arc::clone(&met), met)
    };
    let count = move |limit| {
        assert_eq!(limit, Limit::Memory);
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let full = Arc::new(Memory::new(Some(1)));
    let questions = Questions::within(full, LIMITS, count);
    let refused = questions.ask(peer(1)).work().await.map(drop);
    assert_eq!(refused, Err(Busy::Memory));
    questions.ask_light(peer(1)).work().await.unwrap();
    assert_eq!(met.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn too_many_that_wait_are_refused_at_once() {
    let (questions, _) = counted();
    let busy = questions.ask(peer(1));
    let _work = busy.work().await.unwrap();
    let wait = || {
        let question = questions.ask(peer(1));
        tokio::spawn(async move { question.work().await.map(drop) })
    };
    let waiting = [wait(), wait()];
    tokio::task::yield_now().await;
    let started = tokio::time::Instant::now();
    let refused = questions.ask(peer(1)).work().await.map(drop);
    assert_eq!(refused, Err(Busy::Work));
    assert!(started.elapsed().is_zero());
    for task in waiting {
        task.abort();
    }
}

#[test]
fn bytes_are_bounded_for_each_and_for_all_and_come_back() {
    let (questions, met) = counted();
    let mut first = questions.ask(peer(1));
    first.hold(600_000).unwrap();
    let mut again = questions.ask(peer(1));
    assert_eq!(again.hold(1), Err(Busy::Bytes));
    let mut second = questions.ask(peer(2));
    assert_eq!(second.hold(400_001), Err(Busy::Bytes));
    second.hold(400_000).unwrap();
    assert_eq!(met.load(Ordering::Relaxed), 2);
    drop(first);
    again.hold(600_000).unwrap();
    drop((again, second));
    assert_eq!(questions.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_is_given_up_and_says_so() {
    let (questions, met) = counted();
    let mut question = questions.ask(peer(1));
    question.hold(60).unwrap();
    let large = Full::new(Bytes::from(vec![0; 1 << 20]));
    let mut answer = stream_body(large, question);
    answer.frame().await.unwrap().unwrap();
    assert_eq!(questions.bytes(), 60);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(questions.bytes(), 0);
    assert_eq!(met.load(Ordering::Relaxed), 1);
    // One piece was on its way; then the end is not one of an answer.
    answer.frame().await.unwrap().unwrap();
    assert!(answer.frame().await.unwrap().is_err());
}

#[tokio::test]
async fn an_answer_that_is_read_is_whole() {
    let (questions, _) = counted();
    let bytes = Bytes::from(vec![7; 1 << 20]);
    let answer = stream_body(Full::new(bytes.clone()), questions.ask(None));
    assert_eq!(answer.collect().await.unwrap().to_bytes(), bytes);

    let mut left = 3 << 16;
    let answer = stream(questions.ask(None), move || {
        left -= 1;
        (left >= 0).then(|| Bytes::from_static(b"ab"))
    });
    let answer = answer.await.unwrap().unwrap();
    let bytes = answer.collect().await.unwrap().to_bytes();
    assert_eq!(bytes.len(), 2 * (3 << 16));

    // A small one knows its length.
    let mut once = Some(Bytes::from_static(b"ab"));
    let answer = stream(questions.ask(None), move || once.take()).await;
    let answer = answer.unwrap().unwrap();
    assert_eq!(http_body::Body::size_hint(&answer).exact(), Some(2));
}

#[tokio::test(start_paused = true)]
async fn pieces_are_made_when_the_ones_before_are_taken() {
    let (questions, _) = counted();
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let answer = stream(questions.ask(None), move || {
        count.fetch_add(1, Ordering::Relaxed);
        Some(Bytes::from(vec![0; 1 << 16]))
    });
    let mut answer = answer.await.unwrap().unwrap();
    answer.frame().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    // One was taken, one is in the channel, one waits for it.
    assert!(made.load(Ordering::Relaxed) <= 3);
}

/// A body of pieces, each of which comes after so many seconds.
fn slow(
    pieces: Vec<(u64, usize)>,
) -> impl http_body::Body<Data = Bytes, Error = std::io::Error> + Unpin {
    let (send, frames) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        for (seconds, len) in pieces {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let frame = http_body::Frame::data(Bytes::from(vec![0; len]));
            if send.send(Ok(frame)).await.is_err() {
                return;
            }
        }
    });
    StreamBody::new(tokio_stream::wrappers::ReceiverStream::new(frames))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_slow_or_long_is_refused() {
    let limits = BodyLimits::of(1000);
    let read = |pieces| read_body(slow(pieces), limits, |_| true);
    assert_eq!(read(vec![(9, 500), (9, 500)]).await.unwrap().len(), 1000);
    assert_eq!(read(vec![(11, 1)]).await, Err(ArriveError::TooSlow));
    let drip = vec![(9, 1); 100];
    assert_eq!(read(drip).await, Err(ArriveError::TooSlow));
    let long = read(vec![(1, 600), (1, 600)]).await;
    assert_eq!(long, Err(ArriveError::TooLong { max: 1000 }));
    let mut room = 500;
    let grow = |bytes| {
        room -= i32::try_from(bytes).unwrap();
        room >= 0
    };
    let full = read_body(slow(vec![(1, 300), (1, 300)]), limits, grow).await;
    assert_eq!(full, Err(ArriveError::NoRoom));
}
