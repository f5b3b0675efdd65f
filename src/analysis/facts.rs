//! What the analyses of a device know.

use crate::lifetimes::Lifetimes;
use crate::snapshot::event_text::ExtrasText;
use crate::snapshot::stack_text::StackTexts;
use crate::store::AnnotationRow;

/// What is known of one device; the same from a snapshot and from the bundle made of it.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The allocations.
    pub lives: &'a Lifetimes,
    /// Frames and stacks.
    pub texts: &'a StackTexts,
    /// What the events that made the allocations carry.
    pub tags: &'a Tags,
    /// The segments at the end, by address.
    pub segments: &'a [SegmentRange],
    /// The annotations of the program.
    pub annotations: &'a [AnnotationRow],
    /// When each event happened, in Unix microseconds; empty if not recorded.
    pub times: &'a [u64],
}

/// What the events that made the allocations carry besides a stack.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tags {
    /// Of each allocation, 1 + a place in `texts`; 0 if its event is not in the trace.
    pub of_allocation: Vec<u32>,
    /// The extras that events have.
    pub texts: Vec<ExtrasText>,
}

impl Tags {
    /// Of each allocation of a device, given the extras of its events.
    #[must_use]
    pub fn new(lives: &Lifetimes, of_event: impl Fn(usize) -> u32, texts: Vec<ExtrasText>) -> Self {
        let tag = |&event: &i64| usize::try_from(event).map_or(0, |event| of_event(event) + 1);
        Self { of_allocation: lives.allocations.alloc_event.iter().map(tag).collect(), texts }
    }

    /// What a function makes of each kind of extras, by tag; the first is that of no extras.
    pub fn map<T>(&self, one: impl Fn(Option<&ExtrasText>) -> T) -> Vec<T> {
        std::iter::once(one(None)).chain(self.texts.iter().map(|text| one(Some(text)))).collect()
    }
}

/// A part of our own recorder's marks, `step=2 phase=forward module=layers.3.attn`.
#[must_use]
pub fn mark<'a>(extras: &'a ExtrasText, name: &str) -> Option<&'a str> {
    let marks = extras.user_metadata.as_deref()?.split(' ');
    marks
        .filter_map(|part| part.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, text)| text)
}

/// A segment at the end of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRange {
    /// Where it begins.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// "small" or "large".
    pub kind: String,
}
