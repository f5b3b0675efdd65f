//! A fast way through runs of similar events.
//!
//! A trace's events are the same opcodes over and over with a few integers changed. After the
//! machine has run one the ordinary way, we keep its bytes as a [`Template`]: a pattern with holes
//! for integers and memo numbers, and possibly a list of frames. A later event that has the same
//! bytes outside the holes is taken by a masked comparison and a few loads, without running it.
//!
//! Stacks are lists of memo references. Equal bytes mean equal stacks, because opcodes are
//! prefix-free and memo entries do not change (if one does, everything learnt is dropped). Which
//! stack comes next is guessed from which came after this one last time.
//!
//! # Invariants
//!
//! A shortcut leaves the machine exactly as running the opcodes would have (tested on random and
//! real files by reading them with and without). Whatever does not fit is left to the machine.
//!
//! # Cost
//!
//! About 50 ns an event of 152 bytes, where running its opcodes costs 350 ns. Templates are at most
//! [`MAX_TEMPLATES`], and given up if they do not help, so that a file without repetition loses
//! little.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::pickle::{Builder, Handle, Memo, State, Value, op};
use crate::snapshot::build::{Build, EMPTY_EVENT, Is, Key, kind};
use crate::snapshot::events::{Event, Extras};

/// Real files need 6 to 30: one for each action, size encoding and set of strings.
const MAX_TEMPLATES: usize = 64;

/// How many more misses than hits are borne before templates are given up.
const PATIENCE: i32 = 20_000;

/// What has been learnt of a file so far.
#[derive(Default)]
pub(super) struct Templates {
    templates: Vec<Template>,
    /// The template of the last event.
    last: usize,
    /// Hits minus misses, bounded; given up below −[`PATIENCE`].
    score: i32,
    /// Where the event stands that no template fitted.
    missed_at: Option<usize>,
    stacks: RawStacks,
}

struct Template {
    /// Up to the frames if they are written out, else the whole event.
    head: Pattern,
    /// What follows frames that are written out.
    tail: Pattern,
    frames: Frames,
    address: Hole,
    size: Hole,
    stream: Hole,
    time: Hole,
    /// What has no hole.
    event: Event,
    /// What goes into the memo, in order.
    memo: Vec<Memoized>,
    /// Keys that we do not know.
    unknown: Vec<Value>,
    /// The template that came after this one last time.
    next: usize,
}

enum Frames {
    /// The same for all: none, or a constant.
    Fixed,
    /// A reference to a list in the memo.
    Get(Hole),
    /// Written out.
    Inline,
}

#[derive(Clone, Copy)]
enum Memoized {
    Event,
    Stack,
    Value(Value),
}

/// Bytes to compare with, eight at a time; bits outside the mask may be anything.
#[derive(Default)]
struct Pattern {
    words: Vec<(u64, u64)>,
    len: usize,
    /// Explicit memo numbers, which have to be the next ones.
    puts: Vec<Hole>,
}

/// An integer's place in a template.
#[derive(Clone, Copy, Default)]
struct Hole {
    offset: usize,
    /// 0 if there is no such integer.
    bits: u32,
    is_signed: bool,
    is_in_tail: bool,
}

impl Hole {
    #[inline]
    fn read(self, input: &[u8], head_at: usize, tail_at: usize) -> i64 {
        let at = self.offset + if self.is_in_tail { tail_at } else { head_at };
        let shift = 64 - self.bits;
        let word = word_at(input, at) << shift;
        if self.is_signed { word as i64 >> shift } else { (word >> shift) as i64 }
    }

    /// The integer, or what the template says where it has none.
    #[inline]
    fn read_or(self, fixed: i64, input: &[u8], head_at: usize, tail_at: usize) -> i64 {
        if self.bits == 0 { fixed } else { self.read(input, head_at, tail_at) }
    }
}

/// The eight bytes at a place; the caller has checked that they are there.
#[inline]
fn word_at(input: &[u8], at: usize) -> u64 {
    match input.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => 0,
    }
}

impl Pattern {
    fn new(bytes: &[u8], mask: &[u8], puts: Vec<Hole>) -> Self {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let words = bytes.chunks(8).zip(mask.chunks(8)).map(|(b, m)| (word(b) & word(m), word(m)));
        Self { words: words.collect(), len: bytes.len(), puts }
    }

