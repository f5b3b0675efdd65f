//! Tensors that are made of several: sparse, nested, quantized by channel, wrappers; and those that are
//! of a class of their own.

use super::arguments::{MAX_WORD, number};
use super::describe::cut;
use super::tensors::{MAX_DEPTH, MAX_LOOKS, Rebuilder, Rebuilt, plain};
use super::values::{Call, Node};
use super::{Quantized, Tensor, View};
use crate::dtype::DType;
use crate::pickle::Value;

impl Rebuilder<'_, '_> {
    pub(super) fn add_quantizer(&mut self, tensor: &mut Tensor, quantizer: Value, depth: usize) {
        let Some(items) = self.values.as_items(quantizer) else { return };
        match *items {
            [_, scale, Value::Int(zero_point)] => {
                if let Some(scale) = number(scale) {
                    tensor.quantized = Some(Quantized::Tensor { scale, zero_point });
                }
            }
            [_, scales, zero_points, Value::Int(axis @ 0..)] => {
                for (role, value) in [("scales", scales), ("zero_points", zero_points)] {
                    if let Some(part) = self.at_depth(value, depth + 1) {
                        add_part(tensor, role, part.tensor);
                    }
                }
                if let Some(view) = tensor.views.first_mut() {
                    "values".clone_into(&mut view.role);
                }
                tensor.quantized = Some(Quantized::Channel { axis: axis as usize });
            }
            _ => {}
        }
    }

    pub(super) fn sparse(&mut self, layout: Value, data: Value, depth: usize) -> Option<Tensor> {
        let layout = self.values.layout(layout)?;
        let data = self.values.as_items(data)?;
        let (kind, roles, size): (_, Vec<(&str, Value)>, _) = match (layout.as_str(), data) {
            ("sparse_coo", &[indices, elements, size, ..]) => {
                ("sparse_coo", vec![("indices", indices), ("values", elements)], size)
            }
            (name, &[compressed, plain, elements, size, ..]) => {
                let (kind, first, second) = match name {
                    "sparse_csr" => ("sparse_csr", "crow_indices", "col_indices"),
                    "sparse_bsr" => ("sparse_bsr", "crow_indices", "col_indices"),
                    "sparse_csc" => ("sparse_csc", "ccol_indices", "row_indices"),
                    "sparse_bsc" => ("sparse_bsc", "ccol_indices", "row_indices"),
                    _ => return None,
                };
                (kind, vec![(first, compressed), (second, plain), ("values", elements)], size)
            }
            _ => return None,
        };
        let mut tensor = self.composite(kind, "values", &roles, depth)?;
        tensor.shape = self.values.sizes(size)?;
        Some(tensor)
    }

    pub(super) fn jagged(&mut self, named: Value, depth: usize) -> Option<Tensor> {
        let Some(Node::Dict(entries)) = self.values.node(named) else { return None };
        let mut roles = Vec::new();
        for &[key, value] in entries.as_chunks().0 {
            self.looks += 1;
            match self.values.as_text(key) {
                _ if self.looks > MAX_LOOKS => return None,
                Some(role @ ("values" | "offsets" | "lengths")) => roles.push((role, value)),
                _ => {}
            }
        }
        self.composite("nested", "values", &roles, depth)
    }

    /// A tensor that is made of several; its type, shape and device are those of its `main` part.
    pub(super) fn composite(
        &mut self,
        kind: &'static str,
        main: &str,
        roles: &[(&str, Value)],
        depth: usize,
    ) -> Option<Tensor> {
        let mut whole: Option<Tensor> = None;
        let mut parts = Vec::new();
        for &(role, value) in roles {
            let Some(part) = self.at_depth(value, depth + 1) else { continue };
            if role == main {
                let part = &part.tensor;
                let shape = part.shape.clone();
                let mut tensor = plain(kind, DType::UInt8, shape, part.device.clone());
                tensor.dtype.clone_from(&part.dtype);
                tensor.requires_grad = part.requires_grad;
                whole = Some(tensor);
            }
            parts.push((role, part.tensor));
        }
        let mut whole = whole?;
        for (role, part) in parts {
            add_part(&mut whole, role, part);
        }
        Some(whole)
    }

    /// A tensor with a class or attributes of its own.
    pub(super) fn of_type(
        &mut self,
        function: Value,
        class: Value,
        inner: Value,
        state: Value,
        call: &Call,
        depth: usize,
    ) -> Option<Rebuilt> {
        let (module, name) = self.values.as_global(function)?;
        let args = self.values.as_items(inner)?;
        if name.starts_with("_rebuild_from_type") {
            return None; // No writer nests it in itself, and each level would cost a level of our stack.
        }
        let mut found = self.rebuilt(module, name, args, call, depth + 1)?;
        let own = self.values.class(class);
        if found.tensor.kind == "subclass" {
            self.add_attributes(&mut found.tensor, state, depth);
            found.state = Some(Value::None);
        } else if found.tensor.kind == "nested" {
            found.state = Some(Value::None);
        } else {
            if own.is_some() && matches!(found.tensor.kind, "tensor" | "parameter") {
                found.tensor.kind = "subclass";
            }
            found.state = Some(state);
        }
        found.tensor.class = own.or(found.tensor.class);
        Some(found)
    }

    /// The tensors among the attributes of a wrapper, however deep, are what it is made of.
    pub(super) fn add_attributes(&mut self, tensor: &mut Tensor, state: Value, depth: usize) {
        let Some(Node::Dict(entries)) = self.values.node(state) else { return };
        for &[key, value] in entries.as_chunks().0 {
            self.looks += 1;
            if self.looks > MAX_LOOKS {
                return;
            }
            let Some(role) = self.values.as_text(key) else { continue };
            if let Some(part) = self.at_depth(value, depth + 1) {
                add_part(tensor, role, part.tensor);
            } else if depth < MAX_DEPTH && matches!(self.values.node(value), Some(Node::Dict(_))) {
                self.add_attributes(tensor, value, depth + 1);
            }
        }
    }
}

fn add_part(whole: &mut Tensor, role: &str, part: Tensor) {
    whole.logical_bytes = whole.logical_bytes.saturating_add(part.logical_bytes);
    let role = cut(role, MAX_WORD);
    for view in part.views {
        let role = match view.role.as_str() {
            "" => role.to_owned(),
            inner => format!("{role}.{inner}"),
        };
        whole.views.push(View { role, ..view });
    }
}
