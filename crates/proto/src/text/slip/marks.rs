//! The quotes and brackets of a text in YAML, up to the place at which its
//! parser gave up.

use super::{super::tree::Position, Slip, closing};

/// Quotes and brackets.
pub(super) struct Marks<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    /// The place of the next character.
    here: Position,
    /// The place of the parser's error.
    end: Position,
    /// The brackets that are open, from the outside in.
    open: Vec<(char, Position)>,
    /// The last text in quotes that began before `end`: its quote, its place,
    /// and the place after it, if it is closed.
    quoted: Option<(char, Position, Option<Position>)>,
    /// The slips of brackets that were found so far.
    slip: Option<(Position, Slip)>,
    /// The brackets that were open at `end`.
    open_at_end: Option<Vec<(char, Position)>>,
    /// Whether the next character begins a value, rather than to go on with
    /// one.
    begins: bool,
    /// The column of the key, or of the last dash, that the line begins with.
    parent: usize,
    /// Whether only spaces and dashes were read of the line.
    in_indent: bool,
}

impl<'a> Marks<'a> {
    /// Reads a text whose parser gave up at `end`: to the end of the text, for
    /// what is closed later is closed.
    pub(super) fn read(text: &'a str, end: Position) -> Self {
        let mut marks = Self {
            chars: text.chars().peekable(),
            here: Position::START,
            end,
            open: Vec::new(),
            quoted: None,
            slip: None,
            open_at_end: None,
            begins: true,
            parent: 1,
            in_indent: true,
        };
        while let Some(character) = marks.chars.peek().copied() {
            marks.note_end();
            marks.read_token(character);
        }
        marks.note_end();
        marks
    }

    /// Returns the slip that explains the parser's error.
    pub(super) fn slip(self) -> Option<(Position, Slip)> {
        self.quote_slip().or_else(|| self.bracket_slip())
    }

    /// Returns the slip of the quote before the error, if it is about that one.
    fn quote_slip(&self) -> Option<(Position, Slip)> {
        let (quote, position, after) = self.quoted?;
        match after {
            None => Some((position, Slip::Quote(quote))),
            // It was closed by the quote that should have opened the next.
            Some(after) if position.line < after.line && after.line == self.end.line => {
                Some((position, Slip::Quote(quote)))
            }
            // The parser gave up at its beginning.
            Some(after) if position == self.end && position.line < after.line => {
                Some((position, Slip::Quote(quote)))
            }
            Some(after) if self.goes_on(after) => Some((self.end, Slip::AfterQuote(quote))),
            Some(_) => None,
        }
    }

    /// Returns whether the error is directly after a text in quotes. Between
    /// brackets, what follows after a space is something else.
    fn goes_on(&self, after: Position) -> bool {
        let in_brackets = self
            .open_at_end
            .as_ref()
            .is_some_and(|open| !open.is_empty());
        let near = after.column..after.column + if in_brackets { 1 } else { 3 };
        after.line == self.end.line && near.contains(&self.end.column)
    }

    /// Returns the slip of brackets around the error.
    fn bracket_slip(&self) -> Option<(Position, Slip)> {
        if let Some((position, slip)) = &self.slip {
            return Some((*position, slip.clone()));
        }
        let open_at_end = self.open_at_end.as_ref()?;
        let &(bracket, position) = open_at_end.last()?;
        match self.open.contains(&(bracket, position)) {
            true => Some((position, Slip::Bracket(bracket))),
            false => Some((self.end, Slip::NoComma)),
        }
    }

    /// Notes which brackets are open when the place of the error is reached.
    fn note_end(&mut self) {
        if self.open_at_end.is_none() && (self.here >= self.end || self.chars.peek().is_none()) {
            self.open_at_end = Some(self.open.clone());
        }
    }

    /// Takes the next character.
    fn take(&mut self) -> Option<char> {
        let character = self.chars.next()?;
        match character {
            '\n' => {
                self.here.line += 1;
                self.here.column = 1;
                self.begins = true;
                self.in_indent = true;
                self.parent = 1;
            }
            _ => self.here.column += 1,
        }
        Some(character)
    }

    /// Reads what begins with a character: a text in quotes, a bracket, a
    /// comment, a block of text, or a single character.
    fn read_token(&mut self, character: char) {
        let is_flow = !self.open.is_empty();
        match character {
            '"' | '\'' if self.begins => self.read_quoted(character),
            '[' | '{' if self.begins => {
                self.leave_indent();
                self.open.push((character, self.here));
                self.take();
            }
            ']' | '}' if is_flow || self.begins => self.close(character),
            ',' if is_flow => {
                self.take();
                self.begins = true;
            }
            '#' if self.begins => self.skip_line(),
            '|' | '>' if self.begins && !is_flow => self.skip_block(),
            _ => self.read_plain(character),
        }
    }

    /// Reads one character outside of quotes.
    fn read_plain(&mut self, character: char) {
        let position = self.here;
        self.take();
        let before_space = self.chars.peek().is_none_or(|next| next.is_whitespace());
        match character {
            '-' if self.in_indent && before_space => self.parent = position.column,
            ':' if before_space => self.begins = true,
            ' ' | '\t' => {
                // A comment begins after a space.
                if self.chars.peek() == Some(&'#') {
                    self.skip_line();
                }
            }
            character if character.is_whitespace() => {}
            _ => {
                if self.in_indent {
                    self.parent = position.column;
                }
                self.in_indent = false;
                self.begins = false;
            }
        }
    }

    /// Ends the indentation of a line with what stands here.
    fn leave_indent(&mut self) {
        if self.in_indent {
            self.parent = self.here.column;
        }
        self.in_indent = false;
    }

    /// Closes the last bracket that is open.
    fn close(&mut self, close: char) {
        let position = self.here;
        self.take();
        self.begins = false;
        let slip = match self.open.pop() {
            Some((open, _)) if closing(open) == close => return,
            Some((open, start)) => (
                start,
                Slip::WrongBracket {
                    open,
                    close,
                    at: position,
                },
            ),
            None => (position, Slip::ClosesNothing(close)),
        };
        if position <= self.end {
            self.slip.get_or_insert(slip);
        }
    }

    /// Reads a text in quotes, up to the end of the text if it is not closed.
    fn read_quoted(&mut self, quote: char) {
        let position = self.here;
        self.leave_indent();
        self.take();
        let mut is_closed = false;
        while let Some(character) = self.take() {
            match character {
                '\\' if quote == '"' => drop(self.take()),
                '\'' if quote == '\'' && self.chars.peek() == Some(&'\'') => drop(self.take()),
                character if character == quote => {
                    is_closed = true;
                    break;
                }
                _ => {}
            }
        }
        self.begins = false;
        self.in_indent = false;
        if position <= self.end {
            self.quoted = Some((quote, position, is_closed.then_some(self.here)));
        }
    }

    /// Passes over the rest of the line, but not over its end.
    fn skip_line(&mut self) {
        while self.chars.peek().is_some_and(|c| *c != '\n') {
            self.take();
        }
    }

    /// Passes over a block of text: the lines that are indented deeper than
    /// what it belongs to.
    fn skip_block(&mut self) {
        let parent = self.parent;
        self.skip_line();
        while self.chars.peek().is_some() {
            self.take();
            let mut ahead = self.chars.clone();
            let spaces = std::iter::from_fn(|| ahead.next_if_eq(&' ')).count();
            let is_blank = ahead.peek().is_none_or(|c| matches!(c, '\r' | '\n'));
            if !is_blank && spaces < parent {
                return;
            }
            self.skip_line();
        }
    }
}