    /// Whether the input fits; it has to go on for at least a word after the pattern's end.
    #[inline]
    fn fits(&self, input: &[u8], at: usize) -> bool {
        let Some(input) = input.get(at..at + self.words.len() * 8 + 8) else { return false };
        self.words
            .iter()
            .zip(input.as_chunks().0)
            .all(|(&(pattern, mask), bytes)| u64::from_le_bytes(*bytes) & mask == pattern)
    }
}

impl Templates {
    /// Takes what it can off the input, at a list or a dict; returns whether it took anything.
    pub fn take(&mut self, build: &mut Build, state: &mut State<'_>, until: usize) -> bool {
        if state.input[state.at] == op::EMPTY_LIST {
            return self.stacks.take(build, state);
        }
        if self.score < -PATIENCE {
            return false;
        }
        self.learn_missed(build, state);
        let mut took_any = false;
        while state.at < until && self.take_event(build, state) {
            took_any = true;
        }
        took_any
    }

    #[inline]
    fn take_event(&mut self, build: &mut Build, state: &mut State<'_>) -> bool {
        let fits = |template: &Template| template.head.fits(state.input, state.at);
        let guess = self.templates.get(self.last).map_or(0, |last| last.next);
        let found = match self.templates.get(guess) {
            Some(template) if fits(template) => Some(guess),
            _ => self.templates.iter().position(fits),
        };
        if let Some(found) = found
            && let Some(()) = self.apply(found, build, state)
        {
            self.templates[self.last].next = found;
            self.last = found;
            self.score = (self.score + 1).min(PATIENCE);
            return true;
        }
        // An event, or anything else that opens as a dict: learning will tell.
        if state.input.get(state.at) == Some(&op::EMPTY_DICT) {
            self.missed_at = Some(state.at);
            if !self.templates.is_empty() {
                self.score -= 2;
            }
        }
        false
    }

    /// Takes an event whose head fits; None if the rest does not.
    #[inline]
    fn apply(&mut self, which: usize, build: &mut Build, state: &mut State<'_>) -> Option<()> {
        let template = &self.templates[which];
        let (input, at) = (state.input, state.at);
        let mut event = template.event;
        let mut tail_at = at + template.head.len;
        let mut end = tail_at;
        match template.frames {
            Frames::Fixed => {}
            Frames::Get(hole) => {
                let index = hole.read(input, at, at) as usize;
                event.stack = build.use_stack(state.memo.get(index)?)?;
            }
            Frames::Inline => {
                (event.stack, tail_at) = self.stacks.find(build, state, tail_at)?;
                if !template.tail.fits(input, tail_at) {
                    return None;
                }
                end = tail_at + template.tail.len;
            }
        }
        event.address = template.address.read_or(event.address as i64, input, at, tail_at) as u64;
        event.time_us = template.time.read_or(event.time_us as i64, input, at, tail_at) as u64;
        event.stream = template.stream.read_or(event.stream, input, at, tail_at);
        // The machine says what is wrong with a negative size.
        let size = template.size.read_or(event.size as i64, input, at, tail_at);
        event.size = u64::try_from(size).ok()?;

        let puts = template.head.puts.iter().chain(&template.tail.puts);
        for (number, put) in (state.memo.len()..).zip(puts) {
            if put.read(input, at, tail_at) as usize != number {
                return None;
            }
        }
        for &key in &template.unknown {
            build.count_unknown(key);
        }
        let row = build.events.len() as u32;
        build.events.push(&event);
        for &memoized in &template.memo {
            state.memo.push(match memoized {
                Memoized::Event => Value::Object(Handle { kind: kind::EVENT, id: row }),
                Memoized::Stack => Value::Object(Handle { kind: kind::STACK, id: event.stack }),
                Memoized::Value(value) => value,
            });
        }
        state.stack.push(Value::Object(Handle { kind: kind::EVENT, id: row }));
        state.at = end;
        Some(())
    }

