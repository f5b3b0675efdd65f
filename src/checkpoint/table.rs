//! The storages of a file by the keys that its pickle calls them by.

use hashbrown::HashMap;

use super::json::shortened;
use super::tensors::{StorageId, Storages};
use super::{Storage, Tensor};
use crate::dtype::DType;

/// How many warnings of one file are kept.
const MAX_WARNINGS: usize = 20;

/// The storages of a file.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub storages: Vec<Storage>,
    pub warnings: Vec<String>,
    pub tensors: HashMap<i64, Tensor>,
    by_key: HashMap<String, u32>,
    /// Of each storage, the type that the pickle calls it by.
    dtypes: Vec<Option<DType>>,
    /// What comes before a key: the tensors of a script's code have numbers of their own.
    pub prefix: &'static str,
    /// Whether a key that is new stands for a storage whose bytes are found later.
    grows: bool,
    is_checked: Vec<bool>,
}

impl Table {
    /// A table of what is in the file.
    pub fn new(storages: Vec<Storage>) -> Self {
        let by_key = storages
            .iter()
            .enumerate()
            .map(|(index, storage)| (storage.key.clone(), index as u32))
            .collect();
        let count = storages.len();
        Self {
            storages,
            by_key,
            dtypes: vec![None; count],
            is_checked: vec![false; count],
            ..Self::default()
        }
    }

    /// A table that takes every key: the bytes come later in the file.
    pub fn growing() -> Self {
        Self { grows: true, ..Self::default() }
    }

    /// Adds a storage.
    pub fn add(&mut self, storage: Storage, dtype: Option<DType>) -> u32 {
        let index = self.storages.len() as u32;
        self.by_key.insert(storage.key.clone(), index);
        self.storages.push(storage);
        self.dtypes.push(dtype);
        self.is_checked.push(false);
        index
    }

    /// The index of a storage and the type that it is called by.
    pub fn get(&self, key: &str) -> Option<(u32, Option<DType>)> {
        let index = *self.by_key.get(key)?;
        Some((index, self.dtypes[index as usize]))
    }

    /// Compares what the pickle says of a storage with what the file has, once.
    fn check(&mut self, index: u32, id: &StorageId<'_>) {
        let at = index as usize;
        if self.grows || std::mem::replace(&mut self.is_checked[at], true) {
            return;
        }
        let said = id.dtype.unwrap_or(DType::UInt8).bytes_of(id.elements);
        let has = self.storages[at].bytes;
        // A storage of packed elements is counted in bytes, and a view of one in its own elements.
        let is_packed = id.dtype.is_some_and(|dtype| dtype.bits() < 8);
        if said != Some(has) && !is_packed && id.view_offset == 0 {
            let key = shortened(id.key);
            self.warn(match said {
                Some(said) => {
                    format!("storage {key} should have {said} bytes, and has {has} in the file")
                }
                None => format!("storage {key} should have more bytes than can be counted"),
            });
        }
    }
}

impl Storages for Table {
    fn find(&mut self, id: &StorageId<'_>) -> Option<u32> {
        let found = match self.prefix {
            "" => self.by_key.get(id.key),
            prefix => self.by_key.get(format!("{prefix}{}", id.key).as_str()),
        };
        if let Some(&index) = found {
            self.check(index, id);
            return Some(index);
        }
        if !self.grows {
            self.warn(format!("storage {} is not in the file", shortened(id.key)));
            return None;
        }
        let storage = Storage {
            key: id.key.to_owned(),
            file: 0,
            start: 0,
            packed_bytes: 0,
            bytes: 0,
            is_deflated: false,
            is_big_endian: false,
        };
        Some(self.add(storage, id.dtype))
    }

    fn tensor(&self, id: i64) -> Option<Tensor> {
        self.tensors.get(&id).cloned()
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}
