//! What `torch.export` writes: an archive whose weights and constants are members, described in JSON.
//!
//! Tensors that torch cannot write as plain bytes, and the sample inputs, are files of `torch.save`
//! in members of their own. They are read in place; if they are packed (the file was zipped
//! again) they are unpacked for what they hold. Before torch 2.8 all tensors were in such members.
//!
//! # Cost
//!
//! `O(members + bytes of JSON + bytes of pickles)`. The graph itself is not looked at.

mod config;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use self::config::{MAX_CONFIGS, Payload, payloads};
use super::archive::Member;
use super::files::CheckpointFile;
use super::json::shortened;
use super::scan::{Scan, Seen};
use super::torch_zip::{self, TorchZip};
use super::values::MAX_HELD;
use super::{Class, Content, PickleAt, Storage, Stretch, Tensor, Tree};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// Folders whose members are the bytes of tensors, and how the names of their descriptions end.
const FOLDERS: [(&str, &str); 2] =
    [("data/weights/", "_weights_config.json"), ("data/constants/", "_constants_config.json")];
const SAMPLES: &str = "data/sample_inputs/";

/// What marks the older layout, and its files of `torch.save` with what the names in them begin with.
/// The first releases called them otherwise.
const PROGRAM: &str = "serialized_exported_program.json";
const OLDER: [(&str, &str); 5] = [
    ("serialized_state_dict.pt", ""),
    ("serialized_state_dict.json", ""),
    ("serialized_constants.pt", ""),
    ("serialized_constants.json", ""),
    ("serialized_example_inputs.pt", "sample_inputs"),
];

/// How many bytes of packed members are unpacked, all together.
const MAX_UNPACKED: u64 = 256 << 20;

/// What the data of a member are.
enum Role {
    /// The storage with this index.
    Storage(u32),
    /// A file of `torch.save`, and the name of what is in it.
    Nested(String),
    /// Such a file that cannot be read.
    Unread,
}

/// Reads such an archive.
pub(super) fn content(zip: &TorchZip<'_>, file: u32, progress: &Progress<'_>) -> Result<Content> {
    let mut reader = Reader::new(zip, file);
    let mut left = MAX_CONFIGS;
    for (folder, end) in FOLDERS {
        let configs = reader.members(folder).filter(|(_, _, name)| name.ends_with(end));
        let configs: Vec<_> = configs.map(|(_, member, name)| (member, name)).collect();
        for &(member, name) in &configs {
            let model = name.strip_suffix(end).unwrap_or(name);
            let prefix = if configs.len() > 1 { format!("{model}.") } else { String::new() };
            for (name, payload) in payloads(&zip.archive, member, &mut left)? {
                reader.payload(folder, format!("{prefix}{name}"), &payload)?;
            }
        }
        reader.others(folder)?;
    }
    let samples: Vec<_> = reader.members(SAMPLES).collect();
    for &(index, _, name) in &samples {
        let model = name.strip_suffix(".pt").unwrap_or(name);
        let several = samples.len() > 1;
        let name =
            if several { format!("{model}.sample_inputs") } else { "sample_inputs".to_owned() };
        reader.roles.insert(index, Role::Nested(name));
    }
    reader.finish(progress)
}

/// Whether an archive is what `torch.export` wrote before torch 2.8.
pub(super) fn is_older(zip: &TorchZip<'_>) -> bool {
    zip.member(PROGRAM).is_some()
}

/// Reads such an archive: all tensors are in files of `torch.save`.
pub(super) fn older(zip: &TorchZip<'_>, file: u32, progress: &Progress<'_>) -> Result<Content> {
    let mut reader = Reader::new(zip, file);
    for (name, prefix) in OLDER {
        if let Some(index) = zip.archive.find(&format!("{}{name}", zip.prefix)) {
            reader.roles.insert(index, Role::Nested(prefix.to_owned()));
        }
    }
    reader.finish(progress)
}

