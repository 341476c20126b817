//! From written settings to complete ones: flags win over the file, the file
//! over the defaults.

use trunkline_proto::text::{Position, TextError};

use super::raw::{Raw, Values};
use super::table::{self, Setting};
use super::value::{Arity, BadValue};
use super::{Settings, flags};

/// Mistakes in settings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// The file is not YAML or JSON.
    #[error(transparent)]
    Text(#[from] Box<TextError>),
    /// A mistake in the file.
    #[error("{file}:{at}: {what}")]
    File {
        /// The file.
        file: String,
        /// Its place.
        at: Position,
        /// The mistake.
        what: String,
    },
    /// A mistake in a flag.
    #[error("--{flag}: {bad}")]
    Flag {
        /// The flag.
        flag: String,
        /// The mistake.
        bad: BadValue,
    },
    /// One setting needs another.
    #[error("{0}")]
    Together(&'static str),
}

/// Resolves the settings from flags and a file, if there is one. The values of
/// a flag replace all values of the file. A setting without values has its
/// default.
///
/// # Errors
/// A value is bad, or a setting needs another one that is missing.
pub(crate) fn resolve(file: Option<&Raw>, flags: &Raw) -> Result<Settings, SettingsError> {
    let mut settings = Settings::new();
    for setting in table::all() {
        let flag_values = flags.values.get(setting.key).map(|values| (flags, values));
        let file_values = || file.and_then(|raw| Some((raw, raw.values.get(setting.key)?)));
        if let Some((raw, values)) = flag_values.or_else(file_values) {
            put_values(&mut settings, setting, raw, values)?;
        }
    }

    if let Some(file) = file {
        settings.rules = file.rules.clone();
    }
    check_dependencies(&settings)?;
    Ok(settings)
}

/// Puts the values of a setting into its field.
///
/// # Errors
/// A value is bad, or there are several and the setting has only one. The error
/// names the place in the file, or the flag.
fn put_values(
    settings: &mut Settings,
    setting: &Setting,
    raw: &Raw,
    Values(values): &Values,
) -> Result<(), SettingsError> {
    let field = (setting.field)(settings);
    let takes_many = field.arity() == Arity::Many;
    if let Some((_, position)) = values.get(1)
        && !takes_many
    {
        return Err(raw.error(*position, format!("{}: takes one value only", setting.key)));
    }

    for (text, position) in values {
        field.put(text).map_err(|bad| match raw.file {
            Some(_) => raw.error(*position, format!("{}: {bad}", setting.key)),
            None => SettingsError::Flag {
                flag: flags::flag_name(setting.key),
                bad,
            },
        })?;
    }
    Ok(())
}

/// Checks that each setting which needs others has them: a certificate its key,
/// authorities both, names of operators the authorities, and a required audit
/// its file.
fn check_dependencies(settings: &Settings) -> Result<(), SettingsError> {
    let Settings {
        tls_cert,
        tls_key,
        tls_client_ca,
        admin_tls_client_ca,
        admin_allow,
        audit_log,
        audit_required,
        mcp,
        ..
    } = settings;

    let mistake = match (tls_cert, tls_key) {
        (Some(_), None) => "--tls-cert needs --tls-key beside it",
        (None, Some(_)) => "--tls-key needs --tls-cert beside it",
        (None, None) if tls_client_ca.is_some() => {
            "--tls-client-ca needs --tls-cert and --tls-key beside it"
        }
        (None, None) if admin_tls_client_ca.is_some() => {
            "--admin-tls-client-ca needs --tls-cert and --tls-key beside it"
        }
        _ if !admin_allow.is_empty() && admin_tls_client_ca.is_none() => {
            "--admin-allow needs --admin-tls-client-ca beside it"
        }
        _ if mcp.from.is_some() && mcp.listen.is_some() => {
            "--mcp-from and --mcp-listen are two sources, which would overwrite each other; give one"
        }
        _ if *audit_required && audit_log.is_none() => {
            "--audit-required needs --audit-log beside it"
        }
        _ => return Ok(()),
    };
    Err(SettingsError::Together(mistake))
}
