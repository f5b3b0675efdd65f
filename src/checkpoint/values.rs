//! What a pickle evaluates to, as an inert tree: classes are names, calls are records of what would be
//! called, and nothing refers to anything outside.
//!
//! # Limits
//!
//! The tree takes at most [`MAX_HELD`] bytes; bytes objects stay in the pickle.

use super::imports::Imports;
use super::json::shortened;
use super::parts::{Chunk, Parts};
use crate::error::{Error, Result};
use crate::pickle::{self, Builder, Handle, Object, Value, op};
use crate::progress::Progress;

/// How much memory the values of one pickle may take.
pub const MAX_HELD: usize = 512 << 20;

/// The kinds of [`Handle`]s.
pub mod kind {
    #![allow(missing_docs)]
    pub const LIST: u8 = 0;
    pub const TUPLE: u8 = 1;
    pub const DICT: u8 = 2;
    pub const SET: u8 = 3;
    pub const FROZENSET: u8 = 4;
    pub const BYTES: u8 = 5;
    pub const GLOBAL: u8 = 6;
    pub const CALL: u8 = 7;
    pub const PERSISTENT: u8 = 8;
    /// A tensor of a format without pickles; the id is its index.
    pub const TENSOR: u8 = 9;
    /// An integer that does not fit 64 bits.
    pub const INTEGER: u8 = 10;
}

/// What is called, with what, and what is done to the result.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is called.
    pub callable: Value,
    /// A tuple, if the file is right.
    pub args: Value,
    /// What was done to the result.
    pub then: Option<Box<Then>>,
}

/// What is done to the result of a call.
#[derive(Debug, Clone, Default)]
pub struct Then {
    /// The state that it is filled with.
    pub state: Option<Value>,
    /// Named arguments.
    pub named: Option<Value>,
    /// What is appended to it.
    pub items: Vec<Value>,
    /// Keys and values, in turn.
    pub entries: Vec<Value>,
}

/// A bytes object: where its opcode is, how long it is, how it begins.
#[derive(Debug, Clone, Copy)]
pub struct BytesAt {
    /// Where its opcode is in the pickle.
    pub at: usize,
    /// How many bytes it has.
    pub len: usize,
    /// Whether it can be changed: a bytearray.
    pub is_mutable: bool,
    /// The first of them.
    pub head: [u8; 64],
}

/// All that one pickle holds.
#[derive(Debug, Default)]
pub struct Values {
    text: String,
    /// Where each text ends in `text`.
    text_ends: Vec<usize>,
    lists: Vec<Vec<Value>>,
    tuples: Vec<Box<[Value]>>,
    /// Keys and values, in turn.
    dicts: Vec<Vec<Value>>,
    bytes: Vec<BytesAt>,
    /// A module and a name each.
    globals: Vec<(Value, Value)>,
    calls: Vec<Call>,
    persistent: Vec<Value>,
    /// Their bytes, the lowest first.
    integers: Vec<Box<[u8]>>,
    held: usize,
}

