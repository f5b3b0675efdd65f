//! What the calls that rebuild tensors say: which bytes of which storage, in what shape.
//!
//! The functions are torch's own (`torch._utils._rebuild_tensor_v2` and its relatives, from torch 0.2
//! to 2.13); none of them is called. A tensor that is made of several (sparse, quantized by channel,
//! nested, a wrapper subclass) has a view for each.

use super::describe::cut;
use super::numpy;
use super::values::{Call, Node, Values};
use super::{Quantized, Tensor, View};
use crate::dtype::DType;
use crate::pickle::Value;
use crate::strided::Strided;

/// How deep calls may stand in each other's arguments: a parameter of a subclass of a sparse tensor is
/// four deep.
const MAX_DEPTH: usize = 8;
/// How many values are looked at for one tensor, and for all: references to references multiply.
const MAX_LOOKS: usize = 2000;
const MAX_ALL_LOOKS: usize = 1 << 26;
/// How long the name of a device, a class or a part may be: a file can give a long one to each of many
/// tensors at no cost.
const MAX_WORD: usize = 200;
/// How long the key of a storage may be, for the same reason. Torch's are numbers.
const MAX_KEY: usize = 1000;
/// How many dimensions a tensor may have, as in torch.
const MAX_DIMENSIONS: usize = 64;

/// What a persistent id says about a storage.
#[derive(Debug, Clone, Copy)]
pub struct StorageId<'a> {
    /// What the file calls it.
    pub key: &'a str,
    /// The type of its elements; none if it is untyped and counted in bytes.
    pub dtype: Option<DType>,
    /// Where it was: `cpu`, `cuda:0`.
    pub location: &'a str,
    /// How many elements it has.
    pub elements: u64,
    /// Where it begins in the storage of this key, in elements (old files only).
    pub view_offset: u64,
}

/// Knows the storages of a file.
pub trait Storages {
    /// The index of a storage; none if the file does not have it.
    fn find(&mut self, id: &StorageId<'_>) -> Option<u32>;
    /// A tensor that the pickle only names by a number (the oldest files).
    fn tensor(&self, _id: i64) -> Option<Tensor> {
        None
    }
    /// Something about the file that people should know.
    fn warn(&mut self, warning: String);
}

/// A tensor without its name, and the attributes that Python code gave it.
#[derive(Debug)]
pub struct Rebuilt {
    /// The tensor.
    pub tensor: Tensor,
    /// A dict of its attributes.
    pub state: Option<Value>,
}

/// Reads tensors out of the values of a pickle.
pub struct Rebuilder<'v, 's> {
    values: &'v Values,
    storages: &'s mut dyn Storages,
    /// How many values were looked at for this tensor, and for those before.
    looks: usize,
    looks_before: usize,
}

impl<'v, 's> Rebuilder<'v, 's> {
    /// Reads from `values`; storages are looked up in `storages`.
    pub fn new(values: &'v Values, storages: &'s mut dyn Storages) -> Self {
        Self { values, storages, looks: 0, looks_before: 0 }
    }

    /// The tensor that a value is, if it is one.
    pub fn tensor(&mut self, value: Value) -> Option<Rebuilt> {
        self.looks_before += std::mem::take(&mut self.looks);
        if self.looks_before > MAX_ALL_LOOKS {
            self.storages.warn("it has more tensors in tensors than are looked at".to_owned());
            return None;
        }
        self.at_depth(value, 0)
    }

    /// The values that it reads from.
    #[must_use]
    pub fn values(&self) -> &'v Values {
        self.values
    }

    /// The storages, for whoever walks along.
    pub fn storages(&mut self) -> &mut dyn Storages {
        self.storages
    }

