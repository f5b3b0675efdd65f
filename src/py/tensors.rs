//! Tensors of a checkpoint, what they are made of and where they are, as Python sees them.

use std::sync::Arc;

use pyo3::prelude::*;

use super::checkpoint::Read;
use super::getters::{Tuple, derefs, getters};
use crate::checkpoint::open::{Checkpoint, Use};
use crate::checkpoint::preview::repr;
use crate::checkpoint::{Storage, Tensor, View};

/// A tensor, or something like one.
#[pyclass(frozen, name = "Tensor", module = "snapviewer")]
pub(super) struct PyTensor {
    pub read: Arc<Read>,
    pub index: usize,
}

derefs!(PyTensor, |this| -> Tensor { &this.read.checkpoint.tensors[this.index] });

impl PyTensor {
    /// The one view of a plain tensor.
    fn only(&self) -> Option<&View> {
        match self.views.as_slice() {
            [view] if view.role.is_empty() => Some(view),
            _ => None,
        }
    }

    /// Adds up something of its storages.
    fn sum(&self, of: impl Fn(&Checkpoint, usize) -> u64) -> u64 {
        let checkpoint = &self.read.checkpoint;
        checkpoint.storages_of(self).into_iter().map(|index| of(checkpoint, index as usize)).sum()
    }

    fn parts_of(&self) -> Tuple<Vec<PyTensorPart>> {
        let count = if self.only().is_some() { 0 } else { self.views.len() };
        let part = |view| PyTensorPart { read: self.read.clone(), index: self.index, view };
        Tuple((0..count).map(part).collect())
    }

    fn file_of(&self) -> Option<String> {
        let view = self.views.first()?;
        self.read.file_name(self.read.checkpoint.storages[view.storage as usize].file)
    }
}

getters! {
    PyTensor |this| {
        name: &str = &this.name,
        kind: &'static str,
        dtype: &str = &this.dtype,
        shape: Tuple<&[u64]> = Tuple(&this.shape),
        stride: Option<Tuple<&[i64]>> = this.only().map(|view| Tuple(&*view.layout.stride)),
        offset: Option<u64> = this.only().map(|view| view.layout.offset),
        storage: Option<&str> = this.only().map(|view| this.read.key(view)),
        device: &str = &this.device,
        requires_grad: bool,
        logical_bytes: u64,
        stored_bytes: u64 = this.sum(|checkpoint, index| checkpoint.storages[index].bytes),
        unique_bytes: u64 = this.read.checkpoint.reached_by(this),
        wasted_bytes: u64 = this.sum(Checkpoint::wasted_in),
        parts: Tuple<Vec<PyTensorPart>> = this.parts_of(),
        class_name: Option<&str> = this.class.as_deref(),
        file: Option<String> = this.file_of(),
    }

    fn __repr__(&self) -> String {
        let Tensor { name, dtype, shape, .. } = &**self;
        format!("Tensor(name={}, dtype={}, shape={shape:?})", repr(name), repr(dtype))
    }
}

/// One of the tensors that a tensor is made of.
#[pyclass(frozen, name = "TensorPart", module = "snapviewer")]
pub(super) struct PyTensorPart {
    pub read: Arc<Read>,
    pub index: usize,
    pub view: usize,
}

derefs!(PyTensorPart, |this| -> View {
    &this.read.checkpoint.tensors[this.index].views[this.view]
});

getters! {
    PyTensorPart |this| {
        role: &str = &this.role,
        dtype: &'static str = this.dtype.name(),
        shape: Tuple<&[u64]> = Tuple(&this.layout.shape),
        stride: Tuple<&[i64]> = Tuple(&this.layout.stride),
        offset: u64 = this.layout.offset,
        storage: &str = this.read.key(this),
    }
}

/// The bytes of one storage, and where they are.
#[pyclass(frozen, name = "Storage", module = "snapviewer")]
pub(super) struct PyStorage {
    pub read: Arc<Read>,
    pub index: usize,
}

derefs!(PyStorage, |this| -> Storage { &this.read.checkpoint.storages[this.index] });

impl PyStorage {
    fn uses(&self) -> &Use {
        &self.read.checkpoint.uses[self.index]
    }
}

getters! {
    PyStorage |this| {
        key: &str = &this.key,
        file: Option<String> = this.read.file_name(this.file),
        start: u64,
        bytes: u64,
        packed_bytes: u64,
        reached_bytes: u64 = this.uses().reached_bytes,
        clone_bytes: u64 = this.uses().clone_bytes,
        tensors: Tuple<&[u32]> = Tuple(&this.uses().tensors),
    }
}
