//! The trace of PyTorch's profiler (Kineto's JSON): annotations, operators and kernels with times.
//!
//! The file is a stranger's, like every other: gzip is limited as for snapshots, JSON may be nested
//! 128 deep, and of each event only the fields below are kept. Events that lack a field, or are of
//! another kind, are counted and left out.
//!
//! # Cost
//!
//! One pass over the bytes; 33 bytes of memory an event that is kept, and each name once.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::Path;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::snapshot::Strings;
use crate::source::Source;

/// What an event of the profiler is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A span that the program named.
    Annotation = 0,
    /// An operator on the CPU.
    Operator = 1,
    /// A kernel, a copy or a fill on the GPU.
    Kernel = 2,
}

impl Kind {
    /// The kind of Kineto's category.
    fn of(category: &str) -> Option<Self> {
        Some(match category {
            "user_annotation" => Self::Annotation,
            "cpu_op" | "operator" | "Operator" => Self::Operator,
            "kernel" | "Kernel" | "gpu_memcpy" | "gpu_memset" => Self::Kernel,
            _ => return None,
        })
    }
}

/// Events of a profiler's trace in columns, in the order of their starts.
#[derive(Debug, Default)]
pub struct Profile {
    /// Names, each once.
    pub names: Strings,
    /// The name of each event.
    pub name: Vec<u32>,
    /// The kind of each event.
    pub kind: Vec<u8>,
    /// When each starts, in nanoseconds of Unix time.
    pub start_ns: Vec<i64>,
    /// How long each takes, in nanoseconds.
    pub duration_ns: Vec<i64>,
    /// The thread or the stream of each, a small number.
    pub track: Vec<u32>,
    /// How many events were left out.
    pub skipped: u64,
}

/// Reports of progress come after so many events.
const REPORT_EVERY: u64 = 1 << 14;

/// Events of real files take 150 to 400 bytes.
const LIKELY_EVENT_BYTES: u64 = 250;

/// Reads a profiler's trace, packed or not.
pub fn read(path: &Path, progress: &Progress<'_>) -> Result<Profile> {
    let source = Source::open(path, progress)?;
    let profile = parse(source.bytes(), progress).map_err(|error| error.in_file(path))?;
    source.check_unchanged(path)?;
    Ok(profile)
}

/// Reads the JSON of a trace.
pub fn parse(bytes: &[u8], progress: &Progress<'_>) -> Result<Profile> {
    let reading = Reading {
        found: RefCell::default(),
        base_ns: Cell::new(0),
        seen: Cell::new(0),
        expected: bytes.len() as u64 / LIKELY_EVENT_BYTES,
        failed: RefCell::new(None),
        progress,
    };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = TopLevel(&reading).deserialize(&mut reader).and_then(|has_events| {
        reader.end()?;
        Ok(has_events)
    });
    if let Some(error) = reading.failed.take() {
        return Err(error);
    }
    match read {
        Err(error) => Err(Error::profile(error.to_string())),
        Ok(false) => Err(Error::profile("it has no `traceEvents`")),
        Ok(true) => Ok(reading.found.into_inner().finish(reading.base_ns.get())),
    }
}

/// Events as they come, and tracks by process and thread.
#[derive(Default)]
struct Found {
    profile: Profile,
    tracks: hashbrown::HashMap<(String, String), u32>,
}

impl Found {
    fn add(&mut self, event: &EventFields<'_>) {
        let profile = &mut self.profile;
        let kind = event.category.as_deref().and_then(Kind::of);
        let times = event.start_us.zip(event.duration_us);
        let (Some(kind), Some(name), Some((start, duration))) = (kind, &event.name, times) else {
            profile.skipped += 1;
            return;
        };
        let next = self.tracks.len() as u32;
        let key = (event.process.clone(), event.thread.clone());
        profile.track.push(*self.tracks.entry(key).or_insert(next));
        profile.name.push(profile.names.intern(name));
        profile.kind.push(kind as u8);
        // As many nanoseconds as fit: what is beyond is no time.
        profile.start_ns.push((start * 1000.0).round() as i64);
        profile.duration_ns.push(((duration * 1000.0).round() as i64).max(0));
    }

