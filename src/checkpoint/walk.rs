//! Finds every tensor of a tree of values, with the way to it, in the order of the file.
//!
//! Each container is entered once, however often it occurs, as a value or as the state or the arguments
//! of an object: cycles end, and what many share is listed under the first way to it. A tensor that
//! occurs twice is listed twice, since both names are true.
//!
//! # Cost
//!
//! `O(values)`; no recursion, one name is built in place.

use std::fmt::Write;

use hashbrown::HashMap;

use super::handles::Marks;
use super::parts::{Label, MAX_DEPTH, MODULE_PARTS, Parts};
use super::preview::preview;
use super::tensors::{Rebuilder, Storages};
use super::values::{Values, kind};
use super::{Tensor, View, describe};
use crate::error::Result;
use crate::pickle::{Handle, Value};
use crate::progress::Progress;

/// Which values are tensors.
pub type TensorOf = HashMap<Handle, u32>;

/// The longest name that is kept.
const MAX_NAME: usize = 4096;
/// How many names are listed that tensors have besides their first: a name costs a file three bytes.
const MAX_OTHER_NAMES: usize = 100_000;
/// How much memory the list of tensors may take.
const MAX_HELD: usize = 512 << 20;

/// What a walk is in the middle of.
struct Open<'v> {
    parts: Parts<'v>,
    next: usize,
    /// How long the name was when it was entered.
    name_len: usize,
    /// A module: its three dicts of parts give no name to what is in them.
    is_module: bool,
}

/// Lists the tensors under `root`; their names begin with `prefix`.
pub fn tensors(
    values: &Values,
    root: Value,
    prefix: &str,
    storages: &mut dyn Storages,
    progress: &Progress<'_>,
) -> Result<(Vec<Tensor>, TensorOf)> {
    walk(values, root, prefix, List::new(values, storages, MAX_HELD), progress)
}

fn walk<'v>(
    values: &'v Values,
    root: Value,
    prefix: &str,
    mut list: List<'v, '_>,
    progress: &Progress<'_>,
) -> Result<(Vec<Tensor>, TensorOf)> {
    let mut name = prefix.to_owned();
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut next = Some((root, false));
    let mut steps = 0_u64;
    loop {
        if let Some((value, is_nameless)) = next.take() {
            if let Some(parts) = list.enter(value, &name) {
                if open.len() < MAX_DEPTH {
                    let is_module = !is_nameless && parts.is_module(values);
                    open.push(Open { parts, next: 0, name_len: name.len(), is_module });
                } else {
                    let what =
                        format!("what is nested deeper than {MAX_DEPTH} levels is not listed");
                    list.rebuilder.storages().warn(what);
                }
            }
            if list.is_full {
                break;
            }
        }
        let Some(top) = open.last_mut() else { break };
        name.truncate(top.name_len);
        match top.parts.get(values, top.next) {
            Some((label, value)) => {
                top.next += 1;
                if matches!(value, Value::Object(_)) {
                    let is_nameless = top.is_module && is_part_of_module(values, label);
                    if !is_nameless {
                        add_label(&mut name, values, label);
                    }
                    next = Some((value, is_nameless));
                }
                steps += 1;
                if steps.is_multiple_of(1 << 16) {
                    progress.at(0, 1)?;
                }
            }
            None => {
                open.pop();
            }
        }
    }
    Ok((list.found, list.tensor_of))
}

/// What a walk has found.
struct List<'v, 's> {
    rebuilder: Rebuilder<'v, 's>,
    found: Vec<Tensor>,
    tensor_of: TensorOf,
    entered: Marks,
    /// How much more memory it may take.
    left: usize,
    /// How many more names that a tensor has besides its first.
    names_left: usize,
    is_full: bool,
}

impl<'v, 's> List<'v, 's> {
    fn new(values: &'v Values, storages: &'s mut dyn Storages, left: usize) -> Self {
        Self {
            rebuilder: Rebuilder::new(values, storages),
            found: Vec::new(),
            tensor_of: TensorOf::new(),
            entered: Marks::default(),
            left,
            names_left: MAX_OTHER_NAMES,
            is_full: false,
        }
    }

