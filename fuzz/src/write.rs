//! Turns fuzzer bytes into pickles that are nearly right.
//!
//! Bytes changed at random seldom survive the reader's first checks, and hardly ever show it two
//! events of the same shape, which is what its templates wait for. Here a few shapes are drawn
//! first (keys, their order, how each is written and memoized), then many events of these shapes,
//! with a rare misstep: a FRAME where none belongs, a memo number used twice, an opcode of any kind.

use arbitrary::{Result, Unstructured};
use snapviewer::pickle::op;
use snapviewer::snapshot::Action;

const UNKNOWN_ACTIONS: [&str; 2] = ["annotate", "unheard_of"];

const EVENT_KEYS: [&str; 14] = [
    "action",
    "addr",
    "size",
    "stream",
    "time_us",
    "frames",
    "device_free",
    "compile_context",
    "user_metadata",
    "forward_frames",
    "pool_id",
    "internal_metadata",
    "category",
    "unheard_of",
];

/// A pickle of a snapshot, as far as the bytes last.
#[must_use]
pub fn pickle(data: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(Unstructured::new(data));
    // What is written so far is the pickle; the reader sees one that is cut off.
    let _ = writer.snapshot();
    writer.out
}

/// How a container or a string gets into the memo.
#[derive(Clone, Copy)]
enum Memo {
    Never,
    Memoize,
    /// BINPUT or LONG_BINPUT with the next number.
    Put,
}

const MEMOS: [Memo; 3] = [Memo::Never, Memo::Memoize, Memo::Put];

/// How the items of a dict or a list are added.
#[derive(Clone, Copy)]
enum Fill {
    AtOnce,
    OneByOne,
}

struct Shape {
    keys: Vec<&'static str>,
    memo: Memo,
    fill: Fill,
    /// How integers are written: as short as possible if 0, else in this way.
    width: u8,
    frames: u8,
    misstep_after: Option<u8>,
}

struct Writer<'a> {
    from: Unstructured<'a>,
    out: Vec<u8>,
    memoized: u32,
    strings: Vec<(&'static str, u32)>,
    frames: Vec<u32>,
    stacks: Vec<u32>,
    strings_are_shared: bool,
    memo: Memo,
}

impl<'a> Writer<'a> {
    fn new(from: Unstructured<'a>) -> Self {
        Self {
            from,
            out: Vec::new(),
            memoized: 0,
            strings: Vec::new(),
            frames: Vec::new(),
            stacks: Vec::new(),
            strings_are_shared: true,
            memo: Memo::Memoize,
        }
    }

    fn snapshot(&mut self) -> Result<()> {
        self.out.extend([op::PROTO, self.from.int_in_range(2..=5)?]);
        self.memo = *self.from.choose(&MEMOS)?;
        self.strings_are_shared = !self.from.ratio(1, 16)?;
        self.open(op::EMPTY_DICT, self.memo);
        self.out.push(op::MARK);
        let segments_first = self.from.arbitrary()?;
        if segments_first {
            self.segments()?;
        }
        self.traces("device_traces")?;
        if !segments_first {
            self.segments()?;
        }
        if self.from.ratio(1, 8)? {
            self.traces("host_traces")?;
        }
        self.out.extend([op::SETITEMS, op::STOP]);
        Ok(())
    }

    fn traces(&mut self, key: &'static str) -> Result<()> {
        self.text(key);
        self.open(op::EMPTY_LIST, self.memo);
        self.out.push(op::MARK);
        for _ in 0..self.from.int_in_range(1..=3)? {
            self.trace()?;
        }
        self.out.push(op::APPENDS);
        Ok(())
    }

    fn trace(&mut self) -> Result<()> {
        let mut shapes = Vec::new();
        for _ in 0..self.from.int_in_range(1..=4)? {
            shapes.push(self.shape()?);
        }
        self.open(op::EMPTY_LIST, self.memo);
        let batch = self.from.int_in_range(1..=20)?;
        let mut is_open = false;
        let mut number = 0;
        while !self.from.is_empty() && !self.from.ratio(1, 50)? {
            if number % batch == 0 {
                if is_open {
                    self.out.push(op::APPENDS);
                }
                self.out.push(op::MARK);
                is_open = true;
            }
            number += 1;
            let shape = self.from.choose(&shapes)?;
            self.event(shape)?;
            if self.from.ratio(1, 60)? {
                self.misstep()?;
            }
        }
        if is_open {
            self.out.push(op::APPENDS);
        }
        Ok(())
    }

