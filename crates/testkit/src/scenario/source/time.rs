//! Time passes: a session is polled at every moment that it announced, and may
//! have nothing to send at any other.

use std::time::Duration;

use trunkline_core::Moment;

use super::Stage;

/// More responses than this at one moment are a loop.
const ENDLESS: usize = 1000;

impl Stage {
    pub(super) fn wait(&mut self, time: Duration) -> Result<(), String> {
        let end = self.now + time;
        self.hear_all()?;
        while let Some(next) = self.next_moment()?
            && next <= end
        {
            self.now = next;
            for stream in self.streams.values_mut() {
                stream.woken = true;
            }
            self.hear_all()?;
        }
        self.now = end;
        self.hear_all()
    }

    /// Takes the responses that every stream has now.
    fn hear_all(&mut self) -> Result<(), String> {
        for stream in self.streams.values_mut().filter(|stream| stream.is_open()) {
            let mut count = 0;
            while let Some(message) = stream.poll(&mut self.db, self.now)? {
                count += 1;
                if count > ENDLESS {
                    return Err(format!("there is no end to  {}", message.line()));
                }
                stream.inbox.push_back(message);
            }
        }
        Ok(())
    }

    /// The next moment at which a stream is to be polled.
    fn next_moment(&self) -> Result<Option<Moment>, String> {
        let sessions = self.streams.values().filter_map(|stream| stream.session());
        let next = sessions.filter_map(|session| session.poll_timeout()).min();
        match next {
            Some(next) if next <= self.now => Err(
                "a stream that has nothing to say asks to be polled at once, for ever".to_owned(),
            ),
            next => Ok(next),
        }
    }
}
