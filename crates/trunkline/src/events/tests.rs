//! The order of events, what is kept of them, and readers that resume.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use trunkline_core::message::Mode;

use super::entry::{ClientStream, EventId, LogEntry, LogEvent};
use super::log::{EventLog, LogLimits, MOST_LISTED};
use super::reader::{Missed, Reader};
use super::ring::{Start, StartError};
use crate::server::{Changed, Connection, Hooks, Peer, Report};
use crate::{Change, Resource, Server, kind};

const SMALL: LogLimits = LogLimits {
    events: 4,
    bytes: 1 << 20,
    readers: 2,
};

fn changed(name: &str) -> Changed {
    Changed {
        type_url: kind::CDS.into(),
        name: name.into(),
        constraints: None,
        from: None,
        to: Some("1".into()),
    }
}

/// Makes the change with this revision.
fn change(log: &EventLog, revision: u64) {
    log.changed(revision, "me", &[changed("a")]);
}

fn connect(log: &EventLog, stream: u64) {
    let peer = Peer {
        stream,
        node: "n",
        identity: None,
        connection: &Connection::default(),
        mode: Mode::Delta,
    };
    log.report(peer, Report::Opened);
}

/// Appends the ACK of a response that was built from this revision.
fn ack(log: &EventLog, revision: u64) {
    log.append(LogEvent::Acked {
        client: ClientStream {
            stream: 1,
            node: "n".into(),
        },
        type_url: kind::CDS.into(),
        nonce: "1".into(),
        revision: Some(revision),
    });
}

/// Returns a word for each event that can be read at once.
fn read(reader: &mut Reader) -> Result<Vec<String>, Missed> {
    Ok(read_entries(reader)?.iter().map(word).collect())
}

fn read_entries(reader: &mut Reader) -> Result<Vec<LogEntry>, Missed> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let mut all = Vec::new();
    runtime.block_on(async {
        let moment = Duration::from_millis(1);
        while let Ok(batch) = tokio::time::timeout(moment, reader.next()).await {
            all.extend(batch?);
        }
        Ok(all)
    })
}

fn word(entry: &LogEntry) -> String {
    match &*entry.event {
        LogEvent::Changed { revision, .. } => format!("changed {revision}"),
        LogEvent::Acked { revision, .. } => format!("acked {}", revision.unwrap()),
        LogEvent::Connected { client, .. } => format!("connected {}", client.stream),
        other => format!("{other:?}"),
    }
}

#[test]
fn events_come_in_order_and_a_reader_resumes_after_each_exactly() {
    let log = EventLog::default();
    change(&log, 1);
    let mut reader = log.read(Start::Now).unwrap();
    let before = reader.position();
    for stream in 0..200 {
        connect(&log, stream);
    }
    change(&log, 2);
    let all = read_entries(&mut reader).unwrap();
    assert_eq!(all.len(), 201, "all batches, and no event twice");
    assert_eq!(word(&all[200]), "changed 2");
    assert_eq!(reader.position(), all[200].id);
    drop(reader);

    for (passed, id) in [(0, before), (1, all[0].id), (130, all[129].id)] {
        let mut reader = log.read(Start::After(id)).unwrap();
        let rest: Vec<EventId> = read_entries(&mut reader)
            .unwrap()
            .iter()
            .map(|e| e.id)
            .collect();
        let expected: Vec<EventId> = all[passed..].iter().map(|entry| entry.id).collect();
        assert_eq!(rest, expected);
    }
}

#[test]
fn a_revision_begins_after_its_change() {
    let log = EventLog::default();
    change(&log, 1);
    ack(&log, 1);
    change(&log, 2);
    connect(&log, 7);
    // Nothing became different.
    log.changed(3, "me", &[]);
    // The stream was faster than the hooks of the change.
    ack(&log, 4);
    connect(&log, 8);
    change(&log, 4);
    ack(&log, 4);
    let from = |revision| read(&mut log.read(Start::Revision(revision)).unwrap()).unwrap();
    let late = ["acked 4", "acked 4"];
    assert_eq!(from(4), late);
    let third = ["acked 4", "connected 8", "changed 4", "acked 4"];
    assert_eq!(from(3), third);
    assert_eq!(from(2), [&["connected 7"][..], &third].concat());
    assert_eq!(from(1)[..2], ["acked 1", "changed 2"]);
    assert_eq!(
        log.read(Start::Revision(5)).unwrap_err(),
        StartError::RevisionUnknown {
            revision: 5,
            current: 4
        }
    );
}

#[test]
fn a_reader_that_is_too_slow_is_told_how_much_it_missed() {
    let log = EventLog::new(SMALL);
    let mut reader = log.read(Start::Now).unwrap();
    let start = reader.position();
    for revision in 1..=6 {
        change(&log, revision);
    }
    assert_eq!(read(&mut reader), Err(Missed { count: 2 }));
    drop(reader);
    let error = log.read(Start::After(start)).unwrap_err();
    assert!(matches!(error, StartError::IdForgotten { .. }), "{error}");
    let error = log.read(Start::Revision(1)).unwrap_err();
    let oldest = StartError::RevisionForgotten {
        revision: 1,
        oldest: 2,
    };
    assert_eq!(error, oldest);
    let mut reader = log.read(Start::Revision(2)).unwrap();
    assert!(!reader.has_gap());
    let kept = ["changed 3", "changed 4", "changed 5", "changed 6"];
    assert_eq!(read(&mut reader).unwrap(), kept);
    // The last event that is forgotten: nothing is missing after it.
    let number = start.number + 2;
    let last = EventId { number, ..start };
    let mut reader = log.read(Start::After(last)).unwrap();
    assert_eq!(read(&mut reader).unwrap(), kept);
}

