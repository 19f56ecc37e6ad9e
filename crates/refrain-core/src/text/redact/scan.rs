//! Follows every spelling of a text through the automaton, and releases what cannot be part of a secret.
//!
//! A place in the text can be reached in several ways: `%41` is three letters or one. So the text is a graph whose edges are
//! spellings, and each place has as many steps as there are states in which a path arrives there. Each step knows the one
//! before it. A form that ends at a step covers as many letters as it is long, backwards; that need is passed from step
//! to step in one pass, so overlapping secrets cost nothing.
//!
//! Base64 and hexadecimal may be broken into lines: a line break, and the blanks that begin the next line, are skipped.

use super::HIDDEN;
use super::automaton::{Automaton, ROOT};
use super::spelling::{LONGEST, Spelling, has_one_spelling, spellings};

const NONE: usize = usize::MAX;
/// The longest spelling ends at most so many places further.
const AHEAD: usize = LONGEST + 2;
/// The most steps at one place. Only text made for the purpose reaches more states in one place.
const STEPS_MAX: usize = 64;
/// The most blanks that are skipped between two lines.
const BLANKS_MAX: u8 = 64;
/// How much of an encoded secret must precede a line break to be held back until the next line arrives: many lines end
/// with a letter or two of one, and should be shown.
const TELLING: u32 = 4;

#[derive(Default)]
pub(super) struct Scan {
    /// The text that is held back; it begins at offset `base` of the whole.
    text: String,
    /// Which bytes of it are hidden.
    is_hidden: Vec<bool>,
    base: usize,
    /// The place up to which the text was followed.
    at: usize,
    steps: Vec<Step>,
    /// The steps that end at each of the next places.
    ends: [Vec<usize>; AHEAD],
    /// Whether the text shown last was hidden: a secret that continues it is hidden by the same mark.
    was_hidden: bool,
}

#[derive(Clone, Copy)]
struct Step {
    state: u32,
    before: usize,
    end: usize,
    length: usize,
    /// How many letters of a form it stands for; zero for a line break.
    letters: u32,
    /// How many blanks of a line break it ends.
    blanks: u8,
    /// How many letters, counted backwards from here, belong to a secret.
    need: u32,
}

impl Scan {
    pub(super) fn push(&mut self, chunk: &str) {
        self.text.push_str(chunk);
        self.is_hidden.resize(self.text.len(), false);
    }

    /// Follows the available text, and returns what can be shown.
    pub(super) fn go_on(&mut self, automaton: &Automaton, is_whole: bool) -> String {
        while self.at < self.base + self.text.len() {
            let rest = self.text.as_bytes().get(self.at - self.base..).unwrap_or_default();
            let Some(first) = rest.first().copied() else { break };
            let is_waited_for = self.ends.get(self.at % AHEAD).is_some_and(|ends| !ends.is_empty());
            if has_one_spelling(first) && !is_waited_for && automaton.next(ROOT, first) == ROOT {
                self.at += 1;
                continue;
            }
            let Ok(found) = spellings(rest, is_whole) else { break };
            let steps = self.ends.get_mut(self.at % AHEAD).map(std::mem::take).unwrap_or_default();
            for spelling in found {
                self.take(automaton, &steps, spelling);
            }
            self.at += 1;
        }
        self.hide();
        let sure = if is_whole { self.base + self.text.len() } else { self.sure(automaton) };
        self.show(sure)
    }

    /// Follows one spelling from each path that reaches its beginning, and from the beginning of a secret.
    fn take(&mut self, automaton: &Automaton, steps: &[usize], spelling: Spelling) {
        let letters = u32::try_from(spelling.letters().len()).unwrap_or_default();
        // The end of each path is an end of the empty one too: a new path begins only where none arrives.
        let beginning = (steps.is_empty() || spelling.is_alphabet).then_some(NONE);
        // For the same reason, a path that begins with this spelling is dropped where another continues with it.
        let (mut begun, mut has_gone_on) = (None, false);
        for before in steps.iter().copied().chain(beginning) {
            let from = self.steps.get(before).copied();
            let state = from.map_or(ROOT, |step| step.state);
            let state = spelling.letters().iter().fold(state, |state, letter| automaton.next(state, *letter));
            if state != ROOT && (!spelling.is_alphabet || automaton.is_encoded(state)) {
                let goes_on = automaton.depth(state) > letters;
                let (before, need) = (if goes_on { before } else { NONE }, automaton.found(state));
                let (end, length) = (self.at + spelling.length, spelling.length);
                let step = Step { state, before, end, length, letters, blanks: 0, need };
                has_gone_on |= goes_on;
                if goes_on { self.add(step) } else { begun = Some(step) }
            }
            if let Some(step) = from
                && automaton.is_encoded(step.state)
                && is_passed_over(step.blanks, &spelling)
            {
                let is_telling = automaton.depth(step.state) >= TELLING;
                self.add(Step {
                    before: if is_telling { before } else { NONE },
                    end: self.at + spelling.length,
                    length: spelling.length,
                    letters: 0,
                    blanks: step.blanks + 1,
                    need: 0,
                    ..step
                });
            }
        }
        if let Some(step) = begun.filter(|_| !has_gone_on) {
            self.add(step);
        }
    }