    fn at_depth(&mut self, value: Value, depth: usize) -> Option<Rebuilt> {
        self.looks += 1;
        match self.values.node(value)? {
            Node::Call(call) if depth < MAX_DEPTH && self.looks < MAX_LOOKS => {
                let (module, name) = self.values.as_global(call.callable)?;
                let args = self.values.as_items(call.args)?;
                let mut found = self.rebuilt(module, name, args, call, depth)?;
                found.state = found.state.or_else(|| call.then.as_ref()?.state);
                Some(found)
            }
            Node::Persistent(id) => {
                if let Some(tensor) = self.numbered(id) {
                    return Some(Rebuilt { tensor, state: None });
                }
                let (storage, dtype, device, length) = self.storage(value)?;
                let dtype = dtype.unwrap_or(DType::UInt8);
                let layout = Strided { shape: vec![length], stride: vec![1], offset: 0 };
                let view = storage.map(|(storage, offset)| View {
                    role: String::new(),
                    storage,
                    dtype,
                    layout: Strided { offset, ..layout.clone() },
                });
                let mut tensor = plain("storage", dtype, layout.shape, device);
                tensor.logical_bytes = dtype.bytes_of(length)?;
                tensor.views.extend(view);
                Some(Rebuilt { tensor, state: None })
            }
            _ => None,
        }
    }

    fn numbered(&self, id: Value) -> Option<Tensor> {
        let id = match id {
            Value::Int(id) => id,
            _ => self.values.as_text(id)?.parse().ok()?,
        };
        self.storages.tensor(id)
    }

    fn rebuilt(
        &mut self,
        module: &str,
        name: &str,
        args: &[Value],
        call: &Call,
        depth: usize,
    ) -> Option<Rebuilt> {
        let is_torch = module == "torch" || module.starts_with("torch.");
        let tensor = match (name, args) {
            ("_rebuild_tensor", &[storage, offset, size, stride, ..]) if is_torch => {
                self.strided(storage, offset, size, stride, None)?
            }
            ("_rebuild_tensor_v2", &[storage, offset, size, stride, grad, ..]) if is_torch => {
                let mut tensor = self.strided(storage, offset, size, stride, None)?;
                self.negate(&mut tensor, args.get(6));
                Tensor { requires_grad: grad == Value::Bool(true), ..tensor }
            }
            ("_rebuild_tensor_v3", &[storage, offset, size, stride, grad, _, dtype, ..])
                if is_torch =>
            {
                let dtype = self.dtype(dtype)?;
                let mut tensor = self.strided(storage, offset, size, stride, Some(dtype))?;
                self.negate(&mut tensor, args.get(7));
                Tensor { requires_grad: grad == Value::Bool(true), ..tensor }
            }
            ("_rebuild_parameter" | "_rebuild_parameter_with_state", &[data, grad, ..])
                if is_torch =>
            {
                let mut inner = self.at_depth(data, depth + 1)?;
                if inner.tensor.kind == "tensor" {
                    inner.tensor.kind = "parameter";
                }
                inner.tensor.requires_grad = grad == Value::Bool(true);
                inner.state = args.get(3).copied().or(inner.state);
                return Some(inner);
            }
            ("_rebuild_qtensor", &[storage, offset, size, stride, quantizer, grad, ..])
                if is_torch =>
            {
                let mut tensor = self.strided(storage, offset, size, stride, None)?;
                tensor.kind = "quantized";
                tensor.requires_grad = grad == Value::Bool(true);
                self.add_quantizer(&mut tensor, quantizer, depth);
                tensor
            }
            ("_rebuild_sparse_tensor" | "_rebuild_sparse_csr_tensor", &[layout, data, ..])
                if is_torch =>
            {
                self.sparse(layout, data, depth)?
            }
            ("_rebuild_nested_tensor", &[buffer, sizes, strides, offsets, ..]) if is_torch => {
                let roles = [
                    ("values", buffer),
                    ("sizes", sizes),
                    ("strides", strides),
                    ("offsets", offsets),
                ];
                self.composite("nested", "values", &roles, depth)?
            }
            ("_rebuild_njt", &[named, ..]) if is_torch => self.jagged(named, depth)?,
            ("_rebuild_meta_tensor_no_storage", &[dtype, size, _, grad, ..]) if is_torch => {
                let mut tensor =
                    plain("meta", self.dtype(dtype)?, self.sizes(size)?, "meta".to_owned());
                tensor.logical_bytes = logical_bytes(&tensor)?;
                tensor.requires_grad = grad == Value::Bool(true);
                tensor
            }
            ("_rebuild_from_type_v2", &[function, class, inner, state, ..]) if is_torch => {
                return self.of_type(function, class, inner, state, call, depth);
            }
            ("_rebuild_from_type", &[function, class, inner, state, ..]) if is_torch => {
                return self.of_type(function, class, inner, state, call, depth);
            }
            ("_rebuild_wrapper_subclass", &[class, dtype, size, _, _, _, device, grad, ..])
                if is_torch =>
            {
                let device = self.device(device);
                let mut tensor = plain("subclass", self.dtype(dtype)?, self.sizes(size)?, device);
                tensor.requires_grad = grad == Value::Bool(true);
                tensor.class = self.class(class);
                tensor
            }
            (
                "_rebuild_device_tensor_from_numpy" | "_rebuild_device_tensor_from_cpu_tensor",
                &[data, dtype, device, grad, ..],
            ) if is_torch => {
                let mut inner = self.at_depth(data, depth + 1)?;
                let dtype = self.dtype(dtype)?;
                dtype.name().clone_into(&mut inner.tensor.dtype);
                inner.tensor.kind = "tensor";
                inner.tensor.device = self.device(device);
                inner.tensor.requires_grad = grad == Value::Bool(true);
                return Some(inner);
            }
            ("_reconstruct" | "_frombuffer", _) if module.starts_with("numpy.") => {
                numpy::array(self.values, name, args, call)?
            }
            _ => return None,
        };
        Some(Rebuilt { tensor, state: None })
    }

