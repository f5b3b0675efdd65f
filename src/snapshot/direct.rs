//! Reads an event off the input without the machine's stack.
//!
//! For events of any form that has no other containers in it than a list of known frames. Either the
//! whole event is taken, or nothing has changed.

use crate::pickle::{Builder, Handle, State, Value, integer, op};
use crate::snapshot::build::{Build, Key, kind};
use crate::snapshot::events::{Event, Extras};
use crate::snapshot::raw_stacks::{RawStacks, begins_batch};

/// More than a real event has; one with more is left to the machine.
const MAX_MEMOIZED: usize = 16;

/// Takes the event that begins here; None if it is none, or not of a simple form.
pub(super) fn take_event(
    build: &mut Build,
    state: &mut State<'_>,
    stacks: &mut RawStacks,
) -> Option<()> {
    let mut reader =
        Reader { at: state.at, state, memoized: [Value::None; MAX_MEMOIZED], count: 0 };
    let row = Value::Object(Handle { kind: kind::EVENT, id: build.events.len() as u32 });
    let (mut event, mut extras) = (Event::EMPTY, Extras::default());
    let mut unknown = [Value::None; MAX_MEMOIZED];
    let mut unknown_count = 0;
    let mut has_action = false;

    reader.at += 1;
    reader.memoize(row)?;
    reader.expect(op::MARK)?;
    while reader.peek()? != op::SETITEMS {
        let name = reader.reference()?;
        let Value::Text(_) = name else { return None };
        let key = build.key(name);
        if !is_of_event(key) {
            return None;
        }
        let value = reader.value(build, stacks)?;
        match (key, value) {
            (Key::Action, Value::Text(_)) => {
                event.action = build.action(value);
                has_action = true;
            }
            // Whatever uses a container has to be noted, and the machine does that.
            (Key::Unknown, Value::Object(_)) => return None,
            (Key::Unknown, _) => {
                *unknown.get_mut(unknown_count)? = name;
                unknown_count += 1;
            }
            _ => set(build, &mut event, &mut extras, key, value)?,
        }
    }
    reader.at += 1;
    reader.memoize(row)?;
    if !has_action {
        return None;
    }

    let Reader { at, memoized, count, .. } = reader;
    event.extras = build.extras.intern(&extras);
    build.events.push(&event);
    for &key in &unknown[..unknown_count] {
        build.count_unknown(key);
    }
    for &value in &memoized[..count] {
        state.memo.push(value);
    }
    state.stack.push(row);
    state.at = at;
    Some(())
}

/// Whether an event may have this key; any other shows that the dict is not an event.
fn is_of_event(key: Key) -> bool {
    matches!(
        key,
        Key::Action
            | Key::Addr
            | Key::DeviceFree
            | Key::Size
            | Key::Stream
            | Key::TimeUs
            | Key::Frames
            | Key::CompileContext
            | Key::UserMetadata
            | Key::InternalMetadata
            | Key::Category
            | Key::PoolId
            | Key::ForwardFrames
            | Key::Unknown
    )
}

/// Sets a field; None if the value is not what the format says: the machine then says what is wrong.
#[inline]
fn set(
    build: &mut Build,
    event: &mut Event,
    extras: &mut Extras,
    key: Key,
    value: Value,
) -> Option<()> {
    match (key, value) {
        (Key::Addr | Key::DeviceFree, Value::Int(word)) => event.address = word as u64,
        (Key::Addr | Key::DeviceFree, Value::Uint(word)) => event.address = word,
        (Key::Size, Value::Int(size)) => event.size = u64::try_from(size).ok()?,
        (Key::Stream, Value::Int(stream)) => event.stream = stream,
        (Key::TimeUs, Value::Int(time)) => event.time_us = time as u64,
        (Key::Frames, value) => event.stack = build.use_stack(value)?,
        (Key::CompileContext, Value::Text(id)) => extras.compile_context = id,
        (Key::UserMetadata, Value::Text(id)) => extras.user_metadata = id,
        (Key::InternalMetadata, Value::Text(id)) => extras.internal_metadata = id,
        (Key::Category, Value::Text(id)) => extras.category = id,
        (Key::PoolId, Value::Object(Handle { kind: kind::PAIR, id })) => extras.pool = 1 + id,
        _ => return None,
    }
    Some(())
}

