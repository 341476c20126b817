//! What keeps numbers from being believed: said once for all runs of a figure
//! that it is true of, with the least and the most of each number.

use std::fmt::Write as _;

/// A remark, by the words in it.
struct Remark {
    /// The runs that it is true of.
    runs: Vec<String>,
    /// What stands around the numbers.
    words: Vec<String>,
    /// The least and the most of each.
    numbers: Vec<(f64, f64)>,
}

/// One line for each remark; nothing if there are none.
pub(super) fn list<'a>(
    said: impl IntoIterator<Item = (String, impl Iterator<Item = &'a str>)>,
) -> String {
    let mut remarks: Vec<Remark> = Vec::new();
    for (run, warnings) in said {
        for warning in warnings {
            let (words, numbers) = parts(warning);
            match remarks.iter_mut().find(|remark| remark.words == words) {
                Some(remark) => remark.add(&run, &numbers),
                None => remarks.push(Remark {
                    runs: vec![run.clone()],
                    words,
                    numbers: numbers.iter().map(|n| (*n, *n)).collect(),
                }),
            }
        }
    }
    let mut text = String::new();
    for remark in &remarks {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- {}: {}.", remark.runs.join("; "), remark.says());
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

impl Remark {
    fn add(&mut self, run: &String, numbers: &[f64]) {
        if !self.runs.contains(run) {
            self.runs.push(run.clone());
        }
        for ((least, most), number) in self.numbers.iter_mut().zip(numbers) {
            (*least, *most) = (least.min(*number), most.max(*number));
        }
    }

    fn says(&self) -> String {
        let mut text = String::new();
        for (place, words) in self.words.iter().enumerate() {
            text.push_str(words);
            let _ = match self.numbers.get(place) {
                Some((least, most)) if least < most => write!(text, "{least}–{most}"),
                Some((number, _)) => write!(text, "{number}"),
                None => Ok(()),
            };
        }
        text
    }
}

/// The words around the numbers of a text, one more than these, and the numbers.
fn parts(text: &str) -> (Vec<String>, Vec<f64>) {
    let (mut words, mut numbers) = (Vec::new(), Vec::new());
    let (mut said, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        said.push_str(&rest[..start]);
        let tail = &rest[start..];
        let end = tail.find(|c: char| !c.is_ascii_digit() && c != '.');
        let digits = tail[..end.unwrap_or(tail.len())].trim_end_matches('.');
        match digits.parse() {
            Ok(number) => {
                numbers.push(number);
                words.push(std::mem::take(&mut said));
            }
            // An address, or a version.
            Err(_) => said.push_str(digits),
        }
        rest = &tail[digits.len()..];
    }
    said.push_str(rest);
    words.push(said);
    (words, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(all: &[(&str, &[&'static str])]) -> String {
        let all = all.iter();
        list(all.map(|(run, said)| ((*run).to_owned(), said.iter().copied())))
    }

    #[test]
    fn what_is_true_of_several_runs_is_said_once() {
        let all: [(&str, &[&str]); 3] = [
            (
                "Trunkline",
                &[
                    "connect: busy for 97 % (load 0.8)",
                    "connect: busy for 91 % (load 1)",
                ],
            ),
            (
                "floor",
                &[
                    "changes: 127.0.0.1 is gone",
                    "connect: busy for 98 % (load 0.8)",
                ],
            ),
            ("peer", &[]),
        ];
        assert_eq!(
            said(&all),
            "- Trunkline; floor: connect: busy for 91–98 % (load 0.8–1).\n- floor: changes: 127.0.0.1 is gone.\n\n"
        );
        assert_eq!(said(&all[2..]), "");
    }
}
