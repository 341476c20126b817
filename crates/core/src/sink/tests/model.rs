//! Compares the sink with a naive server that reads its requests.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::interest::{DeltaWildcard, Interest, Wildcard};

const WANTS: [&str; 5] = ["*", "a", "b", "xdstp://x/T/d/*", "xdstp://x/T/d/1"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Subscribe(usize),
    Unsubscribe(usize),
    /// The transport takes one request.
    Poll,
    /// The server pushes all that it believes to be subscribed to, and the
    /// owner judges it.
    Push {
        reject: bool,
    },
    Reconnect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..WANTS.len()).prop_map(Step::Subscribe),
        4 => (0..WANTS.len()).prop_map(Step::Unsubscribe),
        4 => Just(Step::Poll),
        2 => any::<bool>().prop_map(|reject| Step::Push { reject }),
        1 => Just(Step::Reconnect),
    ];
    proptest::collection::vec(step, 0..40)
}

/// A server that only reads requests.
#[derive(Default)]
struct Listener {
    wildcard: Wildcard,
    names: BTreeSet<String>,
    unanswered: usize,
}

impl Listener {
    fn hear(&mut self, request: &Request, legacy: bool) {
        let all = |locators: &[Locator]| locators.iter().map(|l| l.name.clone()).collect();
        match request {
            Request::Sotw(request) => {
                let mut names: BTreeSet<String> = all(&request.names);
                let star = names.remove("*");
                self.wildcard = self.wildcard.after_sotw(star, !names.is_empty(), legacy);
                self.names = names;
                self.unanswered = 0;
            }
            Request::Delta(request) if request.nonce.is_some() => self.unanswered -= 1,
            Request::Delta(request) => {
                let mut names: BTreeSet<String> = all(&request.subscribe);
                let gone: BTreeSet<String> = all(&request.unsubscribe);
                let says = DeltaWildcard {
                    subscribes_star: names.remove("*"),
                    subscribes_names: !names.is_empty(),
                    unsubscribes_star: gone.contains("*"),
                };
                self.wildcard = self.wildcard.after_delta(says, legacy);
                self.names.extend(names);
                self.names.retain(|name| !gone.contains(name));
            }
        }
    }

    fn believes(&self) -> Interest {
        let names = self.names.iter().map(|name| selector(name));
        let star = self.wildcard.is_on().then_some(Selector::Wildcard);
        names.chain(star).map(Subscription::from).collect()
    }
}

fn run(mode: Mode, short: &str, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut bench = Bench::subscribed(mode, &[]);
    let type_url = type_of(short);
    let legacy = Kind::of(&type_url).legacy_wildcard;
    let mut listener = Listener::default();
    let mut wanted = Interest::default();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Subscribe(n) => {
                bench.sub_again(&format!("{short} {}", WANTS[n]));
                wanted.insert(selector(WANTS[n]).into());
            }
            Step::Unsubscribe(n) => {
                bench.unsub(&format!("{short} {}", WANTS[n]));
                wanted.remove(&selector(WANTS[n]).into());
            }
            Step::Poll => {
                let request = bench.sink.poll_request(bench.now);
                request.iter().for_each(|r| listener.hear(r, legacy));
            }
            Step::Push { reject } => {
                if listener.wildcard == Wildcard::Never || bench.sink.is_busy(&type_url) {
                    continue;
                }
                let text = number.to_string();
                let names = ["a", "b", "xdstp://x/T/d/1"].map(|n| format!("{n}@{number}"));
                let names = names.each_ref().map(String::as_str);
                let rejected: &[_] = if reject { &[("a", "bad")] } else { &[] };
                match mode {
                    Mode::Sotw => bench.judge(sotw(short, &text, &text, &names), rejected),
                    Mode::Delta => bench.judge(delta(short, &text, &names, &[]), rejected),
                };
                listener.unanswered += 1;
            }
            Step::Reconnect => {
                bench.sink.handle_connected();
                listener = Listener::default();
            }
        }
        bench.check();
    }
    while let Some(request) = bench.sink.poll_request(bench.now) {
        listener.hear(&request, legacy);
    }
    prop_assert_eq!(listener.believes(), wanted.clone());
    prop_assert_eq!(listener.unanswered, 0);
    for type_state in &bench.sink.types {
        prop_assert_eq!(type_state.interest.wildcard(), listener.wildcard);
    }
    // Every cached name is subscribed to, and every name that is subscribed to
    // has an entry.
    for status in bench.sink.states() {
        prop_assert!(wanted.contains(status.name), "{:?}", status);
    }
    let known: BTreeSet<_> = bench.sink.states().map(|s| s.name.clone()).collect();
    prop_assert!(wanted.names().all(|(name, _)| known.contains(name)));
    Ok(())
}

proptest! {
    #[test]
    fn the_source_comes_to_believe_what_is_wanted(
        steps in steps(),
        delta in any::<bool>(),
        legacy in any::<bool>(),
    ) {
        let mode = if delta { Mode::Delta } else { Mode::Sotw };
        run(mode, if legacy { "cds" } else { "eds" }, steps)?;
    }
}
