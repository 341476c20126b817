//! Names and texts that give a secret away where no field is known to hold one:
//! in headers, in metadata, and in every `Struct`.
//!
//! People choose these names, so this is a guess. It errs towards hiding: a
//! value that is hidden for nothing can still be read at its source.

/// Parts of names that say what stands behind them, in small letters and
/// without separators.
const WORDS: &[&str] = &[
    "accesskey",
    "apikey",
    "authkey",
    "authorization",
    "cookie",
    "credential",
    "encryptionkey",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "signingkey",
    "token",
    "xauth",
];

/// The schemes of `Authorization` whose credentials are secret.
const SCHEMES: &[&str] = &["basic ", "bearer ", "digest ", "token "];

/// The end of the first line of a private key in PEM.
const PEM_KEY: &str = "PRIVATE KEY-----";

/// Returns whether the name of a header, or a key of metadata, says that a
/// secret stands behind it: `Authorization`, `x-api-key`, `db_password`.
#[must_use]
pub fn sounds_secret(name: &str) -> bool {
    let is_separator = |c: &char| ['-', '_', '.', ' '].contains(c);
    let letters = name.chars().filter(|c| !is_separator(c));
    let letters: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    WORDS.iter().any(|word| letters.contains(word))
}

/// Returns whether a text is a secret wherever it stands: a private key in PEM,
/// or a JSON web token.
pub(super) fn is_secret_text(text: &str) -> bool {
    text.contains(PEM_KEY) || is_web_token(text)
}

/// Returns whether a text in a header or in metadata is a secret, whatever its
/// name: by [`is_secret_text`], or as the value of an `Authorization` header.
pub(super) fn is_credential(text: &str) -> bool {
    let has_scheme = |scheme: &&str| {
        let start = text.get(..scheme.len());
        text.len() > scheme.len() && start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    is_secret_text(text) || SCHEMES.iter().any(has_scheme)
}

/// Returns whether a text is one command operator of Envoy, such as
/// `%REQ(authorization)%`: it says where a value comes from, and is none.
pub(super) fn is_operator(text: &str) -> bool {
    let inner = text
        .strip_prefix('%')
        .and_then(|text| text.strip_suffix('%'));
    inner.is_some_and(|inner| !inner.is_empty() && !inner.contains('%'))
}

/// Returns whether a text is a JSON web token: three parts in base64, the first
/// of which begins with an encoded brace.
fn is_web_token(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut parts = text.trim().split('.');
    let is_part = |part: Option<&str>| part.is_some_and(|part| part.chars().all(is_digit));
    text.trim_start().starts_with("eyJ")
        && is_part(parts.next())
        && is_part(parts.next())
        && is_part(parts.next())
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_that_a_secret_stands_behind_them() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "Set-Cookie",
            "X-API-Key",
            "api_key",
            "db.password",
            "clientSecret",
            "x-auth-key",
        ] {
            assert!(sounds_secret(name), "{name}");
        }
        for name in [":authority", "x-request-id", "canary", "base_sets", "key"] {
            assert!(!sounds_secret(name), "{name}");
        }
    }

    #[test]
    fn texts_that_are_credentials_by_themselves() {
        for text in [
            "Bearer abc",
            "basic dTpw",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "-----BEGIN RSA PRIVATE KEY-----\nMII",
        ] {
            assert!(is_credential(text), "{text}");
        }
        for text in [
            "Bearer ",
            "Basic",
            "basics",
            "eyJ",
            "-----BEGIN CERTIFICATE-----",
        ] {
            assert!(!is_credential(text), "{text}");
        }
    }

    #[test]
    fn an_operator_is_no_value() {
        assert!(is_operator("%REQ(authorization)%"));
        assert!(!is_operator("%REQ(a)%swordfish"));
        assert!(!is_operator("%REQ(a)% %REQ(b)%"));
        assert!(!is_operator("%%"));
    }
}
