//! Builds a [`Snapshot`] from the root of what was read.

use std::ops::Range;

use hashbrown::HashSet;
use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::pickle::{Handle, Value};
use crate::snapshot::build::{Build, Is, Key, Object, kind};
use crate::snapshot::events::{Action, Events};
use crate::snapshot::texts;
use crate::snapshot::{Annotation, HOST, MAX_DEVICES, Segment, Snapshot, Trace};

/// How deep and how large settings and further entries may be, all together. Real ones are two deep
/// and have some thirty entries.
const MAX_JSON_DEPTH: usize = 16;
const MAX_JSON_ITEMS: usize = 100_000;
const MAX_JSON_TEXT: usize = 16 << 20;
/// Settings under a longer name stay nested.
const MAX_NAME: usize = 1000;

/// How often one event or block may occur in a file's lists: a pickle can name one list a million
/// times in a few bytes.
const MAX_COPIES: usize = 4;

/// Makes a snapshot of what was read. Returns too whether rows had to move.
pub(super) fn assemble(
    mut build: Build,
    events: Events,
    root: Value,
    end: usize,
) -> Result<(Snapshot, bool)> {
    if let Value::Object(Handle { kind: kind::OBJECT, id }) = root
        && build.objects[id as usize].is == Is::Pairs
    {
        build.decide(id as usize, end)?;
    }
    let mut top = Top::default();
    match build.object(root) {
        Some(Object { is: Is::Dict, id, .. }) => top.read(&mut build, id, end)?,
        // `torch.cuda.memory_snapshot()`: segments and nothing else.
        Some(Object { is: Is::List, .. }) if !segment_ids(&build, root).is_empty() => {
            top.segments = Some(root);
        }
        _ => {
            return fail(
                "it is neither a dict with `segments` or `device_traces` nor a list of segments",
                end,
            );
        }
    }
    top.assemble(build, events, end)
}

/// The entries of the root that we know, and the others as JSON.
#[derive(Default)]
struct Top {
    segments: Option<Value>,
    traces: Option<Value>,
    host_segments: Option<Value>,
    host_traces: Option<Value>,
    settings: Option<Value>,
    annotations: Option<Value>,
    source_code: Option<Value>,
    metadata: Vec<(String, Json)>,
    room: Room,
}

impl Top {
    fn read(&mut self, build: &mut Build, container: u32, end: usize) -> Result<()> {
        let items = std::mem::take(&mut build.containers[container as usize]);
        for pair in items.chunks_exact(2) {
            let place = match build.key(pair[0]) {
                Key::Segments => &mut self.segments,
                Key::DeviceTraces => &mut self.traces,
                Key::HostSegments => &mut self.host_segments,
                Key::HostTraces => &mut self.host_traces,
                Key::AllocatorSettings => &mut self.settings,
                Key::ExternalAnnotations => &mut self.annotations,
                Key::SourceCode => &mut self.source_code,
                key => {
                    if !matches!(key, Key::Predicted | Key::Recorded) {
                        build.count_unknown(pair[0]);
                    }
                    let mut json = Jsonify { build, room: &mut self.room };
                    let name = json.key(pair[0]);
                    self.metadata.push((name, json.value(pair[1], 0)));
                    continue;
                }
            };
            *place = Some(pair[1]);
        }
        let lists = [self.segments, self.traces, self.host_segments, self.host_traces];
        if lists.iter().all(Option::is_none) {
            return fail("it has neither `segments` nor `device_traces`", end);
        }
        for (value, name) in
            lists.into_iter().zip(["segments", "device_traces", "host_segments", "host_traces"])
        {
            if value.is_some_and(|value| !is_list(build, value)) {
                return Err(Error::malformed(format!("`{name}` is not a list"), end));
            }
        }
        Ok(())
    }

