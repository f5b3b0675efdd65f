//! Descriptions of values: the name of a type, a label, and how much memory Python would need.

use hashbrown::{HashMap, HashSet};

use super::handles::{Amounts, Marks};
use super::imports::in_python_3;
use super::numpy::scalar_type;
use super::parts::{Label, MAX_DEPTH, Parts};
use super::preview::{MAX_PREVIEW, preview};
use super::values::{Call, Node, Values, kind};
use super::walk::TensorOf;
use crate::pickle::{Handle, Value};

/// The beginning of a text, up to a number of bytes.
#[must_use]
pub fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// Python's name for the type of a value; a tensor's is given elsewhere.
#[must_use]
pub fn type_name(values: &Values, value: Value) -> String {
    match value {
        Value::None => "NoneType".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Int(_) | Value::Uint(_) | Value::Huge => "int".to_owned(),
        Value::Float(_) => "float".to_owned(),
        Value::Text(_) => "str".to_owned(),
        Value::Object(_) => match values.node(value) {
            Some(Node::List(_)) => "list".to_owned(),
            Some(Node::Tuple(_)) => "tuple".to_owned(),
            Some(Node::Dict(_)) => "dict".to_owned(),
            Some(Node::Set { is_frozen: false, .. }) => "set".to_owned(),
            Some(Node::Set { .. }) => "frozenset".to_owned(),
            Some(Node::Bytes(bytes)) if bytes.is_mutable => "bytearray".to_owned(),
            Some(Node::Bytes(_)) => "bytes".to_owned(),
            Some(Node::Integer(_)) => "int".to_owned(),
            Some(Node::Persistent(_)) => "torch.storage".to_owned(),
            Some(Node::Tensor(_)) => "torch.Tensor".to_owned(),
            Some(Node::Global { module, name }) => global_type(module, name).to_owned(),
            Some(Node::Call(call)) => match values.as_global(call.callable) {
                Some((module, name)) => result_type(values, module, name, call.args),
                None => "object".to_owned(),
            },
            None => "object".to_owned(),
        },
    }
}

fn global_type(module: &str, name: &str) -> &'static str {
    if module == "torch" && crate::dtype::DType::from_torch(name).is_some() {
        "torch.dtype"
    } else if name.starts_with(char::is_uppercase) || is_builtin_class(module, name) {
        "type"
    } else {
        "function"
    }
}

fn is_builtin_class(module: &str, name: &str) -> bool {
    const CLASSES: [&str; 16] = [
        "bool",
        "bytearray",
        "bytes",
        "complex",
        "dict",
        "float",
        "frozenset",
        "int",
        "list",
        "object",
        "range",
        "set",
        "slice",
        "str",
        "tuple",
        "type",
    ];
    let (module, name) = in_python_3(module, name);
    module == "builtins" && CLASSES.contains(&name)
}

fn result_type(values: &Values, module: &str, name: &str, args: Value) -> String {
    match in_python_3(module, name) {
        ("builtins" | "collections", name) => cut(name, MAX_PREVIEW).to_owned(),
        ("_codecs", "encode") => "bytes".to_owned(),
        // What they make is an instance of their first argument.
        ("copyreg", "_reconstructor" | "__newobj__") => {
            let class = values.as_items(args).and_then(|args| args.first());
            match class.and_then(|&class| values.as_global(class)) {
                Some((module, name)) => class_name(module, name),
                None => "object".to_owned(),
            }
        }
        (module, "scalar") if module.starts_with("numpy") => match scalar_type(values, args) {
            Some(dtype) => format!("numpy.{}", dtype.name()),
            None => "numpy scalar".to_owned(),
        },
        (module, "_reconstruct" | "_frombuffer") if module.starts_with("numpy") => {
            "numpy.ndarray".to_owned()
        }
        (module, name) => class_name(module, name),
    }
}

/// A file may name a long one millions of times.
pub(super) fn class_name(module: &str, name: &str) -> String {
    let (module, name) = in_python_3(module, name);
    format!("{}.{}", cut(module, MAX_PREVIEW), cut(name, MAX_PREVIEW))
}

/// Whether a value is one of Python's collections, though a pickle makes it by a call.
fn is_collection(values: &Values, value: Value) -> bool {
    let global = values.as_call(value).and_then(|call| values.as_global(call.callable));
    matches!(global, Some(("collections", _) | ("builtins" | "__builtin__", "set" | "frozenset")))
}

/// The parts of a value that are shown.
#[must_use]
pub fn shown(values: &Values, value: Value) -> Parts<'_> {
    values.parts(value).shown(values, is_collection(values, value))
}

