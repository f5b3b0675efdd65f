//! What is in a checkpoint (`.pth`, `.pt`, `.pt2`, `.safetensors`, their sharded indexes), to the byte.
//!
//! Nothing is loaded, imported or called: the structure comes from headers and from pickles that the
//! inert machine reads, and every storage is a stretch of a file.
//!
//! # Invariants
//!
//! Every byte of the file is in exactly one stretch: of a storage, of a pickle, of padding or of the
//! archive around them. The ledger's parts add up to the file's size.
//!
//! # Cost
//!
//! `O(bytes of headers and pickles)`, whatever the size of the tensors.

pub mod archive;
pub mod files;
pub mod index;
mod json;
pub mod ledger;
pub mod safetensors;

use crate::dtype::DType;
use crate::strided::Strided;

/// The bytes of one storage, and where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// What the file calls it: a number in torch's files, the tensor's name in safetensors.
    pub key: String,
    /// Which of the checkpoint's files it is in.
    pub file: u32,
    /// Where it begins in that file.
    pub start: u64,
    /// How many bytes of the file it takes.
    pub packed_bytes: u64,
    /// How many bytes it is when unpacked.
    pub bytes: u64,
    /// Whether it is packed (a checkpoint that somebody zipped again).
    pub is_deflated: bool,
    /// Whether its numbers have their high byte first.
    pub is_big_endian: bool,
}

/// What a stretch of a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Numbers of tensors: the storage with this index.
    Storage(u32),
    /// A pickle.
    Pickle,
    /// Nothing: zeros or spaces that align what follows.
    Padding,
    /// Headers, names, directories, small records, code.
    Archive,
}

/// Some bytes of a file, and what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Which of the checkpoint's files.
    pub file: u32,
    /// The first byte.
    pub start: u64,
    /// How many.
    pub bytes: u64,
    /// What they are for.
    pub class: Class,
}

/// Elements of one type in one storage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View {
    /// What it is to its tensor: empty for the elements of a plain one, else `indices`, `values`, ….
    pub role: String,
    /// The index of the storage.
    pub storage: u32,
    /// The type of an element.
    pub dtype: DType,
    /// Where the elements are.
    pub layout: Strided,
}

/// A tensor, or something like one, that a checkpoint holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// The way to it: `model.layer.weight`, `optimizer.state[0].exp_avg`.
    pub name: String,
    /// `tensor`, `parameter`, `storage`, `sparse_coo`, `sparse_csr`, …, `quantized`, `nested`, `meta`,
    /// `subclass`, `ndarray`.
    pub kind: &'static str,
    /// The type of its elements as torch (or NumPy) names it.
    pub dtype: String,
    /// How many elements it has along each dimension.
    pub shape: Vec<u64>,
    /// Where it was when it was saved.
    pub device: String,
    /// Whether it wants gradients.
    pub requires_grad: bool,
    /// Its elements: one view, or several for a kind that is made of several, or none.
    pub views: Vec<View>,
    /// How many bytes its elements are if each is written out; with `views`, of all of them.
    pub logical_bytes: u64,
    /// The class that the file names, if it is not torch's own.
    pub class: Option<String>,
}

/// The bytes of the files, by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Bytes that some tensor reaches.
    pub tensors: u64,
    /// Bytes of storages that no tensor reaches.
    pub unreferenced: u64,
    /// Pickles.
    pub pickle: u64,
    /// Zeros and spaces that align what follows.
    pub padding: u64,
    /// Headers, names, directories, small records, code.
    pub archive: u64,
}
