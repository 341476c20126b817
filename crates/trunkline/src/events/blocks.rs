//! Bytes that are kept in the order in which they came, and dropped in that
//! order.
//!
//! They are in large blocks. An allocation for each event would live on among
//! what a burst of requests lets go of, and would keep a page of the allocator
//! for itself.

use std::collections::VecDeque;

/// The bytes of a block; a longer piece has a block of its own.
const BLOCK: usize = 64 << 10;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Oldest first.
    blocks: VecDeque<Block>,
    /// The number of the first block.
    first: u64,
}

#[derive(Debug)]
struct Block {
    bytes: Vec<u8>,
    /// How many pieces in it are kept.
    pieces: usize,
}

/// The place of a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The number of its block.
    block: u64,
    start: u32,
    end: u32,
}

impl Span {
    /// Returns the length of the piece.
    pub(super) fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

impl Blocks {
    /// Adds a piece after all others.
    pub(super) fn push(&mut self, piece: &[u8]) -> Span {
        let has_room = |block: &mut &mut Block| block.bytes.len() + piece.len() <= BLOCK;
        if self
            .blocks
            .back_mut()
            .as_mut()
            .is_none_or(|block| !has_room(block))
        {
            self.blocks.push_back(Block {
                bytes: Vec::with_capacity(BLOCK.max(piece.len())),
                pieces: 0,
            });
        }

        let number = self.first + self.blocks.len() as u64 - 1;
        let mut span = Span {
            block: number,
            start: 0,
            end: 0,
        };
        if let Some(block) = self.blocks.back_mut() {
            // A block is far shorter than `u32` can count, and so is an event.
            span.start = block.bytes.len() as u32;
            block.bytes.extend_from_slice(piece);
            span.end = block.bytes.len() as u32;
            block.pieces += 1;
        }
        span
    }

    /// Returns a piece that is kept.
    pub(super) fn get(&self, span: Span) -> &[u8] {
        let index = usize::try_from(span.block.saturating_sub(self.first));
        let block = index.ok().and_then(|index| self.blocks.get(index));
        let range = span.start as usize..span.end as usize;
        let piece = block.and_then(|block| block.bytes.get(range));
        piece.unwrap_or_default()
    }

    /// Drops the oldest piece, and its block with the last one in it.
    pub(super) fn pop(&mut self) {
        if let Some(block) = self.blocks.front_mut() {
            block.pieces -= 1;
            if block.pieces == 0 {
                self.blocks.pop_front();
                self.first += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_go_in_their_order_and_blocks_with_them() {
        let mut blocks = Blocks::default();
        let mut spans = VecDeque::new();
        let piece = |number: usize| vec![number as u8; number * 37 % 5000];
        for number in 0..1000 {
            spans.push_back((number, blocks.push(&piece(number))));
            if spans.len() > 100 {
                spans.pop_front();
                blocks.pop();
            }
            for (number, span) in &spans {
                assert_eq!(blocks.get(*span), piece(*number));
            }
            assert!(blocks.blocks.len() < 100 * 5000 / BLOCK + 3);
        }
        let long = blocks.push(&[1; 2 * BLOCK]);
        assert_eq!(blocks.get(long).len(), 2 * BLOCK);
        for _ in 0..=spans.len() {
            blocks.pop();
        }
        assert!(blocks.blocks.is_empty());
        let next = blocks.push(b"next");
        assert_eq!(blocks.get(next), b"next");
    }
}
