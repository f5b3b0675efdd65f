//! What the parts of a snapshot become as they are read.
//!
//! A dict is known by its keys: one with `action` is an event, one with `filename` a frame, and so
//! on. Events and frames are made as soon as their keys are there, and leave nothing behind but a
//! row and a number; other dicts are few, and wait until something uses them.
//!
//! An object that something already uses cannot change any more. PyTorch's files never do that, and
//! it is what a cycle would need.

use hashbrown::HashMap;

use crate::error::{Error, Result};
use crate::pickle::{Builder, Handle, State, Value};
use crate::snapshot::events::{Action, Event, Events, Extras};
use crate::snapshot::intern::{Frame, Stacks, Strings, Table};
use crate::snapshot::template::Templates;
use crate::snapshot::{Annotation, Block, BlockState, History, Oddities, Segment};

/// The kinds of handles that the machine sees.
pub(super) mod kind {
    /// An entry of `Build::objects`, which may still change.
    pub const OBJECT: u8 = 0;
    /// A row of the events.
    pub const EVENT: u8 = 1;
    /// A stack.
    pub const STACK: u8 = 2;
    /// A pair of integers: a pool's id.
    pub const PAIR: u8 = 3;
    /// Something whose content does not matter.
    pub const OPAQUE: u8 = 4;
}

/// What an object is by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    EmptyList,
    EmptyDict,
    /// Keys and values in turn; which dict that is, nobody has asked yet.
    Pairs,
    /// The same, asked: none of those below.
    Dict,
    List,
    /// A list of events, as ranges of rows.
    Rows,
    Stack,
    Event,
    Frame,
    Segment,
    Block,
    History,
    Annotation,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Object {
    pub is: Is,
    pub is_used: bool,
    pub id: u32,
}

/// Everything read so far.
#[derive(Default)]
pub(super) struct Build {
    pub strings: Strings,
    /// For each string, the key that it is.
    keys: Vec<Key>,
    pub stacks: Stacks,
    pub events: Events,
    pub actions: Vec<u32>,
    pub objects: Vec<Object>,
    pub containers: Vec<Vec<Value>>,
    pub rows: Vec<Vec<std::ops::Range<u32>>>,
    pub segments: Vec<(Segment, Value)>,
    pub blocks: Vec<(Block, bool)>,
    pub history: Vec<History>,
    pub annotations: Vec<Annotation>,
    pub pairs: Table<(i64, i64)>,
    pub text_lists: Table<Vec<u32>>,
    pub oddities: Oddities,
    unknown: HashMap<u32, u64>,
    /// None for JSON, which has no opcodes to learn.
    templates: Option<Box<Templates>>,
    max_objects: usize,
}

macro_rules! keys {
    ($($name:ident = $text:literal),+ $(,)?) => {
        /// A key of the format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Key { $($name),+, Unknown }

        impl Key {
            fn of(text: &str) -> Self {
                match text { $($text => Self::$name),+, _ => Self::Unknown }
            }
        }
    };
}

keys! {
    Action = "action", Addr = "addr", Size = "size", Stream = "stream", TimeUs = "time_us",
    Frames = "frames", DeviceFree = "device_free", CompileContext = "compile_context",
    UserMetadata = "user_metadata", ForwardFrames = "forward_frames", PoolId = "pool_id",
    InternalMetadata = "internal_metadata", Category = "category",
    Name = "name", Filename = "filename", Line = "line", FxOp = "fx_node_op",
    FxName = "fx_node_name", FxTarget = "fx_node_target", FxTrace = "fx_original_trace",
    Device = "device", Address = "address", TotalSize = "total_size",
    AllocatedSize = "allocated_size", ActiveSize = "active_size",
    RequestedSize = "requested_size", SegmentType = "segment_type",
    SegmentPoolId = "segment_pool_id", IsExpandable = "is_expandable", Blocks = "blocks",
    State = "state", History = "history", RealSize = "real_size", Stage = "stage",
    Segments = "segments", DeviceTraces = "device_traces", HostSegments = "host_segments",
    HostTraces = "host_traces", AllocatorSettings = "allocator_settings",
    ExternalAnnotations = "external_annotations", SourceCode = "source_code",
}

