//! A client's words without the secrets that it was sent.
//!
//! A NACK quotes what the client did not like. Its text goes to logs, events
//! and status, so each run of it that is a part of a secret is taken out: as it
//! is, with its line breaks escaped, in base64 or in hexadecimal.
//!
//! The text is short and the secrets may be many, so a table is made of the
//! text, and the secrets are read past it once.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;

use super::REDACTED;

/// The most bytes of secrets that a text is compared with: it takes some
/// milliseconds. Beyond that nobody can say what the text quotes.
pub const MAX_SCRUBBED: usize = 128 << 10;

/// The shortest part of a secret that is taken out. Shorter ones are in many
/// words.
const RUN: usize = 8;

/// The shortest secret that is looked for as a whole.
const SHORTEST: usize = 4;

/// Redacts every part of a secret in a text that is eight bytes or longer, and
/// whole secrets of four bytes or more. Returns `None` if the secrets have more
/// than [`MAX_SCRUBBED`] bytes.
///
/// ```
/// use trunkline_proto::redact::scrub;
///
/// let secrets = ["correct horse".into()];
/// let said = scrub("bad value \"correct ho", &secrets);
/// assert_eq!(said.as_deref(), Some("bad value \"[redacted]"));
/// ```
#[must_use]
pub fn scrub(text: &str, secrets: &[Bytes]) -> Option<String> {
    let length: usize = secrets.iter().map(Bytes::len).sum();
    if length > MAX_SCRUBBED {
        return None;
    }

    let mut marked_text = MarkedText::new(text);

    for secret in secrets {
        if secret.len() < RUN {
            marked_text.mark_whole(secret);
            continue;
        }
        marked_text.mark_runs(&without_boundaries(secret));
        marked_text.mark_runs(&escape(secret));
        for offset in 0..3 {
            marked_text.mark_runs(STANDARD_NO_PAD.encode(&secret[offset..]).as_bytes());
            marked_text.mark_runs(URL_SAFE_NO_PAD.encode(&secret[offset..]).as_bytes());
        }
        marked_text.mark_runs(hexadecimal(secret, b"0123456789abcdef").as_slice());
        marked_text.mark_runs(hexadecimal(secret, b"0123456789ABCDEF").as_slice());
    }
    Some(marked_text.redact())
}

/// The bytes of a text that belong to a secret.
struct MarkedText<'a> {
    text: &'a str,
    /// All runs of the text with their places, sorted.
    runs: Vec<(u64, usize)>,
    /// A bit for each hash of a run: most runs of a secret are not among them.
    bits: Vec<u64>,
    is_marked: Vec<bool>,
}

impl<'a> MarkedText<'a> {
    /// Indexes the runs of a text. Nothing is marked yet.
    fn new(text: &'a str) -> Self {
        let mut runs: Vec<_> = runs_of(text.as_bytes()).zip(0..).collect();
        runs.sort_unstable();

        let words = (runs.len() / 4).next_power_of_two().max(64);
        let mut bits = vec![0; words];
        for (run, _) in &runs {
            let (word, bit) = place(*run, words);
            bits[word] |= bit;
        }
        Self {
            text,
            runs,
            bits,
            is_marked: vec![false; text.len()],
        }
    }

    /// Marks every run of the text that the secret has too.
    fn mark_runs(&mut self, secret: &[u8]) {
        for run in runs_of(secret) {
            let (word, bit) = place(run, self.bits.len());
            if self.bits[word] & bit == 0 {
                continue;
            }
            let first = self.runs.partition_point(|(text_run, _)| *text_run < run);
            let later_runs = self.runs[first..].iter();
            for (_, start) in later_runs.take_while(|(text_run, _)| *text_run == run) {
                self.is_marked[*start..*start + RUN].fill(true);
            }
        }
    }

    /// Marks a short secret wherever the text has the whole of it. Ignores a
    /// secret below [`SHORTEST`] bytes, which ordinary texts contain by chance.
    fn mark_whole(&mut self, secret: &[u8]) {
        if secret.len() < SHORTEST {
            return;
        }
        let windows = self.text.as_bytes().windows(secret.len()).enumerate();
        for (position, _) in windows.filter(|(_, window)| window == &secret) {
            self.is_marked[position..position + secret.len()].fill(true);
        }
    }

    /// Returns the text with [`REDACTED`] in place of each marked part. A
    /// character with a marked byte is redacted as a whole.
    fn redact(&self) -> String {
        let mut redacted = String::with_capacity(self.text.len());
        let mut was_marked = false;
        for (position, character) in self.text.char_indices() {
            let is_marked =
                self.is_marked[position..position + character.len_utf8()].contains(&true);
            match (is_marked, was_marked) {
                (true, false) => redacted.push_str(REDACTED),
                (true, true) => {}
                (false, _) => redacted.push(character),
            }
            was_marked = is_marked;
        }
        redacted
    }
}

