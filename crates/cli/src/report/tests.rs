//! Whole messages, as they are written.

use super::*;

fn message(text: &str, at: (&str, usize, usize)) -> Message {
    Message {
        text: text.to_owned(),
        at: Some(spot(at)),
        related: None,
    }
}

fn spot((file, line, column): (&str, usize, usize)) -> Spot {
    Spot {
        file: file.to_owned(),
        line,
        column,
    }
}

fn report() -> Report {
    let report = Report::with_palette(Palette::NONE);
    report.add_text(
        "a.yaml",
        b"resources:\n- type: EDDS\n  password: swordfish\n",
    );
    report.add_text("b.yaml", b"resources:\n\n\n\n\n\n\n\n\n- name: b\n");
    report
}

#[test]
fn a_finding_has_its_line_and_that_of_its_second_place() {
    let mut message = message("a.yaml:2:9: type: wrong", ("a.yaml", 2, 9));
    assert_eq!(
        report().show(Severity::Error, &message),
        "error: a.yaml:2:9: type: wrong\n  |\n2 | - type: EDDS\n  |         ^^^^\n"
    );

    message.related = Some((spot(("b.yaml", 10, 3)), "the other one".to_owned()));
    assert_eq!(
        report().show(Severity::Warning, &message),
        "warning: a.yaml:2:9: type: wrong\n  |\n2 | - type: EDDS\n  |         ^^^^\n\
         note: b.yaml:10:3: the other one\n   |\n10 | - name: b\n   |   ^^^^\n"
    );
}

#[test]
fn a_line_that_is_secret_or_not_known_is_left_out() {
    for at in [("a.yaml", 3, 3), ("a.yaml", 9, 1), ("no/such/file", 1, 1)] {
        let mut message = message("x: wrong", at);
        message.related = message
            .at
            .clone()
            .map(|at| (at, "the other one".to_owned()));
        let shown = report().show(Severity::Error, &message);
        assert_eq!(shown, "error: x: wrong\n", "{at:?}");
    }
}

#[test]
fn colours_are_those_of_the_severity() {
    let report = Report {
        palette: Palette::ALL,
        ..report()
    };
    let message = message("a.yaml:2:9: wrong\x1b[2J", ("a.yaml", 2, 9));
    let shown = report.show(Severity::Warning, &message);
    assert_eq!(
        shown,
        "\x1b[1;33mwarning\x1b[0m: a.yaml:2:9: wrong [2J\n\x1b[1;34m  |\x1b[0m\n\
         \x1b[1;34m2 |\x1b[0m - type: EDDS\n\x1b[1;34m  |\x1b[0m         \x1b[1;33m^^^^\x1b[0m\n"
    );
}