    /// Makes a template of the event that was missed, if it ended just here.
    fn learn_missed(&mut self, build: &mut Build, state: &State<'_>) {
        if let Some(from) = self.missed_at.take()
            && self.templates.len() < MAX_TEMPLATES
            && let Some(template) = Scan::template(build, state, from)
        {
            self.templates.push(template);
        }
    }
}

/// Lists of frames by their bytes.
#[derive(Default)]
struct RawStacks {
    stacks: Vec<RawStack>,
    index: HashTable<u32>,
    hasher: RandomState,
    last: usize,
}

/// A list of frames: references to the memo, and APPENDS at the end.
struct RawStack {
    from: usize,
    len: usize,
    stack: u32,
    /// The one that came after this one last time.
    next: usize,
}

impl RawStacks {
    /// Takes a list of frames at its `EMPTY_LIST`.
    fn take(&mut self, build: &mut Build, state: &mut State<'_>) -> bool {
        let mut at = state.at + 1;
        let memo_at = at;
        match state.input.get(at) {
            Some(&op::MEMOIZE) => at += 1,
            Some(&op::BINPUT) => at += 2,
            Some(&op::LONG_BINPUT) => at += 5,
            _ => {}
        }
        if state.input.get(at) != Some(&op::MARK) {
            return false;
        }
        let put = &state.input[memo_at..at];
        let number = put.iter().skip(1).rev().fold(0, |value, &byte| value << 8 | usize::from(byte));
        if put.len() > 1 && number != state.memo.len() {
            return false;
        }
        let Some((stack, end)) = self.find(build, state, at + 1) else { return false };
        let value = Value::Object(Handle { kind: kind::STACK, id: stack });
        if !put.is_empty() {
            state.memo.push(value);
        }
        state.stack.push(value);
        state.at = end;
        true
    }

    /// The stack whose references begin here, and where they end.
    #[inline]
    fn find(&mut self, build: &mut Build, state: &State<'_>, at: usize) -> Option<(u32, usize)> {
        let input = state.input;
        let guess = self.stacks.get(self.last).map_or(0, |last| last.next);
        if let Some(stack) = self.stacks.get(guess)
            && input.get(at..at + stack.len)? == &input[stack.from..stack.from + stack.len]
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
        let len = end_of_references(input, at)? - at;
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

/// The end of a run of memo references with APPENDS after it.
fn end_of_references(input: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += match *input.get(at)? {
            op::BINGET => 2,
            op::LONG_BINGET => 5,
            op::APPENDS => return Some(at + 1),
            _ => return None,
        };
    }
}

/// The frames that a run of memo references means; None if one is something else.
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
            _ => return Some(frames),
        };
        frames.push(build.use_frame(memo.get(index)?)?);
    }
}

/// Reads an event's bytes once more, to see what in them can vary.
struct Scan<'a> {
    input: &'a [u8],
    memo: &'a Memo,
    at: usize,
    /// Where the part that is being scanned begins.
    from: usize,
    mask: Vec<u8>,
    puts: Vec<Hole>,
    is_in_tail: bool,
    memoized: Vec<Memoized>,
}

/// A value in an event.
enum Scanned {
    Value(Value),
    Int(Hole),
    /// A memo reference to this.
    Reference(Value, Hole),
    /// A list that goes on with memo references.
    OpenList,
    EmptyList,
}

impl<'a> Scan<'a> {
    /// The template of the event between `from` and where the machine is.
    fn template(build: &mut Build, state: &'a State<'_>, from: usize) -> Option<Template> {
        let mut scan = Self {
            input: &state.input[..state.at],
            memo: &state.memo,
            at: from,
            from,
            mask: Vec::new(),
            puts: Vec::new(),
            is_in_tail: false,
            memoized: Vec::new(),
        };
        scan.event(build)
    }

