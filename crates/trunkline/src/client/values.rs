//! The decoded messages of the resources that a client holds.
//!
//! A body is decoded once, when it is judged, or when it is first watched if it
//! never was judged. Whoever watches it later gets the same message, and so does
//! the same body in another response: in state of the world, a response repeats
//! every resource that has not changed. An entry counts as long as its resource
//! lives; dead ones are swept when the table has doubled.
//!
//! Bodies share the bytes of the message that they came in. One of them would
//! keep all of it, so where a response brings little that is new, the known
//! bodies go on sharing the message that they came in first, and the new ones
//! are copied.

use std::hash::BuildHasher as _;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashMap};
use trunkline_core::message::{Response, WireResource};
use trunkline_core::resource::{Resource, TypeUrl, Version};
use trunkline_core::resource_list::ResourceList;
use trunkline_proto::acceptance::Report;

use super::state::ErasedValue;

/// How many entries there are before the first sweep.
const SWEEP_FROM: usize = 1024;

/// Decoded messages, by the resource that they were decoded from.
#[derive(Default)]
pub(super) struct Values {
    /// By the address of the resource, which the weak reference keeps from
    /// being used again.
    entries: HashMap<usize, Entry>,
    /// The address of a resource with a body, by the hash of type and body. Of
    /// resources that share a body, the first counts while it lives.
    by_body: HashMap<u64, usize>,
    hasher: DefaultHashBuilder,
    /// The number of entries at which dead ones are swept.
    sweep_at: usize,
}

/// A decoded message.
struct Entry {
    resource: Weak<Resource>,
    type_url: TypeUrl,
    message: Message,
    receipt: Receipt,
}

/// How a resource was received.
#[derive(Clone, Debug)]
pub(super) struct Receipt {
    /// The version that the control plane gave it; in state of the world that
    /// of the response.
    pub(super) version: Version,
    /// When it was accepted.
    pub(super) accepted_at: SystemTime,
}

/// A decoded message, and what was found when it was checked.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) value: ErasedValue,
    /// What is set and not used; `None` if that is nothing.
    pub(super) report: Option<Arc<Report>>,
}

impl Values {
    /// Caches the message of a resource, which was accepted just now.
    /// `set_version` is the version of its response in state of the world,
    /// where resources have none of their own.
    pub(super) fn insert(
        &mut self,
        type_url: &TypeUrl,
        resource: &Arc<Resource>,
        message: Message,
        set_version: Option<&Version>,
    ) {
        if self.entries.len() >= self.sweep_at.max(SWEEP_FROM) {
            self.sweep();
        }
        if let Some(body) = &resource.body {
            let hash = self.hash(type_url, body);
            // Two live resources may share a body; either has its message.
            if self.find(hash, type_url, body).is_none() {
                self.by_body.insert(hash, address(resource));
            }
        }

        let entry = Entry {
            resource: Arc::downgrade(resource),
            type_url: type_url.clone(),
            message,
            receipt: Receipt {
                version: set_version.unwrap_or(&resource.version).clone(),
                accepted_at: SystemTime::now(),
            },
        };
        self.entries.insert(address(resource), entry);
    }

    /// Removes the entries of resources that nobody holds any more, and sets the
    /// number of entries at which that is done next.
    fn sweep(&mut self) {
        self.entries
            .retain(|_, entry| entry.resource.strong_count() > 0);
        let entries = &self.entries;
        self.by_body
            .retain(|_, address| entries.contains_key(address));
        self.sweep_at = self.entries.len() * 2;
    }

    /// Returns the message of this very resource, and not of an equal one.
    pub(super) fn get(&self, resource: &Arc<Resource>) -> Option<ErasedValue> {
        let entry = self.entries.get(&address(resource))?;
        Some(Arc::clone(&entry.message.value))
    }

    /// Returns how this very resource was received.
    pub(super) fn receipt(&self, resource: &Arc<Resource>) -> Option<&Receipt> {
        let entry = self.entries.get(&address(resource))?;
        Some(&entry.receipt)
    }