/// Whether a value consists of others: a collection, or an object with something in it.
#[must_use]
pub fn is_container(values: &Values, value: Value) -> bool {
    match values.node(value) {
        Some(Node::List(_) | Node::Tuple(_) | Node::Dict(_) | Node::Set { .. }) => true,
        Some(Node::Call(call)) => {
            let global = values.as_global(call.callable);
            let is_plain = |arg: &Value| !matches!(arg, Value::Object(_));
            let args = values.as_items(call.args).unwrap_or_default();
            // Only a few are looked at: a file may give the same arguments to millions of calls.
            let is_more = call.then.is_some() || args.len() > 100 || !args.iter().all(is_plain);
            is_collection(values, value)
                || is_more && !global.is_some_and(|(module, name)| is_leaf(module, name))
        }
        _ => false,
    }
}

/// What a part is called in a list of parts.
#[must_use]
pub fn label(values: &Values, label: Label) -> String {
    match label {
        Label::Index(index) => format!("[{index}]"),
        Label::Key(key) | Label::Attribute(key) => match values.as_text(key) {
            Some(text) => text.to_owned(),
            None => preview(values, key),
        },
        Label::Word(word) => word.to_owned(),
    }
}

/// How many bytes a value takes by itself in 64-bit `CPython`, without what it refers to.
#[must_use]
pub fn own_bytes(values: &Values, value: Value) -> u64 {
    Measure { values, texts: HashMap::new() }.own(value)
}

/// Measures values. Each text is read once, however many values are made of it.
struct Measure<'v> {
    values: &'v Values,
    /// How many characters each text has, and the last of them in the order of Unicode.
    texts: HashMap<u32, (u64, char)>,
}

impl Measure<'_> {
    fn own(&mut self, value: Value) -> u64 {
        let slots = |count: usize| 8 * count as u64;
        match value {
            Value::None => 16,
            Value::Bool(_) | Value::Int(-0x3fff_ffff..=0x3fff_ffff) => 28,
            Value::Int(number) if number.unsigned_abs() < 1 << 60 => 32,
            Value::Int(_) | Value::Uint(_) | Value::Huge => 36,
            Value::Float(_) => 24,
            Value::Text(id) => self.text(id),
            Value::Object(_) => match self.values.node(value) {
                Some(Node::List(items)) => 56 + slots(items.len()),
                Some(Node::Tuple(items)) => 40 + slots(items.len()),
                Some(Node::Set { items, .. }) => table_bytes(216, items.len(), 16, 5),
                Some(Node::Dict(entries)) => table_bytes(64, entries.len() / 2, 24, 0),
                Some(Node::Bytes(bytes)) => {
                    (if bytes.is_mutable { 57 } else { 33 }) + bytes.len as u64
                }
                // Digits of 30 bits.
                Some(Node::Integer(bytes)) => 24 + 4 * (8 * bytes.len() as u64).div_ceil(30),
                Some(Node::Call(call)) => self.call(value, call),
                // Classes and functions are there anyway.
                _ => 0,
            },
        }
    }

    fn call(&mut self, value: Value, call: &Call) -> u64 {
        let global = self.values.as_global(call.callable);
        if let Some((module, name)) = global.filter(|(module, name)| is_leaf(module, name)) {
            return self.leaf(module, name, call);
        }
        let count = self.values.parts(value).len();
        match global {
            Some(("builtins" | "__builtin__", "set" | "frozenset")) => {
                table_bytes(216, count, 16, 5)
            }
            _ => table_bytes(64, count, 24, 0),
        }
    }

    fn leaf(&mut self, module: &str, name: &str, call: &Call) -> u64 {
        match (module, name) {
            ("_codecs", "encode") => 33 + self.length(call),
            ("builtins" | "__builtin__", "bytearray") => 57 + self.length(call),
            ("builtins" | "__builtin__", "slice") => 56,
            ("builtins" | "__builtin__", "range" | "xrange") => 48,
            ("torch", "Size") => 40 + 8 * self.length(call),
            ("torch", "device") => 16,
            ("numpy", "dtype") => 96,
            ("torch.serialization", _) => 0,
            _ => 32,
        }
    }

    /// How long the first argument of a call is.
    fn length(&mut self, call: &Call) -> u64 {
        let first = |call: &Call| self.values.as_items(call.args)?.first().copied();
        let argument = first(call);
        // A bytearray of bytes that protocol 2 wrote as a text.
        let inner = argument.and_then(|value| self.values.as_call(value));
        let inner = inner
            .filter(|call| self.values.as_global(call.callable) == Some(("_codecs", "encode")));
        match inner.map_or(argument, first) {
            Some(Value::Text(id)) => self.letters(id).0,
            Some(value) => match self.values.node(value) {
                Some(Node::Bytes(bytes)) => bytes.len as u64,
                Some(Node::Tuple(items) | Node::List(items)) => items.len() as u64,
                _ => 0,
            },
            None => 0,
        }
    }

    /// A string: a header, and one, two or four bytes a character.
    fn text(&mut self, id: u32) -> u64 {
        let (count, widest) = self.letters(id);
        match widest {
            ..='\x7f' => 49 + count,
            ..='\u{ff}' => 73 + count,
            ..='\u{ffff}' => 74 + 2 * count,
            _ => 76 + 4 * count,
        }
    }

    fn letters(&mut self, id: u32) -> (u64, char) {
        *self.texts.entry(id).or_insert_with(|| {
            let count = |(count, widest): (u64, char), letter| (count + 1, widest.max(letter));
            self.values.text_of(id).chars().fold((0, '\0'), count)
        })
    }
}

