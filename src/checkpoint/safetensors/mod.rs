//! A safetensors file: a length, a header in JSON that says where each tensor is, and their bytes.
//!
//! The header's tensors must each have as many bytes as type and shape need, and must not overlap.
//! Bytes that no tensor has are padding, and a warning: the format does not allow them.
//!
//! # Cost
//!
//! `O(bytes of the header)`, which may be 100 MB, in time and memory; tensors are not looked at.

mod header;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use header::Info;

use super::files::CheckpointFile;
use super::json::{self, shortened};
use super::tensors::{elements, plain};
use super::{Class, Storage, Stretch, Tensor, View};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::strided::Strided;

/// The length of the header is in the first bytes of the file.
const LENGTH_BYTES: u64 = 8;
/// The format's own limit.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// What is in one safetensors file.
#[derive(Debug, Default)]
pub struct Safetensors {
    /// One for each tensor, in the header's order.
    pub storages: Vec<Storage>,
    /// Every byte of the file, in order.
    pub stretches: Vec<Stretch>,
    /// In the header's order.
    pub tensors: Vec<Tensor>,
    /// What the writer noted, in the header's order.
    pub metadata: Vec<(String, String)>,
    /// What is odd about the file, in sentences.
    pub warnings: Vec<String>,
}

/// Whether these are the first bytes of a safetensors file, complete or not.
#[must_use]
pub fn looks_like_safetensors(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk().copied().map(u64::from_le_bytes);
    length.is_some_and(|length| length <= MAX_HEADER_BYTES) && bytes.get(8) == Some(&b'{')
}

/// Reads the file with this index, whose storages come after `first_storage` others.
pub fn read(file: &CheckpointFile, index: u32, first_storage: u32) -> Result<Safetensors> {
    let text = header_bytes(file)?;
    let header: header::Header = json::parse(&text, "the safetensors header", LENGTH_BYTES)?;
    let data_start = LENGTH_BYTES + text.len() as u64;
    let mut found = Safetensors { metadata: header.metadata, ..Safetensors::default() };
    let mut data_bytes = 0;
    for (name, info) in header.tensors {
        let [start, end] = info.data_offsets;
        let dtype = check(&name, &info)?;
        data_bytes = data_bytes.max(end);
        let shape = info.shape;
        let Some(layout) = Strided::contiguous(shape.clone()) else {
            let reason = format!("the tensor {} is too large", shortened(&name));
            return Err(Error::checkpoint(reason, LENGTH_BYTES));
        };
        let storage = first_storage + found.storages.len() as u32;
        let bytes = end - start;
        found.storages.push(Storage {
            key: name.clone(),
            file: index,
            start: data_start.saturating_add(start),
            packed_bytes: bytes,
            bytes,
            is_deflated: false,
            is_big_endian: false,
        });
        found.tensors.push(Tensor {
            name,
            views: vec![View { role: String::new(), storage, dtype, layout }],
            logical_bytes: bytes,
            ..plain("tensor", dtype, shape, "cpu".to_owned())
        });
    }
    let (announced, has) = (data_start.saturating_add(data_bytes), file.len());
    if announced > has {
        let reason = format!(
            "it is cut off: the safetensors header announces {announced} bytes, the file has {has}"
        );
        return Err(Error::checkpoint(reason, has));
    }
    refuse_duplicates(&found.tensors)?;
    account(&mut found, &text, has, (index, first_storage))?;
    Ok(found)
}

fn header_bytes(file: &CheckpointFile) -> Result<Cow<'_, [u8]>> {
    let wrong = |reason: &str| Err(Error::checkpoint(reason.to_owned(), 0));
    let mut length = [0; LENGTH_BYTES as usize];
    let Ok(length) = file.read_at(0, &mut length).map(|()| u64::from_le_bytes(length)) else {
        return wrong("it is cut off: a safetensors file begins with the length of its header");
    };
    if length > MAX_HEADER_BYTES {
        return wrong("it is not a safetensors file: its header would be longer than 100 MB");
    }
    let Ok(text) = file.part(LENGTH_BYTES, length) else {
        let has = file.len();
        let reason = format!(
            "it is cut off: the safetensors header should have {length} bytes, the file has {has}"
        );
        return Err(Error::checkpoint(reason, LENGTH_BYTES));
    };
    if text.first() != Some(&b'{') {
        return wrong("it is not a safetensors file: its header does not begin with {");
    }
    Ok(text)
}

/// The type of a tensor whose range is as long as it needs to be.
fn check(name: &str, info: &Info) -> Result<DType> {
    let wrong = |reason: String| {
        let reason = format!("the tensor {} {reason}", shortened(name));
        Err(Error::checkpoint(reason, LENGTH_BYTES))
    };
    let Some(dtype) = DType::from_safetensors(&info.dtype) else {
        return wrong(format!("has the unknown type {}", shortened(&info.dtype)));
    };
    let [start, end] = info.data_offsets;
    let Some(bytes) = end.checked_sub(start) else {
        return wrong(format!("ends at {end}, before it begins at {start}"));
    };
    match elements(&info.shape).and_then(|elements| dtype.bytes_of(elements)) {
        Some(needed) if needed == bytes => Ok(dtype),
        Some(needed) => wrong(format!("needs {needed} bytes and has {bytes}")),
        None => wrong("has more elements than can be counted".to_owned()),
    }
}

fn refuse_duplicates(tensors: &[Tensor]) -> Result<()> {
    let mut names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let reason = format!("the header has the tensor {} twice", shortened(pair[0]));
            Err(Error::checkpoint(reason, LENGTH_BYTES))
        }
        None => Ok(()),
    }
}

/// Assigns every byte a purpose.
fn account(
    found: &mut Safetensors,
    text: &[u8],
    file_bytes: u64,
    (file, first_storage): (u32, u32),
) -> Result<()> {
    let spaces = text.iter().rev().take_while(|&&byte| byte == b' ').count() as u64;
    let header_end = LENGTH_BYTES + text.len() as u64;
    let mut stretches = Vec::with_capacity(found.storages.len() + 2);
    let mut at = 0;
    let mut push = |end: u64, class| {
        if end > at {
            stretches.push(Stretch { file, start: at, bytes: end - at, class });
            at = end;
        }
    };
    push(header_end - spaces, Class::Archive);
    push(header_end, Class::Padding);

    let mut order: Vec<u32> = (0..found.storages.len() as u32).collect();
    order.retain(|&index| found.storages[index as usize].bytes > 0);
    order.sort_by_key(|&index| found.storages[index as usize].start);
    let (mut unused, mut end) = (0, header_end);
    for index in order {
        let storage = &found.storages[index as usize];
        if storage.start < end {
            let reason = format!("the tensor {} overlaps another one", shortened(&storage.key));
            return Err(Error::checkpoint(reason, storage.start));
        }
        unused += storage.start - end;
        push(storage.start, Class::Padding);
        end = storage.start + storage.bytes;
        push(end, Class::Storage(first_storage + index));
    }
    unused += file_bytes - end;
    push(file_bytes, Class::Padding);
    if unused > 0 {
        let bytes = if unused == 1 { "1 byte belongs" } else { &format!("{unused} bytes belong") };
        found.warnings.push(format!("{bytes} to no tensor, which safetensors does not allow"));
    }
    found.stretches = stretches;
    Ok(())
}
