//! The archive that torch wrote before 0.1.10: a tar with `sys_info`, `pickle`, `tensors`, `storages`.

use super::json::shortened;
use super::legacy::Stream;
use super::table::Table;
use super::tensors::{elements, plain};
use super::values::Values;
use super::walk;
use super::{Class, Content, Imports, Storage, Stretch, Tensor, Tree, View};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::pickle::Value;
use crate::progress::Progress;
use crate::strided::Strided;

const BLOCK: usize = 512;
/// How many members are looked at: such files have four.
const MAX_MEMBERS: usize = 1000;

/// Whether a file begins with the header of a member. Torch looks for that first, so that such a file
/// is an archive to it even if the member's name begins like a pickle.
pub(super) fn is_tar(bytes: &[u8]) -> bool {
    header(bytes, 0).is_some()
}

/// Whether a file begins as a tar archive does, damaged or not.
pub(super) fn looks_like_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// Reads such an archive.
pub(super) fn read(bytes: &[u8], file: u32, progress: &Progress<'_>) -> Result<Content> {
    let mut archive = Archive { bytes, file, members: Vec::new(), stretches: Vec::new() };
    archive.list()?;
    let mut table = Table::default();
    let mut imports = Imports::default();
    let mut stretches = std::mem::take(&mut archive.stretches);
    let mut end = |stream: Stream<'_>| {
        stretches.extend(stream.stretches);
        imports.merge(stream.imports);
    };
    let mut stream = archive.member("storages")?;
    storages(&mut stream, &mut table, progress)?;
    end(stream);
    let mut stream = archive.member("tensors")?;
    tensors(&mut stream, &mut table, progress)?;
    end(stream);
    let mut stream = archive.member("pickle")?;
    let (values, root, pickle) = stream.pickle(progress)?;
    end(stream);

    let (tensors, tensor_of) = walk::tensors(&values, root, "", &mut table, progress)?;
    Ok(Content {
        format: "torch tar",
        storages: table.storages,
        stretches,
        tensors,
        trees: vec![Tree { values, root, tensor_of, pickle }],
        imports,
        warnings: table.warnings,
        ..Content::default()
    })
}

/// The storages, one after the other: (key, place, type), a length, the bytes.
fn storages(stream: &mut Stream<'_>, table: &mut Table, progress: &Progress<'_>) -> Result<()> {
    for _ in 0..counted(stream, progress)? {
        let (values, key, _, class) = record(stream, "a storage without a key", progress)?;
        let dtype = values.as_global(class).and_then(|(_, class)| DType::from_storage(class));
        let index = table.storages.len() as u32;
        let (start, bytes) = stream.storage(index, dtype.unwrap_or(DType::UInt8), false)?;
        let storage = Storage {
            key: key.to_string(),
            file: stream.file,
            start,
            packed_bytes: bytes,
            bytes,
            is_deflated: false,
            is_big_endian: false,
        };
        table.add(storage, dtype);
    }
    // Which storages are parts of others; torch has not made any since, and we only read past them.
    stream.pickle(progress).map(|_| ())
}

/// The tensors: (key, storage, type), the number of dimensions, sizes, strides, an offset.
fn tensors(stream: &mut Stream<'_>, table: &mut Table, progress: &Progress<'_>) -> Result<()> {
    for _ in 0..counted(stream, progress)? {
        let at = stream.at;
        let (values, key, storage, class) = record(stream, "a tensor without a key", progress)?;
        let head = stream.number(false)?;
        let dimensions = head as u32 as usize;
        if dimensions > 64 {
            return Err(Error::checkpoint("a tensor of more than 64 dimensions", at as u64));
        }
        let mut numbers = Vec::with_capacity(2 * dimensions + 1);
        for _ in 0..=2 * dimensions {
            numbers.push(stream.number(false)?);
        }
        let (sizes, rest) = numbers.split_at(dimensions);
        let (stride, offset) = rest.split_at(dimensions);
        let shape: Option<Vec<u64>> = sizes.iter().map(|&size| u64::try_from(size).ok()).collect();
        let (Some(shape), Ok(offset)) = (shape, u64::try_from(offset[0])) else {
            return Err(Error::checkpoint("a tensor of a negative size", at as u64));
        };
        let name = values.as_global(class).map_or("", |(_, name)| name);
        let tensor = tensor(table, storage, name, shape, stride.to_vec(), offset);
        let Some(tensor) = tensor else {
            return Err(Error::checkpoint("a tensor of a storage that is not there", at as u64));
        };
        table.tensors.insert(key, tensor);
    }
    Ok(())
}

fn tensor(
    table: &Table,
    storage: Value,
    class: &str,
    shape: Vec<u64>,
    stride: Vec<i64>,
    offset: u64,
) -> Option<Tensor> {
    let Value::Int(key) = storage else { return None };
    let (storage, own) = table.get(&key.to_string())?;
    let named = DType::from_storage(&class.replace("Tensor", "Storage"));
    let dtype = own.or(named).unwrap_or(DType::UInt8);
    let mut tensor = plain("tensor", dtype, shape.clone(), "cpu".to_owned());
    tensor.logical_bytes = dtype.bytes_of(elements(&shape)?)?;
    let layout = Strided { shape, stride, offset };
    tensor.views.push(View { role: String::new(), storage, dtype, layout });
    Some(tensor)
}

/// A pickle that begins a record: a key, the storage or its place, and the type.
fn record(
    stream: &mut Stream<'_>,
    missing: &'static str,
    progress: &Progress<'_>,
) -> Result<(Values, i64, Value, Value)> {
    let at = stream.at;
    let (values, root, _) = stream.pickle(progress)?;
    match values.as_items(root) {
        Some(&[Value::Int(key), storage, class]) => Ok((values, key, storage, class)),
        _ => Err(Error::checkpoint(missing, at as u64)),
    }
}

