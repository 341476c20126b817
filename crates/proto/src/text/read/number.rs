//! Numbers in text, as protobuf's JSON reader in C++ parses them.

/// The largest whole number up to which a signed one may be written with a
/// point or an exponent: 2^53, where floats begin to leave some out.
const MOST_SIGNED: f64 = 9_007_199_254_740_992.0;
/// The same for one without a sign: 2^54.
const MOST_UNSIGNED: f64 = 18_014_398_509_481_984.0;

/// Parses a whole number that fits `N`, also in the form `1e3`, `5.0` or
/// `0x1F`. A leading zero has no meaning: `010` in quotes is ten. Returns
/// `None` for other texts, and for a text with spaces.
pub(super) fn parse_integer<N: TryFrom<i128>>(text: &str) -> Option<N> {
    if let Ok(number) = text.parse::<i128>() {
        return N::try_from(number).ok();
    }
    let has_space = text.contains(|c: char| c.is_ascii_whitespace());
    let float = parse_float(text).filter(|float| !has_space && float.fract() == 0.0)?;

    let is_signed = N::try_from(-1).is_ok();
    let is_exact = match is_signed {
        true => (-MOST_SIGNED..=MOST_SIGNED).contains(&float),
        false => (0.0..=MOST_UNSIGNED).contains(&float),
    };
    is_exact.then(|| N::try_from(float as i128).ok()).flatten()
}

/// Parses a floating-point number, in decimal or hexadecimal, or the name of
/// one without digits, with space around it. One that is too large is infinite.
/// `None` for any other text.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim_ascii();
    let decimal = text.parse::<f64>().ok();
    decimal.or_else(|| parse_hexadecimal(text))
}

/// Parses a hexadecimal floating-point number such as `-0x1.8p3`. The exponent
/// is a power of two, and may be missing. Returns `None` for other texts.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let body = unsigned
        .strip_prefix("0x")
        .or_else(|| unsigned.strip_prefix("0X"))?;
    let (mantissa, exponent) = match body.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (body, 0),
    };

    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let number = u128::from_str_radix(&digits, 16).ok()? as f64;
    let fraction_bits = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    let value = number * 2_f64.powi(exponent.checked_sub(fraction_bits)?);
    Some(if text.starts_with('-') { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_or_refused() {
        assert_eq!(parse_integer("+3"), Some(3_i32));
        assert_eq!(parse_integer("010"), Some(10_u32));
        assert_eq!(parse_integer("18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_integer("9007199254740993.0"), Some(1_i64 << 53));
        assert_eq!(parse_integer("18014398509481984.0"), Some(1_u64 << 54));
        assert_eq!(parse_integer("-0.0"), Some(0_u32));
        for bad in ["", " 3", "3.5", "1e18", "-1e18", "inf", "nan", "0x", "3s"] {
            assert_eq!(parse_integer::<i64>(bad), None, "{bad}");
        }
        assert_eq!(parse_integer::<u64>("-1"), None);
        assert_eq!(parse_integer::<i32>("0x1p40"), None);
    }

    #[test]
    fn floats_may_be_hexadecimal_or_without_digits() {
        for (text, value) in [
            (" 3. ", 3.0),
            ("0x1F", 31.0),
            ("-0X1.8p1", -3.0),
            ("0x1P-2", 0.25),
            ("0xffffffffffffffff", 18_446_744_073_709_551_615.0),
            ("1e400", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse_float(text), Some(value), "{text}");
        }
        for bad in [
            "", "0x", "0x1p", "0x.p1", "+-1", "1.5f", ".inf", "0x+1", "1_0",
        ] {
            assert_eq!(parse_float(bad), None, "{bad}");
        }
    }
}
