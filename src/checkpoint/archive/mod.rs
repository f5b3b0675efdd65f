//! A zip archive, to the byte: its members as in the directory at its end, and what every
//! other byte is for.
//!
//! The `zip` crate is not used for reading: it gives neither the place of the directory's records nor
//! the content of the header before a member's data, and both are needed to account for every byte.
//!
//! Malicious files are built to be read in one way by a scanner and in another by torch. So the
//! directory and the headers of the members must agree, and nothing may overlap: what could be read
//! in two ways is refused.
//!
//! # Invariants
//!
//! `stretches` cover every byte of the archive exactly once.
//!
//! # Cost
//!
//! `O(members)`: two reads of some 100 bytes each a member, whatever their sizes. About 150 bytes of
//! memory a member.

mod around;
mod directory;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use super::files::CheckpointFile;
use super::json::shortened;
use super::{Class, Stretch};
use crate::error::{Error, Result};
use crate::source::{ALWAYS_ALLOWED, MAX_RATIO};

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name; what is not UTF-8 is replaced.
    pub name: String,
    /// Where its header begins.
    pub header_start: u64,
    /// Where its data begin.
    pub start: u64,
    /// How many bytes of the archive its data take.
    pub packed_bytes: u64,
    /// How many bytes they are when unpacked.
    pub bytes: u64,
    /// Whether they are packed.
    pub is_deflated: bool,
}

impl Member {
    /// All of it, unpacked, if that is at most `limit` bytes and no bomb. `file` is the archive's.
    pub fn contents<'f>(&self, file: &'f CheckpointFile, limit: u64) -> Result<Cow<'f, [u8]>> {
        let bytes = self.bytes;
        if bytes > limit {
            return self.wrong(&format!("has {bytes} bytes, and at most {limit} are read"));
        }
        if !self.is_deflated {
            return file.part(self.start, bytes);
        }
        if bytes > self.packed_bytes.saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED) {
            return self.wrong(&format!("unpacks to more than {MAX_RATIO} times its size"));
        }
        let unpacked = self.unpack(file, bytes.saturating_add(1))?;
        if unpacked.len() as u64 != bytes {
            return self.wrong(&format!("does not unpack to the {bytes} bytes it should have"));
        }
        Ok(Cow::Owned(unpacked))
    }

    /// Inflates the data, up to a number of bytes.
    fn unpack(&self, file: &CheckpointFile, max: u64) -> Result<Vec<u8>> {
        let mut into = Vec::new();
        match file.inflate(self.start, self.packed_bytes).take(max).read_to_end(&mut into) {
            Ok(_) => Ok(into),
            Err(error) => self.wrong(&format!("is damaged: {error}")),
        }
    }

    fn wrong<T>(&self, what: &str) -> Result<T> {
        let reason = format!("the member {} {what}", shortened(&self.name));
        Err(Error::checkpoint(reason, self.header_start))
    }
}

/// The members of a zip archive, and what is around them.
#[derive(Debug)]
pub struct Archive<'f> {
    file: &'f CheckpointFile,
    members: Vec<Member>,
    /// The members by name.
    sorted: Vec<u32>,
    around: Vec<Stretch>,
    /// The name of the first member in the directory. Torch takes everything from its folder,
    /// wherever in the file that is.
    pub first_name: String,
    /// Warnings, in sentences.
    pub warnings: Vec<String>,
}

impl<'f> Archive<'f> {
    /// Reads a file that is an archive.
    pub fn read(file: &'f CheckpointFile) -> Result<Self> {
        Self::read_within(file, 0..file.len())
    }

    /// Reads an archive that is in a part of a file, such as a member of another one that is not
    /// packed. All offsets are those of the file.
    pub fn read_within(file: &'f CheckpointFile, within: Range<u64>) -> Result<Self> {
        let directory = directory::read(file, &within)?;
        let first_name = String::from_utf8_lossy(&directory.first).into_owned();
        let around = around::walk(file, &within, directory)?;
        let members = around.members;
        let name = |index: u32| members[index as usize].name.as_str();
        let mut sorted: Vec<u32> = (0..members.len() as u32).collect();
        sorted.sort_unstable_by(|&a, &b| name(a).cmp(name(b)));
        if let Some(pair) = sorted.windows(2).find(|pair| name(pair[0]) == name(pair[1])) {
            let at = members[pair[0].max(pair[1]) as usize].header_start;
            return Err(Error::checkpoint("two members of the archive have the same name", at));
        }
        let warnings = around.odd_gaps.map(|(count, first)| match count {
            1 => format!("bytes in the archive belong to no member (at byte {first})"),
            _ => format!(
                "bytes in {count} places of the archive belong to no member (the first at byte {first})"
            ),
        });
        let warnings = warnings.into_iter().collect();
        Ok(Self { file, members, sorted, around: around.stretches, first_name, warnings })
    }

    /// The file that it is in.
    #[must_use]
    pub fn file(&self) -> &'f CheckpointFile {
        self.file
    }

    /// The members, in order of their places in the file.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The same, without the archive.
    #[must_use]
    pub fn into_members(self) -> Vec<Member> {
        self.members
    }

    /// The index of the member of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        let found = self
            .sorted
            .binary_search_by(|&index| self.members[index as usize].name.as_str().cmp(name));
        found.ok().map(|at| self.sorted[at] as usize)
    }

    /// The first bytes of a member, unpacked.
    pub fn head(&self, member: &Member, max: usize) -> Result<Vec<u8>> {
        if !member.is_deflated {
            let bytes = member.packed_bytes.min(max as u64);
            return Ok(self.file.part(member.start, bytes)?.into_owned());
        }
        member.unpack(self.file, max as u64)
    }

    /// A member as a whole, unpacked, if that is at most `limit` bytes and no bomb.
    pub fn contents(&self, member: &Member, limit: u64) -> Result<Cow<'f, [u8]>> {
        member.contents(self.file, limit)
    }

    /// Every byte of the archive, in order. `class` says what a member's data are for, by its index.
    pub fn stretches(
        &self,
        file: u32,
        mut class: impl FnMut(usize, &Member) -> Class,
    ) -> Vec<Stretch> {
        let mut all = Vec::with_capacity(self.around.len() + self.members.len());
        let mut members = self.members.iter().enumerate().peekable();
        for around in &self.around {
            while let Some((index, member)) =
                members.next_if(|(_, member)| member.start < around.start)
            {
                let class = class(index, member);
                let (start, bytes) = (member.start, member.packed_bytes);
                around::push(&mut all, Stretch { file, start, bytes, class });
            }
            around::push(&mut all, Stretch { file, ..*around });
        }
        all
    }
}

/// Whether bytes that need not be a pickle begin like one: with a protocol's number, or, in
/// the oldest protocols, with an import. Looks at the first 64 bytes only.
#[must_use]
pub fn looks_like_pickle(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(64)];
    match bytes {
        [0x80, 0..=5, ..] => true,
        // Containers and marks may come before the first import.
        _ => {
            let opening = bytes.iter().take_while(|byte| b"(]})".contains(byte)).count();
            let Some((b'c' | b'i', import)) = bytes[opening..].split_first() else { return false };
            let mut lines = import.splitn(3, |&byte| byte == b'\n');
            let (Some(module), Some(name)) = (lines.next(), lines.next()) else { return false };
            let is_path = |text: &[u8]| {
                !text.is_empty()
                    && !text[0].is_ascii_digit()
                    && text.iter().all(|&byte| {
                        byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || byte >= 0x80
                    })
            };
            is_path(module) && is_path(name)
        }
    }
}
