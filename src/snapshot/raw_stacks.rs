//! Lists of frames, known by their bytes.
//!
//! A stack is a list of memo references, in batches: `MARK reference… APPENDS`, or `reference APPEND`.
//! Equal bytes mean equal stacks, because opcodes are prefix-free and memo entries do not change (if
//! one does, everything learnt is dropped); only that no further batch follows has to be seen. Which
//! stack comes next is guessed from which came after this one last time: right for 90 to 98 % of the
//! stacks in real files.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::pickle::{Handle, Memo, State, Value, op};
use crate::snapshot::build::{Build, Is, kind};

/// Lists of frames by their bytes.
#[derive(Default)]
pub(super) struct RawStacks {
    stacks: Vec<RawStack>,
    index: HashTable<u32>,
    hasher: RandomState,
    last: usize,
}

/// A list of frames: all its batches.
struct RawStack {
    from: usize,
    len: usize,
    stack: u32,
    /// The one that came after this one last time.
    next: usize,
}

impl RawStacks {
    /// Takes a list of frames at its `EMPTY_LIST`.
    pub fn take(&mut self, build: &mut Build, state: &mut State<'_>) -> bool {
        let mut at = state.at + 1;
        let memo_at = at;
        match state.input.get(at) {
            Some(&op::MEMOIZE) => at += 1,
            Some(&op::BINPUT) => at += 2,
            Some(&op::LONG_BINPUT) => at += 5,
            _ => {}
        }
        let Some(put) = state.input.get(memo_at..at) else { return false };
        let number =
            put.iter().skip(1).rev().fold(0, |value, &byte| value << 8 | usize::from(byte));
        if put.len() > 1 && number != state.memo.len() {
            return false;
        }
        let Some((stack, end)) = self.find(build, state, at) else { return false };
        let value = Value::Object(Handle { kind: kind::STACK, id: stack });
        if !put.is_empty() {
            state.memo.push(value);
        }
        state.stack.push(value);
        state.at = end;
        true
    }

    /// The stack whose first batch begins here, and where the last one ends.
    #[inline]
    pub fn find(
        &mut self,
        build: &mut Build,
        state: &State<'_>,
        at: usize,
    ) -> Option<(u32, usize)> {
        let input = state.input;
        let guess = self.stacks.get(self.last).map_or(0, |last| last.next);
        if let Some(stack) = self.stacks.get(guess)
            && input.get(at..at + stack.len)? == &input[stack.from..stack.from + stack.len]
            && !begins_batch(input, at + stack.len)
        {
            self.last = guess;
            return Some((stack.stack, at + stack.len));
        }
        let found = self.look_up(build, state, at)?;
        if let Some(last) = self.stacks.get_mut(self.last) {
            last.next = found;
        }
        self.last = found;
        let stack = &self.stacks[found];
        Some((stack.stack, at + stack.len))
    }

    fn look_up(&mut self, build: &mut Build, state: &State<'_>, at: usize) -> Option<usize> {
        let input = state.input;
        let len = end_of_batches(input, at)? - at;
        let raw = &input[at..at + len];
        let bytes = |stack: &RawStack| &input[stack.from..stack.from + stack.len];
        let hash = self.hasher.hash_one(raw);
        let (stacks, hasher) = (&self.stacks, &self.hasher);
        if let Some(&known) = self.index.find(hash, |&i| bytes(&stacks[i as usize]) == raw) {
            return Some(known as usize);
        }
        let frames = frames_of(build, &state.memo, raw)?;
        let stack = build.stacks.intern(&frames);
        let new = self.stacks.len() as u32;
        self.index.insert_unique(hash, new, |&i| hasher.hash_one(bytes(&stacks[i as usize])));
        self.stacks.push(RawStack { from: at, len, stack, next: 0 });
        Some(new as usize)
    }
}

/// Whether items are added here to the list on top of the stack.
#[inline]
pub(super) fn begins_batch(input: &[u8], at: usize) -> bool {
    let added = |width: usize| input.get(at + 1 + width) == Some(&op::APPEND);
    match input.get(at) {
        Some(&op::MARK) => true,
        Some(&op::BINGET) => added(1),
        Some(&op::LONG_BINGET) => added(4),
        _ => false,
    }
}

/// The end of a list's batches; None if there is none, or one has more than memo references.
pub(super) fn end_of_batches(input: &[u8], mut at: usize) -> Option<usize> {
    let from = at;
    while begins_batch(input, at) {
        let end = if input.get(at) == Some(&op::MARK) { op::APPENDS } else { op::APPEND };
        at += usize::from(end == op::APPENDS);
        loop {
            at += match *input.get(at)? {
                op::BINGET => 2,
                op::LONG_BINGET => 5,
                opcode if opcode == end => break,
                _ => return None,
            };
        }
        at += 1;
    }
    (at > from).then_some(at)
}

/// The frames that batches of memo references mean; None if one is something else.
fn frames_of(build: &mut Build, memo: &Memo, raw: &[u8]) -> Option<Vec<u32>> {
    let mut frames = Vec::new();
    let mut rest = raw;
    loop {
        let index;
        (index, rest) = match rest {
            [op::BINGET, a, rest @ ..] => (usize::from(*a), rest),
            [op::LONG_BINGET, a, b, c, d, rest @ ..] => {
                (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest)
            }
            [op::MARK | op::APPENDS | op::APPEND, after @ ..] => {
                rest = after;
                continue;
            }
            _ => return Some(frames),
        };
        frames.push(build.use_frame(memo.get(index)?)?);
    }
}

impl Build {
    /// The frame that a value is, marked as used; None if it is none.
    fn use_frame(&mut self, value: Value) -> Option<u32> {
        let Value::Object(Handle { kind: kind::OBJECT, id }) = value else { return None };
        let object = &mut self.objects[id as usize];
        object.is_used = true;
        (object.is == Is::Frame).then_some(object.id)
    }

    /// The stack that a value is, marked as used; None if it is none.
    pub(super) fn use_stack(&mut self, value: Value) -> Option<u32> {
        match value {
            Value::Object(Handle { kind: kind::STACK, id }) => Some(id),
            Value::Object(Handle { kind: kind::OBJECT, id }) => {
                let object = &mut self.objects[id as usize];
                object.is_used = true;
                match object.is {
                    Is::Stack => Some(object.id),
                    Is::EmptyList => Some(0),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
