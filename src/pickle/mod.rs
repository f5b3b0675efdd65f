//! The inert pickle machine: runs a pickle's opcodes, imports nothing, calls nothing.
//!
//! The machine keeps the stack, the marks and the memo. What a string, a list or a dict becomes is
//! up to a [`Builder`], so that a trace of a million events can go straight into columns and never
//! exists as a tree. A value on the stack is 16 bytes, a memo entry 8.
//!
//! Opcodes that would run code (`GLOBAL`, `REDUCE`, `BUILD`, …) are refused by name and offset, unless
//! the builder takes [`Object`]s: then the call that would be made becomes a value like any other.
//!
//! # Limits
//!
//! What a file may ask for is bounded by its own length: the stack, the memo, nesting and every
//! length prefix. The machine uses at most a few bytes of memory per byte of the file.
//!
//! # Cost
//!
//! `O(bytes)`, one pass, no recursion.

mod memo;
mod objects;
pub mod op;

pub use memo::Memo;
pub use objects::Object;

use crate::error::{Error, Result};
use crate::progress::Progress;

/// Something a [`Builder`] made: which kind of thing, and which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    /// The builder's own numbering of kinds, up to [`Handle::MAX_KIND`].
    pub kind: u8,
    /// The builder's own numbering of things of that kind.
    pub id: u32,
}

impl Handle {
    /// The highest number of a kind.
    pub const MAX_KIND: u8 = 12;
}

/// A value on the machine's stack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of at most 64 bits with a sign.
    Int(i64),
    /// An integer above `i64::MAX` and below 2⁶⁴.
    Uint(u64),
    /// An integer that needs more than 64 bits.
    Huge,
    /// A float.
    Float(f64),
    /// A string, by the builder's number for it.
    Text(u32),
    /// A container or bytes, as the builder made it.
    Object(Handle),
}

/// Decides what the parts of a pickle become.
pub trait Builder {
    /// A string; `at` is where its opcode is.
    fn text(&mut self, text: &str, at: usize) -> Result<u32>;
    /// Bytes.
    fn bytes(&mut self, bytes: &[u8], at: usize) -> Result<Value>;
    /// Bytes that can be changed.
    fn bytearray(&mut self, bytes: &[u8], at: usize) -> Result<Value> {
        self.bytes(bytes, at)
    }
    /// An integer that needs more than 64 bits: two's complement, the lowest byte first.
    fn integer(&mut self, _bytes: &[u8], _at: usize) -> Result<Value> {
        Ok(Value::Huge)
    }
    /// An empty list.
    fn new_list(&mut self, at: usize) -> Result<Handle>;
    /// An empty dict.
    fn new_dict(&mut self, at: usize) -> Result<Handle>;
    /// A tuple.
    fn tuple(&mut self, items: &[Value], at: usize) -> Result<Value>;
    /// Adds items to a list; fails if the handle is no list.
    fn append(&mut self, list: Handle, items: &[Value], at: usize) -> Result<()>;
    /// Adds keys and values, in turn, to a dict; fails if the handle is no dict.
    fn set_items(&mut self, dict: Handle, items: &[Value], at: usize) -> Result<()>;

    /// Called where a list or a dict opens: may take whole objects off the input by itself, as if
    /// their opcodes had been run, but goes no further than `until`. Returns whether it took any.
    fn shortcut(&mut self, _state: &mut State<'_>, _until: usize) -> bool {
        false
    }

    /// A memo entry was replaced: what was learnt about the meaning of bytes is void.
    fn memo_replaced(&mut self) {}

    /// Whether the pickle may name classes and functions, call them, hold sets and persistent ids, and
    /// use the opcodes of protocols 0 and 1. If not, these are refused.
    const TAKES_OBJECTS: bool = false;

    /// How many values may be on the stack, and in the memo, whatever the file's length. (It may be
    /// some megabytes of opcodes more.)
    const MAX_VALUES: usize = usize::MAX;

