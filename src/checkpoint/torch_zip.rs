//! The archives that torch writes since 1.6: `data.pkl` and a member for each storage; `TorchScript`
//! archives have code and its constants besides.

use std::borrow::Cow;
use std::ops::Range;

use super::archive::{Archive, Member, looks_like_pickle};
use super::files::CheckpointFile;
use super::table::Table;
use super::{Class, Content, Imports, PickleAt, Storage, Stretch, Tree};
use super::{values, walk};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// The longest pickle that is unpacked or looked into.
const MAX_PICKLE: u64 = 4 << 30;
/// How much of all members that may hide a pickle is looked into.
const MAX_SCANNED: u64 = 64 << 20;
/// Archives in archives are opened to this depth.
const MAX_NESTING: usize = 2;

/// An archive of torch's, and what its members are called by.
pub(super) struct TorchZip<'f> {
    pub archive: Archive<'f>,
    /// The folder that everything is in, with its slash.
    pub prefix: String,
}

impl<'f> TorchZip<'f> {
    /// Opens an archive; everything is in the folder of its first member, as torch takes it.
    pub fn open(file: &'f CheckpointFile, within: Range<u64>) -> Result<Self> {
        let archive = Archive::read_within(file, within)?;
        let Some(first) = archive.members().first() else {
            return Err(Error::checkpoint("it is an archive without members", 0));
        };
        let prefix = match first.name.split_once('/') {
            Some((folder, _)) => format!("{folder}/"),
            None => String::new(),
        };
        Ok(Self { archive, prefix })
    }

    /// The member of this name in the archive's folder.
    pub fn member(&self, name: &str) -> Option<&Member> {
        let index = self.archive.find(&format!("{}{name}", self.prefix))?;
        Some(&self.archive.members()[index])
    }

    /// What a small member says.
    pub fn text(&self, name: &str) -> Option<String> {
        let head = self.archive.head(self.member(name)?, 64).ok()?;
        Some(String::from_utf8_lossy(&head).trim().to_owned())
    }
}

/// Reads such an archive. Tensors' names begin with `name`.
pub(super) fn read(
    zip: &TorchZip<'_>,
    file: u32,
    name: &str,
    progress: &Progress<'_>,
) -> Result<Content> {
    let Some(data) = zip.member("data.pkl") else {
        return Err(Error::checkpoint(
            "it is a zip archive, but not a checkpoint: no data.pkl is in it",
            0,
        ));
    };
    let is_script = zip.member("constants.pkl").is_some();
    let mut table = Table::new(storages(zip, file));
    let mut imports = Imports::default();
    let mut trees = Vec::new();
    let mut tensors = Vec::new();
    let pickles =
        [(data, "", ""), (zip.member("constants.pkl").unwrap_or(data), "constants/", "constants")];
    for (member, prefix, word) in pickles.into_iter().take(if is_script { 2 } else { 1 }) {
        table.prefix = prefix;
        let way = if name.is_empty() { word.to_owned() } else { format!("{name}{word}") };
        let mut tree = tree(&zip.archive, member, file, progress)?;
        imports.add(&tree.values, is_script);
        let (found, mut tensor_of) =
            walk::tensors(&tree.values, tree.root, &way, &mut table, progress)?;
        tensor_of.values_mut().for_each(|index| *index += tensors.len() as u32);
        tree.tensor_of = tensor_of;
        tensors.extend(found);
        trees.push(tree);
    }
    let mut warnings = zip.archive.warnings.clone();
    warnings.append(&mut table.warnings);
    if is_script {
        warnings.push("it holds TorchScript code, which runs when it is loaded".to_owned());
    }
    let stretches = stretches(zip, file, &table.storages);
    let mut scan =
        Scan { left: MAX_SCANNED, imports: &mut imports, warnings: &mut warnings, is_script };
    scan.archive(zip, 0);
    Ok(Content {
        format: if is_script { "torchscript" } else { "torch zip" },
        storages: table.storages,
        stretches,
        tensors,
        trees,
        root_tree: 0,
        imports,
        warnings,
        metadata: Vec::new(),
    })
}

