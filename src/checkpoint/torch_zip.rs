//! The archives that torch writes since 1.6: `data.pkl` and a member for each storage; `TorchScript`
//! archives have code and its constants besides.

use std::borrow::Cow;
use std::ops::Range;

use super::archive::{Archive, Member};
use super::files::CheckpointFile;
use super::json::shortened;
use super::scan::{Scan, Seen, is_pickle_name};
use super::table::Table;
use super::{Class, Content, Imports, PickleAt, Storage, Stretch, Tree};
use super::{values, walk};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// The longest pickle that is unpacked or looked into.
const MAX_PICKLE: u64 = 4 << 30;
/// The same of one that is packed.
const MAX_UNPACKED: u64 = 512 << 20;

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
        if archive.members().is_empty() {
            return Err(Error::checkpoint("it is an archive without members", 0));
        }
        let prefix = match archive.first_name.split_once('/') {
            Some((folder, _)) => format!("{folder}/"),
            None => String::new(),
        };
        // Torch ignores case, and could find the other one.
        let pickles = ["data.pkl", "constants.pkl"].map(|name| format!("{prefix}{name}"));
        for member in archive.members() {
            let is_like = |name: &String| member.name.eq_ignore_ascii_case(name);
            if pickles.iter().any(|name| is_like(name) && member.name != *name) {
                let reason = format!("{} can be read in two ways", shortened(&member.name));
                return Err(Error::checkpoint(reason, member.header_start));
            }
        }
        Ok(Self { archive, prefix })
    }

    /// The members in the archive's folder, by their names in it.
    pub fn into_members(self) -> Vec<Member> {
        let named = |member: Member| {
            let name = member.name.strip_prefix(&self.prefix)?.to_owned();
            Some(Member { name, ..member })
        };
        self.archive.into_members().into_iter().filter_map(named).collect()
    }

    /// The member of this name in the archive's folder.
    pub fn member(&self, name: &str) -> Option<&Member> {
        let index = self.archive.find(&format!("{}{name}", self.prefix))?;
        Some(&self.archive.members()[index])
    }

    /// The text of a small member.
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
        let mut tree =
            tree(&zip.archive, member, file, &mut imports, &mut table.warnings, progress)?;
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
    Scan::new(&mut imports, &mut warnings, is_script).archive(zip, |_, name| match name {
        "data.pkl" => Seen::Read,
        "constants.pkl" if is_script => Seen::Read,
        name if is_script && is_script_pickle(name) => Seen::Known,
        _ => Seen::Never,
    });
    Ok(Content {
        format: if is_script { "torchscript" } else { "torch zip" },
        storages: table.storages,
        stretches,
        tensors,
        trees,
        root_tree: 0,
        imports,
        warnings,
        ..Content::default()
    })
}

fn tree(
    archive: &Archive<'_>,
    member: &Member,
    file: u32,
    imports: &mut Imports,
    warnings: &mut Vec<String>,
    progress: &Progress<'_>,
) -> Result<Tree> {
    let limit = if member.is_deflated { MAX_UNPACKED } else { MAX_PICKLE };
    let bytes = archive.contents(member, limit)?;
    let (values, root, end) = values::read(&bytes, progress)?;
    if end < bytes.len() {
        // Torch reads no further, others may.
        imports.add(&values::names(&bytes[end..]), false);
        warnings.push(format!("bytes follow the pickle's end in {}", shortened(&member.name)));
    }
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

/// What torch itself puts beside a script's code.
fn is_script_pickle(name: &str) -> bool {
    name == "traced_inputs.pkl" || name.starts_with("code/") && name.ends_with(".debug_pkl")
}