    /// What one of these opcodes stands for. Only called if the builder takes objects.
    fn make(&mut self, _object: Object, at: usize) -> Result<Value> {
        Err(Error::malformed("it holds more than data", at))
    }
}

/// Where the machine is: the part of it that a shortcut may use and advance.
#[derive(Debug)]
pub struct State<'a> {
    /// The whole pickle.
    pub input: &'a [u8],
    /// The next byte to read.
    pub at: usize,
    /// The values on the stack.
    pub stack: Vec<Value>,
    /// The memo.
    pub memo: Memo,
}

/// How deep lists and dicts may be nested. PyTorch's snapshots are seven deep.
const MAX_DEPTH: usize = 1000;

/// How many bytes are read between two reports of progress.
const REPORT_EVERY: usize = 1 << 20;

/// Runs a pickle. Returns what it evaluates to and where it ends (bytes after it are allowed).
pub fn run<B: Builder>(
    input: &[u8],
    builder: &mut B,
    progress: &Progress<'_>,
) -> Result<(Value, usize)> {
    // A pickle in front of gigabytes of tensors has no more values than others.
    let memo = Memo::for_input(if B::TAKES_OBJECTS { 0 } else { input.len() });
    let state = State { input, at: 0, stack: Vec::new(), memo };
    // An object of a protocol-4 pickle takes two bytes at least: its opcode and MEMOIZE.
    let max_memo = 65_536 + input.len() / if B::TAKES_OBJECTS { 2 } else { 4 };
    let max_memo = max_memo.min(B::MAX_VALUES);
    Machine { state, marks: Vec::new(), op_at: 0, max_memo, builder }.run(progress)
}

struct Machine<'a, 'b, B> {
    state: State<'a>,
    /// The height of the stack at each open MARK.
    marks: Vec<usize>,
    /// Where the opcode being run is.
    op_at: usize,
    /// How many memo numbers a file of this length may use.
    max_memo: usize,
    builder: &'b mut B,
}