    fn event(&mut self, build: &mut Build) -> Option<Template> {
        let mut template = Template {
            head: Pattern::default(),
            tail: Pattern::default(),
            frames: Frames::Fixed,
            address: Hole::default(),
            size: Hole::default(),
            stream: Hole::default(),
            time: Hole::default(),
            event: EMPTY_EVENT,
            memo: Vec::new(),
            unknown: Vec::new(),
            next: 0,
        };
        let mut extras = Extras::default();
        let mut has_action = false;
        self.literal(op::EMPTY_DICT)?;
        self.memoize(Memoized::Event)?;
        self.literal(op::MARK)?;
        while self.peek()? != op::SETITEMS {
            let Scanned::Reference(name @ Value::Text(_), _) = self.value(build)? else {
                return None;
            };
            let key = build.key(name);
            let value = self.value(build)?;
            match (key, value) {
                (Key::Action, scanned) => {
                    template.event.action = build.action(constant(&scanned)?);
                    has_action = true;
                }
                (Key::Addr | Key::DeviceFree, Scanned::Int(hole)) => template.address = hole,
                (Key::Size, Scanned::Int(hole)) => template.size = hole,
                (Key::Stream, Scanned::Int(hole)) => template.stream = hole,
                (Key::TimeUs, Scanned::Int(hole)) => template.time = hole,
                (Key::Frames, Scanned::Reference(_, hole)) => {
                    template.frames = Frames::Get(hole);
                    self.open(hole);
                }
                (Key::Frames, Scanned::OpenList) => {
                    template.frames = Frames::Inline;
                    template.head = self.end_part();
                    self.at = end_of_references(self.input, self.at)?;
                    self.from = self.at;
                    self.is_in_tail = true;
                    self.memoize(Memoized::Stack)?;
                }
                (Key::Frames, Scanned::EmptyList) => {}
                (Key::CompileContext, scanned) => extras.compile_context = text(&scanned)?,
                (Key::UserMetadata, scanned) => extras.user_metadata = text(&scanned)?,
                (Key::InternalMetadata, scanned) => extras.internal_metadata = text(&scanned)?,
                (Key::Category, scanned) => extras.category = text(&scanned)?,
                (Key::PoolId, scanned) => {
                    let Value::Object(Handle { kind: kind::PAIR, id }) = constant(&scanned)? else {
                        return None;
                    };
                    extras.pool = 1 + id;
                }
                (Key::ForwardFrames, Scanned::EmptyList) => {}
                (_, Scanned::OpenList) => return None,
                (Key::Unknown, _) => template.unknown.push(name),
                _ => return None,
            }
        }
        self.literal(op::SETITEMS)?;
        self.memoize(Memoized::Event)?;
        if !has_action || self.at != self.input.len() {
            return None;
        }
        template.event.extras = build.events.extras_table.intern(&extras);
        let last = self.end_part();
        if self.is_in_tail {
            template.tail = last;
        } else {
            template.head = last;
        }
        template.memo = std::mem::take(&mut self.memoized);
        // Explicit numbers are checked against the next ones, so all or none have to be explicit.
        let puts = template.head.puts.len() + template.tail.puts.len();
        (puts == 0 || puts == template.memo.len()).then_some(template)
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    /// Goes on by some bytes that have to be the same.
    fn skip(&mut self, count: usize) -> Option<&'a [u8]> {
        let bytes = self.input.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        self.mask.resize(self.at - self.from, 0xff);
        Some(bytes)
    }

    fn literal(&mut self, opcode: u8) -> Option<()> {
        (self.skip(1)? == [opcode]).then_some(())
    }

    /// Goes on by an integer.
    fn hole(&mut self, width: usize, is_signed: bool) -> Option<Hole> {
        let offset = self.at - self.from;
        self.skip(width)?;
        let is_in_tail = self.is_in_tail;
        (width <= 8).then_some(Hole { offset, bits: 8 * width as u32, is_signed, is_in_tail })
    }

    /// Lets the bytes of a hole vary.
    fn open(&mut self, hole: Hole) {
        self.mask[hole.offset..hole.offset + hole.bits as usize / 8].fill(0);
    }

    /// Takes a memo opcode if there is one here.
    fn memoize(&mut self, what: Memoized) -> Option<()> {
        let width = match self.peek() {
            Some(op::MEMOIZE) => 0,
            Some(op::BINPUT) => 1,
            Some(op::LONG_BINPUT) => 4,
            _ => return Some(()),
        };
        self.skip(1)?;
        if width > 0 {
            let hole = self.hole(width, false)?;
            self.open(hole);
            self.puts.push(hole);
        }
        self.memoized.push(what);
        Some(())
    }

