//! Lines into words. Text in quotes, parentheses, brackets or braces belongs to
//! the word it stands in.

use std::time::Duration;

/// The words of a line, without its comment.
///
/// # Errors
/// If something that was opened is not closed.
pub(super) fn words(line: &str) -> Result<Vec<String>, String> {
    split(line, char::is_whitespace)
}

/// The parts between commas.
///
/// # Errors
/// If something that was opened is not closed.
pub(super) fn parts(text: &str) -> Result<Vec<String>, String> {
    split(text, |c| c == ',')
}

fn split(line: &str, ends: impl Fn(char) -> bool) -> Result<Vec<String>, String> {
    let (mut found, mut word) = (Vec::new(), String::new());
    let (mut open, mut quoted) = (Vec::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '#' if word.is_empty() => break,
            '(' | '[' | '{' => open.push(c),
            ')' | ']' | '}' => {
                let expected = open.pop().map(closing);
                if expected != Some(c) {
                    return Err(format!("`{c}` closes nothing"));
                }
            }
            _ => {}
        }
        if !quoted && open.is_empty() && ends(c) {
            found.push(std::mem::take(&mut word));
        } else {
            word.push(c);
        }
    }
    if quoted || !open.is_empty() {
        return Err("something that is opened is not closed".to_owned());
    }
    found.push(word);
    let trimmed = found.iter().map(|word| word.trim().to_owned());
    Ok(trimmed.filter(|word| !word.is_empty()).collect())
}

fn closing(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        _ => '}',
    }
}

/// A word without its quotes; `None` if it has none.
pub(super) fn unquoted(word: &str) -> Option<&str> {
    word.strip_prefix('"')?.strip_suffix('"')
}

/// What stands between an opening and a closing sign at the end of a word, and
/// the word before it.
pub(super) fn suffix(word: &str, open: char) -> (&str, Option<&str>) {
    let inner = word
        .split_once(open)
        .and_then(|(head, rest)| Some((head, rest.strip_suffix(closing(open))?)));
    match inner {
        Some((head, inner)) => (head, Some(inner)),
        None => (word, None),
    }
}

/// `5s`, `250ms`.
///
/// # Errors
/// If it is not a duration.
pub(super) fn duration(word: &str) -> Result<Duration, String> {
    let fault = || format!("`{word}` is not a duration such as 5s or 250ms");
    let (number, unit) = match word.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (word.strip_suffix('s').ok_or_else(fault)?, 1000),
    };
    let number: u64 = number.parse().map_err(|_| fault())?;
    Ok(Duration::from_millis(number * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_enclosed_belongs_to_its_word() {
        let line = r#"> cds [a b] nack "it is # bad" c@v(ttl 5s, for a=1)  # comment"#;
        assert_eq!(
            words(line).unwrap(),
            [
                ">",
                "cds",
                "[a b]",
                "nack",
                "\"it is # bad\"",
                "c@v(ttl 5s, for a=1)"
            ]
        );
        assert_eq!(parts("ttl 5s, aka a b").unwrap(), ["ttl 5s", "aka a b"]);
        assert!(words("a(b").is_err());
        assert!(words("a)b").is_err());
        assert!(words("\"a").is_err());
        assert_eq!(words("# only").unwrap(), [""; 0]);
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(duration("5").is_err());
    }

    #[test]
    fn suffixes_are_taken_apart() {
        assert_eq!(suffix("a{b=1}", '{'), ("a", Some("b=1")));
        assert_eq!(suffix("a", '{'), ("a", None));
    }
}