    fn assemble(
        mut self,
        mut build: Build,
        mut events: Events,
        end: usize,
    ) -> Result<(Snapshot, bool)> {
        let mut snapshot = Snapshot {
            has_device_segments: self.segments.is_some(),
            has_host_segments: self.host_segments.is_some(),
            metadata: std::mem::take(&mut self.metadata),
            ..Snapshot::default()
        };
        if let Some(value) = self.settings {
            let json = Jsonify { build: &build, room: &mut self.room }.value(value, 0);
            flatten("", json, &mut snapshot.settings);
        }
        if let Some(value) = self.source_code {
            snapshot.source_code = source_code(&build, value);
        }
        if let Some(value) = self.annotations {
            snapshot.annotations = annotations(&mut build, value);
        }
        if let Some(value) = self.segments {
            add_segments(&mut snapshot, &mut build, value, None, end)?;
        }
        if let Some(value) = self.host_segments {
            add_segments(&mut snapshot, &mut build, value, Some(HOST), end)?;
        }

        let mut rows: Vec<(i32, Vec<Range<u32>>)> = Vec::new();
        let mut listed = Listed::new(events.len());
        if let Some(value) = self.traces {
            for (device, trace) in build.items(value).to_vec().into_iter().enumerate() {
                let found = listed.count(rows_of(&mut build, trace), end)?;
                rows.push((device as i32, found));
            }
            if is_rows(&build, value) {
                return fail("`device_traces` is a list of events, not of lists", end);
            }
        }
        let has_host = snapshot.segments.iter().any(|segment| segment.device == HOST);
        if let Some(value) = self.host_traces {
            let mut host = rows_of(&mut build, value);
            for trace in build.items(value).to_vec() {
                host.extend(listed.count(rows_of(&mut build, trace), end)?);
            }
            if !host.is_empty() || has_host {
                rows.push((HOST, host));
            }
        }
        // Devices that have segments but no trace.
        let mut known: HashSet<i32> = rows.iter().map(|(device, _)| *device).collect();
        for segment in &snapshot.segments {
            if known.insert(segment.device) {
                rows.push((segment.device, Vec::new()));
            }
        }
        if rows.len() > MAX_DEVICES {
            return fail("it has more than 1024 devices", end);
        }
        rows.sort_by_key(|(device, _)| if *device == HOST { i32::MAX } else { *device });

        build.finish_oddities();
        events.extras_table = std::mem::take(&mut build.extras);
        let has_moved;
        (events, snapshot.traces, has_moved) = place_rows(events, &rows);
        snapshot.actions = if build.actions.is_empty() {
            Action::NAMES.iter().map(|name| (*name).to_owned()).collect()
        } else {
            build.actions.iter().map(|&id| build.strings.get(id).to_owned()).collect()
        };
        for (number, &count) in events.action_counts().iter().enumerate().skip(Action::NAMES.len())
        {
            if count > 0 {
                let name = Action(number as u8).name(&snapshot.actions).unwrap_or(Action::NAMELESS);
                build.oddities.unknown_actions.insert(name.to_owned(), count);
            }
        }
        snapshot.history = build.history;
        snapshot.pools = build.pairs.items().to_vec();
        snapshot.text_lists = build.text_lists.items().to_vec();
        snapshot.oddities = build.oddities;
        snapshot.strings = build.strings;
        snapshot.stacks = build.stacks;
        snapshot.events = events;
        texts::check(&snapshot, end)?;
        Ok((snapshot, has_moved))
    }
}

fn fail<T>(reason: &'static str, at: usize) -> Result<T> {
    Err(Error::malformed(reason, at))
}

fn is_list(build: &Build, value: Value) -> bool {
    match value {
        // An empty list that was read as an empty stack.
        Value::Object(Handle { kind: kind::STACK, id }) => id == 0,
        _ => {
            build.object(value).is_some_and(|o| matches!(o.is, Is::EmptyList | Is::List | Is::Rows))
        }
    }
}

fn is_rows(build: &Build, value: Value) -> bool {
    build.object(value).is_some_and(|object| object.is == Is::Rows)
}