    fn end_part(&mut self) -> Pattern {
        let bytes = &self.input[self.from..self.at];
        Pattern::new(bytes, &std::mem::take(&mut self.mask), std::mem::take(&mut self.puts))
    }

    fn int(&mut self, width: usize, is_signed: bool) -> Option<Scanned> {
        let hole = self.hole(width, is_signed)?;
        self.open(hole);
        Some(Scanned::Int(hole))
    }

    fn value(&mut self, build: &mut Build) -> Option<Scanned> {
        let opcode = self.peek()?;
        self.skip(1)?;
        let scanned = match opcode {
            op::BININT1 if self.pair_follows() => self.pair(build)?,
            op::BININT1 => self.int(1, false)?,
            op::BININT2 => self.int(2, false)?,
            op::BININT => self.int(4, true)?,
            op::LONG1 => {
                let width = usize::from(self.skip(1)?[0]);
                if width == 0 {
                    return None;
                }
                self.int(width, true)?
            }
            op::BINGET | op::LONG_BINGET => {
                let width = if opcode == op::BINGET { 1 } else { 4 };
                let hole = self.hole(width, false)?;
                let index = self.input[self.at - width..self.at]
                    .iter()
                    .rev()
                    .fold(0, |value, &byte| value << 8 | usize::from(byte));
                Scanned::Reference(self.memo.get(index)?, hole)
            }
            op::SHORT_BINUNICODE | op::BINUNICODE => {
                let prefix = if opcode == op::SHORT_BINUNICODE { 1 } else { 4 };
                let length = self.skip(prefix)?.iter().rev().fold(0, |v, &b| v << 8 | usize::from(b));
                let text = std::str::from_utf8(self.skip(length)?).ok()?;
                let value = Value::Text(build.text(text, self.at).ok()?);
                self.memoize(Memoized::Value(value))?;
                Scanned::Value(value)
            }
            op::NONE => Scanned::Value(Value::None),
            op::NEWTRUE => Scanned::Value(Value::Bool(true)),
            op::NEWFALSE => Scanned::Value(Value::Bool(false)),
            op::EMPTY_LIST => {
                let before = self.memoized.len();
                self.memoize(Memoized::Stack)?;
                if self.peek()? == op::MARK {
                    self.skip(1)?;
                    Scanned::OpenList
                } else {
                    let empty = Value::Object(Handle { kind: kind::STACK, id: 0 });
                    self.memoized[before..].fill(Memoized::Value(empty));
                    Scanned::EmptyList
                }
            }
            _ => return None,
        };
        Some(scanned)
    }

    /// Whether this is `BININT1 a BININT1 b TUPLE2`, a pool's id.
    fn pair_follows(&self) -> bool {
        matches!(self.input.get(self.at..self.at + 4), Some([_, op::BININT1, _, op::TUPLE2]))
    }

    fn pair(&mut self, build: &mut Build) -> Option<Scanned> {
        let bytes = self.skip(4)?;
        let id = build.pairs.intern(&(i64::from(bytes[0]), i64::from(bytes[2])));
        let value = Value::Object(Handle { kind: kind::PAIR, id });
        self.memoize(Memoized::Value(value))?;
        Some(Scanned::Value(value))
    }
}

/// What a scanned value is in every event with this template.
fn constant(scanned: &Scanned) -> Option<Value> {
    match scanned {
        Scanned::Value(value) | Scanned::Reference(value, _) => Some(*value),
        _ => None,
    }
}

fn text(scanned: &Scanned) -> Option<u32> {
    match constant(scanned)? {
        Value::Text(id) => Some(id),
        Value::None => Some(0),
        _ => None,
    }
}

impl Build {
    /// The stack that a value is, marked as used; None if it is none.
    fn use_stack(&mut self, value: Value) -> Option<u32> {
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

    /// The frame that a value is, marked as used; None if it is none.
    fn use_frame(&mut self, value: Value) -> Option<u32> {
        let Value::Object(Handle { kind: kind::OBJECT, id }) = value else { return None };
        let object = &mut self.objects[id as usize];
        object.is_used = true;
        (object.is == Is::Frame).then_some(object.id)
    }
}
