//! Reflection requests, and their responses.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use tonic::Code;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{
    self, ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
    ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
};
use tonic_reflection::pb::v1alpha;
use trunkline_proto::descriptor;
use trunkline_proto::prost_reflect::{DescriptorPool, FileDescriptor};

/// The descriptors of services that are not Envoy's.
static OURS: LazyLock<DescriptorPool> = LazyLock::new(|| {
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

fn pools() -> [&'static DescriptorPool; 2] {
    [descriptor::pool(), &OURS]
}

/// One stream: a file is sent once as a dependency.
pub(super) struct Conversation {
    services: Arc<[String]>,
    sent: HashSet<String>,
}

impl Conversation {
    pub(super) fn new(services: Arc<[String]>) -> Self {
        let sent = HashSet::new();
        Self { services, sent }
    }

    pub(super) fn answer(&mut self, request: ServerReflectionRequest) -> ServerReflectionResponse {
        let response = match &request.message_request {
            Some(question) => self.look_up(question),
            None => error(Code::InvalidArgument, "the request asks for nothing"),
        };
        ServerReflectionResponse {
            valid_host: request.host.clone(),
            original_request: Some(request),
            message_response: Some(response),
        }
    }

    fn look_up(&mut self, question: &MessageRequest) -> MessageResponse {
        let found = match question {
            MessageRequest::ListServices(_) => return self.list(),
            MessageRequest::AllExtensionNumbersOfType(name) => return extension_numbers(name),
            MessageRequest::FileByFilename(name) => pools()
                .into_iter()
                .find_map(|pool| pool.get_file_by_name(name)),
            MessageRequest::FileContainingSymbol(name) => pools()
                .into_iter()
                .find_map(|pool| file_of(pool, name.trim_start_matches('.'))),
            MessageRequest::FileContainingExtension(wanted) => {
                pools().into_iter().find_map(|pool| {
                    let message = pool.get_message_by_name(&wanted.containing_type)?;
                    let number = u32::try_from(wanted.extension_number).ok()?;
                    Some(message.get_extension(number)?.parent_file())
                })
            }
        };
        match found {
            Some(file) => self.files(file),
            None => error(Code::NotFound, "nothing of that name is known here"),
        }
    }

    fn list(&self) -> MessageResponse {
        let name = |name: &String| ServiceResponse { name: name.clone() };
        let service = self.services.iter().map(name).collect();
        MessageResponse::ListServicesResponse(ListServiceResponse { service })
    }

    /// The file and its dependencies, as far as they were not sent. The file
    /// itself is always sent: a client may request it again.
    fn files(&mut self, file: FileDescriptor) -> MessageResponse {
        let mut files = vec![file.encode_to_vec()];
        self.sent.insert(file.name().to_owned());
        let mut todo = vec![file];
        while let Some(file) = todo.pop() {
            for needed in file.dependencies() {
                if self.sent.insert(needed.name().to_owned()) {
                    files.push(needed.encode_to_vec());
                    todo.push(needed);
                }
            }
        }
        MessageResponse::FileDescriptorResponse(FileDescriptorResponse {
            file_descriptor_proto: files,
        })
    }
}

/// The file that defines a message, enum, service or extension, or a member of
/// one.
fn file_of(pool: &DescriptorPool, name: &str) -> Option<FileDescriptor> {
    let defined = |name: &str| {
        let message = pool.get_message_by_name(name).map(|d| d.parent_file());
        message
            .or_else(|| Some(pool.get_enum_by_name(name)?.parent_file()))
            .or_else(|| Some(pool.get_service_by_name(name)?.parent_file()))
            .or_else(|| Some(pool.get_extension_by_name(name)?.parent_file()))
    };
    let member = || {
        let (parent, member) = name.rsplit_once('.')?;
        let field = || {
            let message = pool.get_message_by_name(parent)?;
            let field = message.get_field_by_name(member).is_some();
            let oneof = message.oneofs().any(|oneof| oneof.name() == member);
            (field || oneof).then(|| message.parent_file())
        };
        let method = || {
            let service = pool.get_service_by_name(parent)?;
            let known = service.methods().any(|method| method.name() == member);
            known.then(|| service.parent_file())
        };
        field().or_else(method)
    };
    defined(name).or_else(member)
}

fn extension_numbers(name: &str) -> MessageResponse {
    let find = |pool: &DescriptorPool| pool.get_message_by_name(name);
    let Some(message) = pools().into_iter().find_map(find) else {
        return error(Code::NotFound, "no message of that name is known here");
    };
    let numbers = message.extensions().map(|extension| extension.number());
    MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse {
        base_type_name: name.to_owned(),
        extension_number: numbers.filter_map(|n| i32::try_from(n).ok()).collect(),
    })
}

fn error(code: Code, message: &str) -> MessageResponse {
    MessageResponse::ErrorResponse(ErrorResponse {
        error_code: code.into(),
        error_message: message.to_owned(),
    })
}