/// The rows of a trace, as ranges in order.
fn rows_of(build: &mut Build, trace: Value) -> Vec<Range<u32>> {
    match build.object(trace) {
        Some(Object { is: Is::Rows, id, .. }) => build.rows[id as usize].clone(),
        Some(Object { is: Is::List, id, .. }) => {
            let items = build.containers[id as usize].clone();
            let mut ranges = Vec::new();
            if items.iter().all(|item| !is_list(build, *item)) {
                build.add_rows(&mut ranges, &items);
            }
            ranges
        }
        _ => Vec::new(),
    }
}

/// Counts the events that traces list, before they are all in memory.
struct Listed {
    count: usize,
    most: usize,
}

impl Listed {
    fn new(events: usize) -> Self {
        Self { count: 0, most: MAX_COPIES * events + 65_536 }
    }

    fn count(&mut self, rows: Vec<Range<u32>>, end: usize) -> Result<Vec<Range<u32>>> {
        self.count += rows.iter().map(ExactSizeIterator::len).sum::<usize>();
        if self.count > self.most {
            return fail("its traces list the same events over and over", end);
        }
        Ok(rows)
    }
}

/// Gives each device one range of rows. Files list events in the order in which they are written, so
/// that nothing has to move; if not (an event that occurs in two traces), the columns are made anew.
fn place_rows(events: Events, devices: &[(i32, Vec<Range<u32>>)]) -> (Events, Vec<Trace>, bool) {
    let mut last = 0;
    let is_placed = devices.iter().all(|(_, ranges)| match ranges.as_slice() {
        [] => true,
        [range] => {
            let follows = range.start >= last;
            last = range.end;
            follows
        }
        _ => false,
    });
    // Events in no trace do not count, and are left out.
    let placed: usize =
        devices.iter().flat_map(|(_, ranges)| ranges).map(ExactSizeIterator::len).sum();
    if is_placed && placed == events.len() {
        let trace = |(device, ranges): &(i32, Vec<Range<u32>>)| {
            let rows =
                ranges.first().map_or(0..0, |range| range.start as usize..range.end as usize);
            Trace { device: *device, rows }
        };
        return (events, devices.iter().map(trace).collect(), false);
    }
    let mut start = 0;
    let mut traces = Vec::new();
    for (device, ranges) in devices {
        let length: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        traces.push(Trace { device: *device, rows: start..start + length });
        start += length;
    }
    let rows = devices.iter().flat_map(|(_, ranges)| ranges.iter().cloned().flatten());
    (events.gather(rows.map(|row| row as usize)), traces, true)
}

fn segment_ids(build: &Build, value: Value) -> Vec<usize> {
    let of = |&item: &Value| build.object(item).filter(|object| object.is == Is::Segment);
    build.items(value).iter().filter_map(of).map(|object| object.id as usize).collect()
}

fn add_segments(
    snapshot: &mut Snapshot,
    build: &mut Build,
    value: Value,
    device: Option<i32>,
    end: usize,
) -> Result<()> {
    let ids = segment_ids(build, value);
    let strays = build.items(value).len() - ids.len();
    if strays > 0 {
        *build.oddities.wrong_types.entry("segments".to_owned()).or_default() += strays as u64;
    }
    let most = MAX_COPIES * (build.blocks.len() + build.segments.len()) + 65_536;
    let mut listed = snapshot.blocks.len() + snapshot.segments.len();
    for id in ids {
        let (segment, blocks) = build.segments[id].clone();
        listed += 1 + build.items(blocks).len();
        if listed > most {
            return fail("its segments list the same blocks over and over", end);
        }
        let first = snapshot.blocks.len();
        let mut address = segment.address;
        for item in build.items(blocks).to_vec() {
            let Some(Object { is: Is::Block, id, .. }) = build.object(item) else {
                *build.oddities.wrong_types.entry("blocks".to_owned()).or_default() += 1;
                continue;
            };
            let (mut block, has_address) = build.blocks[id as usize].clone();
            if !has_address {
                block.address = address;
            }
            address = block.address.wrapping_add(block.size);
            snapshot.blocks.push(block);
        }
        snapshot.segments.push(Segment {
            device: device.unwrap_or(segment.device),
            blocks: first..snapshot.blocks.len(),
            ..segment
        });
    }
    Ok(())
}

