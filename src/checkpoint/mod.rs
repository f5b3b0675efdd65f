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
mod arguments;
mod compare;
mod composites;
pub mod describe;
pub mod files;
mod handles;
pub mod imports;
pub mod index;
mod json;
pub mod ledger;
mod legacy;
mod members;
mod numbers;
mod numpy;
pub mod open;
pub mod parts;
pub mod plain;
mod plain_pickle;
pub mod preview;
mod pt2;
pub mod reach;
pub mod safetensors;
mod scan;
mod table;
mod tar;
pub mod tensors;
mod torch_zip;
pub mod values;
pub mod walk;

use self::archive::Member;
use self::imports::Imports;
use self::values::Values;
use self::walk::TensorOf;
use crate::dtype::DType;
use crate::pickle::Value;
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
    /// Whether it is packed (a checkpoint that was zipped again).
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
    /// Whether it requires gradients.
    pub requires_grad: bool,
    /// Its elements: one view, or several for a kind that is made of several, or none.
    pub views: Vec<View>,
    /// How many bytes its elements are if each is written out; with `views`, of all of them.
    pub logical_bytes: u64,
    /// The class that the file names, if it is not torch's own.
    pub class: Option<String>,
    /// How integers map to values.
    pub quantized: Option<Quantized>,
    /// Where the numbers of an array are that is part of the pickle.
    pub in_pickle: Option<InPickle>,
}

/// How the integers of a quantized tensor map to values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantized {
    /// All in the same way.
    Tensor {
        /// The distance between two neighbours.
        scale: f64,
        /// The number that stands for 0.
        zero_point: i64,
    },
    /// Each slice along an axis in its own way: see the views `scales` and `zero_points`.
    Channel {
        /// The axis.
        axis: usize,
    },
    /// Complex numbers that stand for their conjugates.
    Conjugate,
}

/// Where the numbers of an array are that is part of the pickle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InPickle {
    /// Which of the checkpoint's trees.
    pub tree: u32,
    /// A bytes object or a text.
    pub value: Value,
    /// Whether each character of a text stands for a byte.
    pub is_latin1: bool,
    /// The type of an element.
    pub dtype: DType,
    /// Whether the high byte comes first.
    pub is_big_endian: bool,
    /// Whether the first dimension is the densest.
    pub is_fortran: bool,
}

/// The bytes of the files, by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
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

/// Where the bytes of a pickle are.
#[derive(Debug)]
pub enum PickleAt {
    /// In a file, as they are.
    File {
        /// Which of the checkpoint's files.
        file: u32,
        /// The first byte.
        start: u64,
        /// How many.
        bytes: u64,
    },
    /// They were packed.
    Unpacked(Vec<u8>),
    /// There is none: the tree was made from a header.
    Nowhere,
}

/// What one pickle (or header) holds.
#[derive(Debug)]
pub struct Tree {
    /// Its values.
    pub values: Values,
    /// The value that it evaluates to.
    pub root: Value,
    /// Which of its values are which tensors.
    pub tensor_of: TensorOf,
    /// Where its bytes are.
    pub pickle: PickleAt,
}

/// What a file contains, or several that belong together.
#[derive(Debug, Default)]
pub struct Content {
    /// What kind of file it is.
    pub format: &'static str,
    /// The stretches of the files that tensors are in.
    pub storages: Vec<Storage>,
    /// What every byte is for; empty once that was added up.
    pub stretches: Vec<Stretch>,
    /// The tensors, in the order of the file.
    pub tensors: Vec<Tensor>,
    /// What the pickles hold, and which of them is what torch would return.
    pub trees: Vec<Tree>,
    /// See `trees`.
    pub root_tree: usize,
    /// What the file would import.
    pub imports: Imports,
    /// Warnings, in sentences.
    pub warnings: Vec<String>,
    /// The metadata of the file.
    pub metadata: Vec<(String, String)>,
    /// The members of an archive in their order, by their names in its folder.
    pub members: Vec<Member>,
}
