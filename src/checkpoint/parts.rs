//! What a value consists of, in order: items, keys with values, attributes.

use super::values::{Call, Node, Values};
use crate::pickle::{Handle, Value};

/// How deep a walk over the parts of parts goes; Python itself gives up at 1,000 calls in each other.
pub const MAX_DEPTH: usize = 10_000;
/// Attributes, items, keys and values, named arguments, and two sorts of state.
const MAX_CHUNKS: usize = 6;

/// Some of the parts of a value, all named in the same way.
#[derive(Debug, Clone, Copy, Default)]
pub enum Chunk<'a> {
    /// Nothing.
    #[default]
    Empty,
    /// Numbered items.
    Items(&'a [Value]),
    /// Keys and values, in turn.
    Entries(&'a [Value]),
    /// Tuples or lists of a key and a value.
    Pairs(&'a [Value]),
    /// Names of attributes and their values, in turn.
    Attributes(&'a [Value]),
    /// One part that has no name of its own.
    Rest(&'static str, Value),
}

/// The attributes of a module that hold what it is made of.
pub const MODULE_PARTS: [&str; 3] = ["_parameters", "_buffers", "_modules"];

/// How a part is called.
#[derive(Debug, Clone, Copy)]
pub enum Label {
    /// By its number.
    Index(usize),
    /// By its key.
    Key(Value),
    /// By the name of an attribute.
    Attribute(Value),
    /// By what it is.
    Word(&'static str),
}

/// What a value consists of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parts<'a> {
    chunks: [Chunk<'a>; MAX_CHUNKS],
    /// The container that each of them is, if it is not the value itself.
    containers: [Option<Handle>; MAX_CHUNKS],
    used: usize,
}

impl<'a> Parts<'a> {
    /// Parts of one sort.
    #[must_use]
    pub fn one(chunk: Chunk<'a>) -> Self {
        let mut parts = Self::default();
        parts.add(chunk, Value::None);
        parts
    }

    /// What an object consists of: what it was made from, what was put into it, its attributes.
    #[must_use]
    pub fn of_call(values: &'a Values, call: &'a Call) -> Self {
        let mut parts = Self::default();
        let args = values.as_items(call.args).unwrap_or_default();
        match (values.as_global(call.callable), args) {
            // The argument of a defaultdict is what makes a missing value.
            (_, []) | (Some(("collections", "defaultdict")), _) => {}
            (Some(("collections", "OrderedDict" | "Counter")), &[only]) => {
                match values.node(only) {
                    Some(Node::List(pairs)) => parts.add(Chunk::Pairs(pairs), only),
                    Some(Node::Dict(entries)) => parts.add(Chunk::Entries(entries), only),
                    _ => {}
                }
            }
            // Their arguments are the class and where to start from.
            (Some(("copyreg" | "copy_reg", _)), args) => {
                parts.add(Chunk::Items(args.get(2..).unwrap_or_default()), call.args);
            }
            (_, &[only]) => match values.node(only) {
                Some(Node::List(items) | Node::Tuple(items)) => {
                    parts.add(Chunk::Items(items), only);
                }
                Some(Node::Dict(entries)) => parts.add(Chunk::Entries(entries), only),
                _ => parts.add(Chunk::Items(args), call.args),
            },
            (_, args) => parts.add(Chunk::Items(args), call.args),
        }
        if let Some(then) = &call.then {
            let named = then.named.unwrap_or(Value::None);
            if let Some(Node::Dict(entries)) = values.node(named) {
                parts.add(Chunk::Attributes(entries), named);
            }
            parts.add(Chunk::Entries(&then.entries), Value::None);
            parts.add(Chunk::Items(&then.items), Value::None);
            if let Some(state) = then.state {
                parts.add_state(values, state);
            }
        }
        parts
    }

    /// What is shown: of a collection, its items but not its attributes (a state dict has
    /// `_metadata`); of a module, its parameters, buffers and modules by their names.
    #[must_use]
    pub fn shown(mut self, values: &'a Values, is_collection: bool) -> Self {
        if is_collection {
            for chunk in &mut self.chunks {
                if matches!(chunk, Chunk::Attributes(_)) {
                    *chunk = Chunk::Empty;
                }
            }
        }
        if !self.is_module(values) {
            return self;
        }
        let mut shown = Self::default();
        for name in MODULE_PARTS {
            let Some(part) = self.attribute(values, name) else { continue };
            match values.node(part) {
                Some(Node::Dict(entries)) => shown.add(Chunk::Entries(entries), part),
                Some(Node::Call(call)) => {
                    for chunk in Self::of_call(values, call).chunks {
                        if matches!(chunk, Chunk::Entries(_) | Chunk::Pairs(_)) && chunk.len() > 0 {
                            shown.add(chunk, part);
                        }
                    }
                }
                _ => {}
            }
        }
        shown
    }

    /// Whether this is what a `torch.nn.Module` consists of: every one of them has these.
    #[must_use]
    pub fn is_module(&self, values: &Values) -> bool {
        MODULE_PARTS.iter().all(|name| self.attribute(values, name).is_some())
    }

    /// The attributes that a state stands for.
    pub fn add_state(&mut self, values: &'a Values, state: Value) {
        match values.node(state) {
            Some(Node::Dict(entries)) => self.add(Chunk::Attributes(entries), state),
            // Attributes, and those that are kept in slots.
            Some(Node::Tuple(&[first, second]))
                if is_dict_or_none(values, first) && is_dict_or_none(values, second) =>
            {
                for part in [first, second] {
                    if let Some(Node::Dict(entries)) = values.node(part) {
                        self.add(Chunk::Attributes(entries), part);
                    }
                }
            }
            _ if state != Value::None => self.add(Chunk::Rest("state", state), Value::None),
            _ => {}
        }
    }

    fn add(&mut self, chunk: Chunk<'a>, container: Value) {
        if self.used < MAX_CHUNKS {
            self.chunks[self.used] = chunk;
            self.containers[self.used] = match container {
                Value::Object(handle) => Some(handle),
                _ => None,
            };
            self.used += 1;
        }
    }

    /// Leaves out what is part of containers that are not new. Many objects may be given the same
    /// arguments or the same state; a walk over all of them must not go through these each time.
    pub fn keep_new(&mut self, mut is_new: impl FnMut(Handle) -> bool) {
        for (chunk, container) in self.chunks.iter_mut().zip(self.containers) {
            if container.is_some_and(|container| !is_new(container)) {
                *chunk = Chunk::Empty;
            }
        }
    }

    /// How many parts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Chunk::len).sum()
    }

    /// The part with this number.
    #[must_use]
    pub fn get(&self, values: &Values, mut index: usize) -> Option<(Label, Value)> {
        for chunk in &self.chunks {
            let count = chunk.len();
            if index < count {
                return Some(chunk.get(values, index));
            }
            index -= count;
        }
        None
    }

    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, values: &Values, name: &str) -> Option<Value> {
        self.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Attributes(entries) => entries
                .as_chunks()
                .0
                .iter()
                .find(|[key, _]| values.as_text(*key) == Some(name))
                .map(|&[_, value]| value),
            _ => None,
        })
    }
}

impl Chunk<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Items(items) | Self::Pairs(items) => items.len(),
            Self::Entries(entries) | Self::Attributes(entries) => entries.len() / 2,
            Self::Rest(..) => 1,
        }
    }

    fn get(&self, values: &Values, index: usize) -> (Label, Value) {
        match self {
            Self::Items(items) => (Label::Index(index), items[index]),
            Self::Entries(entries) => (Label::Key(entries[2 * index]), entries[2 * index + 1]),
            Self::Attributes(entries) => {
                (Label::Attribute(entries[2 * index]), entries[2 * index + 1])
            }
            Self::Pairs(pairs) => match values.as_items(pairs[index]) {
                Some(&[key, value]) => (Label::Key(key), value),
                _ => (Label::Index(index), pairs[index]),
            },
            Self::Rest(word, value) => (Label::Word(word), *value),
            Self::Empty => (Label::Index(index), Value::None),
        }
    }
}

fn is_dict_or_none(values: &Values, value: Value) -> bool {
    value == Value::None || matches!(values.node(value), Some(Node::Dict(_)))
}