/// A handle, opened.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Node<'a> {
    List(&'a [Value]),
    Tuple(&'a [Value]),
    Set { items: &'a [Value], is_frozen: bool },
    Dict(&'a [Value]),
    Bytes(BytesAt),
    Integer(&'a [u8]),
    Global { module: &'a str, name: &'a str },
    Call(&'a Call),
    Persistent(Value),
    Tensor(u32),
}

/// Reads a pickle. Returns the values, the one that it evaluates to, and where it ends.
pub fn read(input: &[u8], progress: &Progress<'_>) -> Result<(Values, Value, usize)> {
    let mut values = Values::default();
    let run = pickle::run(input, &mut values, progress);
    let (root, end) = run.map_err(|error| match error {
        Error::Malformed { reason, offset } => Error::Checkpoint {
            reason: format!("its pickle cannot be read: {reason}{}", values.warning()).into(),
            offset,
        },
        other => other,
    })?;
    Ok((values, root, end))
}

/// What pickles, one after the other, name before they end, or before they cannot be read any further: a
/// loader would have imported that much.
#[must_use]
pub fn names(input: &[u8]) -> Values {
    let mut values = Values::default();
    let mut rest = input;
    // What is wrong with the last one does not matter here.
    for _ in 0..MAX_PICKLES {
        let Ok((_, end)) = pickle::run(rest, &mut values, &Progress::none()) else { break };
        rest = &rest[end..];
    }
    values
}

/// How many pickles in a row are read for their names: each may cost a memo of some 100 KB.
const MAX_PICKLES: usize = 1000;

/// Whether a value is an integer that does not fit 64 bits.
#[must_use]
pub fn is_long(value: Value) -> bool {
    matches!(value, Value::Huge | Value::Object(Handle { kind: kind::INTEGER, .. }))
}

impl Values {
    /// What a loader would have imported until here that torch does not allow, as the end of a
    /// sentence; empty if there is nothing.
    #[must_use]
    pub fn warning(&self) -> String {
        let mut imports = Imports::default();
        imports.add(self, false);
        let mut names = imports.flagged.iter();
        let shown: Vec<String> = names.by_ref().take(3).map(|name| shortened(name)).collect();
        let more = if names.next().is_some() { ", …" } else { "" };
        match shown.as_slice() {
            [] => String::new(),
            shown => format!("; loading it would have run {}{more}", shown.join(", ")),
        }
    }

    /// A text.
    #[must_use]
    pub fn text_of(&self, id: u32) -> &str {
        let id = id as usize;
        let start = id.checked_sub(1).map_or(0, |before| self.text_ends[before]);
        &self.text[start..self.text_ends[id]]
    }

    /// The text that a value is, if it is one.
    #[must_use]
    pub fn as_text(&self, value: Value) -> Option<&str> {
        match value {
            Value::Text(id) => Some(self.text_of(id)),
            _ => None,
        }
    }

    /// The items of a tuple or a list.
    #[must_use]
    pub fn as_items(&self, value: Value) -> Option<&[Value]> {
        match self.node(value)? {
            Node::Tuple(items) | Node::List(items) => Some(items),
            _ => None,
        }
    }

    /// The module and the name of a class or a function. (Old files keep a class together with its
    /// source text in a persistent id.)
    #[must_use]
    pub fn as_global(&self, value: Value) -> Option<(&str, &str)> {
        let value = match self.node(value)? {
            Node::Persistent(id) => match *self.as_items(id)? {
                [word, class, ..] if self.as_text(word) == Some("module") => class,
                _ => return None,
            },
            _ => value,
        };
        match self.node(value)? {
            Node::Global { module, name } => Some((module, name)),
            _ => None,
        }
    }

    /// The call that a value is the result of.
    #[must_use]
    pub fn as_call(&self, value: Value) -> Option<&Call> {
        match self.node(value)? {
            Node::Call(call) => Some(call),
            _ => None,
        }
    }

    /// What a value is, if it is more than a number or a text.
    #[must_use]
    pub fn node(&self, value: Value) -> Option<Node<'_>> {
        let Value::Object(Handle { kind, id }) = value else { return None };
        let at = id as usize;
        Some(match kind {
            kind::LIST => Node::List(&self.lists[at]),
            kind::TUPLE => Node::Tuple(&self.tuples[at]),
            kind::DICT => Node::Dict(&self.dicts[at]),
            kind::SET => Node::Set { items: &self.lists[at], is_frozen: false },
            kind::FROZENSET => Node::Set { items: &self.lists[at], is_frozen: true },
            kind::BYTES => Node::Bytes(self.bytes[at]),
            kind::GLOBAL => {
                let (module, name) = self.globals[at];
                let text = |value| self.as_text(value).unwrap_or("?");
                Node::Global { module: text(module), name: text(name) }
            }
            kind::CALL => Node::Call(&self.calls[at]),
            kind::INTEGER => Node::Integer(&self.integers[at]),
            kind::PERSISTENT => Node::Persistent(self.persistent[at]),
            _ => Node::Tensor(id),
        })
    }

    /// Every class and function that the pickle names: module and name.
    pub fn globals(&self) -> impl Iterator<Item = (&str, &str)> {
        self.globals.iter().map(|&(module, name)| {
            (self.as_text(module).unwrap_or("?"), self.as_text(name).unwrap_or("?"))
        })
    }

    /// About how much memory all of it takes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// What the pickle kept elsewhere.
    #[must_use]
    pub fn persistent_ids(&self) -> &[Value] {
        &self.persistent
    }

    /// What a value consists of.
    #[must_use]
    pub fn parts(&self, value: Value) -> Parts<'_> {
        match self.node(value) {
            Some(Node::List(items) | Node::Tuple(items) | Node::Set { items, .. }) => {
                Parts::one(Chunk::Items(items))
            }
            Some(Node::Dict(entries)) => Parts::one(Chunk::Entries(entries)),
            Some(Node::Call(call)) => Parts::of_call(self, call),
            _ => Parts::default(),
        }
    }

    /// The bytes of a bytes object in its pickle; none for one that was written with escapes.
    #[must_use]
    pub fn content<'p>(pickle: &'p [u8], bytes: &BytesAt) -> Option<&'p [u8]> {
        let header = match *pickle.get(bytes.at)? {
            op::SHORT_BINBYTES | op::SHORT_BINSTRING => 2,
            op::BINBYTES | op::BINSTRING => 5,
            op::BINBYTES8 | op::BYTEARRAY8 => 9,
            _ => return None,
        };
        pickle.get(bytes.at + header..)?.get(..bytes.len)
    }

    /// A dict of tensors by their names, for formats that have no pickle.
    #[must_use]
    pub fn of_tensors<'n>(names: impl Iterator<Item = &'n str>) -> (Self, Value) {
        let mut values = Self::default();
        let mut entries = Vec::new();
        for (index, name) in names.enumerate() {
            entries.push(Value::Text(values.add_text(name)));
            entries.push(Value::Object(Handle { kind: kind::TENSOR, id: index as u32 }));
        }
        values.dicts.push(entries);
        (values, Value::Object(Handle { kind: kind::DICT, id: 0 }))
    }

    fn add_text(&mut self, text: &str) -> u32 {
        self.text.push_str(text);
        self.text_ends.push(self.text.len());
        self.text_ends.len() as u32 - 1
    }

    fn hold(&mut self, bytes: usize, at: usize) -> Result<()> {
        self.held += bytes;
        if self.held > MAX_HELD {
            let reason = "its pickle holds more Python values than fit into 512 MiB";
            return Err(Error::checkpoint(reason, at as u64));
        }
        Ok(())
    }

    fn call(&mut self, call: Call, at: usize) -> Result<Value> {
        self.hold(size_of::<Call>(), at)?;
        self.calls.push(call);
        Ok(Value::Object(Handle { kind: kind::CALL, id: self.calls.len() as u32 - 1 }))
    }

    fn then(&mut self, call: u32, at: usize) -> Result<&mut Then> {
        if self.calls[call as usize].then.is_none() {
            self.hold(size_of::<Then>(), at)?;
        }
        Ok(self.calls[call as usize].then.get_or_insert_default())
    }
}