    fn add(&mut self, step: Step) {
        let Some(ends) = self.ends.get_mut(step.end % AHEAD) else { return };
        let is_known = |index: &usize| {
            let known = self.steps.get(*index);
            known.is_some_and(|known| known.state == step.state && known.blanks == step.blanks)
        };
        if ends.len() < STEPS_MAX && !ends.iter().any(is_known) {
            ends.push(self.steps.len());
            self.steps.push(step);
        }
    }

    /// Passes every need backwards: a step comes after the one before it.
    fn hide(&mut self) {
        for index in (0..self.steps.len()).rev() {
            let Some(step) = self.steps.get(index).copied().filter(|step| step.need > 0) else { continue };
            let (from, to) = (step.end - step.length, step.end);
            let range = from.saturating_sub(self.base)..to.saturating_sub(self.base);
            self.is_hidden.get_mut(range).unwrap_or_default().fill(true);
            if let Some(before) = self.steps.get_mut(step.before) {
                before.need = before.need.max(step.need - step.letters);
            }
        }
    }

    /// The place up to which later text cannot change what is hidden.
    fn sure(&self, automaton: &Automaton) -> usize {
        let open = self.ends.iter().flatten().filter_map(|index| self.steps.get(*index));
        let begins = open.map(|step| self.begin(*step, automaton.depth(step.state)));
        let sure = begins.min().unwrap_or(self.at).min(self.at);
        self.base + self.text.floor_char_boundary(sure.saturating_sub(self.base))
    }

    /// Where the letters of a step's state begin.
    fn begin(&self, mut step: Step, depth: u32) -> usize {
        let mut left = depth.saturating_sub(step.letters);
        while left > 0
            && let Some(before) = self.steps.get(step.before)
        {
            step = *before;
            left = left.saturating_sub(step.letters);
        }
        // A line break without enough of a secret before it holds nothing back.
        if step.letters == 0 { step.end } else { step.end - step.length }
    }

    fn show(&mut self, sure: usize) -> String {
        let length = sure - self.base;
        let mut shown = String::with_capacity(length);
        for (at, letter) in self.text.get(..length).unwrap_or_default().char_indices() {
            let bytes = self.is_hidden.get(at..at + letter.len_utf8()).unwrap_or_default();
            let is_hidden = bytes.contains(&true);
            match is_hidden {
                true if self.was_hidden => {}
                true => shown.push_str(HIDDEN),
                false => shown.push(letter),
            }
            self.was_hidden = is_hidden;
        }
        self.text.drain(..length);
        self.is_hidden.drain(..length);
        self.base = sure;
        self.forget();
        shown
    }

    /// Drops steps that no later step leads back to.
    fn forget(&mut self) {
        let open = self.ends.iter().flatten().copied().min().unwrap_or(self.steps.len());
        let ended = self.steps.iter().take_while(|step| step.end <= self.base).count();
        let gone = ended.min(open);
        self.steps.drain(..gone);
        for step in &mut self.steps {
            let is_kept = step.before != NONE && step.before >= gone;
            step.before = if is_kept { step.before - gone } else { NONE };
        }
        for index in self.ends.iter_mut().flatten() {
            *index -= gone;
        }
    }
}

/// Whether a spelling continues a line break after so many blanks.
fn is_passed_over(blanks: u8, spelling: &Spelling) -> bool {
    matches!((blanks, spelling.letters()), (0, b"\n" | b"\r") | (1, b"\n") | (1..BLANKS_MAX, b" " | b"\t"))
}
