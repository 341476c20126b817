//! The driver of a client: connects and closes as the machine says, and tells
//! it of time.

use std::sync::Weak;

use tokio::time::sleep_until;
use trunkline_core::client::Action;

use super::handle::Running;

/// Runs the timers and actions of the client's machine until the client is
/// dropped.
pub(super) async fn drive(client: Weak<Running>) {
    loop {
        let Some(running) = client.upgrade() else {
            return;
        };
        let shared = running.shared.clone();
        let next_timeout = shared.change_without_waking(|state, now| {
            state.machine.handle_timeout(now);
            state.machine.poll_timeout()
        });
        while let Some(action) = shared.read(|state, now| state.machine.poll_action(now)) {
            match action {
                Action::Connect(id) => running.connect(id),
                Action::Close(id) => running.close(id),
            }
        }
        drop(running);

        match next_timeout {
            None => shared.driver.notified().await,
            Some(moment) => {
                let deadline = shared.instant(moment);
                tokio::select! {
                    () = shared.driver.notified() => {}
                    () = sleep_until(deadline) => shared.wake_streams(),
                }
            }
        }
    }
}
