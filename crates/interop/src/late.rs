//! Bytes that arrive some time after they were sent: the latency of a network,
//! on loopback.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// The end of a connection that gets everything late. Once this value is
/// dropped, and what is on its way has arrived, the connection ends.
#[derive(Debug)]
pub(crate) struct Late {
    latency: Duration,
    on_their_way: Sender<Chunk>,
}

/// Bytes, and when they arrive. How many may be on their way at once is not
/// bounded: the throughput of a connection is that of loopback.
type Chunk = (Instant, Vec<u8>);

impl Late {
    pub(crate) fn new(to: TcpStream, latency: Duration) -> Self {
        let (on_their_way, arriving) = mpsc::channel();
        thread::spawn(move || deliver(&arriving, to));
        Self {
            latency,
            on_their_way,
        }
    }
}

impl Write for Late {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let arrival = Instant::now() + self.latency;
        let sent = self.on_their_way.send((arrival, bytes.to_vec()));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn deliver(arriving: &Receiver<Chunk>, mut to: TcpStream) {
    for (arrival, bytes) in arriving {
        thread::sleep(arrival.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // It may have ended by itself.
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    const LATENCY: Duration = Duration::from_millis(30);

    #[test]
    fn all_arrives_late_and_the_end_last() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let mut late = Late::new(near, LATENCY);
        let sent = Instant::now();
        late.write_all(b"one ").unwrap();
        late.write_all(b"two").unwrap();
        drop(late);
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two");
        assert!(sent.elapsed() >= LATENCY);
    }
}
