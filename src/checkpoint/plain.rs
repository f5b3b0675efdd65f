//! The plain values of a pickle as what they are: numbers, texts, bytes.

use std::borrow::Cow;

use super::describe::type_name;
use super::open::Checkpoint;
use super::values::{BytesAt, Node, Values};
use super::{PickleAt, Tree};
use crate::error::{Error, Result};
use crate::pickle::Value;

/// A value that consists of no others.
#[derive(Debug, Clone, PartialEq)]
pub enum Plain<'a> {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer that fits 64 bits.
    Int(i64),
    /// An integer that fits 64 bits without a sign.
    Uint(u64),
    /// A longer integer: two's complement, the lowest byte first.
    Long(&'a [u8]),
    /// A float.
    Float(f64),
    /// A complex number: its real and its imaginary part.
    Complex(f64, f64),
    /// A text.
    Text(&'a str),
    /// Bytes; of a bytearray too.
    Bytes(Cow<'a, [u8]>),
}

impl Checkpoint {
    /// The plain value that a value of a tree is; an error if it is something else.
    pub fn plain<'a>(&'a self, tree: &'a Tree, value: Value) -> Result<Plain<'a>> {
        Ok(match value {
            Value::None => Plain::None,
            Value::Bool(value) => Plain::Bool(value),
            Value::Int(number) => Plain::Int(number),
            Value::Uint(number) => Plain::Uint(number),
            Value::Huge => return Err(Error::argument("the integer has more than 512 bits")),
            Value::Float(number) => Plain::Float(number),
            Value::Text(id) => Plain::Text(tree.values.text_of(id)),
            Value::Object(_) => {
                let found = match tree.values.node(value) {
                    Some(Node::Bytes(at)) => {
                        self.content(tree, &at)?.map(|bytes| Plain::Bytes(Cow::Borrowed(bytes)))
                    }
                    Some(Node::Integer(bytes)) => Some(Plain::Long(bytes)),
                    Some(Node::Call(call)) => {
                        let args = tree.values.as_items(call.args).unwrap_or_default();
                        of_call(&tree.values, value, args)
                    }
                    _ => None,
                };
                let kind = || type_name(&tree.values, value);
                found
                    .ok_or_else(|| Error::argument(format!("a {} is not a plain value", kind())))?
            }
        })
    }

    /// The bytes of a bytes object; none if the file does not have them as they are.
    pub(super) fn content<'a>(&'a self, tree: &'a Tree, at: &BytesAt) -> Result<Option<&'a [u8]>> {
        let pickle = match &tree.pickle {
            PickleAt::File { file, start, bytes } => {
                let all = self.files[*file as usize].map()?;
                all.get(*start as usize..).and_then(|rest| rest.get(..*bytes as usize))
            }
            PickleAt::Unpacked(bytes) => Some(bytes.as_slice()),
            PickleAt::Nowhere => None,
        };
        Ok(pickle.and_then(|pickle| Values::content(pickle, at)))
    }
}

fn of_call<'a>(values: &'a Values, value: Value, args: &[Value]) -> Option<Plain<'a>> {
    match (type_name(values, value).as_str(), args) {
        // Protocol 2 has no bytes: it writes a text whose characters stand for them.
        ("bytes", &[Value::Text(id), ..]) => latin1(values.text_of(id)).map(Plain::Bytes),
        ("complex", &[Value::Float(real), Value::Float(imaginary)]) => {
            Some(Plain::Complex(real, imaginary))
        }
        _ => None,
    }
}

/// The bytes that the characters of a text stand for.
pub(super) fn latin1(text: &str) -> Option<Cow<'_, [u8]>> {
    if text.is_ascii() {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let bytes = text.chars().map(|letter| u8::try_from(u32::from(letter)).ok());
    bytes.collect::<Option<Vec<u8>>>().map(Cow::Owned)
}
