//! Decodes the arguments of calls: types, shapes, devices, storages.

use super::describe::cut;
use super::tensors::StorageId;
use super::values::{Node, Values};
use crate::dtype::DType;
use crate::pickle::Value;

/// How many dimensions a tensor may have, as in torch.
const MAX_DIMENSIONS: usize = 64;
/// How long the name of a device, a class or a part may be: a file can give a long one to each of many
/// tensors at no cost.
pub(super) const MAX_WORD: usize = 200;
/// How long the key of a storage may be, for the same reason. Torch's are numbers.
const MAX_KEY: usize = 1000;

impl Values {
    pub(super) fn dtype(&self, value: Value) -> Option<DType> {
        match self.as_global(value)? {
            ("torch", name) => DType::from_torch(name),
            _ => None,
        }
    }

    pub(super) fn sizes(&self, value: Value) -> Option<Vec<u64>> {
        self.integers(value)?.into_iter().map(|size| u64::try_from(size).ok()).collect()
    }

    /// The whole numbers of a tuple, a list or a `torch.Size`.
    pub(super) fn integers(&self, value: Value) -> Option<Vec<i64>> {
        let items = match self.node(value)? {
            Node::Tuple(items) | Node::List(items) => items,
            Node::Call(call) => {
                let inner = *self.as_items(call.args)?.first()?;
                self.as_items(inner)?
            }
            _ => return None,
        };
        if items.len() > MAX_DIMENSIONS {
            return None;
        }
        items
            .iter()
            .map(|item| match item {
                Value::Int(number) => Some(*number),
                _ => None,
            })
            .collect()
    }

    /// The name of a layout: `sparse_coo`.
    pub(super) fn layout(&self, value: Value) -> Option<String> {
        let name = match self.node(value)? {
            Node::Call(call) => self.as_text(*self.as_items(call.args)?.first()?)?,
            Node::Global { name, .. } => name,
            _ => return None,
        };
        Some(cut(name.strip_prefix("torch.").unwrap_or(name), MAX_WORD).to_owned())
    }

    /// `cuda:0`, from a text or a `torch.device`.
    pub(super) fn device(&self, value: Value) -> String {
        let values = self;
        let word = |value| Some(cut(values.as_text(value)?, MAX_WORD).to_owned());
        let text = word(value).or_else(|| match *values.as_items(values.as_call(value)?.args)? {
            [name] => word(name),
            [name, Value::Int(index), ..] => Some(format!("{}:{index}", word(name)?)),
            _ => None,
        });
        text.unwrap_or_else(|| "cpu".to_owned())
    }

    /// A class that is not torch's own for plain tensors.
    pub(super) fn class(&self, value: Value) -> Option<String> {
        match self.as_global(value)? {
            ("torch", "Tensor") | ("torch.nn.parameter", "Parameter") => None,
            (module, name) => Some(format!("{}.{}", cut(module, MAX_WORD), cut(name, MAX_WORD))),
        }
    }
}

/// Decodes a persistent id.
#[must_use]
pub(super) fn storage_id(values: &Values, id: Value) -> Option<StorageId<'_>> {
    let items = values.as_items(id)?;
    let (&[kind, class, key, location, Value::Int(elements @ 0..)], more) =
        items.split_first_chunk()?
    else {
        return None;
    };
    if values.as_text(kind)? != "storage" {
        return None;
    }
    let (_, class) = values.as_global(class)?;
    let view_offset = more.first().and_then(|&view| match *values.as_items(view)? {
        [_, Value::Int(offset @ 0..), _] => Some(offset as u64),
        _ => None,
    });
    Some(StorageId {
        key: values.as_text(key).filter(|key| key.len() <= MAX_KEY)?,
        dtype: DType::from_storage(class),
        location: cut(values.as_text(location).unwrap_or("cpu"), MAX_WORD),
        elements: elements as u64,
        view_offset: view_offset.unwrap_or(0),
    })
}

/// A number of any type.
pub(super) fn number(value: Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(number),
        Value::Int(number) => Some(number as f64),
        _ => None,
    }
}