impl Build {
    /// Prepares for a pickle with these bytes.
    pub fn use_templates(&mut self, bytes: &[u8]) {
        self.templates = Some(Box::default());
        // The shortest object that a real file repeats takes more bytes than this.
        self.max_objects = 65_536 + bytes.len() / 8;
    }

    pub fn key(&self, key: Value) -> Key {
        match key {
            Value::Text(id) => self.keys[id as usize],
            _ => Key::Unknown,
        }
    }

    /// The object behind a value, if it is one that may change.
    pub fn object(&self, value: Value) -> Option<Object> {
        match value {
            Value::Object(Handle { kind: kind::OBJECT, id }) => Some(self.objects[id as usize]),
            _ => None,
        }
    }

    fn new_object(&mut self, is: Is, at: usize) -> Result<Handle> {
        if self.max_objects != 0 && self.objects.len() > self.max_objects {
            let reason = "it asks for more objects than a file of this length can hold";
            return Err(Error::malformed(reason, at));
        }
        self.objects.push(Object { is, is_used: false, id: 0 });
        Ok(Handle { kind: kind::OBJECT, id: self.objects.len() as u32 - 1 })
    }

    /// The object that is to be changed.
    fn changeable(&self, handle: Handle, at: usize) -> Result<usize> {
        let reason = match handle.kind {
            kind::OBJECT if !self.objects[handle.id as usize].is_used => {
                return Ok(handle.id as usize);
            }
            kind::OBJECT => "an object is changed after it was used, or contains itself",
            _ => "items are added to something that is no list and no dict",
        };
        Err(Error::malformed(reason, at))
    }

