//! Follows every spelling of a text through the automaton, and shows what is surely no secret.
//!
//! A place in the text can be reached in several ways: `%41` is three letters or one. So the text is a graph, whose
//! edges are spellings, and at each place there are as many steps as there are states in which a way has arrived there.
//! Each step knows the one before it. A form that ends at a step covers as many letters as it is long, backwards; that
//! need is handed from step to step in one pass, so overlapping secrets cost nothing.
//!
//! Base64 and hexadecimal may be broken into lines: a line break, and the blanks that begin the next line, are passed over
//! without a letter.

use super::HIDDEN;
use super::automaton::{Automaton, ROOT};
use super::spelling::{LONGEST, Spelling, has_one_spelling, spellings};

const NONE: usize = usize::MAX;
/// The longest spelling ends so many places further at most.
const AHEAD: usize = LONGEST + 2;
/// The most steps at one place. More states than that in one place come from a text that was made for it.
const STEPS_MAX: usize = 64;
/// The most blanks that are passed over between two lines.
const BLANKS_MAX: u8 = 64;
/// So much of an encoded secret must stand before a line break to be held back until the next line has come: a letter
/// or two stand at the end of many lines, which should be seen.
const TELLING: u32 = 4;

#[derive(Default)]
pub(super) struct Scan {
    /// What is held back; it begins at the place `base` of all that came.
    text: String,
    /// Which bytes of it are hidden.
    is_hidden: Vec<bool>,
    base: usize,
    /// Up to here the text was followed.
    at: usize,
    steps: Vec<Step>,
    /// The steps that end at each of the next places.
    ends: [Vec<usize>; AHEAD],
    /// Whether what was shown last is hidden: then what follows it is hidden by the same mark.
    was_hidden: bool,
}

#[derive(Clone, Copy)]
struct Step {
    state: u32,
    before: usize,
    end: usize,
    length: usize,
    /// How many letters of a form it stands for; none in a line break.
    letters: u32,
    /// How many blanks of a line break it ends.
    blanks: u8,
    /// So many letters, counted backwards from here, belong to a secret.
    need: u32,
}

impl Scan {
    pub(super) fn push(&mut self, chunk: &str) {
        self.text.push_str(chunk);
        self.is_hidden.resize(self.text.len(), false);
    }

    /// Follows the text as far as it is there, and gives what can be shown.
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

    /// One spelling, after each way by which its beginning was reached, and at the beginning of a secret.
    fn take(&mut self, automaton: &Automaton, steps: &[usize], spelling: Spelling) {
        let letters = u32::try_from(spelling.letters().len()).unwrap_or_default();
        // The end of each way is an end of the empty one too: only where no way arrives does one begin by itself.
        let beginning = (steps.is_empty() || spelling.is_alphabet).then_some(NONE);
        // For the same reason, what begins with this spelling is left out where something goes on with it.
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

    /// Hands every need backwards: a step comes after the one before it.
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

    /// Up to where nothing that comes can change what is hidden.
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
        // A line break that does not tell of what stood before it holds nothing back.
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

    /// Lets go of steps that nothing leads back to.
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

/// Whether a spelling is a part of a line break after so many blanks.
fn is_passed_over(blanks: u8, spelling: &Spelling) -> bool {
    matches!((blanks, spelling.letters()), (0, b"\n" | b"\r") | (1, b"\n") | (1..BLANKS_MAX, b" " | b"\t"))
}
