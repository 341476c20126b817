//! The fields that are secret, read from the descriptors once.

use std::{
    collections::{BTreeSet, HashSet},
    sync::LazyLock,
};

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::descriptor::pool;

/// Secrets that Envoy's files do not mark.
pub(super) const UNMARKED: &[&str] = &[
    "envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.GoogleIAMCredentials.authorization_token",
    "envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.ServiceAccountJWTAccessCredentials.json_key",
    "envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.access_token",
    "envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.google_refresh_token",
    "envoy.config.trace.v3.LightstepConfig.access_token",
    "envoy.extensions.filters.http.aws_lambda.v3.Credentials.secret_access_key",
    "envoy.extensions.filters.http.aws_lambda.v3.Credentials.session_token",
    "envoy.extensions.grpc_service.call_credentials.access_token.v3.AccessTokenCredentials.token",
    "envoy.extensions.grpc_service.call_credentials.google_iam.v3.GoogleIamCredentials.authorization_token",
    "envoy.extensions.grpc_service.call_credentials.google_refresh_token.v3.GoogleRefreshTokenCredentials.token",
    "envoy.extensions.grpc_service.call_credentials.service_account_jwt_access.v3.ServiceAccountJwtAccessCredentials.json_key",
];

/// The full names of all secret fields, marked or not. The marks are options,
/// which the descriptors keep encoded: reading them for each message costs too
/// much.
static SECRET: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let mark = pool().get_extension_by_name("udpa.annotations.sensitive");
    let is_marked = |field: &FieldDescriptor| {
        let options = field.options();
        let mark = mark.as_ref().map(|mark| options.get_extension(mark));
        mark.as_deref().and_then(Value::as_bool) == Some(true)
    };
    let marked = pool().all_messages().flat_map(|message| {
        let fields = message.fields().filter(is_marked);
        let names = fields.map(|field| field.full_name().to_owned());
        names.collect::<Vec<_>>()
    });
    let unmarked = UNMARKED.iter().map(|&name| name.to_owned());
    marked.chain(unmarked).collect()
});

/// Whether the value of a field is secret.
pub(super) fn is_secret(field: &FieldDescriptor) -> bool {
    SECRET.contains(field.full_name())
}

/// The names of all secret fields without their messages, as YAML and as JSON
/// have them.
static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let is_secret_field = |field: &FieldDescriptor| is_secret(field);
    let names = pool().all_messages().flat_map(|message| {
        let fields = message.fields().filter(is_secret_field);
        let names =
            fields.flat_map(|field| [field.name().to_owned(), field.json_name().to_owned()]);
        names.collect::<Vec<_>>()
    });
    names.collect()
});

/// Returns the names of all secret fields, without their messages.
pub(super) fn names() -> &'static BTreeSet<String> {
    &NAMES
}

/// The texts before a secret in a dump of a message, as protobuf prints it and
/// as JSON has it.
static BEFORE: LazyLock<Vec<String>> = LazyLock::new(|| {
    let is_secret_text = |field: &FieldDescriptor| {
        is_secret(field) && matches!(field.kind(), Kind::String | Kind::Bytes)
    };
    let secret_texts = |message: MessageDescriptor| {
        let fields = message.fields().filter(is_secret_text);
        let names = fields.map(|field| field.name().to_owned());
        names.collect::<Vec<_>>()
    };
    let mut names: BTreeSet<_> = pool().all_messages().flat_map(secret_texts).collect();
    names.extend(["inline_string", "inline_bytes"].map(str::to_owned));
    let printed = names.iter().map(|name| format!("{name}: \""));
    let json = names.iter().map(|name| format!("\"{name}\":"));
    let pem = ["-----BEGIN ".to_owned()];
    printed.chain(json).chain(pem).collect()
});

/// Finds the offset at which a text begins to quote a secret; `None` if it
/// quotes none.
pub(super) fn quoted_at(text: &str) -> Option<usize> {
    BEFORE.iter().filter_map(|name| text.find(name)).min()
}

/// The number of secret fields, for the tests.
#[cfg(test)]
pub(super) fn count() -> usize {
    SECRET.len()
}
