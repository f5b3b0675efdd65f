//! Fast ways through the parts of a pickle that make up nearly all of it: events and stacks.
//!
//! An event is taken, in this order: by a [`Template`] of earlier ones, about 50 ns; by reading it
//! [directly](crate::snapshot::direct), about 120 ns, which also makes a template of it; or it is left to
//! the machine, about 600 ns, as is whatever does not have the usual form.
//!
//! # Invariants
//!
//! A shortcut leaves the machine exactly as running the opcodes would have (tested on random and
//! real files by reading them with and without).

use crate::pickle::{State, op};
use crate::snapshot::build::Build;
use crate::snapshot::direct;
use crate::snapshot::raw_stacks::RawStacks;
use crate::snapshot::template::Template;

/// Real files need 6 to 20: one for each action, size encoding and set of strings. More would cost
/// more to search than they save.
const MAX_TEMPLATES: usize = 24;

/// How many more misses than hits are tolerated before templates are given up.
const PATIENCE: i32 = 10_000;

/// Which template comes next is guessed from the last three.
const HISTORY_BITS: usize = 3 * BITS_EACH;
const BITS_EACH: usize = 5;
const _: () = assert!(MAX_TEMPLATES <= 1 << BITS_EACH);

/// What has been learnt from the file so far.
pub(super) struct Shortcuts {
    templates: Vec<Template>,
    /// The template that came after the same few templates last time.
    next: Box<[u8]>,
    /// The last few templates, [`BITS_EACH`] bits each.
    history: usize,
    /// Hits minus misses, bounded.
    score: i32,
    stacks: RawStacks,
}

impl Default for Shortcuts {
    fn default() -> Self {
        let next = vec![0; 1 << HISTORY_BITS].into_boxed_slice();
        Self { templates: Vec::new(), next, history: 0, score: 0, stacks: RawStacks::default() }
    }
}

impl Shortcuts {
    /// Takes what it can off the input, at a list or a dict; returns whether it took anything.
    pub fn take(&mut self, build: &mut Build, state: &mut State<'_>, until: usize) -> bool {
        if state.input[state.at] == op::EMPTY_LIST {
            return self.stacks.take(build, state);
        }
        let mut took_any = false;
        while state.at < until && self.take_event(build, state) {
            took_any = true;
        }
        took_any
    }

    #[inline]
    fn take_event(&mut self, build: &mut Build, state: &mut State<'_>) -> bool {
        if let Some(found) = self.find(state)
            && self.templates[found].take(build, state, &mut self.stacks).is_some()
        {
            self.next[self.history] = found as u8;
            self.history = (self.history << BITS_EACH | found) % (1 << HISTORY_BITS);
            self.score = (self.score + 1).min(PATIENCE);
            return true;
        }
        let from = state.at;
        if state.input.get(from) != Some(&op::EMPTY_DICT)
            || direct::take_event(build, state, &mut self.stacks).is_none()
        {
            return false;
        }
        self.score -= 2;
        if self.templates.len() < MAX_TEMPLATES
            && let Some(template) = Template::learn(build, state, from)
        {
            self.templates.push(template);
        }
        true
    }

    /// The template that the input seems to fit.
    #[inline]
    fn find(&self, state: &State<'_>) -> Option<usize> {
        let guess = usize::from(self.next[self.history]);
        if self.templates.get(guess)?.fits(state) {
            return Some(guess);
        }
        if self.score < -PATIENCE {
            return None;
        }
        self.templates.iter().position(|template| template.may_fit(state) && template.fits(state))
    }
}