const EACH: usize = size_of::<Value>();

impl Builder for Values {
    const TAKES_OBJECTS: bool = true;
    const MAX_VALUES: usize = MAX_HELD / EACH;

    fn text(&mut self, text: &str, at: usize) -> Result<u32> {
        self.hold(text.len() + size_of::<usize>(), at)?;
        Ok(self.add_text(text))
    }

    fn bytes(&mut self, bytes: &[u8], at: usize) -> Result<Value> {
        self.hold(size_of::<BytesAt>(), at)?;
        let mut head = [0; 64];
        let shown = bytes.len().min(head.len());
        head[..shown].copy_from_slice(&bytes[..shown]);
        self.bytes.push(BytesAt { at, len: bytes.len(), is_mutable: false, head });
        Ok(Value::Object(Handle { kind: kind::BYTES, id: self.bytes.len() as u32 - 1 }))
    }

    fn bytearray(&mut self, bytes: &[u8], at: usize) -> Result<Value> {
        let value = self.bytes(bytes, at)?;
        self.bytes.iter_mut().last().into_iter().for_each(|bytes| bytes.is_mutable = true);
        Ok(value)
    }

    fn integer(&mut self, bytes: &[u8], at: usize) -> Result<Value> {
        // Longer ones are not real; their digits would fill pages.
        if bytes.len() > 64 {
            return Ok(Value::Huge);
        }
        self.hold(size_of::<Box<[u8]>>() + bytes.len(), at)?;
        self.integers.push(bytes.into());
        Ok(Value::Object(Handle { kind: kind::INTEGER, id: self.integers.len() as u32 - 1 }))
    }

    fn new_list(&mut self, at: usize) -> Result<Handle> {
        self.hold(size_of::<Vec<Value>>(), at)?;
        self.lists.push(Vec::new());
        Ok(Handle { kind: kind::LIST, id: self.lists.len() as u32 - 1 })
    }