/// Returns all runs of some bytes in their order, each as a number.
fn runs_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let mut run = 0;
    let numbers = bytes.iter().map(move |byte| {
        run = run << 8 | u64::from(*byte);
        run
    });
    // The first numbers have too few bytes for a run.
    numbers.skip(RUN - 1)
}

/// Returns the word and the bit of a run in a table of so many words, a power
/// of two.
fn place(run: u64, words: usize) -> (usize, u64) {
    let hash = run.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let word = usize::try_from(hash >> 6).unwrap_or_default() & (words - 1);
    (word, 1 << (hash & 63))
}

/// Returns a secret without the first and last lines of PEM, which are no
/// secret.
fn without_boundaries(secret: &[u8]) -> Vec<u8> {
    let lines = secret.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.starts_with(b"-----"));
    lines.flatten().copied().collect()
}

/// Returns a secret in the form that it has between quotes, with escapes.
fn escape(secret: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(secret.len());
    for byte in without_boundaries(secret) {
        match byte {
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            b'\t' => escaped.extend(b"\\t"),
            b'"' | b'\\' => escaped.extend([b'\\', byte]),
            plain => escaped.push(plain),
        }
    }
    escaped
}

/// Returns a secret in hexadecimal, with these digits.
fn hexadecimal(secret: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let digit = |half: u8| digits[usize::from(half & 15)];
    let two_digits = |byte: &u8| [digit(byte >> 4), digit(*byte)];
    secret.iter().flat_map(two_digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "the magic words are squeamish ossifrage";

    fn scrubbed(text: &str) -> String {
        scrub(text, &[SECRET.into()]).unwrap()
    }

    #[test]
    fn a_part_of_a_secret_is_taken_out() {
        assert_eq!(scrubbed("got \"squeamish os\""), "got \"[redacted]\"");
        assert_eq!(
            scrubbed(&format!("{SECRET}, {SECRET}")),
            "[redacted], [redacted]"
        );
        assert_eq!(scrubbed("squeamish"), "[redacted]");
        assert_eq!(scrubbed("squeam"), "squeam");
        assert_eq!(scrubbed("nothing of it é"), "nothing of it é");
    }

    #[test]
    fn an_encoded_secret_is_taken_out() {
        for encoded in [
            STANDARD_NO_PAD.encode(SECRET),
            // As a part of something longer.
            STANDARD_NO_PAD.encode(format!("x{SECRET}")),
            URL_SAFE_NO_PAD.encode(format!("xy{SECRET}")),
            String::from_utf8(hexadecimal(SECRET.as_bytes(), b"0123456789abcdef")).unwrap(),
        ] {
            let left = scrubbed(&format!("bad: {encoded}."));
            assert!(left.contains(REDACTED) && left.len() < 32, "{left}");
        }
    }

    #[test]
    fn a_key_goes_and_the_words_around_it_stay() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIIBVAIBADANBgkqhkiG\n9w0BAQEFAASC\n\
                   -----END PRIVATE KEY-----\n";
        let text = format!("Failed to load PRIVATE KEY from {:?}", key);
        let left = scrub(&text, &[key.into()]).unwrap();
        assert!(!left.contains("MIIB") && !left.contains("9w0B"), "{left}");
        assert!(
            left.starts_with("Failed to load PRIVATE KEY from"),
            "{left}"
        );
    }

    #[test]
    fn short_secrets_are_looked_for_as_a_whole() {
        let secrets = ["abcd".into(), "xyz".into()];
        let left = scrub("abcd abc xyz", &secrets).unwrap();
        assert_eq!(left, "[redacted] abc xyz");
    }

    #[test]
    fn beyond_the_bound_nobody_can_say() {
        let many = vec![Bytes::from(vec![b'x'; MAX_SCRUBBED / 2]); 3];
        assert_eq!(scrub("text", &many), None);
    }

    /// Texts of two letters, by a generator that a seed starts.
    fn letters(seed: &mut u64, length: usize) -> String {
        let letter = |_| {
            *seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ['x', 'y'][(*seed >> 40) as usize % 2]
        };
        (0..length).map(letter).collect()
    }

    #[test]
    fn no_run_of_a_secret_is_left_in_any_text() {
        let mut seed = 1;
        for length in 0..400 {
            let secret = letters(&mut seed, 8 + length % 40);
            let left = scrub(&letters(&mut seed, length), &[secret.clone().into()]).unwrap();
            let runs = secret.as_bytes().windows(RUN);
            let mut runs = runs.map(|run| std::str::from_utf8(run).unwrap());
            assert!(!runs.any(|run| left.contains(run)), "{secret} {left}");
        }
    }
}
