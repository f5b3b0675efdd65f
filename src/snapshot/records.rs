//! Dicts with PyTorch's keys, as events, frames, segments, blocks and annotations.
//!
//! A field that is missing or of another type than the format says is not fatal: it is counted, and
//! taken as empty. A number that does not fit is: everything later would be wrong.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::pickle::{Handle, Value};
use crate::snapshot::build::{Build, Is, Key, Object, kind};
use crate::snapshot::events::{Action, Event, Extras};
use crate::snapshot::intern::Frame;
use crate::snapshot::{Annotation, Block, BlockState, History, Segment};

impl Build {
    pub fn event(&mut self, items: &[Value], at: usize) -> Result<u32> {
        let (mut event, mut extras) = (Event::EMPTY, Extras::default());
        self.set_event(&mut event, &mut extras, items, at)?;
        event.extras = self.extras.intern(&extras);
        self.events.push(&event);
        Ok(self.events.len() as u32 - 1)
    }

    /// Sets the fields of an event that these keys give.
    pub fn set_event(
        &mut self,
        event: &mut Event,
        extras: &mut Extras,
        items: &[Value],
        at: usize,
    ) -> Result<()> {
        for pair in items.chunks_exact(2) {
            let value = pair[1];
            match self.key(pair[0]) {
                Key::Action => event.action = self.action(value),
                Key::Addr | Key::DeviceFree => {
                    event.address = self.word(value, pair[0], at)?;
                }
                Key::Size => event.size = self.size(value, pair[0], at)?,
                Key::Stream => event.stream = self.word(value, pair[0], at)? as i64,
                Key::TimeUs => event.time_us = self.word(value, pair[0], at)?,
                Key::Frames => event.stack = self.stack_of(value),
                Key::CompileContext => extras.compile_context = self.text_of(value, pair[0]),
                Key::UserMetadata => extras.user_metadata = self.text_of(value, pair[0]),
                Key::InternalMetadata => extras.internal_metadata = self.text_of(value, pair[0]),
                Key::Category => extras.category = self.text_of(value, pair[0]),
                Key::PoolId => {
                    let pool = self.pair_of(value);
                    extras.pool = 1 + self.pairs.intern(&pool);
                }
                Key::ForwardFrames => extras.forward_frames = self.text_list(value),
                _ => self.count_unknown(pair[0]),
            }
        }
        Ok(())
    }

    pub fn frame(&mut self, mut frame: Frame, items: &[Value]) -> Frame {
        for pair in items.chunks_exact(2) {
            let value = pair[1];
            match self.key(pair[0]) {
                Key::Name => frame.name = self.text_of(value, pair[0]),
                Key::Filename => frame.filename = self.text_of(value, pair[0]),
                Key::Line => match value {
                    Value::Int(line) => frame.line = line as u64,
                    Value::Uint(line) => frame.line = line,
                    _ => self.count_wrong(pair[0]),
                },
                Key::FxOp => frame.fx[0] = self.text_of(value, pair[0]),
                Key::FxName => frame.fx[1] = self.text_of(value, pair[0]),
                Key::FxTarget => frame.fx[2] = self.text_of(value, pair[0]),
                Key::FxTrace => frame.fx[3] = self.text_of(value, pair[0]),
                _ => self.count_unknown(pair[0]),
            }
        }
        frame
    }