struct Reader<'s, 'a> {
    state: &'s State<'a>,
    at: usize,
    memoized: [Value; MAX_MEMOIZED],
    count: usize,
}

impl<'a> Reader<'_, 'a> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.state.input.get(self.at).copied()
    }

    #[inline]
    fn expect(&mut self, opcode: u8) -> Option<()> {
        (self.peek()? == opcode).then(|| self.at += 1)
    }

    #[inline]
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = self.state.input.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(bytes)
    }

    #[inline]
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.state.input.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(*bytes)
    }

    /// The value that a memo reference here means.
    #[inline]
    fn reference(&mut self) -> Option<Value> {
        let opcode = self.peek()?;
        self.at += 1;
        let index = match opcode {
            op::BINGET => u32::from(self.chunk::<1>()?[0]),
            op::LONG_BINGET => u32::from_le_bytes(self.chunk()?),
            _ => return None,
        };
        self.state.memo.get(index as usize)
    }

    /// Takes a memo opcode if there is one here; its number has to be the next one.
    #[inline]
    fn memoize(&mut self, value: Value) -> Option<()> {
        let next = self.state.memo.len() + self.count;
        let number = match self.peek()? {
            op::MEMOIZE => {
                self.at += 1;
                next
            }
            op::BINPUT => {
                self.at += 1;
                usize::from(self.chunk::<1>()?[0])
            }
            op::LONG_BINPUT => {
                self.at += 1;
                u32::from_le_bytes(self.chunk()?) as usize
            }
            _ => return Some(()),
        };
        *self.memoized.get_mut(self.count)? = value;
        self.count += 1;
        (number == next).then_some(())
    }

    #[inline]
    fn value(&mut self, build: &mut Build, stacks: &mut RawStacks) -> Option<Value> {
        let opcode = self.peek()?;
        if matches!(opcode, op::BINGET | op::LONG_BINGET) {
            return self.reference();
        }
        self.at += 1;
        match opcode {
            op::BININT1 if self.state.input.get(self.at + 1) == Some(&op::BININT1) => {
                self.pair(build)
            }
            op::BININT1 => Some(Value::Int(i64::from(self.chunk::<1>()?[0]))),
            op::BININT2 => Some(Value::Int(i64::from(u16::from_le_bytes(self.chunk()?)))),
            op::BININT => Some(Value::Int(i64::from(i32::from_le_bytes(self.chunk()?)))),
            op::LONG1 => {
                let length = self.chunk::<1>()?[0];
                Some(integer(self.take(usize::from(length))?))
            }
            op::SHORT_BINUNICODE => {
                let length = self.chunk::<1>()?[0];
                self.text(usize::from(length), build)
            }
            op::BINUNICODE => {
                let length = u32::from_le_bytes(self.chunk()?);
                self.text(length as usize, build)
            }
            op::NONE => Some(Value::None),
            op::NEWTRUE => Some(Value::Bool(true)),
            op::NEWFALSE => Some(Value::Bool(false)),
            op::EMPTY_LIST => self.stack(build, stacks),
            _ => None,
        }
    }

    #[inline]
    fn text(&mut self, length: usize, build: &mut Build) -> Option<Value> {
        let text = std::str::from_utf8(self.take(length)?).ok()?;
        let value = Value::Text(build.text(text, self.at).ok()?);
        self.memoize(value)?;
        Some(value)
    }

    /// `BININT1 a BININT1 b TUPLE2`, a pool's id.
    fn pair(&mut self, build: &mut Build) -> Option<Value> {
        let [a, _, b, op::TUPLE2] = self.chunk()? else { return None };
        let id = build.pairs.intern(&(i64::from(a), i64::from(b)));
        let value = Value::Object(Handle { kind: kind::PAIR, id });
        self.memoize(value)?;
        Some(value)
    }

    /// A list of memo references; its memo opcode comes before or after them.
    fn stack(&mut self, build: &mut Build, stacks: &mut RawStacks) -> Option<Value> {
        let before = self.count;
        self.memoize(Value::None)?;
        let mut id = 0;
        if begins_batch(self.state.input, self.at) {
            (id, self.at) = stacks.find(build, self.state, self.at)?;
        }
        let value = Value::Object(Handle { kind: kind::STACK, id });
        if self.count > before {
            self.memoized[before] = value;
        } else {
            self.memoize(value)?;
        }
        Some(value)
    }
}
