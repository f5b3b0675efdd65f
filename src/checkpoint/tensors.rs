//! Decodes the calls that rebuild tensors: which bytes of which storage, in what shape.
//!
//! The functions are torch's own (`torch._utils._rebuild_tensor_v2` and its relatives, from torch 0.2
//! to 2.13); none of them is called. A tensor that is made of several (sparse, quantized by channel,
//! nested, a wrapper subclass) has a view for each.

use super::arguments::storage_id;
use super::numpy;
use super::values::{Call, Node, Values};
use super::{Quantized, Tensor, View};
use crate::dtype::DType;
use crate::pickle::Value;
use crate::strided::Strided;

/// How deep calls may be nested in arguments: a parameter of a subclass of a sparse tensor is
/// four deep.
pub(super) const MAX_DEPTH: usize = 8;
/// How many values are looked at for one tensor, and for all: references to references multiply.
pub(super) const MAX_LOOKS: usize = 2000;
const MAX_ALL_LOOKS: usize = 1 << 26;

/// A storage as a persistent id describes it.
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
    /// A warning about the file.
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
    pub(super) values: &'v Values,
    storages: &'s mut dyn Storages,
    /// How many values were looked at for this tensor, and for those before.
    pub(super) looks: usize,
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
            self.storages.warn("its tensors are nested in more tensors than are read".to_owned());
            return None;
        }
        self.at_depth(value, 0)
    }

    /// The values that it reads from.
    #[must_use]
    pub fn values(&self) -> &'v Values {
        self.values
    }

    /// The storages.
    pub fn storages(&mut self) -> &mut dyn Storages {
        self.storages
    }

    pub(super) fn at_depth(&mut self, value: Value, depth: usize) -> Option<Rebuilt> {
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

    pub(super) fn rebuilt(
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
                self.turn(&mut tensor, args.get(6));
                Tensor { requires_grad: grad == Value::Bool(true), ..tensor }
            }
            ("_rebuild_tensor_v3", &[storage, offset, size, stride, grad, _, dtype, ..])
                if is_torch =>
            {
                let dtype = self.values.dtype(dtype)?;
                let mut tensor = self.strided(storage, offset, size, stride, Some(dtype))?;
                self.turn(&mut tensor, args.get(7));
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
                let mut tensor = plain(
                    "meta",
                    self.values.dtype(dtype)?,
                    self.values.sizes(size)?,
                    "meta".to_owned(),
                );
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
                let device = self.values.device(device);
                let mut tensor =
                    plain("subclass", self.values.dtype(dtype)?, self.values.sizes(size)?, device);
                tensor.requires_grad = grad == Value::Bool(true);
                tensor.class = self.values.class(class);
                tensor
            }
            (
                "_rebuild_device_tensor_from_numpy" | "_rebuild_device_tensor_from_cpu_tensor",
                &[data, dtype, device, grad, ..],
            ) if is_torch => {
                let mut inner = self.at_depth(data, depth + 1)?;
                let dtype = self.values.dtype(dtype)?;
                dtype.name().clone_into(&mut inner.tensor.dtype);
                inner.tensor.kind = "tensor";
                inner.tensor.device = self.values.device(device);
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
    pub(super) fn strided(
        &mut self,
        storage: Value,
        offset: Value,
        size: Value,
        stride: Value,
        dtype: Option<DType>,
    ) -> Option<Tensor> {
        let shape = self.values.sizes(size)?;
        let stride: Vec<i64> = self.values.integers(stride)?;
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

    /// A view that only negates or conjugates its numbers.
    fn turn(&self, tensor: &mut Tensor, metadata: Option<&Value>) {
        let Some(Node::Dict(entries)) = metadata.and_then(|&about| self.values.node(about)) else {
            return;
        };
        for &[key, value] in entries.as_chunks().0.iter().take(4) {
            if value == Value::Bool(true) {
                match self.values.as_text(key) {
                    Some("neg") => {
                        tensor.quantized = Some(Quantized::Tensor { scale: -1.0, zero_point: 0 });
                    }
                    Some("conj") => tensor.quantized = Some(Quantized::Conjugate),
                    _ => {}
                }
            }
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
