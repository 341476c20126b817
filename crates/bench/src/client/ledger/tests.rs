//! The ledger of a client finds what is wrong.

use clap::Parser;

use super::*;
use crate::contents::{Recipe, Truth, Variants};
use crate::options::Options;

const CDS: Kind = Kind::Clusters;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: Options,
}

/// The ledgers of clients by these flags, over two resources.
fn ledgers(flags: &str) -> (Vec<Ledger>, Arc<Shared>) {
    let flags = format!("bench --resources 2 {flags}");
    let options = Cli::parse_from(flags.split_whitespace()).options;
    let recipe = Recipe {
        kinds: vec![CDS],
        prefix: "b".into(),
        variants: Variants::new(options.variants, options.categories).unwrap(),
        ..Recipe::default()
    };
    let shared = Arc::new(Shared::new(Truth::new(recipe, 2, 10)));
    let truth = &shared.truth;
    truth.places(CDS).for_each(|place| truth.note_loaded(place));
    let specs = Spec::all(&options, true);
    let ledger = |spec: &Spec| Ledger::new(spec, Arc::clone(&shared));
    (specs.iter().map(ledger).collect(), shared)
}

fn ledger() -> (Ledger, Arc<Shared>) {
    let (mut all, shared) = ledgers("--clients 1");
    (all.remove(0), shared)
}

/// Shows a client a resource, of its own variant.
fn show(ledger: &mut Ledger, shared: &Shared, index: usize, revision: u32) {
    show_place(ledger, shared, ledger.place(CDS, index), revision);
}

fn show_place(ledger: &mut Ledger, shared: &Shared, place: Place, revision: u32) {
    let recipe = &shared.truth.recipe;
    let body = recipe.body(place, revision);
    ledger.note_accepted(CDS, &recipe.name(place.index), &body);
}

#[test]
fn what_is_right_is_counted_as_such() {
    let (mut ledger, shared) = ledger();
    show(&mut ledger, &shared, 0, 1);
    assert_eq!((ledger.compare(), shared.configured_count()), ((0, 1), 0));
    show(&mut ledger, &shared, 1, 1);
    assert_eq!((ledger.compare(), shared.configured_count()), ((0, 0), 1));
    shared.truth.begin_change(ledger.place(CDS, 1));
    assert_eq!(ledger.compare(), (1, 0));
    show(&mut ledger, &shared, 1, 2);
    show(&mut ledger, &shared, 1, 2);
    assert_eq!(ledger.compare(), (0, 0));
    let count = shared.counters.read();
    assert_eq!((count.delivered, count.repeated, count.wrong), (1, 1, 0));
}

#[test]
fn what_is_wrong_is_found() {
    let (mut ledger, shared) = ledger();
    let recipe = shared.truth.recipe.clone();
    let first = ledger.place(CDS, 0);
    shared.truth.begin_change(first);
    show(&mut ledger, &shared, 0, 2);
    // Older, newer than there is, of no revision, of another resource.
    show(&mut ledger, &shared, 0, 1);
    show(&mut ledger, &shared, 0, 9);
    ledger.note_accepted(CDS, &recipe.name(0), b"\x0a\x01a");
    show(&mut ledger, &shared, 7, 1);
    let other = Recipe {
        size: 900,
        ..recipe.clone()
    };
    shared.truth.begin_change(first);
    ledger.note_accepted(CDS, &recipe.name(0), &other.body(first, 3));
    ledger.note_removed(CDS, &recipe.name(0));
    ledger.note_removed(CDS, "of somebody else");
    let count = shared.counters.read();
    assert_eq!((count.backwards, count.wrong, count.lost), (1, 4, 1));
    assert_eq!(ledger.compare(), (0, 2));
}