    fn shape(&mut self) -> Result<Shape> {
        let mut keys: Vec<&str> = if self.from.ratio(3, 4)? {
            // As PyTorch writes them.
            vec!["action", "addr", "size", "stream", "time_us", "compile_context", "frames"]
        } else {
            let mut keys = Vec::new();
            for _ in 0..self.from.int_in_range(1..=8)? {
                keys.push(*self.from.choose(&EVENT_KEYS)?);
            }
            keys
        };
        if self.from.arbitrary()? {
            let (a, b) = (self.from.choose_index(keys.len())?, self.from.choose_index(keys.len())?);
            keys.swap(a, b);
        }
        let misstep_after =
            if self.from.ratio(1, 12)? { Some(self.from.arbitrary()?) } else { None };
        Ok(Shape {
            keys,
            memo: if self.from.ratio(1, 8)? { *self.from.choose(&MEMOS)? } else { self.memo },
            fill: if self.from.ratio(1, 8)? { Fill::OneByOne } else { Fill::AtOnce },
            width: self.from.int_in_range(0..=6)?,
            frames: self.from.int_in_range(0..=6)?,
            misstep_after,
        })
    }

    fn event(&mut self, shape: &Shape) -> Result<()> {
        self.open(op::EMPTY_DICT, shape.memo);
        if matches!(shape.fill, Fill::AtOnce) {
            self.out.push(op::MARK);
        }
        for (number, &key) in shape.keys.iter().enumerate() {
            self.text(key);
            self.field(key, shape)?;
            if shape.misstep_after == Some(number as u8) {
                self.misstep()?;
            }
            if matches!(shape.fill, Fill::OneByOne) {
                self.out.push(op::SETITEM);
            }
        }
        if matches!(shape.fill, Fill::AtOnce) {
            self.out.push(op::SETITEMS);
        }
        Ok(())
    }

    fn field(&mut self, key: &str, shape: &Shape) -> Result<()> {
        if self.from.ratio(1, 200)? {
            return self.misstep();
        }
        match key {
            "action" => {
                let action = *self.from.choose(&[&Action::NAMES[..], &UNKNOWN_ACTIONS].concat())?;
                self.text(action);
            }
            "frames" => self.stack(shape)?,
            "forward_frames" => {
                self.open(op::EMPTY_LIST, shape.memo);
                self.text("train.py:7:step");
                self.out.push(op::APPEND);
            }
            "pool_id" => {
                self.out.extend([op::BININT1, 0, op::BININT1, self.from.arbitrary::<u8>()? & 1]);
                self.out.push(op::TUPLE2);
                self.memoize(shape.memo);
            }
            "compile_context" | "user_metadata" => {
                let text = *self.from.choose(&["N/A", "0/1", ""])?;
                self.text(text);
            }
            "internal_metadata" => self.text("mallocWithAddress"),
            "category" => self.text("gradient"),
            "addr" => {
                // Few, so that allocations and frees meet.
                let which = i64::from(self.from.int_in_range::<u8>(0..=7)?);
                self.integer(0x7f00_0000_0000 + which * 512, shape.width)?;
            }
            _ => {
                let value = match self.from.int_in_range(0..=5)? {
                    0 => self.from.arbitrary::<i64>()?,
                    1 => self.from.arbitrary::<i32>()?.into(),
                    2 => self.from.arbitrary::<u16>()?.into(),
                    _ => self.from.arbitrary::<u8>()?.into(),
                };
                self.integer(value, shape.width)?;
            }
        }
        Ok(())
    }

    fn stack(&mut self, shape: &Shape) -> Result<()> {
        match shape.frames {
            0 => self.open(op::EMPTY_LIST, shape.memo),
            1 if !self.stacks.is_empty() => {
                let which = *self.from.choose(&self.stacks)?;
                self.get(which)?;
            }
            2 => self.out.push(op::NONE),
            _ => {
                let at = self.memoized;
                self.open(op::EMPTY_LIST, shape.memo);
                if self.memoized != at {
                    self.stacks.push(at);
                }
                self.out.push(op::MARK);
                for _ in 0..self.from.int_in_range(1..=4)? {
                    if self.frames.is_empty() || self.from.ratio(1, 10)? {
                        self.frame(shape.memo)?;
                    } else {
                        let which = *self.from.choose(&self.frames)?;
                        self.get(which)?;
                    }
                }
                self.out.push(op::APPENDS);
            }
        }
        Ok(())
    }

    fn frame(&mut self, memo: Memo) -> Result<()> {
        let at = self.memoized;
        self.open(op::EMPTY_DICT, memo);
        if self.memoized != at {
            self.frames.push(at);
        }
        self.out.push(op::MARK);
        self.text("name");
        let name = *self.from.choose(&["forward", "backward", ""])?;
        self.text(name);
        self.text("filename");
        self.text("model.py");
        self.text("line");
        let line = self.from.arbitrary::<u8>()?;
        self.integer(line.into(), 0)?;
        self.out.push(op::SETITEMS);
        Ok(())
    }