    fn finish(self, base_ns: i64) -> Profile {
        let old = self.profile;
        let mut order: Vec<usize> = (0..old.name.len()).collect();
        // Of two that start together, the longer one is the outer one.
        order.sort_by_key(|&one| (old.start_ns[one], -old.duration_ns[one]));
        Profile {
            name: order.iter().map(|&one| old.name[one]).collect(),
            kind: order.iter().map(|&one| old.kind[one]).collect(),
            start_ns: order.iter().map(|&one| old.start_ns[one].saturating_add(base_ns)).collect(),
            duration_ns: order.iter().map(|&one| old.duration_ns[one]).collect(),
            track: order.iter().map(|&one| old.track[one]).collect(),
            names: old.names,
            skipped: old.skipped,
        }
    }
}

struct Reading<'a, 'p> {
    found: RefCell<Found>,
    base_ns: Cell<i64>,
    seen: Cell<u64>,
    /// How many events the bytes have, about.
    expected: u64,
    /// Our own error, which serde would turn into text.
    failed: RefCell<Option<Error>>,
    progress: &'a Progress<'p>,
}

/// The whole: an object with `traceEvents`, or the events themselves. Gives whether there are any.
struct TopLevel<'a, 'b, 'p>(&'a Reading<'b, 'p>);

impl<'de> DeserializeSeed<'de> for TopLevel<'_, '_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> std::result::Result<bool, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TopLevel<'_, '_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `traceEvents`, or a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> std::result::Result<bool, A::Error> {
        Events(self.0).visit_seq(list)?;
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<bool, A::Error> {
        let mut has_events = false;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "traceEvents" => {
                    map.next_value_seed(Events(self.0))?;
                    has_events = true;
                }
                "baseTimeNanoseconds" => {
                    let base = map.next_value::<Lenient>()?.number().unwrap_or(0.0);
                    self.0.base_ns.set(base as i64);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(has_events)
    }
}

/// The list of events.
struct Events<'a, 'b, 'p>(&'a Reading<'b, 'p>);

impl<'de> DeserializeSeed<'de> for Events<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> std::result::Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        while let Some(event) = list.next_element::<EventFields<'de>>()? {
            self.0.found.borrow_mut().add(&event);
            let seen = self.0.seen.get() + 1;
            self.0.seen.set(seen);
            if seen.is_multiple_of(REPORT_EVERY)
                && let Err(error) = self.0.progress.at(seen, self.0.expected.max(seen))
            {
                *self.0.failed.borrow_mut() = Some(error);
                return Err(serde::de::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

/// The fields of an event that count.
#[derive(Default)]
struct EventFields<'de> {
    category: Option<Cow<'de, str>>,
    name: Option<Cow<'de, str>>,
    start_us: Option<f64>,
    duration_us: Option<f64>,
    process: String,
    thread: String,
}

impl<'de> Deserialize<'de> for EventFields<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> std::result::Result<Self, D::Error> {
        reader.deserialize_any(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = EventFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let mut event = EventFields::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "cat" => event.category = map.next_value::<Lenient>()?.text(),
                "name" => event.name = map.next_value::<Lenient>()?.text(),
                "ts" => event.start_us = map.next_value::<Lenient>()?.number(),
                "dur" => event.duration_us = map.next_value::<Lenient>()?.number(),
                "pid" => event.process = map.next_value::<Lenient>()?.any(),
                "tid" => event.thread = map.next_value::<Lenient>()?.any(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(event)
    }
}

/// A text or a number; anything else is nothing. Some versions write numbers as texts.
#[derive(Debug)]
enum Lenient<'de> {
    Text(Cow<'de, str>),
    Number(f64),
    Nothing,
}

impl<'de> Lenient<'de> {
    fn text(self) -> Option<Cow<'de, str>> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    fn number(self) -> Option<f64> {
        let number = match self {
            Self::Number(number) => number,
            Self::Text(text) => text.parse().ok()?,
            Self::Nothing => return None,
        };
        number.is_finite().then_some(number)
    }

    fn any(self) -> String {
        match self {
            Self::Text(text) => text.into_owned(),
            Self::Number(number) => number.to_string(),
            Self::Nothing => String::new(),
        }
    }
}

impl<'de> Deserialize<'de> for Lenient<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> std::result::Result<Self, D::Error> {
        reader.deserialize_any(LenientVisitor)
    }
}

