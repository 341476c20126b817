//! The scenario runner notices what a scenario gets wrong, and says so at the
//! right line.

use testkit::scenario::run_text;

const HEAD: &str = "title: t\nrules: S1\nput cds a@v1\nstream delta envoy\n> cds\n";

/// What the runner says of these lines behind the usual beginning.
fn report(lines: &str) -> String {
    let (_, reports) = run_text("f", &format!("{HEAD}{lines}"));
    reports.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn fails_at(lines: &str, line: usize, text: &str) {
    let report = report(lines);
    assert!(
        report.starts_with(&format!("f:{line}: t [S1]\n")),
        "{report}"
    );
    assert!(report.contains(text), "{report}");
}

#[test]
fn what_is_as_expected_says_nothing() {
    assert_eq!(report("< cds +a@v1\n> cds ack\n! acked cds\n< nothing"), "");
}

#[test]
fn another_response_is_shown_beside_the_expected() {
    fails_at(
        "< cds +a@v2 -b",
        6,
        "missing   +a@v2 -b\n    too much  +a@v1",
    );
    fails_at(
        "< eds +a@v1",
        6,
        "expected  < eds +a@v1\n    got       < cds +a@v1",
    );
    fails_at("< cds +a@v1\n< eds +a@v1", 7, "got       < nothing");
}

#[test]
fn no_response_is_passed_over() {
    fails_at("< nothing", 6, "got       < cds +a@v1");
    fails_at("wait 0s", 6, "unexpected  < cds +a@v1");
    fails_at("wait 0s\nclose", 7, "unexpected  < cds +a@v1");
}

#[test]
fn no_event_is_passed_over() {
    let parked = "< cds +a@v1\n> cds nack\n< nothing";
    fails_at(parked, 8, "unexpected  ! parked cds a@v1");
    assert_eq!(report(&format!("{parked}\n! parked cds a@v1")), "");
    fails_at(
        &format!("{parked}\n! parked cds b@v1"),
        9,
        "got       ! parked cds a@v1",
    );
    fails_at("< cds +a@v1\n! acked cds", 7, "expected  ! acked cds");
}

#[test]
fn an_error_is_expected_where_it_happens() {
    fails_at("< cds +a@v1\n> ?\n< nothing", 8, "broke the protocol");
    fails_at("< cds +a@v1\n> ?", 7, "broke the protocol");
    fails_at(
        "< cds +a@v1\n> cds ack\nerror no-type",
        8,
        "the request was accepted",
    );
    assert_eq!(report("< cds +a@v1\n> ?\nerror no-type"), "");
}

#[test]
fn a_database_that_refuses_is_expected_to() {
    fails_at(
        "< cds +a@v1\ncannot put cds b@v1",
        7,
        "the database took it",
    );
    fails_at("< cds +a@v1\nput cds b@none", 7, "the database refuses it");
}

#[test]
fn the_exchange_so_far_is_shown() {
    let report = report("< cds +a@v1\n> cds ack\n< cds empty");
    assert!(report.contains("> cds\n"), "{report}");
    assert!(report.contains("< cds +a@v1  (nonce 1)\n"), "{report}");
    assert!(report.contains("> cds nonce 1\n"), "{report}");
}
