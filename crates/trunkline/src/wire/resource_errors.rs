//! Errors of resources (TP3): from the engine to messages and back.

use std::sync::Arc;

use trunkline_core::name::Name;
use trunkline_core::resource::{self, ErrorCode};
use trunkline_proto::discovery::{ResourceError, Status};

#[cfg(feature = "server")]
use super::constraints::write_resource_name;

/// A name, and the error that a client is sent for it.
type NamedError = (Name, Arc<resource::ResourceError>);

/// Converts the errors of a response into messages.
#[cfg(feature = "server")]
pub(super) fn write_errors(errors: &[NamedError]) -> Vec<ResourceError> {
    let write = |(name, error): &NamedError| ResourceError {
        resource_name: Some(write_resource_name(name, None)),
        error_detail: Some(Status {
            code: grpc_code(error.code),
            message: error.message.to_string(),
            details: Vec::new(),
        }),
    };
    errors.iter().map(write).collect()
}

/// Converts the messages of a response into errors. An error without a name is
/// ignored.
pub(super) fn read_errors(messages: Vec<ResourceError>) -> Vec<NamedError> {
    let read = |message: ResourceError| {
        let name = Name::new(&message.resource_name?.name);
        let Status { code, message, .. } = message.error_detail.unwrap_or_default();
        let error = resource::ResourceError {
            code: error_code(code),
            message: message.into(),
        };
        Some((name, Arc::new(error)))
    };
    messages.into_iter().filter_map(read).collect()
}

/// Returns the gRPC status code of an error.
#[cfg(feature = "server")]
fn grpc_code(code: ErrorCode) -> i32 {
    match code {
        ErrorCode::NotFound => tonic::Code::NotFound as i32,
        ErrorCode::PermissionDenied => tonic::Code::PermissionDenied as i32,
        ErrorCode::Unavailable => tonic::Code::Unavailable as i32,
        ErrorCode::Other(number) => number,
    }
}

/// Returns the error for the number of a gRPC status. Any other number is kept,
/// also one that gRPC does not know.
fn error_code(number: i32) -> ErrorCode {
    match tonic::Code::from_i32(number) {
        tonic::Code::NotFound => ErrorCode::NotFound,
        tonic::Code::PermissionDenied => ErrorCode::PermissionDenied,
        tonic::Code::Unavailable => ErrorCode::Unavailable,
        _ => ErrorCode::Other(number),
    }
}
