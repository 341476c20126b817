//! Bars as a picture: how one number differs between runs.

use std::fmt::Write as _;

use serde_json::Value;

use super::figures::Column;

const WIDTH: f64 = 800.0;
const LABELS: f64 = 330.0;
const NUMBERS: f64 = 110.0;
const ROW: f64 = 26.0;

/// One of them.
pub(super) struct Bar {
    label: String,
    /// Whether it is about Trunkline.
    ours: bool,
    number: f64,
    shown: String,
}

impl Bar {
    /// The number of some reports that counts; none if they do not have it.
    pub(super) fn new(
        label: String,
        ours: bool,
        column: &Column,
        reports: &[Value],
    ) -> Option<Self> {
        let number = column.median(reports)?;
        Some(Self {
            label,
            ours,
            number,
            shown: column.shown(number),
        })
    }
}

/// A bar for each, the longest as wide as there is room.
pub(super) fn bars(title: &str, bars: &[Bar]) -> String {
    let height = ROW * (bars.len() as f64 + 1.5);
    let numbers = bars.iter().map(|bar| bar.number);
    let most = numbers.fold(f64::MIN_POSITIVE, f64::max);
    let room = WIDTH - LABELS - NUMBERS;
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"18\" font-weight=\"bold\" fill=\"#222222\">{}</text>",
        escaped(title)
    );
    for (place, bar) in bars.iter().enumerate() {
        let top = ROW * (place as f64 + 1.2);
        let middle = top + ROW * 0.6;
        let wide = (bar.number / most * room).max(1.0);
        let colour = match bar.ours {
            true => "#1f6f8b",
            false => "#b9c4c9",
        };
        let after = LABELS + wide + 6.0;
        let _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{middle:.1}\" text-anchor=\"end\" fill=\"#222222\">{}</text>\n\
             <rect x=\"{LABELS}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" \
             fill=\"{colour}\"/>\n\
             <text x=\"{after:.1}\" y=\"{middle:.1}\" fill=\"#222222\">{}</text>",
            LABELS - 8.0,
            escaped(&bar.label),
            ROW * 0.75,
            escaped(&bar.shown)
        );
    }
    text.push_str("</svg>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_room() {
        let bar = |label: &str, number: f64| Bar {
            label: label.to_owned(),
            ours: false,
            number,
            shown: format!("{number} µs"),
        };
        let picture = bars("CPU", &[bar("Trunkline", 10.0), bar("a < b", 100.0)]);
        assert!(picture.contains("width=\"36.0\""), "{picture}");
        assert!(picture.contains("width=\"360.0\""), "{picture}");
        assert!(picture.contains("a &lt; b"));
    }
}
