//! One type that is followed: its changes, and when all of it is answered.

use std::time::Duration;

use tokio::sync::mpsc;
use trunkline::Name;
use trunkline::client::{Raw, State, Subscription, WatchError, WatchMany};

/// How long a control plane that may not know the wildcard of a type can be
/// silent before that is said.
const DOUBT: Duration = Duration::from_secs(10);

/// What happens to a type.
pub(super) enum News {
    /// Names have other states.
    Changes(Vec<(Name, State<Raw>)>),
    /// All wildcards and collections have full answers. What they brought was
    /// told before.
    Answered,
    /// No control plane can be reached.
    Unreachable,
    /// A control plane that may not know the wildcard of the type is silent.
    Silent,
}

/// The watch of a type, and what it is subscribed to.
pub(super) struct TypeWatch {
    pub(super) watch: WatchMany<Raw>,
    /// Wildcards and collections.
    pub(super) scopes: Vec<Subscription<Raw>>,
    /// Names, which are subscribed to as long as they are followed.
    pub(super) _names: Vec<Subscription<Raw>>,
    pub(super) is_doubtful: bool,
}

/// Forwards the news of a type until the receiver is dropped.
pub(super) async fn forward_news(
    index: usize,
    type_watch: TypeWatch,
    sender: mpsc::Sender<(usize, News)>,
) {
    let mut watch = type_watch.watch;
    let mut answers = std::pin::pin!(wait_for_answers(&type_watch.scopes));
    let mut doubt = std::pin::pin!(tokio::time::sleep(DOUBT));
    let (mut is_answered, mut is_quiet) = (false, type_watch.is_doubtful);

    loop {
        let news = tokio::select! {
            changes = watch.changed() => {
                is_quiet = false;
                News::Changes(changes)
            }
            answer = &mut answers, if !is_answered => {
                is_answered = true;
                is_quiet = false;
                // The resources of the answer go before it.
                if sender.send((index, News::Changes(watch.take()))).await.is_err() {
                    return;
                }
                match answer {
                    Ok(()) => News::Answered,
                    Err(_) => News::Unreachable,
                }
            }
            () = &mut doubt, if is_quiet => {
                is_quiet = false;
                News::Silent
            }
        };

        if sender.send((index, news)).await.is_err() {
            return;
        }
    }
}

/// Waits until all wildcards and collections have full answers.
///
/// # Errors
/// No control plane can be reached, or one of them has another error.
async fn wait_for_answers(scopes: &[Subscription<Raw>]) -> Result<(), WatchError> {
    for scope in scopes {
        scope.answered().await?;
    }
    Ok(())
}
