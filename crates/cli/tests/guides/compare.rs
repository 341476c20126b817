//! Compares what a guide prints with what a program printed.

/// Stands for any text within a line.
pub(crate) const ANYTHING: &str = "…";

/// Whether the lines of a block follow each other in an output. The width of
/// columns does not count, and each text that `varies` stands for any other.
pub(crate) fn shows(output: &str, block: &str, varies: &[&str]) -> bool {
    let mut block = block.to_owned();
    for text in varies {
        assert!(block.contains(text), "the block does not have {text:?}");
        block = block.replace(text, ANYTHING);
    }
    let expected: Vec<String> = block.trim_end().lines().map(squeeze).collect();
    let output: Vec<String> = output.lines().map(squeeze).collect();
    output.windows(expected.len()).any(|lines| {
        let mut pairs = lines.iter().zip(&expected);
        pairs.all(|(line, expected)| matches(line, expected))
    })
}

/// Whether each line of an excerpt is in the text, in this order, whatever the
/// indentation.
pub(crate) fn is_excerpt(text: &str, excerpt: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let mut wanted = excerpt
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    wanted.all(|wanted| lines.any(|line| line == wanted))
}

/// Leaves one space between words, and one age, such as `12s`, for all.
fn squeeze(line: &str) -> String {
    let words = line.split_whitespace();
    let words = words.map(|word| if is_age(word) { "0s" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a word is an age as `status` writes it.
fn is_age(word: &str) -> bool {
    let number = word.strip_suffix(['s', 'm', 'h', 'd']);
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

fn matches(line: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split(ANYTHING);
    let Some(mut rest) = pieces.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
        last = Some(piece);
    }
    match last {
        None => rest.is_empty(),
        Some(last) => last.is_empty() || line.ends_with(last),
    }
}

#[test]
fn a_block_is_found_in_an_output() {
    let output = "first\nNAME  VERSION\na     1234 x\nlast\n";
    assert!(shows(output, "NAME VERSION\na 1234 x\n", &[]));
    assert!(shows(output, "NAME VERSION\na 99 x\n", &["99"]));
    assert!(shows(output, "a … x\n", &[]));
    assert!(!shows(output, "a 99 x\n", &[]));
    assert!(!shows(output, "NAME VERSION\nlast\n", &[]));
    assert!(!shows(output, "NAME\n", &[]));
}

#[test]
fn an_excerpt_has_its_lines_in_order() {
    assert!(is_excerpt("a\n  b\nc\n", "a\nc\n"));
    assert!(!is_excerpt("a\n  b\nc\n", "c\na\n"));
}