#[allow(clippy::inline_always)] // Small and hot: 4.5 against 5.6 ms for 1,722 segments.
impl<'a, B: Builder> Machine<'a, '_, B> {
    fn run(mut self, progress: &Progress<'_>) -> Result<(Value, usize)> {
        let total = self.state.input.len();
        // A list of a million events may be on the stack at once (PyTorch's C++ pickler writes it
        // so), but each of them is longer than this.
        let max_stack = (65_536 + total / 16).min(B::MAX_VALUES);
        let mut report_at = 0;
        loop {
            if self.state.at >= report_at {
                progress.at(self.state.at as u64, total as u64)?;
                report_at = self.state.at + REPORT_EVERY;
                if self.state.stack.len() > max_stack || self.state.memo.len() > self.max_memo {
                    return self
                        .fail("it asks for more objects than a file of this length can hold");
                }
            }
            self.op_at = self.state.at;
            let opcode = self.byte()?;
            if matches!(opcode, op::EMPTY_DICT | op::EMPTY_LIST) {
                self.state.at = self.op_at;
                if self.builder.shortcut(&mut self.state, report_at) {
                    continue;
                }
                self.state.at = self.op_at + 1;
            }
            if opcode == op::STOP {
                let value = self.pop()?;
                return Ok((value, self.state.at));
            }
            self.step(opcode)?;
        }
    }

    #[allow(clippy::too_many_lines)] // One line or two an opcode: a table in the form of a match.
    fn step(&mut self, opcode: u8) -> Result<()> {
        let at = self.op_at;
        match opcode {
            op::PROTO => {
                let version = self.byte()?;
                if version > 5 {
                    return self.fail("a pickle protocol above 5");
                }
            }
            op::FRAME => {
                let length = self.length(8)?;
                self.expect(length)?;
            }
            op::MARK => {
                if self.marks.len() == MAX_DEPTH {
                    return self.fail("nested deeper than 1,000 levels");
                }
                self.marks.push(self.state.stack.len());
            }
            op::POP => {
                // As in CPython: a POP right after a MARK takes the mark.
                if self.marks.last() == Some(&self.state.stack.len()) {
                    self.marks.pop();
                } else {
                    self.pop()?;
                }
            }
            op::POP_MARK => {
                let mark = self.mark()?;
                self.state.stack.truncate(mark);
            }
            op::DUP => self.top().map(|top| self.push(top))?,

            op::NONE => self.push(Value::None),
            op::NEWTRUE => self.push(Value::Bool(true)),
            op::NEWFALSE => self.push(Value::Bool(false)),
            op::BININT1 => self.byte().map(|value| self.push(Value::Int(value.into())))?,
            op::BININT2 => self.length(2).map(|value| self.push(Value::Int(value as i64)))?,
            op::BININT => {
                let value = self.length(4)?;
                self.push(Value::Int(i64::from(value as i32)));
            }
            op::LONG1 => self.length(1).and_then(|length| self.long(length))?,
            op::LONG4 => {
                let length = self.length(4)?;
                if length > i32::MAX as u64 {
                    return self.fail("an integer of negative length");
                }
                self.long(length)?;
            }
            op::BINFLOAT => {
                let bytes = self.take(8)?;
                let value = f64::from_bits(bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b)));
                self.push(Value::Float(value));
            }

            op::SHORT_BINUNICODE => self.text(1)?,
            op::BINUNICODE => self.text(4)?,
            op::BINUNICODE8 => self.text(8)?,
            op::SHORT_BINBYTES => self.bytes(1)?,
            op::BINBYTES => self.bytes(4)?,
            op::BINBYTES8 => self.bytes(8)?,
            op::BYTEARRAY8 => {
                let length = self.length(8)?;
                let bytes = self.take(length)?;
                let value = self.builder.bytearray(bytes, at)?;
                self.push(value);
            }

            op::EMPTY_LIST => {
                self.builder.new_list(at).map(|list| self.push(Value::Object(list)))?;
            }
            op::EMPTY_DICT => {
                self.builder.new_dict(at).map(|dict| self.push(Value::Object(dict)))?;
            }
            op::LIST => {
                let mark = self.mark()?;
                let list = self.builder.new_list(at)?;
                self.builder.append(list, &self.state.stack[mark..], at)?;
                self.replace(mark, Value::Object(list));
            }
            op::DICT => {
                let mark = self.mark()?;
                let dict = self.builder.new_dict(at)?;
                self.set_items(dict, mark)?;
                self.replace(mark, Value::Object(dict));
            }
            op::APPEND => self.below(1).and_then(|from| self.append(from))?,
            op::APPENDS => self.mark().and_then(|from| self.append(from))?,
            op::SETITEM => self.below(2).and_then(|from| self.set(from))?,
            op::SETITEMS => self.mark().and_then(|from| self.set(from))?,
            op::EMPTY_TUPLE => self.tuple(self.state.stack.len())?,
            op::TUPLE1 => self.below(1).and_then(|from| self.tuple(from))?,
            op::TUPLE2 => self.below(2).and_then(|from| self.tuple(from))?,
            op::TUPLE3 => self.below(3).and_then(|from| self.tuple(from))?,
            op::TUPLE => self.mark().and_then(|from| self.tuple(from))?,

            op::BINGET => self.length(1).and_then(|index| self.get(index))?,
            op::LONG_BINGET => self.length(4).and_then(|index| self.get(index))?,
            op::GET => self.decimal_line().and_then(|index| self.get(index))?,
            op::MEMOIZE => self.top().map(|top| self.state.memo.push(top))?,
            op::BINPUT => self.length(1).and_then(|index| self.put(index))?,
            op::LONG_BINPUT => self.length(4).and_then(|index| self.put(index))?,
            op::PUT => self.decimal_line().and_then(|index| self.put(index))?,
            _ if B::TAKES_OBJECTS => return self.object_step(opcode),
            _ => return Err(refuse(opcode, at)),
        }
        Ok(())
    }

    fn fail<T>(&self, reason: &'static str) -> Result<T> {
        Err(Error::malformed(reason, self.op_at))
    }

    #[inline(always)]
    fn push(&mut self, value: Value) {
        self.state.stack.push(value);
    }

    /// The lowest height that the stack may be taken down to: what is under a MARK is out of reach.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Value> {
        let from = self.below(1)?;
        let value = self.state.stack[from];
        self.state.stack.truncate(from);
        Ok(value)
    }

    fn top(&self) -> Result<Value> {
        Ok(self.state.stack[self.below(1)?])
    }

    /// The place of the `count`-th value from the top.
    fn below(&self, count: usize) -> Result<usize> {
        match self.state.stack.len().checked_sub(count) {
            Some(from) if from >= self.floor() => Ok(from),
            _ => self.fail("an opcode takes more values than there are"),
        }
    }

    fn mark(&mut self) -> Result<usize> {
        match self.marks.pop() {
            Some(mark) => Ok(mark),
            None => self.fail("an opcode needs a MARK and there is none"),
        }
    }

    fn replace(&mut self, from: usize, value: Value) {
        self.state.stack.truncate(from);
        self.push(value);
    }

    fn append(&mut self, from: usize) -> Result<()> {
        match self.container_under(from)? {
            Value::Object(list) => {
                self.builder.append(list, &self.state.stack[from..], self.op_at)?;
            }
            _ => return self.fail("items are added to something that is not a list"),
        }
        self.state.stack.truncate(from);
        Ok(())
    }

    fn set(&mut self, from: usize) -> Result<()> {
        match self.container_under(from)? {
            Value::Object(dict) => self.set_items(dict, from)?,
            _ => return self.fail("keys are set on something that is not a dict"),
        }
        self.state.stack.truncate(from);
        Ok(())
    }

    fn set_items(&mut self, dict: Handle, from: usize) -> Result<()> {
        let items = &self.state.stack[from..];
        if !items.len().is_multiple_of(2) {
            return self.fail("a key without a value");
        }
        self.builder.set_items(dict, items, self.op_at)
    }

    fn container_under(&self, from: usize) -> Result<Value> {
        match from.checked_sub(1) {
            Some(under) if under >= self.floor() => Ok(self.state.stack[under]),
            _ => self.fail("an opcode takes more values than there are"),
        }
    }

    fn tuple(&mut self, from: usize) -> Result<()> {
        let value = self.builder.tuple(&self.state.stack[from..], self.op_at)?;
        self.replace(from, value);
        Ok(())
    }

    fn text(&mut self, prefix: usize) -> Result<()> {
        let length = self.length(prefix)?;
        let at = self.op_at;
        let bytes = self.take(length)?;
        let id = match std::str::from_utf8(bytes) {
            Ok(text) => self.builder.text(text, at)?,
            Err(_) => {
                let text = replace_surrogates(bytes);
                let Some(text) = text else { return self.fail("a string that is not UTF-8") };
                self.builder.text(&text, at)?
            }
        };
        self.push(Value::Text(id));
        Ok(())
    }

    fn long(&mut self, length: u64) -> Result<()> {
        let bytes = self.take(length)?;
        let value = match integer(bytes) {
            Value::Huge => self.builder.integer(bytes, self.op_at)?,
            value => value,
        };
        self.push(value);
        Ok(())
    }

    fn bytes(&mut self, prefix: usize) -> Result<()> {
        let length = self.length(prefix)?;
        let at = self.op_at;
        let bytes = self.take(length)?;
        let value = self.builder.bytes(bytes, at)?;
        self.push(value);
        Ok(())
    }

    #[inline(always)]
    fn get(&mut self, index: u64) -> Result<()> {
        match usize::try_from(index).ok().and_then(|index| self.state.memo.get(index)) {
            Some(value) => {
                self.push(value);
                Ok(())
            }
            None => self.fail("a memo entry that was never stored"),
        }
    }

    fn put(&mut self, index: u64) -> Result<()> {
        let value = self.top()?;
        // Picklers number from 0 or 1 without gaps; the slack allows for odd ones, and no more. It
        // could be taken again and again, each time twice as much.
        let slack = 2 * self.state.memo.len() as u64 + 65_536;
        if index > slack.min(self.max_memo as u64) {
            return self.fail("a memo number far beyond those in use");
        }
        if self.state.memo.put(index as usize, value) {
            self.builder.memo_replaced();
        }
        Ok(())
    }

    #[inline(always)]
    fn byte(&mut self) -> Result<u8> {
        let Some(&byte) = self.state.input.get(self.state.at) else {
            return Err(ends_early(self.state.at));
        };
        self.state.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N]> {
        let rest = &self.state.input[self.state.at..];
        let Some(bytes) = rest.first_chunk() else {
            return Err(ends_early(self.state.input.len()));
        };
        self.state.at += N;
        Ok(*bytes)
    }

    /// A little-endian number of 1, 2, 4 or 8 bytes.
    #[inline(always)]
    fn length(&mut self, width: usize) -> Result<u64> {
        Ok(match width {
            1 => u64::from(self.byte()?),
            2 => u64::from(u16::from_le_bytes(self.chunk()?)),
            4 => u64::from(u32::from_le_bytes(self.chunk()?)),
            _ => u64::from_le_bytes(self.chunk()?),
        })
    }

    fn expect(&self, length: u64) -> Result<()> {
        if length > (self.state.input.len() - self.state.at) as u64 {
            let reason =
                format!("it is cut off: it ends before the {length} bytes that it announces");
            return Err(Error::malformed(reason, self.op_at));
        }
        Ok(())
    }

    #[inline]
    fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        self.expect(length)?;
        let from = self.state.at;
        self.state.at += length as usize;
        Ok(&self.state.input[from..self.state.at])
    }

    /// A decimal number in ASCII up to a newline (the memo opcodes of protocol 0).
    fn decimal_line(&mut self) -> Result<u64> {
        let rest = &self.state.input[self.state.at..];
        let Some(end) = rest.iter().take(21).position(|&byte| byte == b'\n') else {
            return self.fail("a malformed memo number");
        };
        let number = std::str::from_utf8(&rest[..end]).ok().and_then(|line| line.parse().ok());
        self.state.at += end + 1;
        match number {
            Some(number) => Ok(number),
            None => self.fail("a malformed memo number"),
        }
    }
}