#[test]
fn changes_are_found_by_revision_although_other_events_are_forgotten() {
    let log = EventLog::new(SMALL);
    change(&log, 1);
    for stream in 0..5 {
        connect(&log, stream);
    }
    // The newest revision, as a list of the resources shows it.
    let mut reader = log.read(Start::Revision(1)).unwrap();
    assert!(reader.has_gap());
    assert_eq!(read(&mut reader).unwrap().len(), 4);
    change(&log, 2);
    assert_eq!(read(&mut reader).unwrap(), ["changed 2"]);
    assert!(!log.read(Start::Revision(2)).unwrap().has_gap());
}

#[test]
fn bytes_are_bounded_and_a_change_of_many_is_counted() {
    let limits = LogLimits {
        bytes: 50_000,
        ..LogLimits::default()
    };
    let log = EventLog::new(limits);
    let mut reader = log.read(Start::Now).unwrap();
    for stream in 0..1000 {
        connect(&log, stream);
    }
    assert!(matches!(read(&mut reader), Err(Missed { count }) if count > 100));
    let mut reader = log.read(Start::Now).unwrap();
    let many: Vec<Changed> = (0..5000).map(|n| changed(&n.to_string())).collect();
    log.changed(1, "me", &many);
    let entries = read_entries(&mut reader).unwrap();
    let LogEvent::Changed { listed, counts, .. } = &*entries[0].event else {
        panic!("{entries:?}");
    };
    assert_eq!(listed.len(), MOST_LISTED);
    assert_eq!(counts.len(), 1);
    assert_eq!(counts[0].1.created, 5000);
}

#[test]
fn readers_are_bounded_and_leave_room_when_they_end() {
    let log = EventLog::new(SMALL);
    let first = log.read(Start::Now).unwrap();
    // A wrong start takes no room.
    log.read(Start::Revision(9)).unwrap_err();
    let second = log.read(Start::Now).unwrap();
    let error = log.read(Start::Now).unwrap_err();
    assert_eq!(error, StartError::TooManyReaders { limit: 2 });
    drop((first, second));
    log.read(Start::Now).unwrap();
}

#[test]
fn an_id_of_another_process_is_recognised() {
    let log = EventLog::default();
    change(&log, 1);
    let id = log.read(Start::Now).unwrap().position();
    assert_eq!(id.to_string().parse(), Ok(id));
    for text in ["", "1", "x-1", "1-x", "1-2-3"] {
        text.parse::<EventId>().unwrap_err();
    }
    let other = EventId {
        log: id.log - 1,
        ..id
    };
    let error = log.read(Start::After(other)).unwrap_err();
    assert_eq!(error, StartError::OtherLog(other));
    let later = EventId {
        number: id.number + 1,
        ..id
    };
    let error = log.read(Start::After(later)).unwrap_err();
    assert!(matches!(error, StartError::IdUnknown { .. }), "{error}");
}

/// Keeps the hooks after it from hearing of the first change until the second
/// was told, or does not come.
struct HoldFirst {
    entered: mpsc::Sender<()>,
    second: Mutex<mpsc::Receiver<()>>,
}

impl Hooks for HoldFirst {
    fn changed(&self, revision: u64, _: &str, _: &[Changed]) {
        if revision == 1 {
            self.entered.send(()).unwrap();
            let second = self.second.lock().unwrap();
            let _ = second.recv_timeout(Duration::from_millis(100));
        }
    }
}

/// Says that the second change was told to the hooks before it.
struct TellSecond(mpsc::Sender<()>);

impl Hooks for TellSecond {
    fn changed(&self, revision: u64, _: &str, _: &[Changed]) {
        if revision == 2 {
            let _ = self.0.send(());
        }
    }
}

#[test]
fn changes_are_told_in_the_order_of_revisions_although_a_hook_is_slow() {
    let (entered, has_entered) = mpsc::channel();
    let (told, second) = mpsc::channel();
    let second = Mutex::new(second);
    let log = EventLog::default();
    let server = Server::builder()
        .hooks(HoldFirst { entered, second })
        .hooks(log.clone())
        .hooks(TellSecond(told))
        .build();
    let mut reader = log.read(Start::Now).unwrap();
    let put = |name: &str| {
        let resource = Resource::new(name.into(), "x".into());
        let upsert = Change::Upsert(kind::CDS.into(), Arc::new(resource));
        server.apply(vec![upsert]).unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| put("a"));
        has_entered.recv().unwrap();
        put("b");
    });
    assert_eq!(read(&mut reader).unwrap(), ["changed 1", "changed 2"]);
}