/// A pickle that says how many records follow.
fn counted(stream: &mut Stream<'_>, progress: &Progress<'_>) -> Result<i64> {
    let at = stream.at;
    match stream.pickle(progress)?.1 {
        Value::Int(count @ 0..) => Ok(count),
        _ => Err(Error::checkpoint("a list without its length", at as u64)),
    }
}

struct Archive<'a> {
    bytes: &'a [u8],
    file: u32,
    /// Names, and where the bytes are.
    members: Vec<(String, usize, usize)>,
    stretches: Vec<Stretch>,
}

impl<'a> Archive<'a> {
    fn list(&mut self) -> Result<()> {
        let mut at = 0;
        while let Some(Header { name, length, kind }) = header(self.bytes, at) {
            let start = at + BLOCK;
            let Some(end) = start.checked_add(length).filter(|&end| end <= self.bytes.len()) else {
                return Err(Error::checkpoint(
                    format!("it is cut off in its member {}", shortened(&name)),
                    at as u64,
                ));
            };
            let known = ["storages", "tensors", "pickle"].contains(&name.as_str());
            // Python's reader takes an old header with a slash at its name's end for a folder, and does
            // not skip what follows the headers of folders, links and devices.
            let is_plain = match kind {
                0 => !name.ends_with('/'),
                b'0' | b'7' => true,
                b'x' | b'g' => !known && is_harmless(&self.bytes[start..end]),
                b'L' | b'K' => false,
                _ => !known && length == 0,
            };
            if !is_plain {
                let reason = format!("its member {} can be read in two ways", shortened(&name));
                return Err(Error::checkpoint(reason, at as u64));
            }
            let taken = if known { BLOCK } else { end - at };
            self.stretches.push(Stretch {
                file: self.file,
                start: at as u64,
                bytes: taken as u64,
                class: Class::Archive,
            });
            if self.members.len() == MAX_MEMBERS || self.members.iter().any(|have| have.0 == name) {
                return Err(Error::checkpoint("more members than such a file has", at as u64));
            }
            self.members.push((name, start, end));
            at = end.next_multiple_of(BLOCK);
        }
        Ok(())
    }

    fn member(&self, name: &str) -> Result<Stream<'a>> {
        let Some(&(_, start, end)) = self.members.iter().find(|member| member.0 == name) else {
            let reason = format!("it is a tar archive without the member {name} of a checkpoint");
            return Err(Error::checkpoint(reason, 0));
        };
        let bytes = &self.bytes[..end];
        Ok(Stream::new(bytes, start, self.file))
    }
}

/// Whether a record about the next member has only its owner and time, as Python's do: it could
/// also give another name and another length.
fn is_harmless(mut record: &[u8]) -> bool {
    const HARMLESS: [&[u8]; 8] =
        [b"mtime", b"atime", b"ctime", b"uid", b"gid", b"uname", b"gname", b"comment"];
    while !record.is_empty() {
        // "22 mtime=1500000000.5\n"
        let Some(space) = record.iter().take(20).position(|&byte| byte == b' ') else {
            return false;
        };
        let length = std::str::from_utf8(&record[..space]).ok().and_then(|text| text.parse().ok());
        let Some((line, rest)) = length.and_then(|length| record.split_at_checked(length)) else {
            return false;
        };
        let key = line.get(space + 1..).and_then(|line| line.split(|&byte| byte == b'=').next());
        if !key.is_some_and(|key| HARMLESS.contains(&key)) {
            return false;
        }
        record = rest;
    }
    true
}

/// What comes before the bytes of a member.
struct Header {
    name: String,
    length: usize,
    kind: u8,
}

/// The header of the member that is here, if there is one.
fn header(bytes: &[u8], at: usize) -> Option<Header> {
    let block = bytes.get(at..)?.get(..BLOCK)?;
    let sum = octal(&block[148..156])?;
    // Bytes with a sign and without: Python's reader takes both.
    let (mut unsigned, mut signed) = (8 * i64::from(b' '), 8 * i64::from(b' '));
    for &byte in block[..148].iter().chain(&block[156..]) {
        unsigned += i64::from(byte);
        signed += i64::from(byte as i8);
    }
    let is_header = i64::try_from(sum).is_ok_and(|sum| sum == unsigned || sum == signed);
    let text = |range: std::ops::Range<usize>| {
        String::from_utf8_lossy(block[range].split(|&byte| byte == 0).next().unwrap_or_default())
    };
    let folder = if block[257..262] == *b"ustar" { text(345..500) } else { "".into() };
    let name = text(0..100);
    let name = if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") };
    let name = name.trim_start_matches("./").to_owned();
    let length = octal(&block[124..136])?;
    is_header.then_some(Header { name, length, kind: block[156] })
}

fn octal(field: &[u8]) -> Option<usize> {
    // Beyond 8 GiB: a number with its top bit set.
    if let [0x80, rest @ ..] = field {
        return rest
            .iter()
            .try_fold(0_usize, |sum, &byte| sum.checked_mul(256)?.checked_add(usize::from(byte)));
    }
    let text = std::str::from_utf8(field.split(|&byte| byte == 0).next()?).ok()?.trim();
    // As Python reads it, with all that is allowed in a number of its language.
    let digits = text.strip_prefix("0o").or(text.strip_prefix("0O")).unwrap_or(text);
    match digits.replace('_', "").as_str() {
        "" => Some(0),
        digits => usize::from_str_radix(digits, 8).ok(),
    }
}