fn ends_early(at: usize) -> Error {
    Error::malformed("it is cut off", at)
}

fn refuse(opcode: u8, at: usize) -> Error {
    let reason = match op::refused(opcode) {
        Some(name) => format!("it uses the pickle opcode {name}, which no snapshot needs"),
        None => format!("{opcode:#04x} is not a pickle opcode"),
    };
    Error::malformed(reason, at)
}

/// A little-endian two's complement integer.
#[must_use]
pub fn integer(mut bytes: &[u8]) -> Value {
    // Sign bytes beyond what is needed add nothing.
    while let [low @ .., next, top] = bytes
        && low.len() >= 7
        && *top == (if *next < 0x80 { 0 } else { 0xff })
    {
        bytes = &bytes[..bytes.len() - 1];
    }
    let fill = if bytes.last().is_some_and(|&top| top >= 0x80) { -1 } else { 0 };
    let signed = |bytes: &[u8]| bytes.iter().rev().fold(fill, |v: i64, &b| v << 8 | i64::from(b));
    match bytes {
        [low @ .., 0] if low.len() == 8 => Value::Uint(signed(low) as u64),
        _ if bytes.len() <= 8 => Value::Int(signed(bytes)),
        _ => Value::Huge,
    }
}

/// CPython writes lone surrogates as if they were characters; anything else that is not UTF-8 it
/// would not read itself.
fn replace_surrogates(bytes: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                return Some(text);
            }
            Err(error) => {
                let (valid, odd) = rest.split_at(error.valid_up_to());
                text.push_str(std::str::from_utf8(valid).ok()?);
                match odd {
                    [0xed, 0xa0..=0xbf, 0x80..=0xbf, after @ ..] => rest = after,
                    _ => return None,
                }
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
}