struct Reader<'z, 'f> {
    zip: &'z TorchZip<'f>,
    file: u32,
    is_big_endian: bool,
    /// What members are, by their index; other members belong to the archive.
    roles: HashMap<usize, Role>,
    /// How many more bytes are unpacked.
    left: u64,
    /// About how much memory the values of the files in it take.
    held: usize,
    whole: Content,
}

impl<'z, 'f> Reader<'z, 'f> {
    fn new(zip: &'z TorchZip<'f>, file: u32) -> Self {
        Self {
            zip,
            file,
            is_big_endian: zip.text("byteorder").is_some_and(|order| order == "big"),
            roles: HashMap::new(),
            left: MAX_UNPACKED,
            held: 0,
            whole: Content { warnings: zip.archive.warnings.clone(), ..Content::default() },
        }
    }

    /// The members of a folder, with their index and their name in it.
    fn members(
        &self,
        folder: &'static str,
    ) -> impl Iterator<Item = (usize, &'z Member, &'z str)> + use<'z> {
        let zip = self.zip;
        zip.archive.members().iter().enumerate().filter_map(move |(index, member)| {
            let name = member.name.strip_prefix(&zip.prefix)?.strip_prefix(folder)?;
            (!name.is_empty()).then_some((index, member, name))
        })
    }

    /// One entry of a description: a tensor, or an object that is saved in its own file.
    fn payload(&mut self, folder: &str, name: String, payload: &Payload) -> Result<()> {
        let path = format!("{}{folder}{}", self.zip.prefix, payload.path_name);
        let Some(index) = self.zip.archive.find(&path) else {
            let (name, path) = (shortened(&name), shortened(&payload.path_name));
            let reason = format!("{name} should be in the member {path}, which is not there");
            return Err(Error::checkpoint(reason, 0));
        };
        if payload.use_pickle {
            self.roles.entry(index).or_insert(Role::Nested(name));
            return Ok(());
        }
        let member = &self.zip.archive.members()[index];
        let storage = match self.roles.get(&index) {
            Some(&Role::Storage(storage)) => storage,
            Some(Role::Nested(_) | Role::Unread) => {
                let reason = format!("{} is said to be pickled and not to be", shortened(&name));
                return Err(Error::checkpoint(reason, member.header_start));
            }
            None => self.storage(index, member, &payload.path_name),
        };
        let mut tensor = payload.tensor(storage).map_err(|what| {
            Error::checkpoint(format!("{} {what}", shortened(&name)), member.header_start)
        })?;
        if member.bytes == 0 && tensor.logical_bytes > 0 {
            // Saved without its numbers, as a fake tensor.
            tensor.kind = "meta";
            tensor.views.clear();
        }
        self.whole.tensors.push(Tensor { name, ..tensor });
        Ok(())
    }

    fn storage(&mut self, index: usize, member: &Member, key: &str) -> u32 {
        let storage = self.whole.storages.len() as u32;
        self.roles.insert(index, Role::Storage(storage));
        self.whole.storages.push(Storage {
            key: key.to_owned(),
            file: self.file,
            start: member.start,
            packed_bytes: member.packed_bytes,
            bytes: member.bytes,
            is_deflated: member.is_deflated,
            is_big_endian: self.is_big_endian,
        });
        storage
    }

    /// Members of a folder that no description names: the weights of compiled models, which are files
    /// of `torch.save`, or unused bytes.
    fn others(&mut self, folder: &'static str) -> Result<()> {
        for (index, member, name) in self.members(folder) {
            if self.roles.contains_key(&index) || is_json(name) {
                continue;
            }
            if self.zip.archive.head(member, 4)?.starts_with(b"PK\x03\x04") {
                self.roles.insert(index, Role::Nested(name.to_owned()));
            } else {
                self.storage(index, member, name);
            }
        }
        Ok(())
    }

    /// Reads the archives in members, and puts everything together.
    fn finish(mut self, progress: &Progress<'_>) -> Result<Content> {
        let mut roles = std::mem::take(&mut self.roles);
        let outer = self.zip.archive.stretches(self.file, |index, _| match roles.get(&index) {
            Some(&Role::Storage(storage)) => Class::Storage(storage),
            // Never merged with a neighbour, because no storage has such a number.
            Some(Role::Nested(_)) => Class::Storage(NESTED + index as u32),
            Some(Role::Unread) | None => Class::Archive,
        });
        // Its place is kept for the tree of all names.
        self.whole.trees.push(Tree::of_names(std::iter::empty()));
        for stretch in outer {
            let Class::Storage(index @ NESTED..) = stretch.class else {
                self.whole.stretches.push(stretch);
                continue;
            };
            let index = (index - NESTED) as usize;
            let member = &self.zip.archive.members()[index];
            let Some(Role::Nested(name)) = roles.get(&index) else { continue };
            match self.nested(member, name, progress) {
                Ok(inner) => {
                    if inner.stretches.is_empty() {
                        let class = Class::Archive;
                        self.whole.stretches.push(Stretch { class, ..stretch });
                    }
                    self.held += inner.trees.iter().map(|tree| tree.values.held()).sum::<usize>();
                    self.whole.append(inner);
                }
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                Err(error) => {
                    let (path, error) = (shortened(&member.name), shortened(&error.to_string()));
                    self.whole.warnings.push(format!("{path} cannot be read: {error}"));
                    self.whole.stretches.push(Stretch { class: Class::Archive, ..stretch });
                    roles.insert(index, Role::Unread);
                }
            }
        }
        self.whole.format = "pt2";
        let names = self.whole.tensors.iter().map(|tensor| tensor.name.as_str());
        self.whole.trees[0] = Tree::of_names(names);
        let Content { imports, warnings, .. } = &mut self.whole;
        Scan::new(imports, warnings, false).archive(self.zip, |index, _| match roles.get(&index) {
            Some(Role::Nested(_)) => Seen::Read,
            // Torch would load it, so that all that it names counts, whatever it looks like.
            Some(Role::Unread) => Seen::Known,
            Some(Role::Storage(_)) | None => Seen::Never,
        });
        Ok(self.whole)
    }

    /// Reads a file of `torch.save` that is a member.
    fn nested(&mut self, member: &Member, name: &str, progress: &Progress<'_>) -> Result<Content> {
        let wrong = |reason: &'static str| Error::checkpoint(reason, member.header_start);
        if self.held > MAX_HELD {
            return Err(wrong("those before it hold more values than fit into 512 MiB"));
        }
        if !member.is_deflated {
            let within = member.start..member.start.saturating_add(member.bytes);
            let inner = TorchZip::open(self.zip.archive.file(), within)?;
            return torch_zip::read(&inner, self.file, name, progress);
        }
        let bytes = self.zip.archive.contents(member, self.left)?.into_owned();
        self.left -= member.bytes;
        let path = shortened(&member.name);
        let file = CheckpointFile::from_vec(path.as_str(), bytes);
        let inner = TorchZip::open(&file, 0..file.len())?;
        let mut content = torch_zip::read(&inner, self.file, name, progress)?;
        // Its bytes are nowhere in the file as they are.
        content.storages.clear();
        content.stretches.clear();
        content.tensors.iter_mut().for_each(|tensor| tensor.views.clear());
        for tree in &mut content.trees {
            if let PickleAt::File { start, bytes, .. } = tree.pickle {
                tree.pickle = PickleAt::Unpacked(file.part(start, bytes)?.into_owned());
            }
        }
        let what = "its tensors are listed, and their bytes counted as the archive's";
        content.warnings.push(format!("{path} is an archive that is packed: {what}"));
        Ok(content)
    }
}

/// Numbers from here on stand for members that are archives; a file has fewer members, because each
/// takes more than 64 bytes of memory.
const NESTED: u32 = 1 << 31;

fn is_json(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|extension| extension == "json")
}
