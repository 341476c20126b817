//! Lanes: two runtimes, so that the work for addresses that ask for much waits
//! for the work of all others, and not the reverse.
//!
//! ```text
//!                              front   accepts; wakes streams after changes
//!   an address within its allowance ─▶ its connections
//!                                │   ▲
//!       asks for more than that  ▼   │ asks for little for a while
//!   an address beyond it ───▶ back    its connections
//! ```
//!
//! A runtime polls its tasks in the order in which they were woken. Where
//! thousands of connections are opened at once, or thousands of requests made,
//! a push to somebody else stands behind all of them. In another runtime, whose
//! threads the system schedules beside those of the first, it does not.
//!
//! A task moves when it is polled next. The task is all that moves: its socket
//! and its timers stay with the runtime that they were registered with, whose
//! threads wake it wherever it is.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

use super::effort::Effort;

/// The runtimes of a server. Without them, all its tasks are in the runtime
/// that it is called in.
///
/// ```
/// use trunkline::listen::Lanes;
/// use trunkline::Server;
///
/// let front = tokio::runtime::Runtime::new()?;
/// let back = tokio::runtime::Runtime::new()?;
/// let lanes = Lanes { front: front.handle().clone(), back: back.handle().clone() };
/// let server = Server::builder().options(|options| options.lanes = Some(lanes)).build();
/// # drop(server);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lanes {
    /// Where connections are accepted, and streams are served and woken by
    /// changes.
    pub front: Handle,
    /// Where the connections of an address are served that asks for more than
    /// its share. Its threads may have a lower priority.
    pub back: Handle,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Front,
    Back,
}

impl Lanes {
    /// Returns the runtime of a lane.
    pub(super) fn handle(&self, lane: Lane) -> &Handle {
        match lane {
            Lane::Front => &self.front,
            Lane::Back => &self.back,
        }
    }
}

/// Spawns the tasks of a connection: in the lane of its address, if there are
/// lanes.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneExecutor {
    pub(super) lanes: Option<Lanes>,
    pub(super) effort: Arc<Effort>,
}

impl LaneExecutor {
    /// Spawns a future in the lane of its address. Without lanes, it runs in
    /// the present runtime.
    pub(crate) fn spawn<F>(&self, future: F)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let Some(lanes) = &self.lanes else {
            tokio::spawn(future);
            return;
        };
        let lane = self.effort.lane();
        let moving = Moving {
            future: Some(Box::pin(future)),
            lanes: lanes.clone(),
            effort: Arc::clone(&self.effort),
            lane,
        };
        lanes.handle(lane).spawn(moving);
    }
}

impl<F> hyper::rt::Executor<F> for LaneExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.spawn(future);
    }
}

/// A task that follows the lane of its address.
struct Moving<F> {
    /// Taken when it moves.
    future: Option<Pin<Box<F>>>,
    lanes: Lanes,
    effort: Arc<Effort>,
    /// The lane that it is in.
    lane: Lane,
}

impl<F> Future for Moving<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let lane = this.effort.lane();
        if lane != this.lane {
            let moving = Self {
                future: this.future.take(),
                lanes: this.lanes.clone(),
                effort: Arc::clone(&this.effort),
                lane,
            };
            // The new lane polls the future at once, which registers its wakers
            // there.
            this.lanes.handle(lane).spawn(moving);
            return Poll::Ready(());
        }
        match &mut this.future {
            Some(future) => future.as_mut().poll(cx).map(drop),
            None => Poll::Ready(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::effort::BURST;
    use super::*;
    use tokio::runtime::Runtime;

    #[test]
    fn a_task_follows_the_lane_of_its_address() {
        let runtimes = [(); 2].map(|()| Runtime::new().unwrap());
        let [front, back] = runtimes.each_ref().map(|runtime| runtime.handle().clone());
        let ids = [front.id(), back.id()];
        let effort = Arc::<Effort>::default();
        let executor = LaneExecutor {
            lanes: Some(Lanes { front, back }),
            effort: Arc::clone(&effort),
        };
        let (polls, mut polled) = tokio::sync::mpsc::unbounded_channel();
        let (next, mut nexts) = tokio::sync::mpsc::unbounded_channel::<()>();
        executor.spawn(async move {
            while nexts.recv().await.is_some() {
                // What was sent may have arrived before the poll ended in which
                // the last answer was given.
                tokio::task::yield_now().await;
                let _ = polls.send(Handle::current().id());
            }
        });
        let mut poll = || {
            next.send(()).unwrap();
            polled.blocking_recv().unwrap()
        };
        assert_eq!(poll(), ids[0]);
        effort.charge(2 * BURST);
        assert_eq!(poll(), ids[1]);
        effort.forgive();
        assert_eq!(poll(), ids[0]);
    }
}
