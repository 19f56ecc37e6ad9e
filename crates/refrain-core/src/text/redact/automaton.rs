//! All forms of all secrets in one automaton (Aho-Corasick): the state after a text is the longest suffix of it that is a
//! prefix of a form.
//!
//! Not the crate of that name: the scan follows many spellings of one text and needs the length of a state's prefix, which
//! the crate does not expose. Children are a list of siblings and not a table, so a state takes 28 bytes; nearly all of
//! them have one child.

use super::forms::SecretForm;

/// The state in which no form has begun.
pub(super) const ROOT: u32 = 0;
const NONE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Automaton {
    states: Vec<State>,
    /// The children of the root by byte, because nearly every byte of a text is looked up there.
    first: Vec<u32>,
}

#[derive(Clone, Copy)]
struct State {
    byte: u8,
    is_encoded: bool,
    child: u32,
    sibling: u32,
    /// The state of the longest proper suffix.
    shorter: u32,
    /// The longest proper suffix that has a child this state does not have. The search for a byte without a child here goes on
    /// there: in a secret that repeats a letter, none of the suffixes in between has another child.
    other: u32,
    depth: u32,
    /// The length of the longest form that ends here.
    found: u32,
}

impl Automaton {
    pub(super) fn of(forms: impl Iterator<Item = SecretForm>) -> Automaton {
        let root = State {
            byte: 0,
            is_encoded: false,
            child: NONE,
            sibling: NONE,
            shorter: ROOT,
            other: ROOT,
            depth: 0,
            found: 0,
        };
        let mut automaton = Automaton { states: vec![root], first: Vec::new() };
        forms.for_each(|form| automaton.insert(&form));
        automaton.first = (0..=u8::MAX).map(|byte| automaton.child(ROOT, byte).unwrap_or(ROOT)).collect();
        automaton.link();
        automaton.states.shrink_to_fit();
        automaton
    }

    pub(super) fn is_empty(&self) -> bool {
        self.states.len() <= 1
    }

    pub(super) fn size(&self) -> usize {
        self.states.capacity() * size_of::<State>() + self.first.capacity() * size_of::<u32>()
    }

    /// The state after one more byte.
    pub(super) fn next(&self, mut state: u32, byte: u8) -> u32 {
        while state != ROOT {
            if let Some(child) = self.child(state, byte) {
                return child;
            }
            state = self.state(state).other;
        }
        self.first.get(usize::from(byte)).copied().unwrap_or(ROOT)
    }

    pub(super) fn depth(&self, state: u32) -> u32 {
        self.state(state).depth
    }

    pub(super) fn found(&self, state: u32) -> u32 {
        self.state(state).found
    }

    pub(super) fn is_encoded(&self, state: u32) -> bool {
        self.state(state).is_encoded
    }

    fn state(&self, index: u32) -> State {
        let nowhere = State {
            byte: 0,
            is_encoded: false,
            child: NONE,
            sibling: NONE,
            shorter: ROOT,
            other: ROOT,
            depth: 0,
            found: 0,
        };
        self.states.get(index as usize).copied().unwrap_or(nowhere)
    }

    fn child(&self, state: u32, byte: u8) -> Option<u32> {
        let mut child = self.state(state).child;
        while child != NONE {
            let here = self.state(child);
            if here.byte == byte {
                return Some(child);
            }
            child = here.sibling;
        }
        None
    }

    fn insert(&mut self, form: &SecretForm) {
        let mut state = ROOT;
        for (depth, byte) in (1..).zip(&form.bytes) {
            state = match self.child(state, *byte) {
                Some(child) => child,
                None => self.add(state, *byte, depth),
            };
            if let Some(here) = self.states.get_mut(state as usize) {
                here.is_encoded |= form.is_encoded;
            }
        }
        if let Some(last) = self.states.get_mut(state as usize) {
            last.found = last.depth;
        }
    }

    fn add(&mut self, parent: u32, byte: u8, depth: u32) -> u32 {
        let Ok(index) = u32::try_from(self.states.len()) else { return ROOT };
        let sibling = self.state(parent).child;
        self.states.push(State {
            byte,
            is_encoded: false,
            child: NONE,
            sibling,
            shorter: ROOT,
            other: ROOT,
            depth,
            found: 0,
        });
        if let Some(parent) = self.states.get_mut(parent as usize) {
            parent.child = index;
        }
        index
    }

    /// Visits the states level by level, so that a state's suffix is complete before the state.
    fn link(&mut self) {
        let mut level = vec![ROOT];
        while !level.is_empty() {
            let mut below = Vec::new();
            for parent in level {
                let mut child = self.state(parent).child;
                while child != NONE {
                    self.lean(parent, child);
                    below.push(child);
                    child = self.state(child).sibling;
                }
            }
            level = below;
        }
    }

    /// Whether a byte follows one state that does not follow another.
    fn offers_more(&self, one: u32, than: u32) -> bool {
        let mut child = self.state(one).child;
        while child != NONE {
            let here = self.state(child);
            if self.child(than, here.byte).is_none() {
                return true;
            }
            child = here.sibling;
        }
        false
    }

    fn lean(&mut self, parent: u32, child: u32) {
        let shorter = match parent {
            ROOT => ROOT,
            _ => self.next(self.state(parent).shorter, self.state(child).byte),
        };
        let found = self.state(shorter).found;
        let other = if self.offers_more(shorter, child) { shorter } else { self.state(shorter).other };
        if let Some(child) = self.states.get_mut(child as usize) {
            child.shorter = shorter;
            child.other = other;
            child.found = child.found.max(found);
        }
    }
}
