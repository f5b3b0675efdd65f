//! The form of an event: its bytes, with holes for what varies.
//!
//! A trace's events are the same opcodes over and over with a few integers changed. A later event
//! that has the same bytes outside the holes is taken by a masked comparison and a few loads.

use crate::pickle::{Builder, Handle, Memo, State, Value, op};
use crate::snapshot::build::{Build, Key, kind};
use crate::snapshot::events::{Event, Extras};
use crate::snapshot::raw_stacks::{RawStacks, begins_batch, end_of_batches};

/// The form of an event.
pub(super) struct Template {
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
    /// Whether memo numbers are written out.
    has_puts: bool,
    /// Keys that we do not know.
    unknown: Vec<Value>,
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
    words: Vec<u64>,
    masks: Vec<u64>,
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
        let masks: Vec<u64> = mask.chunks(8).map(word).collect();
        let words = bytes.chunks(8).map(word).zip(&masks).map(|(word, mask)| word & mask).collect();
        Self { words, masks, len: bytes.len(), puts }
    }

    /// Whether the input fits; it has to go on for at least a word after the pattern's end.
    #[inline]
    fn fits(&self, input: &[u8], at: usize) -> bool {
        let Some(input) = input.get(at..at + self.words.len() * 8 + 8) else { return false };
        let words = input.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let pairs = self.words.iter().zip(&self.masks);
        // No early exit: a pattern has ten words, and this way two are compared at a time.
        words.zip(pairs).fold(0, |off, (word, (pattern, mask))| off | ((word & mask) ^ pattern))
            == 0
    }

    /// Whether the input's first words fit, which distinguish most patterns.
    #[inline]
    fn may_fit(&self, input: &[u8], at: usize) -> bool {
        let fits = |word: usize| match (self.words.get(word), self.masks.get(word)) {
            (Some(pattern), Some(mask)) => word_at(input, at + 8 * word) & mask == *pattern,
            _ => true,
        };
        fits(1) && fits(2)
    }
}

impl Template {
    /// Whether the input may be an event of this form.
    #[inline]
    pub fn fits(&self, state: &State<'_>) -> bool {
        self.head.fits(state.input, state.at)
    }

    /// Whether looking closer is worth it.
    #[inline]
    pub fn may_fit(&self, state: &State<'_>) -> bool {
        self.head.may_fit(state.input, state.at)
    }

    /// Takes an event whose head fits; None, and nothing has changed, if the rest does not.
    #[inline]
    pub fn take(
        &self,
        build: &mut Build,
        state: &mut State<'_>,
        stacks: &mut RawStacks,
    ) -> Option<()> {
        let (input, at) = (state.input, state.at);
        let mut event = self.event;
        let mut tail_at = at + self.head.len;
        let mut end = tail_at;
        match self.frames {
            Frames::Fixed => {}
            Frames::Get(hole) => {
                let index = hole.read(input, at, at) as usize;
                event.stack = build.use_stack(state.memo.get(index)?)?;
            }
            Frames::Inline => {
                (event.stack, tail_at) = stacks.find(build, state, tail_at)?;
                if !self.tail.fits(input, tail_at) {
                    return None;
                }
                end = tail_at + self.tail.len;
            }
        }
        event.address = self.address.read_or(event.address as i64, input, at, tail_at) as u64;
        event.time_us = self.time.read_or(event.time_us as i64, input, at, tail_at) as u64;
        event.stream = self.stream.read_or(event.stream, input, at, tail_at);
        // The machine says what is wrong with a negative size.
        let size = self.size.read_or(event.size as i64, input, at, tail_at);
        event.size = u64::try_from(size).ok()?;

        if self.has_puts {
            let puts = self.head.puts.iter().chain(&self.tail.puts);
            for (number, put) in (state.memo.len()..).zip(puts) {
                if put.read(input, at, tail_at) as usize != number {
                    return None;
                }
            }
        }
        for &key in &self.unknown {
            build.count_unknown(key);
        }
        let row = Value::Object(Handle { kind: kind::EVENT, id: build.events.len() as u32 });
        build.events.push(&event);
        for &memoized in &self.memo {
            state.memo.push(match memoized {
                Memoized::Event => row,
                Memoized::Stack => Value::Object(Handle { kind: kind::STACK, id: event.stack }),
                Memoized::Value(value) => value,
            });
        }
        state.stack.push(row);
        state.at = end;
        Some(())
    }

    /// The template of an event that has just been taken, from its first byte to where the machine
    /// is now; None if its form is too odd.
    pub fn learn(build: &mut Build, state: &State<'_>, from: usize) -> Option<Self> {
        let mut scan = Scan {
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
    fn event(&mut self, build: &mut Build) -> Option<Template> {
        let mut template = Template {
            head: Pattern::default(),
            tail: Pattern::default(),
            frames: Frames::Fixed,
            address: Hole::default(),
            size: Hole::default(),
            stream: Hole::default(),
            time: Hole::default(),
            event: Event::EMPTY,
            memo: Vec::new(),
            has_puts: false,
            unknown: Vec::new(),
        };
        let mut extras = Extras::default();
        let mut has_action = false;
        let mut names = Vec::new();
        self.literal(op::EMPTY_DICT)?;
        self.memoize(Memoized::Event)?;
        self.literal(op::MARK)?;
        while self.peek()? != op::SETITEMS {
            let Scanned::Reference(name @ Value::Text(_), _) = self.value(build)? else {
                return None;
            };
            // If a key occurs twice, the second counts; but the machine looks at the first too.
            if names.contains(&name) {
                return None;
            }
            names.push(name);
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
                    self.at = end_of_batches(self.input, self.at)?;
                    self.from = self.at;
                    self.is_in_tail = true;
                    self.memoize(Memoized::Stack)?;
                }
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
                (Key::Frames | Key::ForwardFrames, Scanned::EmptyList) => {}
                (
                    _,
                    Scanned::OpenList
                    | Scanned::EmptyList
                    | Scanned::Reference(Value::Object(_), _),
                ) => {
                    return None;
                }
                (Key::Unknown, _) => template.unknown.push(name),
                _ => return None,
            }
        }
        self.literal(op::SETITEMS)?;
        self.memoize(Memoized::Event)?;
        if !has_action || self.at != self.input.len() {
            return None;
        }
        template.event.extras = build.extras.intern(&extras);
        let last = self.end_part();
        if self.is_in_tail {
            template.tail = last;
        } else {
            template.head = last;
        }
        template.memo = std::mem::take(&mut self.memoized);
        // Explicit numbers are checked against the next ones, so all or none have to be explicit.
        let puts = template.head.puts.len() + template.tail.puts.len();
        template.has_puts = puts > 0;
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
                let length =
                    self.skip(prefix)?.iter().rev().fold(0, |v, &b| v << 8 | usize::from(b));
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
                if begins_batch(self.input, self.at) {
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
