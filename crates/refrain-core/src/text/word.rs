//! Words: small closed sets, in which each word has one stable text and one meaning.
//!
//! States, events and policies are stored, printed and typed with the same text. An enum made by `words!` has that text in
//! one place, and an unknown word is answered with the list of valid ones.

use std::fmt;

use crate::ParseError;

/// A closed set of words as an enum: each word has one stable text, and its comment is its meaning.
macro_rules! words {
    (
        $(#[$meta:meta])* $name:ident, $kind:literal
        { $(#[doc = $meaning:literal] $(#[$extra:meta])* $word:ident = $text:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $(#[doc = $meaning] $(#[$extra])* $word,)+ }

        impl $crate::Word for $name {
            const KIND: &'static str = $kind;
            const ALL: &'static [Self] = &[$(Self::$word),+];
            fn name(self) -> &'static str {
                match self { $(Self::$word => $text,)+ }
            }
            fn meaning(self) -> &'static str {
                match self { $(Self::$word => $meaning,)+ }.trim_ascii()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad($crate::Word::name(*self))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::Word::name(*self))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::ParseError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::word::read(text)
            }
        }
    };
}

/// One word of a closed set: a state, an event or a policy.
///
/// ```
/// use refrain_core::{Word, state::EffectState};
///
/// assert_eq!(EffectState::InDoubt.to_string(), "in-doubt");
/// assert_eq!("in-doubt".parse(), Ok(EffectState::InDoubt));
/// assert_eq!(EffectState::InDoubt.meaning(), "It may have happened or not: the answer was lost.");
/// ```
pub trait Word: Copy + Eq + fmt::Debug + 'static {
    /// What the set contains, as in "effect state".
    const KIND: &'static str;
    /// Every word, in reading order.
    const ALL: &'static [Self];
    /// The text that is stored, printed and typed. It never changes.
    fn name(self) -> &'static str;
    /// The meaning of the word, in one sentence.
    fn meaning(self) -> &'static str;
}

pub(crate) fn read<W: Word>(text: &str) -> Result<W, ParseError> {
    W::ALL.iter().copied().find(|word| word.name() == text).ok_or_else(|| {
        ParseError::whole(W::KIND, text, format!("this is not a valid {}", W::KIND))
            .help(format!("write one of: {}", list(W::ALL.iter().copied())))
    })
}

fn list<W: Word>(words: impl Iterator<Item = W>) -> String {
    words.map(Word::name).collect::<Vec<_>>().join(", ")
}
