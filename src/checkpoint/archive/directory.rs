//! The directory at the end of a zip archive: which members there are, and where the directory's own
//! records are.

use std::borrow::Cow;
use std::ops::Range;

use crate::checkpoint::files::CheckpointFile;
use crate::error::{Error, Result};

const END: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;
const END64: &[u8] = b"PK\x06\x06";
const END64_BYTES: u64 = 56;
const LOCATOR: &[u8] = b"PK\x06\x07";
const LOCATOR_BYTES: usize = 20;
const RECORD: &[u8] = b"PK\x01\x02";
const RECORD_BYTES: usize = 46;
/// The end with the longest comment, and what may precede it.
const TAIL_BYTES: u64 = (END_BYTES + LOCATOR_BYTES) as u64 + u16::MAX as u64;
/// Bits of the flags that say that a member, or the directory, is encrypted.
pub(super) const ENCRYPTED: u64 = 0x2041;

/// What the directory says about a member.
#[derive(Debug)]
pub(super) struct Record {
    pub name: Box<[u8]>,
    pub header_start: u64,
    pub packed_bytes: u64,
    pub bytes: u64,
    pub is_deflated: bool,
    /// Where the record itself is, for errors.
    pub at: u64,
}

/// The members in order of their headers in the file, and the bytes that the directory takes.
#[derive(Debug)]
pub(super) struct Directory {
    pub records: Vec<Record>,
    /// The name of the first member in the directory.
    pub first: Box<[u8]>,
    /// The records, then the records of the end: in order, without overlap.
    pub ranges: Vec<Range<u64>>,
}

/// The end of an archive, as its last records have it; offsets are those of the archive.
struct End {
    count: u64,
    bytes: u64,
    start: u64,
    /// Where the records of the end are, in order.
    records: Vec<Range<u64>>,
}

