//! The quotes and brackets of a text in YAML, up to the place at which its
//! parser gave up.

use super::{super::tree::Position, Slip, closing};

/// Quotes and brackets.
pub(super) struct Marks<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    /// The place of the next character.
    position: Position,
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
    /// Reads a text whose parser failed at `end`. Reads on to the end of the
    /// text, to know which brackets and quotes are closed later.
    pub(super) fn read(text: &'a str, end: Position) -> Self {
        let mut marks = Self {
            chars: text.chars().peekable(),
            position: Position::START,
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

    /// Returns the slip of the last quote before the error, if the error is
    /// about that quote.
    fn quote_slip(&self) -> Option<(Position, Slip)> {
        let (quote, position, end_position) = self.quoted?;
        match end_position {
            None => Some((position, Slip::Quote(quote))),
            // The quote that should open the next text has closed this one.
            Some(end_position)
                if position.line < end_position.line && end_position.line == self.end.line =>
            {
                Some((position, Slip::Quote(quote)))
            }
            // The parser failed at the beginning of this text.
            Some(end_position) if position == self.end && position.line < end_position.line => {
                Some((position, Slip::Quote(quote)))
            }
            Some(end_position) if self.has_text_after_quote(end_position) => {
                Some((self.end, Slip::AfterQuote(quote)))
            }
            Some(_) => None,
        }
    }

    /// Returns whether the error is directly after a text in quotes. Between
    /// brackets, a character after a space is another value.
    fn has_text_after_quote(&self, end: Position) -> bool {
        let is_in_brackets = self
            .open_at_end
            .as_ref()
            .is_some_and(|open| !open.is_empty());
        let columns = end.column..end.column + if is_in_brackets { 1 } else { 3 };
        end.line == self.end.line && columns.contains(&self.end.column)
    }

    /// Returns the slip of brackets around the error. Returns `None` if no
    /// bracket is open there.
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
        if self.open_at_end.is_none() && (self.position >= self.end || self.chars.peek().is_none())
        {
            self.open_at_end = Some(self.open.clone());
        }
    }

    /// Takes the next character and advances the position. Returns `None` at
    /// the end of the text.
    fn take_char(&mut self) -> Option<char> {
        let character = self.chars.next()?;
        match character {
            '\n' => {
                self.position.line += 1;
                self.position.column = 1;
                self.begins = true;
                self.in_indent = true;
                self.parent = 1;
            }
            _ => self.position.column += 1,
        }
        Some(character)
    }

    /// Reads one token: a text in quotes, a bracket, a comment, a block of
    /// text, or a single character.
    fn read_token(&mut self, character: char) {
        let is_flow = !self.open.is_empty();
        match character {
            '"' | '\'' if self.begins => self.read_quoted(character),
            '[' | '{' if self.begins => {
                self.leave_indent();
                self.open.push((character, self.position));
                self.take_char();
            }
            ']' | '}' if is_flow || self.begins => self.close_bracket(character),
            ',' if is_flow => {
                self.take_char();
                self.begins = true;
            }
            '#' if self.begins => self.skip_line(),
            '|' | '>' if self.begins && !is_flow => self.skip_block(),
            _ => self.read_plain(character),
        }
    }

    /// Reads one character outside of quotes.
    fn read_plain(&mut self, character: char) {
        let position = self.position;
        self.take_char();
        let before_space = self
            .chars
            .peek()
            .is_none_or(|following| following.is_whitespace());

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
            self.parent = self.position.column;
        }
        self.in_indent = false;
    }

    /// Closes the innermost open bracket. Records a slip if the brackets do not
    /// match, and this is before the error.
    fn close_bracket(&mut self, close: char) {
        let position = self.position;
        self.take_char();
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

    /// Reads a text in quotes. Without a closing quote, reads to the end of the
    /// text.
    fn read_quoted(&mut self, quote: char) {
        let position = self.position;
        self.leave_indent();
        self.take_char();
        let mut is_closed = false;
        while let Some(character) = self.take_char() {
            match character {
                '\\' if quote == '"' => drop(self.take_char()),
                '\'' if quote == '\'' && self.chars.peek() == Some(&'\'') => drop(self.take_char()),
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
            self.quoted = Some((quote, position, is_closed.then_some(self.position)));
        }
    }

    /// Passes over the rest of the line, but not over its end.
    fn skip_line(&mut self) {
        while self.chars.peek().is_some_and(|c| *c != '\n') {
            self.take_char();
        }
    }

    /// Skips a block of text: the lines with a deeper indentation than the key
    /// or item of the block.
    fn skip_block(&mut self) {
        let parent = self.parent;
        self.skip_line();
        while self.chars.peek().is_some() {
            self.take_char();
            let mut ahead = self.chars.clone();
            let spaces = std::iter::from_fn(|| ahead.next_if_eq(&' ')).count();
            let is_blank = ahead
                .peek()
                .is_none_or(|following| matches!(following, '\r' | '\n'));
            if !is_blank && spaces < parent {
                return;
            }
            self.skip_line();
        }
    }
}
