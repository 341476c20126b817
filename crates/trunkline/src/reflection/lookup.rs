//! Reflection requests, and their responses.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use tonic::Code;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{
    self, ErrorResponse, ExtensionNumberResponse, ExtensionRequest, FileDescriptorResponse,
    ListServiceResponse, ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
};
use tonic_reflection::pb::v1alpha;
use trunkline_proto::descriptor;
use trunkline_proto::prost_reflect::{DescriptorPool, FileDescriptor};

/// The descriptors of services that are not Envoy's: health and reflection.
static OTHERS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let mut pool = DescriptorPool::new();
    for set in [
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        v1::FILE_DESCRIPTOR_SET,
        v1alpha::FILE_DESCRIPTOR_SET,
    ] {
        // A set that cannot be read leaves its service undescribed; a test
        // ensures that all can.
        let _ = pool.decode_file_descriptor_set(set);
    }
    pool
});

/// Returns all descriptors, those of Envoy first.
fn pools() -> [&'static DescriptorPool; 2] {
    [descriptor::pool(), &OTHERS]
}

/// The state of one stream.
pub(super) struct ReflectionStream {
    /// The full names of the server's services.
    services: Arc<[String]>,
    /// The files that were sent: each is sent once as a dependency.
    sent: HashSet<String>,
}

impl ReflectionStream {
    /// Returns the state of a stream on which no file was sent.
    pub(super) fn new(services: Arc<[String]>) -> Self {
        let sent = HashSet::new();
        Self { services, sent }
    }

    /// Builds the response to a request; an error is a response, too.
    pub(super) fn respond(&mut self, request: ServerReflectionRequest) -> ServerReflectionResponse {
        let response = match &request.message_request {
            Some(lookup) => self.look_up(lookup),
            None => error_response(Code::InvalidArgument, "the request asks for nothing"),
        };
        ServerReflectionResponse {
            valid_host: request.host.clone(),
            original_request: Some(request),
            message_response: Some(response),
        }
    }

    /// Looks up a file or a name, in the descriptors of Envoy first and then in
    /// the others. A name that neither knows gives an error as the response.
    fn look_up(&mut self, lookup: &MessageRequest) -> MessageResponse {
        let mut pools = pools().into_iter();
        let found = match lookup {
            MessageRequest::ListServices(_) => return self.list_services(),
            MessageRequest::AllExtensionNumbersOfType(name) => return extension_numbers(name),
            MessageRequest::FileByFilename(name) => {
                pools.find_map(|pool| pool.get_file_by_name(name))
            }
            MessageRequest::FileContainingSymbol(name) => {
                pools.find_map(|pool| file_of_symbol(pool, name.trim_start_matches('.')))
            }
            MessageRequest::FileContainingExtension(extension) => {
                pools.find_map(|pool| file_of_extension(pool, extension))
            }
        };
        match found {
            Some(file) => self.file_with_dependencies(file),
            None => error_response(Code::NotFound, "nothing of that name is known here"),
        }
    }

    /// Lists the services of the server.
    fn list_services(&self) -> MessageResponse {
        let name = |name: &String| ServiceResponse { name: name.clone() };
        let service = self.services.iter().map(name).collect();
        MessageResponse::ListServicesResponse(ListServiceResponse { service })
    }

    /// Responds with a file and all that it depends on, except for dependencies
    /// that were sent before. The file itself is always sent: a client may
    /// request it again.
    fn file_with_dependencies(&mut self, file: FileDescriptor) -> MessageResponse {
        let mut files = vec![file.encode_to_vec()];
        self.sent.insert(file.name().to_owned());

        let mut unvisited = vec![file];
        while let Some(file) = unvisited.pop() {
            for dependency in file.dependencies() {
                if self.sent.insert(dependency.name().to_owned()) {
                    files.push(dependency.encode_to_vec());
                    unvisited.push(dependency);
                }
            }
        }
        MessageResponse::FileDescriptorResponse(FileDescriptorResponse {
            file_descriptor_proto: files,
        })
    }
}

/// Finds the file that defines a message, enum, service or extension, or a
/// field, oneof or method of one, by its full name.
fn file_of_symbol(pool: &DescriptorPool, name: &str) -> Option<FileDescriptor> {
    let message = pool.get_message_by_name(name).map(|d| d.parent_file());
    message
        .or_else(|| Some(pool.get_enum_by_name(name)?.parent_file()))
        .or_else(|| Some(pool.get_service_by_name(name)?.parent_file()))
        .or_else(|| Some(pool.get_extension_by_name(name)?.parent_file()))
        .or_else(|| file_of_member(pool, name))
}

/// Finds the file that defines a field, a oneof or a method, by its full name.
fn file_of_member(pool: &DescriptorPool, name: &str) -> Option<FileDescriptor> {
    let (parent, member) = name.rsplit_once('.')?;
    if let Some(message) = pool.get_message_by_name(parent) {
        let is_field = message.get_field_by_name(member).is_some();
        let is_oneof = message.oneofs().any(|oneof| oneof.name() == member);
        return (is_field || is_oneof).then(|| message.parent_file());
    }
    let service = pool.get_service_by_name(parent)?;
    let is_method = service.methods().any(|method| method.name() == member);
    is_method.then(|| service.parent_file())
}

/// Finds the file that defines an extension, by the type that it extends and
/// its number.
fn file_of_extension(
    pool: &DescriptorPool,
    extension: &ExtensionRequest,
) -> Option<FileDescriptor> {
    let message = pool.get_message_by_name(&extension.containing_type)?;
    let number = u32::try_from(extension.extension_number).ok()?;
    Some(message.get_extension(number)?.parent_file())
}

/// Lists the numbers of all extensions of a message; an error if no message has
/// this name.
fn extension_numbers(name: &str) -> MessageResponse {
    let find = |pool: &DescriptorPool| pool.get_message_by_name(name);
    let Some(message) = pools().into_iter().find_map(find) else {
        return error_response(Code::NotFound, "no message of that name is known here");
    };
    let numbers = message.extensions().map(|extension| extension.number());
    MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse {
        base_type_name: name.to_owned(),
        extension_number: numbers.filter_map(|n| i32::try_from(n).ok()).collect(),
    })
}

/// Returns a response that says why nothing was found.
fn error_response(code: Code, message: &str) -> MessageResponse {
    MessageResponse::ErrorResponse(ErrorResponse {
        error_code: code.into(),
        error_message: message.to_owned(),
    })
}