    /// Lists a value if it is a tensor; returns what there is to look into.
    fn enter(&mut self, value: Value, name: &str) -> Option<Parts<'v>> {
        let values = self.rebuilder.values();
        let Value::Object(handle) = value else { return None };
        if matches!(handle.kind, kind::BYTES | kind::GLOBAL) {
            return None;
        }
        let mut parts = if self.entered.insert(handle) {
            match self.rebuilder.tensor(value) {
                Some(rebuilt) => {
                    self.tensor_of.insert(handle, self.found.len() as u32);
                    self.add(rebuilt.tensor, name);
                    let mut parts = Parts::default();
                    parts.add_state(values, rebuilt.state?);
                    parts
                }
                None => values.parts(value),
            }
        } else {
            let index = *self.tensor_of.get(&handle)?;
            let again = self.found.get(index as usize)?.clone();
            if let Some(left) = self.names_left.checked_sub(1) {
                self.names_left = left;
                self.add(again, name);
            } else {
                let what = "more tensors have several names than are listed".to_owned();
                self.rebuilder.storages().warn(what);
            }
            return None;
        };
        parts.keep_new(|container| self.entered.insert(container));
        Some(parts)
    }

    /// Adds a tensor. If there are too many, warns and ends the walk.
    fn add(&mut self, tensor: Tensor, name: &str) {
        let name = if name.is_empty() { "root" } else { name };
        let left = self.left.checked_sub(held_by(&tensor) + name.len());
        self.left = left.unwrap_or(0);
        self.found.push(Tensor { name: name.to_owned(), ..tensor });
        if left.is_none() {
            self.is_full = true;
            let count = self.found.len();
            self.rebuilder.storages().warn(format!("only the first {count} tensors are listed"));
        }
    }
}

/// How much memory a tensor takes, but for its name.
fn held_by(tensor: &Tensor) -> usize {
    let view = |view: &View| {
        size_of::<View>() + view.role.len() + 2 * size_of::<u64>() * view.layout.shape.len()
    };
    let class = tensor.class.as_ref().map_or(0, String::len);
    size_of::<Tensor>()
        + tensor.dtype.len()
        + tensor.device.len()
        + class
        + size_of::<u64>() * tensor.shape.len()
        + tensor.views.iter().map(view).sum::<usize>()
}

fn is_part_of_module(values: &Values, label: Label) -> bool {
    let Label::Attribute(key) = label else { return false };
    values.as_text(key).is_some_and(|name| MODULE_PARTS.contains(&name))
}

fn add_label(name: &mut String, values: &Values, label: Label) {
    if name.len() > MAX_NAME {
        return;
    }
    match label {
        Label::Index(index) => _ = write!(name, "[{index}]"),
        Label::Key(key) | Label::Attribute(key) => match values.as_text(key) {
            Some(text) => {
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(describe::cut(text, MAX_NAME));
            }
            None => _ = write!(name, "[{}]", preview(values, key)),
        },
        Label::Word(word) => _ = write!(name, ".{word}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::table::Table;
    use crate::checkpoint::values;

    #[test]
    fn the_list_ends_where_its_memory_does() {
        let id = b"(U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x01tQq\0";
        let tensor = b"(h\0K\0))\x89tR".to_vec();
        let function = b"ctorch._utils\n_rebuild_tensor_v2\nq\x01".to_vec();
        let mut pickle = [&b"\x80\x02"[..], id, b"0", &function, b"0("].concat();
        for _ in 0..100 {
            pickle.extend([&b"h\x01"[..], &tensor].concat());
        }
        pickle.extend(b"l.");
        let (values, root, _) = values::read(&pickle, &Progress::none()).unwrap();
        let left = 10 * size_of::<Tensor>();
        let mut table = Table::default();

        let list = List::new(&values, &mut table, left);
        let (tensors, tensor_of) = walk(&values, root, "", list, &Progress::none()).unwrap();

        assert!((5..=10).contains(&tensors.len()), "{}", tensors.len());
        assert_eq!(tensor_of.len(), tensors.len());
        let count = tensors.len();
        let said = format!("only the first {count} tensors are listed");
        assert!(table.warnings.contains(&said), "{:?}", table.warnings);
    }
}