    /// A tensor of one storage.
    fn strided(
        &mut self,
        storage: Value,
        offset: Value,
        size: Value,
        stride: Value,
        dtype: Option<DType>,
    ) -> Option<Tensor> {
        let shape = self.sizes(size)?;
        let stride: Vec<i64> = self.integers(stride)?;
        let (storage, own, device, _) = self.storage(storage)?;
        let dtype = dtype.or(own).unwrap_or(DType::UInt8);
        let mut tensor = plain("tensor", dtype, shape.clone(), device);
        if stride.len() != shape.len() {
            return None;
        }
        tensor.logical_bytes = logical_bytes(&tensor)?;
        let Value::Int(offset @ 0..) = offset else { return None };
        if let Some((storage, base)) = storage {
            let offset = base.checked_add(offset as u64)?;
            let layout = Strided { shape, stride, offset };
            tensor.views.push(View { role: String::new(), storage, dtype, layout });
        }
        Some(tensor)
    }

    /// A view that only says that its numbers have the other sign (the imaginary part of a conjugate).
    fn negate(&self, tensor: &mut Tensor, metadata: Option<&Value>) {
        let Some(Node::Dict(entries)) = metadata.and_then(|&about| self.values.node(about)) else {
            return;
        };
        let is_negative = entries.as_chunks().0.iter().any(|&[key, value]| {
            self.values.as_text(key) == Some("neg") && value == Value::Bool(true)
        });
        if is_negative {
            tensor.quantized = Some(Quantized::Tensor { scale: -1.0, zero_point: 0 });
        }
    }

    /// A tensor's storage with where in it to begin; its type, its device, its length in elements.
    #[allow(clippy::type_complexity)]
    fn storage(
        &mut self,
        value: Value,
    ) -> Option<(Option<(u32, u64)>, Option<DType>, String, u64)> {
        let values = self.values;
        let Node::Persistent(id) = values.node(value)? else {
            // A typed storage around an untyped one.
            let call = values.as_call(value)?;
            let inner = values.as_items(call.args)?.first()?;
            return if *inner == value { None } else { self.untyped(*inner) };
        };
        let id = storage_id(values, id)?;
        let found = self.storages.find(&id).map(|index| (index, id.view_offset));
        Some((found, id.dtype, id.location.to_owned(), id.elements))
    }

