//! Bars as a picture: how one number differs between runs.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const LABELS: f64 = 250.0;
const NUMBERS: f64 = 110.0;
const ROW: f64 = 26.0;

/// A bar for each row, the longest as wide as there is room.
pub(super) fn bars(title: &str, rows: &[(String, f64, String)]) -> String {
    let height = ROW * (rows.len() as f64 + 1.5);
    let most = rows
        .iter()
        .map(|row| row.1)
        .fold(f64::MIN_POSITIVE, f64::max);
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
    for (place, (label, number, shown)) in rows.iter().enumerate() {
        let top = ROW * (place as f64 + 1.2);
        let middle = top + ROW * 0.6;
        let wide = (number / most * room).max(1.0);
        let colour = if label.starts_with("Trunkline") {
            "#1f6f8b"
        } else {
            "#b9c4c9"
        };
        let after = LABELS + wide + 6.0;
        let _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{middle:.1}\" text-anchor=\"end\" fill=\"#222222\">{}</text>\n\
             <rect x=\"{LABELS}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" \
             fill=\"{colour}\"/>\n\
             <text x=\"{after:.1}\" y=\"{middle:.1}\" fill=\"#222222\">{}</text>",
            LABELS - 8.0,
            escaped(label),
            ROW * 0.75,
            escaped(shown)
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
        let rows = [
            ("Trunkline".to_owned(), 10.0, "10 µs".to_owned()),
            ("a < b".to_owned(), 100.0, "100 µs".to_owned()),
        ];
        let picture = bars("CPU", &rows);
        assert!(picture.contains("width=\"36.0\""), "{picture}");
        assert!(picture.contains("width=\"360.0\""), "{picture}");
        assert!(picture.contains("a &lt; b"));
    }
}
