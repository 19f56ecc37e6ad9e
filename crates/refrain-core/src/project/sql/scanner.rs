//! The tokenizer: enough of both dialects to know what is *not* a bind and not the end of a statement.

use std::ops::Range;

use super::{Dialect, WHAT};
use crate::ParseError;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// Whitespace or a comment.
    Nothing,
    /// A keyword, a name, a number.
    Word,
    /// `:name`.
    Bind,
    /// `;`.
    End,
    /// Anything else: a string, a quoted name, an operator.
    Other,
}

/// Splits a text into tokens without gaps.
pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
    dialect: Dialect,
}

type Scanned = Result<(Token, usize), ParseError>;

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str, dialect: Dialect) -> Scanner<'t> {
        Scanner { text, at: 0, dialect }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The token at the current position and its length.
    fn token(&self, first: char) -> Scanned {
        let rest = self.rest();
        let after = |begin: usize| rest.get(begin..).unwrap_or_default();
        let (sqlite, postgres) = (self.dialect == Dialect::Sqlite, self.dialect == Dialect::Postgres);
        match first {
            _ if rest.starts_with("--") => Ok((Token::Nothing, rest.find('\n').unwrap_or(rest.len()))),
            _ if rest.starts_with("/*") => self.comment(),
            '\'' | '"' => self.quoted(first, 1, false),
            '`' if sqlite => self.quoted('`', 1, false),
            '[' if sqlite => self.quoted(']', 1, false),
            'e' | 'E' if postgres && after(1).starts_with('\'') => self.quoted('\'', 2, true),
            '$' if postgres => self.dollar(),
            '?' | '@' | '$' if sqlite => self.foreign(1 + word_length(after(1))),
            ':' if rest.starts_with("::") || rest.starts_with(":=") => Ok((Token::Other, 2)),
            ':' if !self.follows_word() => match path_length(after(1)) {
                0 => Ok((Token::Other, 1)),
                length => Ok((Token::Bind, 1 + length)),
            },
            ';' => Ok((Token::End, 1)),
            _ if first.is_whitespace() => Ok((Token::Nothing, first.len_utf8())),
            _ if is_word(first) => Ok((Token::Word, self.word())),
            _ => Ok((Token::Other, first.len_utf8())),
        }
    }

    fn follows_word(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        before.ends_with(|last: char| is_word(last) || last == ']' || last == ')')
    }

    /// In PostgreSQL a `$` inside a word is part of the word and does not begin a quote.
    fn word(&self) -> usize {
        let rest = self.rest();
        let belongs = |c: char| is_word(c) || (c == '$' && self.dialect == Dialect::Postgres);
        rest.find(|c: char| !belongs(c)).unwrap_or(rest.len())
    }

    fn comment(&self) -> Scanned {
        let rest = self.rest();
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(here) = rest.get(at..).filter(|here| !here.is_empty()) {
            let nests = depth == 0 || self.dialect == Dialect::Postgres;
            if here.starts_with("/*") && nests {
                depth += 1;
                at += 2;
            } else if here.starts_with("*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Ok((Token::Nothing, at));
                }
            } else {
                at += here.chars().next().map_or(1, char::len_utf8);
            }
        }
        self.fault(2, "this comment is never closed", "close it with `*/`")
    }

    /// A quoted text with `opening` bytes of opening quote; a doubled quote stands for one.
    fn quoted(&self, quote: char, opening: usize, backslash_escapes: bool) -> Scanned {
        let rest = self.rest();
        let mut characters = rest.char_indices().skip_while(|(at, _)| *at < opening).peekable();
        while let Some((at, character)) = characters.next() {
            if character == '\\' && backslash_escapes {
                characters.next();
            } else if character == quote {
                let is_doubled = quote != ']' && characters.next_if(|(_, next)| *next == quote).is_some();
                if !is_doubled {
                    return Ok((Token::Other, at + 1));
                }
            }
        }
        self.fault(opening, "this quote is never closed", "close it, and double each quote inside")
    }

    /// `$$ … $$` or `$tag$ … $tag$`; any other `$` is an unsupported parameter.
    fn dollar(&self) -> Scanned {
        let rest = self.rest();
        let inner = rest.get(1..).unwrap_or_default();
        let tag = word_length(inner);
        let is_tag = !inner.starts_with(|c: char| c.is_ascii_digit());
        let Some(body) = inner.get(tag..).and_then(|body| body.strip_prefix('$')).filter(|_| is_tag) else {
            return self.foreign(1 + tag);
        };
        let fence = rest.get(..tag + 2).unwrap_or_default();
        match body.find(fence) {
            Some(length) => Ok((Token::Other, fence.len() * 2 + length)),
            None => self.fault(fence.len(), "this quote is never closed", "close it with the same tag"),
        }
    }

    fn foreign(&self, length: usize) -> Scanned {
        self.fault(length, "values must be bound by name", "write :ds, :window_start, :scope or another name")
    }

    fn fault(&self, length: usize, reason: &str, help: &str) -> Scanned {
        Err(ParseError::new(WHAT, self.text, self.at..self.at + length, reason).help(help))
    }
}

impl Iterator for Scanner<'_> {
    type Item = Result<(Token, Range<usize>), ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.rest().chars().next()?;
        let from = self.at;
        match self.token(first) {
            Ok((token, length)) => {
                self.at += length.max(1);
                Some(Ok((token, from..self.at)))
            }
            Err(error) => {
                self.at = self.text.len();
                Some(Err(error))
            }
        }
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !is_word(c)).unwrap_or(text.len())
}

/// The length of the name at the beginning: identifiers joined by dots.
fn path_length(text: &str) -> usize {
    let mut length = 0;
    loop {
        let rest = text.get(length..).unwrap_or_default();
        let segment = if length == 0 { rest } else { rest.strip_prefix('.').unwrap_or_default() };
        let starts = segment.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let end = segment.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(segment.len());
        if !starts {
            return length;
        }
        length += rest.len() - segment.len() + end;
    }
}