    #[allow(clippy::type_complexity)]
    fn untyped(
        &mut self,
        value: Value,
    ) -> Option<(Option<(u32, u64)>, Option<DType>, String, u64)> {
        matches!(self.values.node(value)?, Node::Persistent(_)).then(|| self.storage(value))?
    }

    fn add_quantizer(&mut self, tensor: &mut Tensor, quantizer: Value, depth: usize) {
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

    fn sparse(&mut self, layout: Value, data: Value, depth: usize) -> Option<Tensor> {
        let layout = self.layout(layout)?;
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
        tensor.shape = self.sizes(size)?;
        Some(tensor)
    }

    fn jagged(&mut self, named: Value, depth: usize) -> Option<Tensor> {
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
    fn composite(
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
    fn of_type(
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
            return None; // No writer nests it in itself, and each level would cost one of ours.
        }
        let mut found = self.rebuilt(module, name, args, call, depth + 1)?;
        let own = self.class(class);
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
    fn add_attributes(&mut self, tensor: &mut Tensor, state: Value, depth: usize) {
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

    fn dtype(&self, value: Value) -> Option<DType> {
        match self.values.as_global(value)? {
            ("torch", name) => DType::from_torch(name),
            _ => None,
        }
    }

    fn sizes(&self, value: Value) -> Option<Vec<u64>> {
        self.integers(value)?.into_iter().map(|size| u64::try_from(size).ok()).collect()
    }

    /// The whole numbers of a tuple, a list or a `torch.Size`.
    fn integers(&self, value: Value) -> Option<Vec<i64>> {
        let items = match self.values.node(value)? {
            Node::Tuple(items) | Node::List(items) => items,
            Node::Call(call) => {
                let inner = *self.values.as_items(call.args)?.first()?;
                self.values.as_items(inner)?
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
    fn layout(&self, value: Value) -> Option<String> {
        let name = match self.values.node(value)? {
            Node::Call(call) => self.values.as_text(*self.values.as_items(call.args)?.first()?)?,
            Node::Global { name, .. } => name,
            _ => return None,
        };
        Some(cut(name.strip_prefix("torch.").unwrap_or(name), MAX_WORD).to_owned())
    }

    /// `cuda:0`, from a text or a `torch.device`.
    fn device(&self, value: Value) -> String {
        let values = self.values;
        let word = |value| Some(cut(values.as_text(value)?, MAX_WORD).to_owned());
        let text = word(value).or_else(|| match *values.as_items(values.as_call(value)?.args)? {
            [name] => word(name),
            [name, Value::Int(index), ..] => Some(format!("{}:{index}", word(name)?)),
            _ => None,
        });
        text.unwrap_or_else(|| "cpu".to_owned())
    }

    /// A class that is not torch's own for plain tensors.
    fn class(&self, value: Value) -> Option<String> {
        match self.values.as_global(value)? {
            ("torch", "Tensor") | ("torch.nn.parameter", "Parameter") => None,
            (module, name) => Some(format!("{}.{}", cut(module, MAX_WORD), cut(name, MAX_WORD))),
        }
    }
}

/// What a persistent id says.
#[must_use]
pub fn storage_id(values: &Values, id: Value) -> Option<StorageId<'_>> {
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

/// A tensor with nothing in it yet.
pub(super) fn plain(kind: &'static str, dtype: DType, shape: Vec<u64>, device: String) -> Tensor {
    Tensor {
        name: String::new(),
        kind,
        dtype: dtype.name().to_owned(),
        shape,
        device,
        requires_grad: false,
        views: Vec::new(),
        logical_bytes: 0,
        class: None,
        quantized: None,
        in_pickle: None,
    }
}

fn logical_bytes(tensor: &Tensor) -> Option<u64> {
    let elements = elements(&tensor.shape)?;
    DType::from_torch(&tensor.dtype)?.bytes_of(elements)
}

/// How many elements a shape has.
pub(super) fn elements(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size))
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

pub(super) fn number(value: Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(number),
        Value::Int(number) => Some(number as f64),
        _ => None,
    }
}