/// Whether an object is no container to Python, though a pickle makes it by a call.
fn is_leaf(module: &str, name: &str) -> bool {
    match (module, name) {
        ("_codecs", "encode")
        | ("torch", "Size" | "device")
        | ("torch.serialization", "_get_layout")
        | ("numpy", "dtype") => true,
        ("builtins" | "__builtin__", name) => {
            matches!(name, "bytearray" | "complex" | "slice" | "range" | "xrange")
        }
        (module, name) => name == "scalar" && module.starts_with("numpy"),
    }
}

/// A hash table that is at most two thirds full.
fn table_bytes(header: u64, count: usize, each: u64, free: usize) -> u64 {
    if count <= free {
        return header;
    }
    let size = (count as u64 * 3).div_ceil(2).next_power_of_two().max(8);
    header + size + size * 2 / 3 * each
}

/// How many bytes each container holds, its contents included; what occurs twice is counted where it
/// comes first, so that the parts of a container add up to it.
#[derive(Debug)]
pub struct Sizes {
    of: Amounts,
    /// The parts of the root, without what holds them together; of a root without parts, itself.
    pub parts: u64,
}

impl Sizes {
    /// Measures everything under `root`; `tensor` returns what a tensor adds when it is met.
    pub fn new(
        values: &Values,
        root: Value,
        tensor_of: &TensorOf,
        mut tensor: impl FnMut(u32) -> u64,
    ) -> Self {
        let mut of = Amounts::default();
        let mut met = Marks::default();
        let mut met_texts = HashSet::new();
        let mut is_new = |value: Value| match value {
            Value::Object(handle) => met.insert(handle),
            Value::Text(id) => met_texts.insert(id),
            _ => true,
        };
        let mut measure = Measure { values, texts: HashMap::new() };
        // A value, its parts, the next of them, and what it has so far.
        let mut open: Vec<(Value, Parts<'_>, usize, u64)> = Vec::new();
        let mut next = Some(root);
        let mut total: u64 = 0;
        loop {
            let mut closed = None;
            if let Some(value) = next.take() {
                if is_new(value) {
                    let index = match value {
                        Value::Object(Handle { kind: kind::TENSOR, id }) => Some(id),
                        Value::Object(handle) => tensor_of.get(&handle).copied(),
                        _ => None,
                    };
                    let own = index.map_or_else(|| measure.own(value), &mut tensor);
                    let has_parts = index.is_none() && is_container(values, value);
                    if has_parts && open.len() < MAX_DEPTH {
                        let mut parts = values.parts(value);
                        parts.keep_new(|handle| is_new(Value::Object(handle)));
                        let is_module = parts.is_module(values);
                        let mut parts = parts.shown(values, is_collection(values, value));
                        if is_module {
                            parts.keep_new(|handle| is_new(Value::Object(handle)));
                        }
                        open.push((value, parts, 0, own));
                    } else {
                        closed = Some((value, own, false));
                    }
                }
            } else if let Some((_, parts, at, bytes)) = open.last_mut() {
                if let Some((label, value)) = parts.get(values, *at) {
                    *at += 1;
                    if let Label::Key(key) | Label::Attribute(key) = label
                        && is_new(key)
                    {
                        *bytes = bytes.saturating_add(measure.own(key));
                    }
                    next = Some(value);
                } else {
                    closed = open.pop().map(|(value, _, _, bytes)| (value, bytes, true));
                }
            } else {
                break;
            }
            let Some((value, bytes, had_parts)) = closed else { continue };
            if let Value::Object(handle) = value {
                of.insert(handle, bytes);
            }
            // Of what is in the root, or of a root that has nothing in it.
            if open.len() == 1 || open.is_empty() && !had_parts {
                total = total.saturating_add(bytes);
            }
            if let Some((_, _, _, above)) = open.last_mut() {
                *above = above.saturating_add(bytes);
            }
        }
        Self { of, parts: total }
    }

    /// How many bytes a value holds.
    #[must_use]
    pub fn of(&self, values: &Values, value: Value) -> u64 {
        match value {
            Value::Object(handle) => self.of.get(handle),
            _ => own_bytes(values, value),
        }
    }
}
