//! The memory that reading a text takes, counted before it is taken.
//!
//! A value of two bytes takes hundreds as a tree and as a message, and an alias
//! of three bytes takes as much as its anchor, so a limit of bytes alone lets a
//! text take many times the memory of what it is. The costs are those measured
//! for the worst shapes of text, not those of a usual one.

use super::{
    Limits,
    error::Problem,
    tree::{Node, Value},
};

/// The cost of a scalar or a key, beside its bytes.
pub(super) const SCALAR: u64 = 160;
/// The cost of a list or a mapping, which has room for four entries at once.
const COLLECTION: u64 = 400;
/// The cost of a message, which has room for eleven fields at once.
pub(super) const MESSAGE: u64 = 800;
/// The cost of a resource, beside its message.
pub(super) const RESOURCE: u64 = 1200;

/// The memory that a text takes.
#[derive(Debug, Clone)]
pub(super) struct Budget<'a> {
    limits: &'a Limits,
    /// Bytes of memory that were charged.
    charged: u64,
    /// Values that were copied, for anchors and aliases.
    copied: usize,
    /// The bytes of those copies.
    copied_bytes: usize,
}

impl<'a> Budget<'a> {
    /// Makes the budget of a text before it is read. The bytes of the text
    /// count twice, since the tree has them too.
    pub(super) fn of_text(text: &str, limits: &'a Limits) -> Self {
        Self {
            limits,
            charged: 2 * text.len() as u64,
            copied: 0,
            copied_bytes: 0,
        }
    }

    /// Returns the bytes of memory that were counted so far.
    pub(super) fn charged_bytes(&self) -> u64 {
        self.charged
    }

    /// Counts a scalar or a key before it is made.
    pub(super) fn charge_scalar(&mut self) -> Result<(), Problem> {
        self.charge(SCALAR)
    }

    /// Counts a list or a mapping before it is made.
    pub(super) fn charge_collection(&mut self) -> Result<(), Problem> {
        self.charge(COLLECTION)
    }

    /// Counts a copy by an alias before it is made.
    ///
    /// # Errors
    /// The copies are more or longer than a limit.
    pub(super) fn charge_copy(&mut self, size: &Size) -> Result<(), Problem> {
        self.copied += size.values;
        self.copied_bytes = self.copied_bytes.saturating_add(size.bytes);
        let (max, max_bytes) = (self.limits.expanded, self.limits.bytes);
        if self.copied > max {
            return Err(Problem::TooManyAliases { max });
        }
        if self.copied_bytes > max_bytes {
            return Err(Problem::LongAliases { max: max_bytes });
        }
        self.charge(size.values as u64 * COLLECTION + size.bytes as u64)
    }

    /// Counts `cost` bytes of memory.
    ///
    /// # Errors
    /// The memory is more than the limit.
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), Problem> {
        charge(&mut self.charged, cost, self.limits)
    }
}

/// Adds a cost to the memory that the text takes.
///
/// # Errors
/// The memory is more than the limit.
pub(super) fn charge(charged: &mut u64, cost: u64, limits: &Limits) -> Result<(), Problem> {
    *charged = charged.saturating_add(cost);
    let max = limits.memory;
    match *charged > max {
        true => Err(Problem::TooHeavy { max }),
        false => Ok(()),
    }
}

/// The size of a tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Scalars, keys, lists and mappings.
    pub(super) values: usize,
    /// Collections inside each other; zero for a scalar.
    pub(super) levels: usize,
    /// The bytes of scalars and keys.
    pub(super) bytes: usize,
}

impl Size {
    /// Measures a tree. The recursion is bounded, since the parser limits the
    /// levels.
    pub(super) fn measure(node: &Node) -> Self {
        let mut size = Self {
            values: 1,
            ..Self::default()
        };

        match &node.value {
            Value::List(list) => {
                size.levels = 1;
                list.iter().for_each(|item| size.add_inner(item));
            }
            Value::Map(map) => {
                size.levels = 1;
                for entry in map {
                    size.values += 1;
                    size.bytes += entry.key.len();
                    size.add_inner(&entry.node);
                }
            }
            Value::Number(text) | Value::Float(text) | Value::String(text) => {
                size.bytes = text.len();
            }
            Value::Null | Value::Bool(_) => {}
        }
        size
    }

    /// Adds a value that is inside of this collection.
    fn add_inner(&mut self, node: &Node) {
        let inner = Self::measure(node);
        self.values += inner.values;
        self.bytes += inner.bytes;
        self.levels = self.levels.max(inner.levels + 1);
    }
}