    fn segments(&mut self) -> Result<()> {
        self.text("segments");
        self.open(op::EMPTY_LIST, self.memo);
        self.out.push(op::MARK);
        for _ in 0..self.from.int_in_range(0..=2)? {
            let address = 0x7f00_0000_0000;
            self.open(op::EMPTY_DICT, self.memo);
            self.out.push(op::MARK);
            self.text("device");
            self.integer(0, 0)?;
            self.text("address");
            self.integer(address, 0)?;
            self.text("total_size");
            self.integer(4096, 0)?;
            self.text("blocks");
            self.open(op::EMPTY_LIST, self.memo);
            self.out.push(op::MARK);
            for number in 0..self.from.int_in_range(0..=8)? {
                self.open(op::EMPTY_DICT, self.memo);
                self.out.push(op::MARK);
                self.text("address");
                self.integer(address + number * 512, 0)?;
                self.text("size");
                self.integer(512, 0)?;
                self.text("requested_size");
                let size = self.from.arbitrary::<u16>()?;
                self.integer(size.into(), 0)?;
                self.text("state");
                let state = *self.from.choose(&["active_allocated", "inactive"])?;
                self.text(state);
                self.out.push(op::SETITEMS);
            }
            self.out.extend([op::APPENDS, op::SETITEMS]);
        }
        self.out.push(op::APPENDS);
        Ok(())
    }

    /// Something that a pickler would not write here.
    fn misstep(&mut self) -> Result<()> {
        match self.from.int_in_range(0..=7)? {
            0 => {
                self.out.push(op::FRAME);
                self.out.extend(self.from.int_in_range::<u64>(0..=40)?.to_le_bytes());
            }
            1 => {
                // A number that is taken already: all that was learnt is void.
                self.out.extend([op::BINPUT, self.from.arbitrary()?]);
            }
            2 => self.out.extend([op::DUP, op::POP]),
            3 => self.out.extend([op::NONE, op::POP]),
            4 => self.memoize(Memo::Memoize),
            5 => self.out.extend([op::BINGET, self.from.arbitrary()?]),
            6 => self.out.extend([op::MARK, op::NEWTRUE, op::POP_MARK]),
            _ => {
                let byte = self.from.arbitrary()?;
                self.out.push(byte);
            }
        }
        Ok(())
    }

    fn open(&mut self, opcode: u8, memo: Memo) {
        self.out.push(opcode);
        self.memoize(memo);
    }

    fn memoize(&mut self, memo: Memo) {
        match memo {
            Memo::Never => return,
            Memo::Memoize => self.out.push(op::MEMOIZE),
            Memo::Put => match u8::try_from(self.memoized) {
                Ok(number) => self.out.extend([op::BINPUT, number]),
                Err(_) => {
                    self.out.push(op::LONG_BINPUT);
                    self.out.extend(self.memoized.to_le_bytes());
                }
            },
        }
        self.memoized += 1;
    }

    fn get(&mut self, number: u32) -> Result<()> {
        match u8::try_from(number) {
            Ok(number) if !self.from.ratio(1, 32)? => self.out.extend([op::BINGET, number]),
            _ => {
                self.out.push(op::LONG_BINGET);
                self.out.extend(number.to_le_bytes());
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &'static str) {
        let known = self.strings.iter().find(|(known, _)| *known == text);
        if let Some(&(_, number)) = known
            && let Ok(number) = u8::try_from(number)
        {
            self.out.extend([op::BINGET, number]);
            return;
        }
        if matches!(self.memo, Memo::Memoize) {
            self.out.extend([op::SHORT_BINUNICODE, text.len() as u8]);
        } else {
            self.out.push(op::BINUNICODE);
            self.out.extend((text.len() as u32).to_le_bytes());
        }
        self.out.extend(text.as_bytes());
        let at = self.memoized;
        self.memoize(self.memo);
        if self.memoized != at && self.strings_are_shared {
            self.strings.push((text, at));
        }
    }

    fn integer(&mut self, value: i64, width: u8) -> Result<()> {
        let bytes = value.to_le_bytes();
        match width {
            1 => self.long(&bytes[..6]),
            2 => self.long(&bytes),
            3 => {
                self.out.extend([op::LONG1, 9]);
                self.out.extend(bytes);
                self.out.push(0);
            }
            4 if i32::try_from(value).is_ok() => {
                self.out.push(op::BININT);
                self.out.extend(&bytes[..4]);
            }
            _ => match value {
                0..=0xff => self.out.extend([op::BININT1, bytes[0]]),
                0x100..=0xffff => {
                    self.out.push(op::BININT2);
                    self.out.extend(&bytes[..2]);
                }
                _ if i32::try_from(value).is_ok() => {
                    self.out.push(op::BININT);
                    self.out.extend(&bytes[..4]);
                }
                0..=0x7fff_ffff_ffff => self.long(&bytes[..6]),
                _ => self.long(&bytes),
            },
        }
        Ok(())
    }

    fn long(&mut self, bytes: &[u8]) {
        self.out.extend([op::LONG1, bytes.len() as u8]);
        self.out.extend(bytes);
    }
}
