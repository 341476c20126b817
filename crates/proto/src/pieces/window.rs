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
    /// The range of its value, if it has this number and is length-delimited.
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
    /// Opens an empty window into a source; nothing is read yet.
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            end: None,
            start: 0,
            bytes: Bytes::new(),
        }
    }

    /// Returns the length of the source, which is found once and remembered.
    pub(super) fn end(&mut self) -> Result<u64, PiecesError> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        let end = self.source.seek(SeekFrom::End(0))?;
        self.end = Some(end);
        Ok(end)
    }

    /// Returns the bytes of a range that lies within the source. If they are
    /// not in memory, the window moves to the start of the range, and a chunk
    /// is read, or the range if that is larger.
    pub(super) fn load(&mut self, range: Range<u64>) -> Result<Bytes, PiecesError> {
        let loaded = self.start..self.start + self.bytes.len() as u64;
        if range.start < loaded.start || range.end > loaded.end {
            self.move_to(&range)?;
        }
        let start = (range.start - self.start) as usize;
        let end = (range.end - self.start) as usize;
        Ok(self.bytes.slice(start..end))
    }

    /// Moves the window to the start of a range, and reads a chunk of the
    /// source there, or the range if that is larger.
    fn move_to(&mut self, range: &Range<u64>) -> Result<(), PiecesError> {
        let end = self.end()?;
        let chunk_end = range.end.max(end.min(range.start + CHUNK));
        let len = usize::try_from(chunk_end - range.start).map_err(|_| PiecesError::Cut(end))?;
        let mut bytes = vec![0; len];

        self.source.seek(SeekFrom::Start(range.start))?;
        // A source that became shorter meanwhile ends too early.
        self.source.read_exact(&mut bytes)?;
        self.start = range.start;
        self.bytes = bytes.into();
        Ok(())
    }

    /// Takes the first field off a range that is not empty: the range begins
    /// behind it then.
    pub(super) fn take_field(&mut self, left: &mut Range<u64>) -> Result<Field, PiecesError> {
        let field = self.find_field(left.clone(), 0)?;
        left.start = field.whole.end;
        Ok(field)
    }

    /// Finds the first field within a range that is not empty, without reading
    /// its value; `depth` counts the groups around it. A field that does not
    /// end within the range is an error.
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

    /// Finds the end of a group whose first `key` is before the range `left`;
    /// `depth` counts the groups around it.
    fn find_group_end(
        &mut self,
        key: u64,
        mut left: Range<u64>,
        depth: usize,
    ) -> Result<u64, PiecesError> {
        // Its last key differs from its first in the wire type only, and the one
        // of an end is the next after that of a start.
        let last_key = key + 1;
        loop {
            let (next_key, after_key) = self.read_varint(left.clone())?;
            if next_key == last_key {
                return Ok(after_key);
            }
            left.start = self.find_field(left.clone(), depth + 1)?.whole.end;
        }
    }

    /// Reads a varint at the start of a range; returns it and the offset after
    /// it. One that does not end in ten bytes, or in the range, is an error.
    fn read_varint(&mut self, range: Range<u64>) -> Result<(u64, u64), PiecesError> {
        let bytes = self.load(range.start..range.end.min(range.start + LONGEST))?;
        let mut number = 0;
        for (place, byte) in bytes.iter().enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * place);
            if *byte < 0x80 {
                return Ok((number, range.start + place as u64 + 1));
            }
        }

        match bytes.len() as u64 {
            LONGEST => Err(PiecesError::NoField(range.start)),
            _ => Err(PiecesError::Cut(range.end)),
        }
    }
}