struct LenientVisitor;

impl<'de> Visitor<'de> for LenientVisitor {
    type Value = Lenient<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Self::Value, E> {
        Ok(Lenient::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
        Ok(Lenient::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_f64<E>(self, number: f64) -> std::result::Result<Self::Value, E> {
        Ok(Lenient::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> std::result::Result<Self::Value, E> {
        Ok(Lenient::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> std::result::Result<Self::Value, E> {
        Ok(Lenient::Number(number as f64))
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<Self::Value, E> {
        Ok(Lenient::Nothing)
    }

    fn visit_unit<E>(self) -> std::result::Result<Self::Value, E> {
        Ok(Lenient::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(
        self,
        mut list: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Lenient::Nothing)
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Lenient::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Profile> {
        parse(text.as_bytes(), &Progress::none())
    }

    #[test]
    fn events_are_in_the_order_of_their_starts_on_the_unix_clock() {
        let profile = parsed(
            r#"{"schemaVersion": 1, "traceEvents": [
                {"ph": "X", "cat": "cpu_op", "name": "aten::mul", "ts": 5.5, "dur": 1, "pid": 1, "tid": 2,
                 "args": {"a": [1, {"b": null}]}},
                {"ph": "X", "cat": "kernel", "name": "k", "ts": "2", "dur": 0.25, "pid": 0, "tid": "stream 7"},
                {"ph": "X", "cat": "user_annotation", "name": "step", "ts": 2, "dur": 9, "pid": 1, "tid": 2},
                {"ph": "M", "name": "process_name"}, {"cat": "cpu_op", "name": 3, "ts": 1, "dur": 1}
            ], "baseTimeNanoseconds": 1000}"#,
        )
        .unwrap();

        let names: Vec<&str> = profile.name.iter().map(|&id| profile.names.get(id)).collect();
        assert_eq!(names, ["step", "k", "aten::mul"]);
        assert_eq!(profile.start_ns, [3000, 3000, 6500]);
        assert_eq!(profile.duration_ns, [9000, 250, 1000]);
        assert_eq!(profile.kind, [0, 2, 1]);
        assert_eq!(profile.track[0], profile.track[2]);
        assert_eq!(profile.skipped, 2);
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        let deep = format!("{{\"traceEvents\": {}", "[".repeat(10_000));
        for text in ["", "{}", "[1]", "{\"traceEvents\": 3}", "{\"traceEvents\": [", &deep] {
            let error = parsed(text).unwrap_err().to_string();
            assert!(error.starts_with("not a PyTorch profiler trace: "), "{error}");
        }
        assert_eq!(parsed("[]").unwrap().name.len(), 0);
    }

    #[test]
    fn times_that_no_clock_has_do_not_overflow() {
        let event = r#"{"cat": "cpu_op", "name": "a", "ts": 1e300, "dur": -1e300}"#;

        let profile =
            parsed(&format!("{{\"traceEvents\": [{event}], \"baseTimeNanoseconds\": 1e30}}"));

        let profile = profile.unwrap();
        assert_eq!((profile.start_ns[0], profile.duration_ns[0]), (i64::MAX, 0));
    }
}
