//! Names that a response leaves out: C29-C31.

use super::*;

#[test]
fn c29_what_a_whole_set_leaves_out_is_deleted() {
    for short in ["cds", "lds"] {
        let mut bench = Bench::subscribed(Mode::Sotw, &[&format!("{short} *")]);
        bench.accept(sotw(short, "1", "n1", &["a@1", "b@1"]));
        bench.requests();
        let effects = bench.accept(sotw(short, "2", "n2", &["b@1"]));
        let gone = "a ! Deleted: the source says that it does not exist";
        assert_eq!(effects, [format!("-{short} a"), format!("{short} {gone}")]);
        assert_eq!(bench.states(), [format!("{short} b Acked 1")]);
        bench.requests();
        bench.accept(sotw(short, "3", "n3", &[]));
        assert_eq!(bench.states(), [""; 0]);
    }
}

#[test]
fn c29_a_name_that_was_asked_for_is_remembered_as_deleted() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["lds a"]);
    bench.accept(sotw("lds", "1", "n1", &["a@1"]));
    bench.requests();
    bench.accept(sotw("lds", "2", "n2", &[]));
    assert_eq!(bench.states(), ["lds a DoesNotExist Deleted"]);
    bench.requests();
    let effects = bench.accept(sotw("lds", "3", "n3", &["a@1"]));
    assert_eq!(effects, ["+lds a@1"]);
}

#[test]
fn c29_what_a_partial_set_leaves_out_means_nothing() {
    for short in ["eds", "rds", "other"] {
        let wants = [format!("{short} a"), format!("{short} b")];
        let mut bench = Bench::subscribed(Mode::Sotw, &[&wants[0], &wants[1]]);
        bench.accept(sotw(short, "1", "n1", &["a@1", "b@1"]));
        bench.requests();
        assert_eq!(bench.accept(sotw(short, "2", "n2", &[])), [""; 0]);
        assert_eq!(bench.states().len(), 2);
    }
}

#[test]
fn c29_what_a_delta_response_leaves_out_means_nothing() {
    let mut bench = Bench::subscribed(Mode::Delta, &["cds *"]);
    bench.accept(delta("cds", "n1", &["a@1", "b@1"], &[]));
    bench.requests();
    assert_eq!(bench.accept(delta("cds", "n2", &[], &[])), [""; 0]);
    bench.requests();
    let effects = bench.accept(delta("cds", "n3", &["c@1"], &["a"]));
    let gone = "cds a ! Deleted: the source says that it does not exist";
    assert_eq!(effects, ["+cds c@1", "-cds a", gone]);
    assert_eq!(bench.states(), ["cds b Acked 1", "cds c Acked 1"]);
}

#[test]
fn c30_absence_proves_nothing_of_what_was_never_there() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds a", "cds b"]);
    let effects = bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    assert_eq!(effects, ["+cds a@1"]);
    assert_eq!(bench.states(), ["cds a Acked 1", "cds b Requested"]);
    assert_eq!(bench.due(), Some(15_000));
}

#[test]
fn c30_a_rejected_member_that_is_left_out_is_forgotten() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    bench.judge(sotw("cds", "1", "n1", &["a@1"]), &[("a", "bad")]);
    bench.requests();
    assert_eq!(bench.accept(sotw("cds", "2", "n2", &[])), [""; 0]);
    assert_eq!(bench.states(), [""; 0]);
}

#[test]
fn c31_what_is_invalid_is_not_absent() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1", "b@1"]));
    bench.requests();
    let (_, effects) = bench.judge(sotw("cds", "2", "n2", &["a@2"]), &[("a", "bad")]);
    assert_eq!(
        effects,
        [
            "-cds b",
            "cds a ~ Rejected: bad",
            "cds b ! Deleted: the source says that it does not exist"
        ]
    );
    assert_eq!(bench.states(), ["cds a Nacked 1 Rejected"]);
}

#[test]
fn c31_what_cannot_be_named_may_be_any_of_them() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1", "b@1"]));
    bench.requests();
    let (_, effects) = bench.judge(sotw("cds", "2", "n2", &["a@1"]), &[("", "unreadable")]);
    assert_eq!(effects, [""; 0]);
    assert_eq!(bench.states(), ["cds a Acked 1", "cds b Acked 1"]);
}

#[test]
fn c31_what_has_an_error_is_not_absent() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    bench.requests();
    let mut response = sotw("cds", "2", "n2", &[]);
    response.errors = vec![said("a", ErrorCode::Unavailable, "busy")];
    assert_eq!(
        bench.accept(response),
        ["!cds a Unavailable", "cds a ~ Source(Unavailable): busy"]
    );
}

/// A name is subscribed to again before its unsubscription was sent: its error
/// is reported at once, since a repetition by the server would be no change.
#[test]
fn c28_that_a_name_does_not_exist_is_known_to_who_asks_again() {
    let mut bench = Bench::subscribed(Mode::Delta, &["lds a"]);
    bench.unsub("lds a");
    assert_eq!(bench.accept(delta("lds", "n1", &[], &["a"])), ["-lds a"]);
    let gone = "lds a ! Deleted: the source says that it does not exist";
    assert_eq!(bench.sub_again("lds a"), [gone]);
    assert_eq!(bench.sub_again("lds a"), [""; 0]);
}