    /// Replaces the bodies of a response that are cached by the cached bytes,
    /// and returns their decoded messages. If less than half of the bytes is
    /// new, the new bodies are copied, so that they do not keep the whole
    /// response in memory. It hashes every body, and decodes none.
    pub(super) fn recognize(&self, response: &mut Response) -> KnownBodies {
        let mut known_bodies = KnownBodies::default();
        if self.by_body.is_empty() {
            return known_bodies;
        }
        let (type_url, list) = match response {
            Response::Sotw(response) => (&response.type_url, &mut response.resources),
            Response::Delta(response) => (&response.type_url, &mut response.resources),
        };
        // A list that many streams share is a source's; what was read is its
        // reader's own.
        let ResourceList::Own(list) = list else {
            return known_bodies;
        };

        let (mut old_bytes, mut new_bytes) = (0, 0);
        let mut new_indexes = Vec::new();
        for (index, entry) in list.iter_mut().enumerate() {
            let Some(body) = body_mut(entry) else {
                continue;
            };
            match self.find(self.hash(type_url, body), type_url, body) {
                Some((cached_body, message)) => {
                    old_bytes += body.len();
                    *body = cached_body;
                    known_bodies
                        .0
                        .insert(body.as_ptr() as usize, message.clone());
                }
                None => {
                    new_bytes += body.len();
                    new_indexes.push(index);
                }
            }
        }

        if new_bytes < old_bytes {
            copy_bodies(list, new_indexes);
        }
        known_bodies
    }

    /// Hashes a type and a body: the key of `by_body`.
    fn hash(&self, type_url: &TypeUrl, body: &Bytes) -> u64 {
        self.hasher.hash_one((type_url.as_str(), &body[..]))
    }

    /// Finds the body of a live resource of the type that equals `body`, and its
    /// message. `hash` is that of type and body.
    fn find(&self, hash: u64, type_url: &TypeUrl, body: &Bytes) -> Option<(Bytes, &Message)> {
        let entry = self.entries.get(self.by_body.get(&hash)?)?;
        let cached_body = entry.resource.upgrade()?.body.clone()?;
        let is_equal = entry.type_url == *type_url && cached_body == *body;
        is_equal.then_some((cached_body, &entry.message))
    }
}

/// The messages of the bodies of a response that are known, by the address of
/// the body's bytes.
#[derive(Default)]
pub(super) struct KnownBodies(HashMap<usize, Message>);

impl KnownBodies {
    /// Returns the message of a body of the response that was recognized. It
    /// goes by the body's address: a copy of the bytes has none.
    pub(super) fn get(&self, body: &Bytes) -> Option<&Message> {
        let address = (!body.is_empty()).then(|| body.as_ptr() as usize);
        self.0.get(&address?)
    }
}

/// Replaces the bodies at these indexes by copies, which keep nothing else in
/// memory.
fn copy_bodies(list: &mut [WireResource], indexes: Vec<usize>) {
    for index in indexes {
        if let Some(body) = list.get_mut(index).and_then(body_mut) {
            *body = Bytes::copy_from_slice(body);
        }
    }
}

/// Returns the body of a resource to be replaced; `None` if it is empty, or if
/// the resource is shared already.
fn body_mut(entry: &mut WireResource) -> Option<&mut Bytes> {
    let body = Arc::get_mut(&mut entry.resource)?.body.as_mut();
    // An empty body has no address of its own.
    body.filter(|body| !body.is_empty())
}