    fn new_dict(&mut self, at: usize) -> Result<Handle> {
        self.hold(size_of::<Vec<Value>>(), at)?;
        self.dicts.push(Vec::new());
        Ok(Handle { kind: kind::DICT, id: self.dicts.len() as u32 - 1 })
    }

    fn tuple(&mut self, items: &[Value], at: usize) -> Result<Value> {
        self.hold(size_of::<Box<[Value]>>() + items.len() * EACH, at)?;
        self.tuples.push(items.into());
        Ok(Value::Object(Handle { kind: kind::TUPLE, id: self.tuples.len() as u32 - 1 }))
    }

    fn append(&mut self, list: Handle, items: &[Value], at: usize) -> Result<()> {
        self.hold(items.len() * EACH, at)?;
        match list.kind {
            kind::LIST | kind::SET | kind::FROZENSET => {
                self.lists[list.id as usize].extend_from_slice(items);
            }
            kind::CALL => self.then(list.id, at)?.items.extend_from_slice(items),
            _ => {
                return Err(Error::malformed(
                    "items are added to something that is not a list",
                    at,
                ));
            }
        }
        Ok(())
    }

    fn set_items(&mut self, dict: Handle, items: &[Value], at: usize) -> Result<()> {
        self.hold(items.len() * EACH, at)?;
        match dict.kind {
            kind::DICT => self.dicts[dict.id as usize].extend_from_slice(items),
            kind::CALL => self.then(dict.id, at)?.entries.extend_from_slice(items),
            _ => return Err(Error::malformed("keys are set on something that is not a dict", at)),
        }
        Ok(())
    }

    fn make(&mut self, object: Object, at: usize) -> Result<Value> {
        match object {
            Object::Global { module, name } => {
                self.hold(2 * EACH, at)?;
                self.globals.push((module, name));
                Ok(Value::Object(Handle { kind: kind::GLOBAL, id: self.globals.len() as u32 - 1 }))
            }
            Object::Extension(code) => {
                let module = Value::Text(self.text("copyreg extension", at)?);
                let name = Value::Text(self.text(&code.to_string(), at)?);
                self.make(Object::Global { module, name }, at)
            }
            Object::Call { callable, args } => self.call(Call { callable, args, then: None }, at),
            Object::New { class, args, named } => {
                let value = self.call(Call { callable: class, args, then: None }, at)?;
                if let (Some(_), Value::Object(handle)) = (named, value) {
                    self.then(handle.id, at)?.named = named;
                }
                Ok(value)
            }
            Object::WithState { object, state } => {
                // A state of anything but a call's result is a file that Python would not read either.
                if let Value::Object(Handle { kind: kind::CALL, id }) = object {
                    self.then(id, at)?.state = Some(state);
                }
                Ok(object)
            }
            Object::Persistent(id) => {
                self.hold(EACH, at)?;
                self.persistent.push(id);
                let id = self.persistent.len() as u32 - 1;
                Ok(Value::Object(Handle { kind: kind::PERSISTENT, id }))
            }
            Object::Set { is_frozen } => {
                let list = self.new_list(at)?;
                let kind = if is_frozen { kind::FROZENSET } else { kind::SET };
                Ok(Value::Object(Handle { kind, id: list.id }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_whatever_it_is() {
        for input in [
            &b"]."[..],
            b"}.",
            b").",
            b"K\x01\x85.",
            b"U\x05hello.",
            b"C\x01x.",
            b"\x8f.",
            b"(\x91.",
            b"ca\nb\n.",
            b"\x82\x01.",
            b"NNR.",
            b"NN\x81.",
            b"NQ.",
        ] {
            // So full that nothing of any kind fits.
            let mut values = Values { held: MAX_HELD, ..Values::default() };

            let result = pickle::run(input, &mut values, &Progress::none());

            let error = result.unwrap_err().to_string();
            assert!(error.contains("than fit into 512 MiB"), "{error}");
        }
    }

    #[test]
    fn what_is_put_into_an_object_counts_too() {
        for more in [&b"}b"[..], b"Na", b"(NNu"] {
            let input = [b"NNR", more, b"."].concat();
            let mut values = Values::default();
            pickle::run(&input, &mut values, &Progress::none()).unwrap();
            assert!(values.held() > size_of::<Call>() + size_of::<Then>());

            let mut full = Values { held: MAX_HELD + 1 - values.held(), ..Values::default() };
            assert!(pickle::run(&input, &mut full, &Progress::none()).is_err());
        }
    }
}