    /// Notes that something uses these values, and makes what they are.
    fn use_all<'v>(&mut self, values: impl Iterator<Item = &'v Value>, at: usize) -> Result<()> {
        for value in values {
            if let Value::Object(Handle { kind: kind::OBJECT, id }) = *value {
                let object = &mut self.objects[id as usize];
                object.is_used = true;
                if object.is == Is::Pairs {
                    self.decide(id as usize, at)?;
                }
            }
        }
        Ok(())
    }

    /// Finds out which dict an object is, now that it is complete.
    pub fn decide(&mut self, index: usize, at: usize) -> Result<()> {
        let container = self.objects[index].id as usize;
        let items = std::mem::take(&mut self.containers[container]);
        match self.what_is(&items) {
            Is::Dict => {
                self.containers[container] = items;
                self.objects[index].is = Is::Dict;
                Ok(())
            }
            is => self.make(is, index, &items, at),
        }
    }

    /// Which dict has these keys.
    fn what_is(&self, items: &[Value]) -> Is {
        let mut is = Is::Dict;
        for pair in items.chunks_exact(2) {
            match self.key(pair[0]) {
                Key::Action => return Is::Event,
                Key::Filename | Key::Line => is = Is::Frame,
                Key::Blocks | Key::TotalSize => return Is::Segment,
                Key::State => return Is::Block,
                Key::Stage => return Is::Annotation,
                Key::RealSize => return Is::History,
                _ => {}
            }
        }
        is
    }

    fn make(&mut self, is: Is, index: usize, items: &[Value], at: usize) -> Result<()> {
        let id = match is {
            Is::Event => self.event(items, at)?,
            Is::Frame => {
                let frame = self.frame(Frame::default(), items);
                self.stacks.intern_frame(frame)
            }
            Is::Segment => self.segment(items, at)?,
            Is::Block => self.block(items, at)?,
            Is::History => self.past(items, at)?,
            Is::Annotation => self.annotation(items, at)?,
            _ => 0,
        };
        self.objects[index].is = is;
        self.objects[index].id = id;
        Ok(())
    }

    fn event(&mut self, items: &[Value], at: usize) -> Result<u32> {
        let (mut event, mut extras) = (EMPTY_EVENT, Extras::default());
        self.set_event(&mut event, &mut extras, items, at)?;
        event.extras = self.events.extras_table.intern(&extras);
        self.events.push(&event);
        Ok(self.events.len() as u32 - 1)
    }

    /// Sets the fields of an event that these keys give.
    fn set_event(
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

    fn frame(&mut self, mut frame: Frame, items: &[Value]) -> Frame {
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

    fn segment(&mut self, items: &[Value], at: usize) -> Result<u32> {
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

    fn block(&mut self, items: &[Value], at: usize) -> Result<u32> {
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
        block.requested_size = requested.or(newest.map(|past| past.real_size)).unwrap_or(block.size);
        if let (0, Some(past)) = (block.stack, newest) {
            block.stack = past.stack;
        }
        self.blocks.push((block, has_address));
        Ok(self.blocks.len() as u32 - 1)
    }

    fn past(&mut self, items: &[Value], at: usize) -> Result<u32> {
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

    /// The rows of a block's past: its entries were made one after the other.
    fn past_of(&mut self, value: Value) -> std::ops::Range<usize> {
        let of = |build: &Self, item: Option<&Value>| {
            let object = item.and_then(|&item| build.object(item));
            object.filter(|object| object.is == Is::History).map(|object| object.id as usize)
        };
        let items = self.items(value);
        match (of(self, items.first()), of(self, items.last())) {
            (Some(first), Some(last)) if last + 1 == first + items.len() => first..last + 1,
            _ => 0..0,
        }
    }

    fn annotation(&mut self, items: &[Value], at: usize) -> Result<u32> {
        let mut annotation = Annotation::default();
        for pair in items.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            match self.key(key) {
                Key::Name => annotation.name = self.text_of(value, key),
                Key::Stage => annotation.stage = self.text_of(value, key),
                Key::Device => annotation.device = self.word(value, key, at)? as i32,
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
            _ => "(a key that is no string)",
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
            _ => {
                *self.oddities.wrong_types.entry("frames".to_owned()).or_default() += 1;
                0
            }
        }
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

    /// Tells the counts of unknown fields by name.
    pub fn finish_oddities(&mut self) {
        for (id, count) in self.unknown.drain() {
            let name = self.strings.get(id).to_owned();
            *self.oddities.unknown_fields.entry(name).or_default() += count;
        }
    }

    /// Frame ids of items that are frames; counts the others.
    fn frames_of(&mut self, items: &[Value]) -> Vec<u32> {
        let mut frames = Vec::with_capacity(items.len());
        for &item in items {
            match self.object(item) {
                Some(Object { is: Is::Frame, id, .. }) => frames.push(id),
                _ => *self.oddities.wrong_types.entry("frames".to_owned()).or_default() += 1,
            }
        }
        frames
    }

    fn event_row(&self, item: Value) -> Option<u32> {
        match item {
            Value::Object(Handle { kind: kind::EVENT, id }) => Some(id),
            _ => self.object(item).filter(|object| object.is == Is::Event).map(|object| object.id),
        }
    }

    /// Ranges of rows of items that are events; counts the others.
    pub fn add_rows(&mut self, ranges: &mut Vec<std::ops::Range<u32>>, items: &[Value]) {
        for &item in items {
            match (self.event_row(item), ranges.last_mut()) {
                (Some(row), Some(last)) if last.end == row => last.end += 1,
                (Some(row), _) => ranges.push(row..row + 1),
                (None, _) => *self.oddities.wrong_types.entry("event".to_owned()).or_default() += 1,
            }
        }
    }

    fn append_to(&mut self, index: usize, items: &[Value], at: usize) -> Result<()> {
        let object = self.objects[index];
        match object.is {
            Is::EmptyList if items.is_empty() => {}
            Is::EmptyList => {
                let is_frame = |item: &Value| self.object(*item).is_some_and(|o| o.is == Is::Frame);
                if items.iter().all(is_frame) {
                    let frames = self.frames_of(items);
                    let id = self.stacks.intern(&frames);
                    self.objects[index] = Object { is: Is::Stack, id, ..object };
                } else if items.iter().any(|item| self.event_row(*item).is_some()) {
                    self.rows.push(Vec::new());
                    let id = self.rows.len() as u32 - 1;
                    self.objects[index] = Object { is: Is::Rows, id, ..object };
                    self.append_to(index, items, at)?;
                } else {
                    self.containers.push(items.to_vec());
                    let id = self.containers.len() as u32 - 1;
                    self.objects[index] = Object { is: Is::List, id, ..object };
                }
            }
            Is::Stack => {
                let mut frames = self.stacks.get(object.id).to_vec();
                frames.extend(self.frames_of(items));
                self.objects[index].id = self.stacks.intern(&frames);
            }
            Is::Rows => {
                let mut ranges = std::mem::take(&mut self.rows[object.id as usize]);
                self.add_rows(&mut ranges, items);
                self.rows[object.id as usize] = ranges;
            }
            Is::List => self.containers[object.id as usize].extend_from_slice(items),
            _ => return Err(Error::malformed("items are added to something that is no list", at)),
        }
        Ok(())
    }
}

/// An event of which nothing is known.
pub(super) const EMPTY_EVENT: Event = Event {
    action: Action::OTHER,
    address: 0,
    size: 0,
    stream: 0,
    time_us: 0,
    stack: 0,
    extras: 0,
};

impl Builder for Build {
    fn text(&mut self, text: &str, _at: usize) -> Result<u32> {
        let id = self.strings.intern(text);
        if self.keys.len() < self.strings.len() {
            self.keys.resize(self.strings.len(), Key::Unknown);
            self.keys[id as usize] = Key::of(text);
        }
        Ok(id)
    }

    fn bytes(&mut self, _bytes: &[u8], _at: usize) -> Result<Value> {
        Ok(Value::Object(Handle { kind: kind::OPAQUE, id: 0 }))
    }

    fn new_list(&mut self, at: usize) -> Result<Handle> {
        self.new_object(Is::EmptyList, at)
    }

    fn new_dict(&mut self, at: usize) -> Result<Handle> {
        self.new_object(Is::EmptyDict, at)
    }

    fn tuple(&mut self, items: &[Value], at: usize) -> Result<Value> {
        if let [Value::Int(a), Value::Int(b)] = *items {
            return Ok(Value::Object(Handle { kind: kind::PAIR, id: self.pairs.intern(&(a, b)) }));
        }
        let list = self.new_list(at)?;
        self.append(list, items, at)?;
        Ok(Value::Object(list))
    }

    fn append(&mut self, list: Handle, items: &[Value], at: usize) -> Result<()> {
        self.use_all(items.iter(), at)?;
        let index = self.changeable(list, at)?;
        self.append_to(index, items, at)
    }

    fn set_items(&mut self, dict: Handle, items: &[Value], at: usize) -> Result<()> {
        self.use_all(items.iter().skip(1).step_by(2), at)?;
        let index = self.changeable(dict, at)?;
        let object = self.objects[index];
        match object.is {
            Is::EmptyDict => match self.what_is(items) {
                is @ (Is::Event | Is::Frame) if items.len() > 2 => self.make(is, index, items, at)?,
                _ => {
                    self.containers.push(items.to_vec());
                    let id = self.containers.len() as u32 - 1;
                    self.objects[index] = Object { is: Is::Pairs, id, ..object };
                }
            },
            Is::Pairs => self.containers[object.id as usize].extend_from_slice(items),
            Is::Event => {
                let row = object.id as usize;
                let (mut event, mut extras) = (self.events.get(row), self.events.extras(row));
                self.set_event(&mut event, &mut extras, items, at)?;
                event.extras = self.events.extras_table.intern(&extras);
                self.events.set(row, &event);
            }
            Is::Frame => {
                let frame = self.frame(self.stacks.frame(object.id), items);
                self.objects[index].id = self.stacks.intern_frame(frame);
            }
            _ => return Err(Error::malformed("keys are set on something that is no dict", at)),
        }
        Ok(())
    }

    fn shortcut(&mut self, state: &mut State<'_>, until: usize) -> bool {
        let Some(mut templates) = self.templates.take() else { return false };
        let took_any = templates.take(self, state, until);
        self.templates = Some(templates);
        took_any
    }

    fn memo_replaced(&mut self) {
        self.templates = Some(Box::default());
    }
}