/// Returns the address of a resource: the key of its entry.
fn address(resource: &Arc<Resource>) -> usize {
    Arc::as_ptr(resource) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::message::{Form, SotwResponse};

    fn resource(name: &str, body: &Bytes) -> Arc<Resource> {
        Arc::new(Resource::new(name.into(), body.clone()))
    }

    fn message(number: u32) -> Message {
        Message {
            value: Arc::new(number),
            report: None,
        }
    }

    /// A response with these bodies, all of which share one message.
    fn response(bodies: &[Bytes]) -> Response {
        let one = |body: &Bytes| WireResource {
            resource: resource("name", body),
            form: Form::Full,
        };
        let list: Vec<WireResource> = bodies.iter().map(one).collect();
        SotwResponse {
            type_url: "t".into(),
            version: "1".into(),
            nonce: "1".into(),
            resources: list.into(),
            errors: Vec::new(),
            removed: Vec::new(),
        }
        .into()
    }

    fn bodies(response: &Response) -> Vec<Bytes> {
        let Response::Sotw(response) = response else {
            panic!("state of the world");
        };
        let bodies = response
            .resources
            .iter()
            .map(|one| one.resource.body.clone());
        bodies.map(Option::unwrap_or_default).collect()
    }

    /// Parts of one message.
    fn parts(of: &'static str, lengths: &[usize]) -> Vec<Bytes> {
        let mut all = Bytes::copy_from_slice(of.as_bytes());
        lengths.iter().map(|length| all.split_to(*length)).collect()
    }

    #[test]
    fn a_value_is_found_by_its_resource_alone() {
        let mut values = Values::default();
        let body = Bytes::from_static(b"body");
        let (one, other) = (resource("one", &body), resource("one", &body));
        values.insert(&"t".into(), &one, message(1), None);
        let found = values.get(&one).unwrap().downcast::<u32>().unwrap();
        assert_eq!(*found, 1);
        assert!(values.get(&other).is_none());
    }

    #[test]
    fn values_of_resources_that_are_gone_are_swept() {
        let mut values = Values::default();
        let kept = resource("kept", &Bytes::from_static(b"kept"));
        values.insert(&"t".into(), &kept, message(0), None);
        for round in 0..10 * SWEEP_FROM as u32 {
            let body = Bytes::from(round.to_be_bytes().to_vec());
            let short_lived = resource("short-lived", &body);
            values.insert(&"t".into(), &short_lived, message(round), None);
        }
        assert!(values.entries.len() <= SWEEP_FROM + 1);
        assert!(values.by_body.len() <= SWEEP_FROM + 1);
        assert!(values.get(&kept).is_some());
    }

    #[test]
    fn a_known_body_keeps_the_bytes_that_it_came_with() {
        let mut values = Values::default();
        let first = parts("aaaabbbb", &[4, 4]);
        let held: Vec<_> = first.iter().map(|body| resource("name", body)).collect();
        for (number, resource) in (0..).zip(&held) {
            values.insert(&"t".into(), resource, message(number), None);
        }
        // Most of the second response is known: nothing keeps its bytes.
        let second = parts("aaaabbbbcc", &[4, 4, 2]);
        let mut again = response(&second);
        let known = values.recognize(&mut again);
        let taken = bodies(&again);
        assert_eq!(taken, second);
        assert_eq!(
            [taken[0].as_ptr(), taken[1].as_ptr()],
            [first[0].as_ptr(), first[1].as_ptr()]
        );
        assert_ne!(taken[2].as_ptr(), second[2].as_ptr());
        let number = |body: &Bytes| known.get(body).map(|message| message.value.clone());
        let number = |body: &Bytes| *number(body).unwrap().downcast::<u32>().unwrap();
        assert_eq!([number(&taken[0]), number(&taken[1])], [0, 1]);
        assert!(known.get(&taken[2]).is_none());
    }

    #[test]
    fn new_bodies_share_the_bytes_of_their_response() {
        let mut values = Values::default();
        let held = resource("name", &Bytes::from_static(b"a"));
        values.insert(&"t".into(), &held, message(1), None);
        let first = parts("abbbbcccc", &[1, 4, 4]);
        let mut new = response(&first);
        values.recognize(&mut new);
        let taken = bodies(&new);
        assert_eq!(taken[1].as_ptr(), first[1].as_ptr());
        assert_eq!(taken[2].as_ptr(), first[2].as_ptr());
    }

    #[test]
    fn the_same_bytes_of_another_type_are_another_message() {
        let mut values = Values::default();
        let body = Bytes::from_static(b"body");
        let held = resource("name", &body);
        values.insert(&"other".into(), &held, message(1), None);
        let mut new = response(&[body]);
        let known = values.recognize(&mut new);
        assert!(known.get(&bodies(&new)[0]).is_none());
    }
}
