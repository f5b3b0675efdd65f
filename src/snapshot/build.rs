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
use crate::snapshot::events::Extras;
use crate::snapshot::feed::Feed;
use crate::snapshot::intern::{Frame, Stacks, Strings, Table};
use crate::snapshot::shortcut::Shortcuts;
use crate::snapshot::{Annotation, Block, History, Oddities, Segment};

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
    /// Keys and values in turn; which kind of dict it is has not been decided.
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
pub(super) struct Build {
    pub strings: Strings,
    /// For each string, the key that it is.
    pub keys: Vec<Key>,
    pub stacks: Stacks,
    /// The events, on their way to their columns.
    pub events: Feed,
    pub extras: Table<Extras>,
    pub actions: Vec<u32>,
    pub objects: Vec<Object>,
    pub containers: Vec<Vec<Value>>,
    pub rows: Vec<Vec<std::ops::Range<u32>>>,
    pub segments: Vec<(Segment, Value)>,
    pub blocks: Vec<(Block, bool)>,
    pub history: Vec<History>,
    /// How much of it belongs to blocks.
    pub claimed_history: usize,
    pub annotations: Vec<Annotation>,
    pub pairs: Table<(i64, i64)>,
    pub text_lists: Table<Vec<u32>>,
    pub oddities: Oddities,
    pub unknown: HashMap<u32, u64>,
    /// None for JSON, which has no opcodes to learn.
    shortcuts: Option<Box<Shortcuts>>,
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
    // What `snapviewer predict` and `record` add.
    Predicted = "predicted", Recorded = "recorded",
}

impl Build {
    /// Prepares for a pickle or JSON of this length. `shortcuts` are for pickles only.
    pub fn new(events: Feed, shortcuts: Option<Box<Shortcuts>>, input_len: usize) -> Self {
        Self {
            strings: Strings::default(),
            keys: Vec::new(),
            stacks: Stacks::default(),
            events,
            extras: Table::default(),
            actions: Vec::new(),
            objects: Vec::new(),
            containers: Vec::new(),
            rows: Vec::new(),
            segments: Vec::new(),
            blocks: Vec::new(),
            history: Vec::new(),
            claimed_history: 0,
            annotations: Vec::new(),
            pairs: Table::default(),
            text_lists: Table::default(),
            oddities: Oddities::default(),
            unknown: HashMap::default(),
            shortcuts,
            // The shortest object that a real file repeats takes more bytes than this.
            max_objects: 65_536 + input_len / 8,
        }
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
        if self.objects.len() > self.max_objects {
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
            _ => "items are added to something that is neither a list nor a dict",
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
                let mut ranges = Vec::new();
                self.add_rows(&mut ranges, items);
                for range in ranges {
                    self.events.list(object.id, range.start as usize..range.end as usize);
                    let known = &mut self.rows[object.id as usize];
                    match known.last_mut() {
                        Some(last) if last.end == range.start => last.end = range.end,
                        _ => known.push(range),
                    }
                }
            }
            Is::List => self.containers[object.id as usize].extend_from_slice(items),
            _ => {
                return Err(Error::malformed(
                    "items are added to something that is not a list",
                    at,
                ));
            }
        }
        Ok(())
    }
}

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
                is @ (Is::Event | Is::Frame) if items.len() > 2 => {
                    self.make(is, index, items, at)?;
                }
                _ => {
                    self.containers.push(items.to_vec());
                    let id = self.containers.len() as u32 - 1;
                    self.objects[index] = Object { is: Is::Pairs, id, ..object };
                }
            },
            Is::Pairs => self.containers[object.id as usize].extend_from_slice(items),
            Is::Event => {
                let row = object.id as usize;
                let Some(mut event) = self.events.get_mut(row).copied() else {
                    return Err(Error::malformed(
                        "an event is changed after others followed it",
                        at,
                    ));
                };
                let mut extras = *self.extras.get(event.extras);
                self.set_event(&mut event, &mut extras, items, at)?;
                event.extras = self.extras.intern(&extras);
                if let Some(place) = self.events.get_mut(row) {
                    *place = event;
                }
            }
            Is::Frame => {
                let frame = self.frame(self.stacks.frame(object.id), items);
                self.objects[index].id = self.stacks.intern_frame(frame);
            }
            _ => return Err(Error::malformed("keys are set on something that is not a dict", at)),
        }
        Ok(())
    }

    fn shortcut(&mut self, state: &mut State<'_>, until: usize) -> bool {
        let Some(mut shortcuts) = self.shortcuts.take() else { return false };
        let took_any = shortcuts.take(self, state, until);
        self.shortcuts = Some(shortcuts);
        took_any
    }

    fn memo_replaced(&mut self) {
        if let Some(shortcuts) = &mut self.shortcuts {
            **shortcuts = Shortcuts::default();
        }
    }
}