#[test]
fn a_removal_is_seen_and_what_comes_back_is_new() {
    let (mut ledger, shared) = ledger();
    let name = shared.truth.recipe.name(0);
    let place = ledger.place(CDS, 0);
    show(&mut ledger, &shared, 0, 1);
    show(&mut ledger, &shared, 1, 1);
    shared.truth.begin_removal(place);
    assert_eq!(
        (ledger.compare(), shared.truth.waiting_clients(2)),
        ((1, 0), 1)
    );
    ledger.note_removed(CDS, &name);
    ledger.note_removed(CDS, &name);
    assert_eq!(
        (ledger.compare(), shared.truth.waiting_clients(2)),
        ((0, 0), 0)
    );
    shared.truth.begin_change(place);
    assert_eq!(
        (ledger.compare(), shared.truth.waiting_clients(3)),
        ((0, 1), 1)
    );
    show(&mut ledger, &shared, 0, 3);
    assert_eq!(
        (ledger.compare(), shared.truth.waiting_clients(3)),
        ((0, 0), 0)
    );
    let count = shared.counters.read();
    assert_eq!((count.delivered, count.removed, count.lost), (2, 1, 0));
    // A removal that was overtaken has arrived as well.
    shared.truth.begin_removal(place);
    shared.truth.begin_change(place);
    show(&mut ledger, &shared, 0, 5);
    assert_eq!(
        (
            shared.truth.waiting_clients(4),
            shared.truth.waiting_clients(5)
        ),
        (0, 0)
    );
    let count = shared.counters.read();
    assert_eq!((count.delivered, count.overtaken, count.removed), (3, 1, 1));
    // A resource that the tool did not remove may return as it was.
    ledger.note_accepted(CDS, &name, b"");
    assert_eq!((ledger.compare(), shared.counters.read().lost), ((0, 1), 1));
    show(&mut ledger, &shared, 0, 5);
    assert_eq!(ledger.compare(), (0, 0));
}

#[test]
fn who_rejects_a_change_keeps_what_it_has() {
    let (mut all, shared) = ledgers("--clients 1 --nackers 1 --nack-part 1");
    let name = shared.truth.recipe.name(0);
    let place = all[1].place(CDS, 0);
    let body = |revision: u32| shared.truth.recipe.body(place, revision);
    // A resource that it does not hold is no change.
    assert_eq!(all[1].revision_of_change(CDS, &name, &body(1)), None);
    for ledger in &mut all {
        show(ledger, &shared, 0, 1);
        show(ledger, &shared, 1, 1);
    }
    assert_eq!(all[1].revision_of_change(CDS, &name, &body(1)), None);
    shared.truth.begin_change(place);
    assert_eq!(all[1].revision_of_change(CDS, &name, &body(2)), Some(2));
    assert_eq!(
        (all[1].compare(), shared.truth.waiting_clients(2)),
        ((1, 0), 2)
    );
    all[1].note_rejected(CDS, &name, &body(2));
    // It is still a change when it is sent again.
    assert_eq!(all[1].revision_of_change(CDS, &name, &body(2)), Some(2));
    all[1].note_rejected(CDS, &name, &body(2));
    assert_eq!(
        (all[1].compare(), shared.truth.waiting_clients(2)),
        ((0, 0), 1)
    );
    show(&mut all[0], &shared, 0, 2);
    shared.truth.begin_change(place);
    assert_eq!(all[1].compare(), (1, 0));
    show(&mut all[1], &shared, 0, 3);
    assert_eq!(
        (all[1].compare(), shared.truth.waiting_clients(3)),
        ((0, 0), 1)
    );
    let count = shared.counters.read();
    assert_eq!((count.delivered, count.rejected, count.wrong), (2, 1, 0));
}

#[test]
fn a_variant_for_others_is_not_taken() {
    let (mut all, shared) = ledgers("--clients 3 --categories 3 --variants 2");
    let places: Vec<usize> = all.iter().map(|l| l.place(CDS, 0).variant).collect();
    assert_eq!(places, [0, 1, 0]);
    let others = all[1].place(CDS, 0);
    show_place(&mut all[0], &shared, others, 1);
    assert_eq!(shared.counters.read().foreign, 1);
    assert_eq!(all[0].compare(), (0, 2));
    // A change of another variant does not concern this one.
    show(&mut all[0], &shared, 0, 1);
    show(&mut all[1], &shared, 0, 1);
    shared.truth.begin_change(others);
    assert_eq!(all[0].compare(), (0, 1));
    assert_eq!(all[1].compare(), (1, 1));
    assert_eq!(shared.truth.waiting_clients(2), 1);
}

#[test]
fn a_response_that_brings_nothing_is_needless() {
    let (mut ledger, shared) = ledger();
    let needless = || shared.counters.read().needless;
    // A first response may be empty.
    ledger.finish_response(CDS);
    assert_eq!(needless(), 0);
    show(&mut ledger, &shared, 0, 1);
    ledger.finish_response(CDS);
    assert_eq!(needless(), 0);
    show(&mut ledger, &shared, 0, 1);
    ledger.finish_response(CDS);
    assert_eq!(needless(), 1);
}