fn tree(
    archive: &Archive<'_>,
    member: &Member,
    file: u32,
    progress: &Progress<'_>,
) -> Result<Tree> {
    let bytes = archive.contents(member, MAX_PICKLE)?;
    let (values, root, _) = values::read(&bytes, progress)?;
    let pickle = match bytes {
        Cow::Borrowed(_) => PickleAt::File { file, start: member.start, bytes: member.bytes },
        Cow::Owned(bytes) => PickleAt::Unpacked(bytes),
    };
    Ok(Tree { values, root, tensor_of: walk::TensorOf::new(), pickle })
}

/// The members that are storages: `data/0`, and `constants/0` in scripts.
fn storages(zip: &TorchZip<'_>, file: u32) -> Vec<Storage> {
    let is_big_endian = zip.text("byteorder").is_some_and(|order| order == "big");
    let members = zip.archive.members().iter();
    members
        .filter_map(|member| {
            let key = storage_key(zip, member)?;
            Some(Storage {
                key: key.to_owned(),
                file,
                start: member.start,
                packed_bytes: member.packed_bytes,
                bytes: member.bytes,
                is_deflated: member.is_deflated,
                is_big_endian,
            })
        })
        .collect()
}

/// What the pickle calls a storage by; none if the member is something else.
fn storage_key<'m>(zip: &TorchZip<'_>, member: &'m Member) -> Option<&'m str> {
    let name = member.name.strip_prefix(&zip.prefix)?;
    match name.split_once('/') {
        Some(("data", key)) if !key.is_empty() => Some(key),
        Some(("constants", key)) if !key.is_empty() => Some(name),
        _ => None,
    }
}

fn stretches(zip: &TorchZip<'_>, file: u32, storages: &[Storage]) -> Vec<Stretch> {
    let mut next = 0;
    zip.archive.stretches(file, |_, member| {
        // Storages were listed in the order of the members.
        if storage_key(zip, member).is_some() && next < storages.len() as u32 {
            next += 1;
            return Class::Storage(next - 1);
        }
        if is_pickle_name(&member.name) { Class::Pickle } else { Class::Archive }
    })
}

fn is_pickle_name(name: &str) -> bool {
    [".pkl", ".pickle", ".debug_pkl"].iter().any(|end| name.ends_with(end))
}

/// Looks for pickles in members that torch would not read as such.
struct Scan<'a> {
    /// How many more bytes are looked into.
    left: u64,
    imports: &'a mut Imports,
    warnings: &'a mut Vec<String>,
    is_script: bool,
}

impl Scan<'_> {
    fn archive(&mut self, zip: &TorchZip<'_>, nesting: usize) {
        for member in zip.archive.members() {
            let own = member.name.strip_prefix(&zip.prefix).unwrap_or(&member.name);
            if nesting == 0 && matches!(own, "data.pkl" | "constants.pkl") {
                continue;
            }
            let is_known = nesting == 0 && self.is_script && is_script_pickle(own);
            self.member(zip, member, is_known, nesting);
        }
    }

    fn member(&mut self, zip: &TorchZip<'_>, member: &Member, is_known: bool, nesting: usize) {
        let Ok(head) = zip.archive.head(member, 64) else { return };
        if head.starts_with(b"PK\x03\x04") && !member.is_deflated && nesting < MAX_NESTING {
            let within = member.start..member.start.saturating_add(member.bytes);
            if let Ok(inner) = TorchZip::open(zip.archive.file(), within) {
                self.archive(&inner, nesting + 1);
            }
        }
        if !is_known && !is_pickle_name(&member.name) && !looks_like_pickle(&head) {
            return;
        }
        if member.bytes > self.left {
            self.warn(format!("a pickle that is too long to look into: {}", member.name));
            return;
        }
        let Ok(bytes) = zip.archive.contents(member, self.left) else { return };
        self.left -= member.bytes;
        let values = values::names(&bytes);
        if values.globals().all(|(module, name)| !is_plausible(module) || !is_plausible(name)) {
            return;
        }
        self.imports.add(&values, self.is_script);
        if !is_known && nesting == 0 {
            self.warn(format!("a pickle is in a member that torch does not load: {}", member.name));
        }
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < 100 {
            self.warnings.push(warning);
        }
    }
}

/// What torch itself puts beside a script's code.
fn is_script_pickle(name: &str) -> bool {
    name == "traced_inputs.pkl" || name.starts_with("code/") && name.ends_with(".debug_pkl")
}

/// Whether this may be the name of a module or of something in one; bytes that look like a pickle by
/// chance have others.
fn is_plausible(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '<' | '>'))
}