/// A little-endian number of `N` bytes; none if it reaches beyond the end.
pub(super) fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(N)?)?;
    Some(field.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// Reads the directory of the archive that fills `within` of the file.
pub(super) fn read(file: &CheckpointFile, within: &Range<u64>) -> Result<Directory> {
    let wrong = |reason: &'static str, at: u64| Error::checkpoint(reason, within.start + at);
    let bytes = within.end.saturating_sub(within.start);
    let tail_bytes = bytes.min(TAIL_BYTES);
    let tail_start = bytes - tail_bytes;
    let tail = file.part(within.start + tail_start, tail_bytes)?;
    let end64 = |start: u64, bytes: u64| file.part(within.start.checked_add(start)?, bytes).ok();
    let end = find_end(&tail, tail_start, &end64).map_err(|(reason, at)| wrong(reason, at))?;

    let end_start = end.records[0].start;
    let stop = end.start.checked_add(end.bytes).filter(|&stop| stop <= end_start);
    let stop =
        stop.ok_or_else(|| wrong("the archive's directory is not in the file", end_start))?;
    let records = file.part(within.start + end.start, stop - end.start)?;
    let mut members = Vec::new();
    let mut at = 0;
    for _ in 0..end.count {
        let here = end.start + at as u64;
        let (mut record, length) = read_record(&records[at..]).map_err(|why| wrong(why, here))?;
        record.at = within.start + here;
        record.header_start = record.header_start.saturating_add(within.start);
        members.push(record);
        at += length;
    }
    if at != records.len() {
        let reason = "the archive's directory has more bytes than its members need";
        return Err(wrong(reason, end.start + at as u64));
    }
    let first = members.first().map(|record| record.name.clone()).unwrap_or_default();
    members.sort_by_key(|record| record.header_start);
    let ranges = std::iter::once(end.start..stop)
        .chain(end.records)
        .map(|range| range.start + within.start..range.end + within.start)
        .collect();
    Ok(Directory { records: members, first, ranges })
}

/// Some bytes of the archive, from its beginning on.
type Part<'p> = &'p dyn Fn(u64, u64) -> Option<Cow<'p, [u8]>>;

/// Finds the end in the last bytes of an archive, which begin at `tail_start`.
fn find_end(
    tail: &[u8],
    tail_start: u64,
    part: Part<'_>,
) -> std::result::Result<End, (&'static str, u64)> {
    // The last signature wins, as in torch's reader: an archive in the comment would be read by it.
    let searched_from = tail.len().saturating_sub(END_BYTES + usize::from(u16::MAX));
    let searched = &tail[searched_from..];
    let found = searched.windows(END.len()).rposition(|window| window == END);
    let missing = "it is cut off: the archive's directory, which is at its end, is not there";
    let Some(found) = found.filter(|at| searched.len() - at >= END_BYTES) else {
        return Err((missing, tail_start + tail.len() as u64));
    };
    let in_tail = searched_from + found;
    let at = tail_start + in_tail as u64;
    let field = |offset, long: bool| {
        let place = in_tail + offset;
        let value = if long { number::<4>(tail, place) } else { number::<2>(tail, place) };
        value.unwrap_or(0)
    };
    let stop = at + END_BYTES as u64 + field(20, false);
    if stop > tail_start + tail.len() as u64 {
        return Err(("it is cut off: the archive's comment is not complete", at));
    }
    if field(4, false) != field(6, false) {
        return Err(("it is one part of an archive in several files", at));
    }
    let mut end = End {
        count: field(10, false),
        bytes: field(12, true),
        start: field(16, true),
        records: Vec::new(),
    };
    let locator =
        in_tail.checked_sub(LOCATOR_BYTES).filter(|&from| tail[from..].starts_with(LOCATOR));
    if let Some(in_tail) = locator {
        let locator = tail_start + in_tail as u64;
        let start = number::<8>(tail, in_tail + 8).unwrap_or(u64::MAX);
        let (large, range) = read_end64(start, locator, part)
            .ok_or(("the archive's directory for large files is not there", locator))?;
        let agrees = |small, large, limit| small == large || small == limit;
        if !(agrees(end.count, large.0, u64::from(u16::MAX))
            && agrees(end.bytes, large.1, u64::from(u32::MAX))
            && agrees(end.start, large.2, u64::from(u32::MAX)))
        {
            return Err(("the archive has two directories that disagree", locator));
        }
        (end.count, end.bytes, end.start) = large;
        end.records.extend([range, locator..at]);
    }
    end.records.push(at..stop);
    Ok(end)
}

/// How many members, how many bytes of directory, where it begins; and where that record is.
fn read_end64(start: u64, locator: u64, part: Part<'_>) -> Option<((u64, u64, u64), Range<u64>)> {
    let space = locator.checked_sub(start)?;
    let record = part(start, space.min(END64_BYTES))?;
    let length = number::<8>(&record, 4)?.checked_add(12)?;
    if !record.starts_with(END64) || length < END64_BYTES || length > space {
        return None;
    }
    let field = |at| number::<8>(&record, at);
    Some(((field(32)?, field(40)?, field(48)?), start..start + length))
}

fn read_record(bytes: &[u8]) -> std::result::Result<(Record, usize), &'static str> {
    let cut = "the archive's directory is damaged: a member's record is not there";
    if !bytes.starts_with(RECORD) || bytes.len() < RECORD_BYTES {
        return Err(cut);
    }
    let short = |at| number::<2>(bytes, at).unwrap_or(0);
    let long = |at| number::<4>(bytes, at).unwrap_or(0);
    let name_end = RECORD_BYTES + short(28) as usize;
    let extra_end = name_end + short(30) as usize;
    let record_end = extra_end + short(32) as usize;
    if record_end > bytes.len() {
        return Err(cut);
    }
    if short(8) & ENCRYPTED != 0 {
        return Err("a member is encrypted");
    }
    let is_deflated = match short(10) {
        0 => false,
        8 => true,
        _ => return Err("a member is neither stored nor deflated"),
    };
    let mut record = Record {
        name: bytes[RECORD_BYTES..name_end].into(),
        header_start: long(42),
        packed_bytes: long(20),
        bytes: long(24),
        is_deflated,
        at: 0,
    };
    // What does not fit into 32 bits is in a field of its own, in this order.
    let mut large = Fields(&bytes[name_end..extra_end])
        .find_map(|field| field.ok().filter(|&(id, _)| id == 1))
        .map_or(&[][..], |(_, data)| data)
        .chunks_exact(8);
    for value in [&mut record.bytes, &mut record.packed_bytes, &mut record.header_start] {
        if *value == u64::from(u32::MAX) {
            *value = large.next().and_then(|field| number::<8>(field, 0)).unwrap_or(*value);
        }
    }
    if record.name.contains(&0) {
        return Err("a member's name has a zero byte in it");
    }
    if !record.is_deflated && record.bytes != record.packed_bytes {
        return Err("a member that is not packed has two sizes");
    }
    Ok((record, record_end))
}

/// The extra fields of a header: the id and the data of each, or what is left if that is no field.
pub(super) struct Fields<'b>(pub &'b [u8]);

impl<'b> Iterator for Fields<'b> {
    type Item = std::result::Result<(u16, &'b [u8]), &'b [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.0);
        if bytes.is_empty() {
            return None;
        }
        let field = |at| number::<2>(bytes, at);
        let (Some(id), Some(length)) = (field(0), field(2)) else { return Some(Err(bytes)) };
        let Some((field, rest)) = bytes.split_at_checked(4 + length as usize) else {
            return Some(Err(bytes));
        };
        self.0 = rest;
        Some(Ok((id as u16, &field[4..])))
    }
}