    pub fn segment(&mut self, items: &[Value], at: usize) -> Result<u32> {
        let mut segment = Segment::default();
        let mut blocks = Value::None;
        for pair in items.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            match self.key(key) {
                Key::Device => segment.device = self.word(value, key, at)? as i32,
                Key::Address => segment.address = self.word(value, key, at)?,
                Key::TotalSize => segment.total_size = self.size(value, key, at)?,
                Key::AllocatedSize => segment.allocated_size = self.size(value, key, at)?,
                Key::ActiveSize => segment.active_size = self.size(value, key, at)?,
                Key::RequestedSize => segment.requested_size = self.size(value, key, at)?,
                Key::Stream => segment.stream = self.word(value, key, at)? as i64,
                Key::SegmentType => segment.segment_type = self.text_of(value, key),
                Key::SegmentPoolId => segment.pool = self.pair_of(value),
                Key::IsExpandable => segment.is_expandable = value == Value::Bool(true),
                Key::Frames => segment.stack = self.stack_of(value),
                Key::Blocks => blocks = value,
                _ => self.count_unknown(key),
            }
        }
        self.segments.push((segment, blocks));
        Ok(self.segments.len() as u32 - 1)
    }

    pub fn block(&mut self, items: &[Value], at: usize) -> Result<u32> {
        let mut block = Block::default();
        let mut has_address = false;
        let mut requested = None;
        for pair in items.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            match self.key(key) {
                Key::Address => {
                    block.address = self.word(value, key, at)?;
                    has_address = true;
                }
                Key::Size => block.size = self.size(value, key, at)?,
                Key::RequestedSize => requested = Some(self.size(value, key, at)?),
                Key::State => block.state = self.state(value),
                Key::Frames => block.stack = self.stack_of(value),
                Key::History => block.history = self.past_of(value),
                _ => self.count_unknown(key),
            }
        }
        let newest = self.history[block.history.clone()].first();
        block.requested_size =
            requested.or(newest.map(|past| past.real_size)).unwrap_or(block.size);
        if let (0, Some(past)) = (block.stack, newest) {
            block.stack = past.stack;
        }
        self.blocks.push((block, has_address));
        Ok(self.blocks.len() as u32 - 1)
    }

    pub fn past(&mut self, items: &[Value], at: usize) -> Result<u32> {
        let mut past = History::default();
        for pair in items.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            match self.key(key) {
                Key::Addr => past.address = self.word(value, key, at)?,
                Key::RealSize => past.real_size = self.size(value, key, at)?,
                Key::Frames => past.stack = self.stack_of(value),
                _ => self.count_unknown(key),
            }
        }
        self.history.push(past);
        Ok(self.history.len() as u32 - 1)
    }

    /// The rows of a block's past: its entries were made one after the other, and are of no block before.
    fn past_of(&mut self, value: Value) -> Range<usize> {
        let of = |build: &Self, item: Option<&Value>| {
            let object = item.and_then(|&item| build.object(item));
            object.filter(|object| object.is == Is::History).map(|object| object.id as usize)
        };
        let items = self.items(value);
        match (of(self, items.first()), of(self, items.last())) {
            (Some(first), Some(last))
                if last + 1 == first + items.len() && first >= self.claimed_history =>
            {
                self.claimed_history = last + 1;
                first..last + 1
            }
            _ => 0..0,
        }
    }

    pub fn annotation(&mut self, items: &[Value], at: usize) -> Result<u32> {
        let mut annotation = Annotation::default();
        for pair in items.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            match self.key(key) {
                Key::Name => annotation.name = self.text_of(value, key),
                Key::Stage => annotation.stage = self.text_of(value, key),
                Key::Device if matches!(value, Value::None) => {}
                Key::Device => annotation.device = Some(self.word(value, key, at)? as i32),
                Key::TimeUs => annotation.time_us = self.word(value, key, at)?,
                _ => self.count_unknown(key),
            }
        }
        self.annotations.push(annotation);
        Ok(self.annotations.len() as u32 - 1)
    }

    /// The number of an action, by its name.
    pub fn action(&mut self, value: Value) -> Action {
        let Value::Text(id) = value else {
            *self.oddities.wrong_types.entry("action".to_owned()).or_default() += 1;
            return Action::OTHER;
        };
        if self.actions.is_empty() {
            self.actions = Action::NAMES.iter().map(|name| self.strings.intern(name)).collect();
            self.keys.resize(self.strings.len(), Key::Unknown);
        }
        // PyTorch's own page takes `free` for `free_completed`.
        if self.strings.get(id) == "free" {
            return Action::FREE_COMPLETED;
        }
        if let Some(number) = self.actions.iter().position(|&known| known == id) {
            return Action(number as u8);
        }
        if self.actions.len() >= Action::OTHER.0 as usize {
            return Action::OTHER;
        }
        self.actions.push(id);
        Action(self.actions.len() as u8 - 1)
    }

    fn state(&mut self, value: Value) -> BlockState {
        let Value::Text(id) = value else { return BlockState::Inactive };
        match self.strings.get(id) {
            "active_allocated" => BlockState::Allocated,
            "active_pending_free" | "active_awaiting_free" => BlockState::PendingFree,
            "inactive" => BlockState::Inactive,
            _ => {
                *self.oddities.wrong_types.entry("state".to_owned()).or_default() += 1;
                BlockState::Inactive
            }
        }
    }

    /// A 64-bit word: an address, a stream, a time. C++ writes addresses with a sign.
    fn word(&mut self, value: Value, key: Value, at: usize) -> Result<u64> {
        match value {
            Value::Int(word) => Ok(word as u64),
            Value::Uint(word) => Ok(word),
            Value::Huge => self.overflow(key, at),
            _ => {
                self.count_wrong(key);
                Ok(0)
            }
        }
    }

    /// A number of bytes.
    fn size(&mut self, value: Value, key: Value, at: usize) -> Result<u64> {
        match value {
            Value::Int(size) if size >= 0 => Ok(size as u64),
            Value::Int(_) | Value::Uint(_) | Value::Huge => self.overflow(key, at),
            _ => {
                self.count_wrong(key);
                Ok(0)
            }
        }
    }

    fn overflow<T>(&self, key: Value, at: usize) -> Result<T> {
        let name = self.name(key);
        Err(Error::malformed(format!("`{name}` is negative or does not fit 64 bits"), at))
    }

    fn name(&self, key: Value) -> &str {
        match key {
            Value::Text(id) => self.strings.get(id),
            _ => "(a key that is not a string)",
        }
    }

    fn text_of(&mut self, value: Value, key: Value) -> u32 {
        match value {
            Value::Text(id) => id,
            Value::None => 0,
            _ => {
                self.count_wrong(key);
                0
            }
        }
    }

    fn text_list(&mut self, value: Value) -> u32 {
        let texts: Vec<u32> = self
            .items(value)
            .iter()
            .filter_map(|item| if let Value::Text(id) = item { Some(*id) } else { None })
            .collect();
        if texts.is_empty() { 0 } else { 1 + self.text_lists.intern(&texts) }
    }

    /// The items of a list, if the value is one that holds neither frames nor events.
    pub fn items(&self, value: Value) -> &[Value] {
        match self.object(value) {
            Some(Object { is: Is::List, id, .. }) => &self.containers[id as usize],
            _ => &[],
        }
    }

    pub fn stack_of(&mut self, value: Value) -> u32 {
        match value {
            Value::None => return 0,
            Value::Object(Handle { kind: kind::STACK, id }) => return id,
            _ => {}
        }
        match self.object(value) {
            Some(Object { is: Is::Stack, id, .. }) => id,
            Some(Object { is: Is::EmptyList, .. }) => 0,
            Some(Object { is: Is::List, id, .. }) => {
                let items = self.containers[id as usize].clone();
                let frames = self.frames_of(&items);
                self.stacks.intern(&frames)
            }
            _ => {
                *self.oddities.wrong_types.entry("frames".to_owned()).or_default() += 1;
                0
            }
        }
    }

    /// Frame ids of items that are dicts, which in a list of frames are frames; counts the others.
    pub fn frames_of(&mut self, items: &[Value]) -> Vec<u32> {
        let mut frames = Vec::with_capacity(items.len());
        for &item in items {
            match self.object(item) {
                Some(Object { is: Is::Frame, id, .. }) => frames.push(id),
                Some(Object { is: Is::EmptyDict, .. }) => {
                    frames.push(self.stacks.intern_frame(Frame::default()));
                }
                Some(Object { is: Is::Dict, id, .. }) => {
                    let fields = self.containers[id as usize].clone();
                    let frame = self.frame(Frame::default(), &fields);
                    frames.push(self.stacks.intern_frame(frame));
                }
                _ => *self.oddities.wrong_types.entry("frames".to_owned()).or_default() += 1,
            }
        }
        frames
    }

    fn pair_of(&self, value: Value) -> (i64, i64) {
        if let Value::Object(Handle { kind: kind::PAIR, id }) = value {
            return *self.pairs.get(id);
        }
        match self.items(value) {
            [Value::Int(a), Value::Int(b)] => (*a, *b),
            _ => (0, 0),
        }
    }

    pub fn count_unknown(&mut self, key: Value) {
        let id = if let Value::Text(id) = key { id } else { 0 };
        *self.unknown.entry(id).or_default() += 1;
    }

    fn count_wrong(&mut self, key: Value) {
        let name = self.name(key).to_owned();
        *self.oddities.wrong_types.entry(name).or_default() += 1;
    }

    /// Moves the counts of unknown fields to the oddities, by name.
    pub fn finish_oddities(&mut self) {
        for (id, count) in self.unknown.drain() {
            let name = self.strings.get(id).to_owned();
            *self.oddities.unknown_fields.entry(name).or_default() += count;
        }
    }
}