fn annotations(build: &mut Build, value: Value) -> Vec<Annotation> {
    let mut all = Vec::new();
    for item in build.items(value).to_vec() {
        match build.object(item) {
            Some(Object { is: Is::Annotation, id, .. }) => {
                all.push(build.annotations[id as usize].clone());
            }
            _ => {
                *build
                    .oddities
                    .wrong_types
                    .entry("external_annotations".to_owned())
                    .or_default() += 1;
            }
        }
    }
    all
}

fn source_code(build: &Build, value: Value) -> Vec<(u32, u32)> {
    let Some(Object { is: Is::Dict, id, .. }) = build.object(value) else { return Vec::new() };
    let pairs = build.containers[id as usize].chunks_exact(2);
    let text = |pair: &[Value]| match *pair {
        [Value::Text(path), Value::Text(text)] => Some((path, text)),
        _ => None,
    };
    pairs.filter_map(text).collect()
}

/// Nested settings as dotted names.
fn flatten(name: &str, json: Json, into: &mut Vec<(String, Json)>) {
    match json {
        Json::Object(entries) if !entries.is_empty() && name.len() <= MAX_NAME => {
            for (key, value) in entries {
                let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                flatten(&name, value, into);
            }
        }
        value => into.push((name.to_owned(), value)),
    }
}

/// What may still become JSON.
struct Room {
    items: usize,
    text: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { items: MAX_JSON_ITEMS, text: MAX_JSON_TEXT }
    }
}

/// Turns small structures into JSON; what is too deep or too much becomes null.
struct Jsonify<'a> {
    build: &'a Build,
    room: &'a mut Room,
}

impl Jsonify<'_> {
    fn key(&mut self, key: Value) -> String {
        match key {
            Value::Text(id) => self.text(id).unwrap_or("(a key that is too long)").to_owned(),
            Value::Int(number) => number.to_string(),
            _ => "(a key that is not a string)".to_owned(),
        }
    }

    fn text(&mut self, id: u32) -> Option<&str> {
        let text = self.build.strings.get(id);
        self.room.text = self.room.text.checked_sub(text.len())?;
        Some(text)
    }

    fn value(&mut self, value: Value, depth: usize) -> Json {
        if self.room.items == 0 || depth > MAX_JSON_DEPTH {
            return Json::Null;
        }
        self.room.items -= 1;
        match value {
            Value::None | Value::Huge => Json::Null,
            Value::Bool(is) => Json::Bool(is),
            Value::Int(number) => number.into(),
            Value::Uint(number) => number.into(),
            Value::Float(number) => number.into(),
            Value::Text(id) => self.text(id).into(),
            Value::Object(Handle { kind: kind::PAIR, id }) => {
                let (a, b) = *self.build.pairs.get(id);
                Json::Array(vec![a.into(), b.into()])
            }
            // An empty list that was read as an empty stack.
            Value::Object(Handle { kind: kind::STACK, id: 0 }) => Json::Array(Vec::new()),
            Value::Object(_) => match self.build.object(value) {
                Some(Object { is: Is::EmptyDict, .. }) => Json::Object(serde_json::Map::new()),
                Some(Object { is: Is::EmptyList, .. }) => Json::Array(Vec::new()),
                Some(Object { is: Is::List, id, .. }) => {
                    let items = self.build.containers[id as usize].iter();
                    // What there is no room for is left out.
                    let items = items.take(self.room.items);
                    Json::Array(items.map(|&item| self.value(item, depth + 1)).collect())
                }
                Some(Object { is: Is::Dict, id, .. }) => {
                    let pairs = self.build.containers[id as usize].chunks_exact(2);
                    let pairs = pairs.take(self.room.items);
                    let entry =
                        |pair: &[Value]| (self.key(pair[0]), self.value(pair[1], depth + 1));
                    Json::Object(pairs.map(entry).collect())
                }
                _ => Json::Null,
            },
        }
    }
}
