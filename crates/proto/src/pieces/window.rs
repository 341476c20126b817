//! A window into a source, and the fields in it.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use bytes::Bytes;
use prost::encoding::WireType;

use super::PiecesError;

/// The number of bytes read at once.
const CHUNK: u64 = 1 << 20;
/// The length of the longest varint.
const LONGEST: u64 = 10;
/// The maximum of groups inside each other.
const DEEPEST: usize = 100;

/// A field, by its range.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// The range of its value, if it is length-delimited.
    value: Option<Range<u64>>,
    /// The range with its key.
    pub(super) whole: Range<u64>,
}

impl Field {
    /// Returns the range of its value, if it has this number and is
    /// length-delimited.
    pub(super) fn value_of(&self, number: u32) -> Option<Range<u64>> {
        self.value.clone().filter(|_| self.number == number)
    }
}

/// A part of a source that is in memory.
#[derive(Debug)]
pub(super) struct Window<R> {
    source: R,
    /// The length of the source, once it is known.
    end: Option<u64>,
    /// The offset of `bytes` in the source.
    start: u64,
    bytes: Bytes,
}

impl<R: Read + Seek> Window<R> {
    /// Opens an empty window into a source. Reads nothing yet.
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            end: None,
            start: 0,
            bytes: Bytes::new(),
        }
    }

    /// Returns the length of the source. The first call finds it, and later
    /// calls return the same.
    pub(super) fn source_length(&mut self) -> Result<u64, PiecesError> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        let end = self.source.seek(SeekFrom::End(0))?;
        self.end = Some(end);
        Ok(end)
    }

    /// Returns the bytes of a range within the source. If they are not in
    /// memory, moves the window to the start of the range and reads a chunk; or
    /// the whole range, if that is larger.
    pub(super) fn load(&mut self, range: Range<u64>) -> Result<Bytes, PiecesError> {
        let loaded = self.start..self.start + self.bytes.len() as u64;
        if range.start < loaded.start || range.end > loaded.end {
            self.move_to(&range)?;
        }
        let start = (range.start - self.start) as usize;
        let end = (range.end - self.start) as usize;
        Ok(self.bytes.slice(start..end))
    }

    /// Moves the window to the start of a range and reads a chunk of the source
    /// there; or the whole range, if that is larger.
    ///
    /// # Errors
    /// The source cannot be read, or became shorter since its length was found.
    fn move_to(&mut self, range: &Range<u64>) -> Result<(), PiecesError> {
        let end = self.source_length()?;
        let chunk_end = range.end.max(end.min(range.start + CHUNK));
        let len = usize::try_from(chunk_end - range.start).map_err(|_| PiecesError::Cut(end))?;
        let mut bytes = vec![0; len];

        self.source.seek(SeekFrom::Start(range.start))?;
        // This fails if the source became shorter meanwhile.
        self.source.read_exact(&mut bytes)?;
        self.start = range.start;
        self.bytes = bytes.into();
        Ok(())
    }

    /// Takes the first field off a range that is not empty: the range begins
    /// behind it then.
    pub(super) fn take_field(&mut self, unread: &mut Range<u64>) -> Result<Field, PiecesError> {
        let field = self.find_field(unread.clone(), 0)?;
        unread.start = field.whole.end;
        Ok(field)
    }

    /// Finds the first field of a range, which must not be empty, without
    /// reading the value. `depth` is the number of enclosing groups.
    ///
    /// # Errors
    /// The field is malformed, or does not end within the range.
    fn find_field(&mut self, range: Range<u64>, depth: usize) -> Result<Field, PiecesError> {
        let start = range.start;
        let no_field = || PiecesError::NoField(start);
        let (key, mut offset) = self.read_varint(range.clone())?;
        let number = u32::try_from(key >> 3).map_err(|_| no_field())?;
        if number == 0 {
            return Err(no_field());
        }

        let mut value = None;
        match WireType::try_from(key & 7) {
            Ok(WireType::Varint) => offset = self.read_varint(offset..range.end)?.1,
            Ok(WireType::SixtyFourBit) => offset += 8,
            Ok(WireType::LengthDelimited) => {
                let (len, value_start) = self.read_varint(offset..range.end)?;
                offset = value_start.checked_add(len).ok_or_else(no_field)?;
                value = Some(value_start..offset);
            }
            Ok(WireType::StartGroup) if depth < DEEPEST => {
                offset = self.find_group_end(key, offset..range.end, depth)?;
            }
            Ok(WireType::ThirtyTwoBit) => offset += 4,
            _ => return Err(no_field()),
        }

        if offset > range.end {
            return Err(PiecesError::Cut(range.end));
        }
        Ok(Field {
            number,
            value,
            whole: start..offset,
        })
    }

    /// Finds the end of a group whose first key is `key`. The range `unread`
    /// begins after that key. `depth` is the number of enclosing groups.
    fn find_group_end(
        &mut self,
        key: u64,
        mut unread: Range<u64>,
        depth: usize,
    ) -> Result<u64, PiecesError> {
        // The two keys of a group differ only in the wire type, and the number of
        // the type that ends a group is one more than that which starts it.
        let last_key = key + 1;
        loop {
            let (next_key, after_key) = self.read_varint(unread.clone())?;
            if next_key == last_key {
                return Ok(after_key);
            }
            unread.start = self.find_field(unread.clone(), depth + 1)?.whole.end;
        }
    }

    /// Reads a varint at the start of a range. Returns the number and the
    /// offset after the varint.
    ///
    /// # Errors
    /// The varint does not end within ten bytes, or within the range.
    fn read_varint(&mut self, range: Range<u64>) -> Result<(u64, u64), PiecesError> {
        let bytes = self.load(range.start..range.end.min(range.start + LONGEST))?;
        let mut number = 0;
        for (index, byte) in bytes.iter().enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                return Ok((number, range.start + index as u64 + 1));
            }
        }

        match bytes.len() as u64 {
            LONGEST => Err(PiecesError::NoField(range.start)),
            _ => Err(PiecesError::Cut(range.end)),
        }
    }
}
