//! Looks for pickles in members of an archive that torch would not read as such, and in the archives
//! that are members. What cannot be looked into is flagged like an import that is not allowed: nobody
//! knows what it would do.
//!
//! # Cost
//!
//! The first bytes of every member, and at most [`MAX_SCANNED`] bytes of what looks like a pickle or is
//! packed.

use super::Imports;
use super::archive::{Member, looks_like_pickle};
use super::files::CheckpointFile;
use super::json::shortened;
use super::torch_zip::TorchZip;
use super::values;

/// How much of all members that may hide a pickle is looked into.
const MAX_SCANNED: u64 = 64 << 20;
/// A member that is not longer is taken for a pickle, to see what it names.
const MAX_GUESSED: u64 = 1 << 20;
/// Archives in archives are opened to this depth.
const MAX_NESTING: usize = 2;
const MAX_WARNINGS: usize = 100;

/// What has been done with a member already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was read.
    Read,
    /// It was not, but has its place in such a file.
    Known,
    /// It was not.
    Never,
}

/// Looks for what pickles name.
pub(super) struct Scan<'a> {
    /// How many more bytes are looked into.
    left: u64,
    imports: &'a mut Imports,
    warnings: &'a mut Vec<String>,
    is_script: bool,
}

impl<'a> Scan<'a> {
    /// Adds what it finds to these.
    pub fn new(imports: &'a mut Imports, warnings: &'a mut Vec<String>, is_script: bool) -> Self {
        Self { left: MAX_SCANNED, imports, warnings, is_script }
    }

    /// Looks into all members but those that were read; `seen` gets their indexes and their names
    /// in the archive's folder.
    pub fn archive(&mut self, zip: &TorchZip<'_>, seen: impl Fn(usize, &str) -> Seen) {
        for (index, member) in zip.archive.members().iter().enumerate() {
            let name = member.name.strip_prefix(&zip.prefix).unwrap_or(&member.name);
            let seen = seen(index, name);
            if seen != Seen::Read {
                self.member(zip, member, seen, 0);
            }
        }
    }

    fn member(&mut self, zip: &TorchZip<'_>, member: &Member, seen: Seen, nesting: usize) {
        let Ok(head) = zip.archive.head(member, 64) else {
            return self.cannot(member, "it is damaged");
        };
        if head.starts_with(b"PK\x03\x04") {
            return self.nested(zip, member, nesting);
        }
        let is_named_so = is_pickle_name(&member.name);
        // A pickle of the oldest protocols may begin with anything; storages are too many and too long.
        let is_short = member.bytes <= MAX_GUESSED && !member.name.contains("/data/");
        if seen == Seen::Never && !is_named_so && !is_short && !looks_like_pickle(&head) {
            return;
        }
        if member.bytes > self.left {
            return self.cannot(member, "it is too long");
        }
        let Ok(bytes) = zip.archive.contents(member, self.left) else {
            return self.cannot(member, "it cannot be unpacked");
        };
        self.left -= member.bytes;
        let values = values::names(&bytes);
        let is_chance = |(module, name): (&str, &str)| !is_plausible(module) || !is_plausible(name);
        if values.globals().next().is_none() || !is_named_so && values.globals().all(is_chance) {
            return;
        }
        self.imports.add(&values, self.is_script);
        if seen == Seen::Never {
            let name = shortened(&member.name);
            self.warn(format!("a pickle is in a member that torch does not load: {name}"));
        }
    }

    /// Looks into an archive in the archive.
    fn nested(&mut self, zip: &TorchZip<'_>, member: &Member, nesting: usize) {
        if nesting == MAX_NESTING {
            return self.cannot(member, "it is an archive in archives");
        }
        let unpacked;
        let (file, start) = if member.is_deflated {
            let Ok(bytes) = zip.archive.contents(member, self.left) else {
                return self.cannot(member, "it cannot be unpacked, or is too long for that");
            };
            self.left -= member.bytes;
            unpacked = CheckpointFile::from_vec(member.name.as_str(), bytes.into_owned());
            (&unpacked, 0)
        } else {
            (zip.archive.file(), member.start)
        };
        let Ok(inner) = TorchZip::open(file, start..start.saturating_add(member.bytes)) else {
            return self.cannot(member, "it is a damaged archive");
        };
        for member in inner.archive.members() {
            self.member(&inner, member, Seen::Never, nesting + 1);
        }
    }

    /// Flags a member, whatever it would import.
    fn cannot(&mut self, member: &Member, why: &str) {
        let name = shortened(&member.name);
        self.imports.add_unknown(&name);
        self.warn(format!("{name} cannot be scanned: {why}"));
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        }
    }
}

/// Whether a member is called as pickles are.
pub(super) fn is_pickle_name(name: &str) -> bool {
    let ends = |end: &str| {
        let tail = name.len().checked_sub(end.len()).and_then(|at| name.get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    };
    [".pkl", ".pickle", ".debug_pkl"].into_iter().any(ends)
}

/// Whether this may be the name of a module or of something in one; bytes that look like a pickle by
/// chance have others.
fn is_plausible(name: &str) -> bool {
    const MAX: usize = 1000;
    (1..=MAX).contains(&name.len())
        && name
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '<' | '>'))
}
