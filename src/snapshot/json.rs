//! Snapshots as JSON: drives the same builder as a pickle does.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use crate::error::{Error, Result};
use crate::pickle::{Builder, Value};
use crate::progress::Progress;
use crate::snapshot::build::Build;

/// How many values are read between two reports of progress.
const REPORT_EVERY: usize = 1 << 16;

/// Reads JSON. Returns what it evaluates to.
pub(super) fn run(bytes: &[u8], build: &mut Build, progress: &Progress<'_>) -> Result<Value> {
    // serde_json stops at a depth of 128 by itself.
    let context = Context {
        build: RefCell::new(build),
        progress,
        failed: RefCell::new(None),
        total: bytes.len(),
        seen: 0.into(),
    };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Seed(&context).deserialize(&mut reader).and_then(|value| {
        reader.end()?;
        Ok(value)
    });
    value.map_err(|error| {
        context.failed.take().unwrap_or_else(|| {
            let at = offset(bytes, error.line(), error.column());
            Error::malformed(format!("it is neither a pickle nor JSON: {}", plain(&error)), at)
        })
    })
}

/// serde's message without its own idea of the place.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

fn offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let before = bytes.split_inclusive(|&byte| byte == b'\n').take(line.saturating_sub(1));
    before.map(<[u8]>::len).sum::<usize>() + column.saturating_sub(1)
}

struct Context<'a, 'b> {
    build: RefCell<&'a mut Build>,
    progress: &'a Progress<'b>,
    /// Our own error, which serde would turn into text.
    failed: RefCell<Option<Error>>,
    total: usize,
    seen: std::cell::Cell<usize>,
}

impl Context<'_, '_> {
    fn keep<T, E: serde::de::Error>(&self, result: Result<T>) -> std::result::Result<T, E> {
        result.map_err(|error| {
            let text = error.to_string();
            *self.failed.borrow_mut() = Some(error);
            E::custom(text)
        })
    }

    fn count<E: serde::de::Error>(&self) -> std::result::Result<(), E> {
        let seen = self.seen.get() + 1;
        self.seen.set(seen);
        if seen.is_multiple_of(REPORT_EVERY) {
            // serde does not report its position; a value takes some twelve bytes.
            self.keep(self.progress.at(12 * seen as u64, self.total as u64))?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Seed<'c, 'a, 'b>(&'c Context<'a, 'b>);

impl<'de> DeserializeSeed<'de> for Seed<'_, '_, '_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<Value, D::Error> {
        self.0.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_, '_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Uint(value), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Value, E> {
        let id = self.0.build.borrow_mut().text(text, 0);
        Ok(Value::Text(self.0.keep(id)?))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<Value, A::Error> {
        let list = self.0.build.borrow_mut().new_list(0);
        let list = self.0.keep(list)?;
        // A batch at a time, as pickles do, so that a trace never exists as a list of values.
        let mut batch = Vec::new();
        loop {
            let item = items.next_element_seed(self)?;
            let is_end = item.is_none();
            batch.extend(item);
            if batch.len() == 1000 || is_end {
                let appended = self.0.build.borrow_mut().append(list, &batch, 0);
                self.0.keep(appended)?;
                batch.clear();
            }
            if is_end {
                return Ok(Value::Object(list));
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> std::result::Result<Value, A::Error> {
        let mut items = Vec::with_capacity(16);
        while let Some(key) = entries.next_key_seed(self)? {
            items.push(key);
            items.push(entries.next_value_seed(self)?);
        }
        let build = &mut **self.0.build.borrow_mut();
        let dict = build.new_dict(0).and_then(|dict| {
            build.set_items(dict, &items, 0)?;
            Ok(dict)
        });
        self.0.keep(dict).map(Value::Object)
    }
}
