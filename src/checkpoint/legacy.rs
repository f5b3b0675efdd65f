//! The stream that torch wrote before 1.6: five pickles, then each storage with its length before it.

use super::arguments::storage_id;
use super::json::shortened;
use super::table::Table;
use super::tensors::Storages;
use super::values::{self, Node, Values};
use super::walk;
use super::{Class, Content, Imports, PickleAt, Stretch, Tree};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::pickle::Value;
use crate::progress::Progress;

/// The first pickle of every such file, whatever its protocol: 0x1950a86a20f9469cfc6c.
const MAGIC: &[u8] = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
/// The same in digits, as protocols 0 and 1 write it.
const MAGIC_DIGITS: &[u8] = b"119547037146038801333356L";

/// Whether a file begins as such a stream.
pub(super) fn is_legacy(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(48)];
    let has = |what: &[u8]| head.windows(what.len()).any(|window| window == what);
    has(MAGIC) || has(MAGIC_DIGITS)
}

/// Reads such a stream.
pub(super) fn read(bytes: &[u8], file: u32, progress: &Progress<'_>) -> Result<Content> {
    let mut stream = Stream::new(bytes, 0, file);
    let (_, magic, _) = stream.pickle(progress)?;
    if !values::is_long(magic) {
        return Err(Error::checkpoint("it does not begin with the number of torch's files", 0));
    }
    stream.pickle(progress)?; // the version of the protocol
    let (system, root, _) = stream.pickle(progress)?;
    let is_big_endian = is_big_endian(&system, root);
    let (values, root, at) = stream.pickle(progress)?;
    let (keys, list, _) = stream.pickle(progress)?;

    let mut table = Table::growing();
    for &id in values.persistent_ids() {
        if let Some(id) = storage_id(&values, id) {
            table.find(&id);
        }
    }
    for &key in keys.as_items(list).unwrap_or_default() {
        let key = key_text(&keys, key);
        let Some((index, dtype)) = key.as_deref().and_then(|key| table.get(key)) else {
            let key = key.map_or_else(|| "?".to_owned(), |key| shortened(&key));
            let reason = format!("no tensor has the type of its storage {key}");
            return Err(Error::checkpoint(reason, stream.at as u64));
        };
        let dtype = dtype.unwrap_or(DType::UInt8);
        let at = stream.at as u64;
        let (start, length) = stream.storage(index, dtype, is_big_endian)?;
        let storage = &mut table.storages[index as usize];
        if storage.start > 0 {
            let reason = format!("it has the storage {} twice", shortened(&storage.key));
            return Err(Error::checkpoint(reason, at));
        }
        storage.start = start;
        storage.bytes = length;
        storage.packed_bytes = length;
        storage.file = file;
        storage.is_big_endian = is_big_endian;
    }
    let (tensors, tensor_of) = walk::tensors(&values, root, "", &mut table, progress)?;
    Ok(Content {
        format: "torch legacy",
        storages: table.storages,
        stretches: stream.stretches,
        tensors,
        trees: vec![Tree { values, root, tensor_of, pickle: at }],
        imports: stream.imports,
        warnings: table.warnings,
        ..Content::default()
    })
}

fn is_big_endian(values: &Values, root: Value) -> bool {
    let Some(Node::Dict(entries)) = values.node(root) else { return false };
    entries.as_chunks().0.iter().any(|&[key, value]| {
        values.as_text(key) == Some("little_endian") && value == Value::Bool(false)
    })
}

fn key_text(values: &Values, key: Value) -> Option<String> {
    match key {
        Value::Int(key) => Some(key.to_string()),
        _ => values.as_text(key).map(str::to_owned),
    }
}

/// Pickles and storages, one after the other.
pub(super) struct Stream<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
    pub file: u32,
    pub stretches: Vec<Stretch>,
    /// What the pickles so far name: loading a file runs even those that only hold a number.
    pub imports: Imports,
}

impl<'a> Stream<'a> {
    /// What is in a file's bytes from `at` on.
    pub fn new(bytes: &'a [u8], at: usize, file: u32) -> Self {
        Self { bytes, at, file, stretches: Vec::new(), imports: Imports::default() }
    }

    /// The next pickle.
    pub fn pickle(&mut self, progress: &Progress<'_>) -> Result<(Values, Value, PickleAt)> {
        let start = self.at;
        let (values, root, length) =
            values::read(&self.bytes[start..], progress).map_err(|error| match error {
                Error::Checkpoint { reason, offset } => {
                    Error::Checkpoint { reason, offset: offset + start as u64 }
                }
                other => other,
            })?;
        self.took(length, Class::Pickle);
        self.imports.add(&values, false);
        let (file, start, bytes) = (self.file, start as u64, length as u64);
        Ok((values, root, PickleAt::File { file, start, bytes }))
    }

    /// The next storage: how many elements, then their bytes. Returns where they are.
    pub fn storage(&mut self, index: u32, dtype: DType, is_big_endian: bool) -> Result<(u64, u64)> {
        let count = self.number(is_big_endian)?;
        let length = u64::try_from(count).ok().and_then(|count| dtype.bytes_of(count));
        let left = (self.bytes.len() - self.at) as u64;
        match length {
            Some(length) if length <= left => {
                let start = self.at as u64;
                self.took(length as usize, Class::Storage(index));
                Ok((start, length))
            }
            _ => {
                let reason = format!(
                    "it is cut off: a storage of {count} elements should follow, and {left} bytes do"
                );
                Err(Error::checkpoint(reason, self.at as u64))
            }
        }
    }

    /// A number of eight bytes.
    pub fn number(&mut self, is_big_endian: bool) -> Result<i64> {
        let Some(&bytes) = self.bytes[self.at..].first_chunk() else {
            return Err(Error::checkpoint("it is cut off", self.bytes.len() as u64));
        };
        self.took(8, Class::Archive);
        Ok(if is_big_endian { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) })
    }

    /// Takes bytes that are for something.
    pub fn took(&mut self, length: usize, class: Class) {
        let (start, bytes) = (self.at as u64, length as u64);
        self.stretches.push(Stretch { file: self.file, start, bytes, class });
        self.at += length;
    }
}
