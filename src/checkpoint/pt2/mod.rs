//! What `torch.export` writes: an archive whose weights and constants are members, described in JSON.
//!
//! Tensors that torch cannot write as plain bytes, and the sample inputs, are files of `torch.save`
//! in members of their own. They are read where they lie.
//!
//! # Cost
//!
//! `O(members + bytes of JSON + bytes of pickles)`. The graph itself is not looked at.

mod config;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use self::config::{Payload, payloads};
use super::archive::Member;
use super::json::shortened;
use super::torch_zip::{self, TorchZip};
use super::values::Values;
use super::walk::TensorOf;
use super::{Class, Content, PickleAt, Storage, Stretch, Tensor, Tree};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// Folders whose members are the bytes of tensors, and how the names of their descriptions end.
const FOLDERS: [(&str, &str); 2] =
    [("data/weights/", "_weights_config.json"), ("data/constants/", "_constants_config.json")];
const SAMPLES: &str = "data/sample_inputs/";

/// What the data of a member are.
enum Role {
    /// The storage with this index.
    Storage(u32),
    /// A file of `torch.save`, and the name of what is in it.
    Nested(String),
}

/// Reads such an archive.
pub(super) fn content(zip: &TorchZip<'_>, file: u32, progress: &Progress<'_>) -> Result<Content> {
    let is_big_endian = zip.text("byteorder").is_some_and(|order| order == "big");
    let whole = Content::default();
    let mut reader = Reader { zip, file, is_big_endian, roles: HashMap::new(), whole };
    reader.whole.format = "pt2";
    reader.whole.warnings.clone_from(&zip.archive.warnings);
    for (folder, end) in FOLDERS {
        let configs = reader.members(folder).filter(|(_, _, name)| name.ends_with(end));
        let configs: Vec<_> = configs.map(|(_, member, name)| (member, name)).collect();
        for &(member, name) in &configs {
            let model = name.strip_suffix(end).unwrap_or(name);
            let prefix = if configs.len() > 1 { format!("{model}.") } else { String::new() };
            for (name, payload) in payloads(&zip.archive, member)? {
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

struct Reader<'z, 'f> {
    zip: &'z TorchZip<'f>,
    file: u32,
    is_big_endian: bool,
    /// What members are, by their index; other members belong to the archive.
    roles: HashMap<usize, Role>,
    whole: Content,
}

impl<'z> Reader<'z, '_> {
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
            Some(Role::Nested(_)) => {
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
    /// of `torch.save`, or bytes that nobody uses.
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
        let roles = std::mem::take(&mut self.roles);
        let mut stretches = Vec::new();
        let outer = self.zip.archive.stretches(self.file, |index, _| match roles.get(&index) {
            Some(&Role::Storage(storage)) => Class::Storage(storage),
            // Never merged with a neighbour, because no storage has such a number.
            Some(Role::Nested(_)) => Class::Storage(NESTED + index as u32),
            None => Class::Archive,
        });
        let mut trees = Vec::new();
        for stretch in outer {
            let Class::Storage(index @ NESTED..) = stretch.class else {
                stretches.push(stretch);
                continue;
            };
            let index = (index - NESTED) as usize;
            let member = &self.zip.archive.members()[index];
            let Some(Role::Nested(name)) = roles.get(&index) else { continue };
            match self.nested(member, name, progress) {
                Ok(inner) => self.add(inner, &mut stretches, &mut trees),
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                Err(error) => {
                    let (path, error) = (shortened(&member.name), shortened(&error.to_string()));
                    self.whole.warnings.push(format!("{path} cannot be looked into: {error}"));
                    stretches.push(Stretch { class: Class::Archive, ..stretch });
                }
            }
        }
        self.whole.stretches = stretches;
        let names = self.whole.tensors.iter().map(|tensor| tensor.name.as_str());
        let (values, root) = Values::of_tensors(names);
        let pickle = PickleAt::Nowhere;
        self.whole.trees = vec![Tree { values, root, tensor_of: TensorOf::new(), pickle }];
        self.whole.trees.extend(trees);
        Ok(self.whole)
    }

    fn nested(&self, member: &Member, name: &str, progress: &Progress<'_>) -> Result<Content> {
        if member.is_deflated {
            return Err(Error::checkpoint("it is an archive that is packed", member.header_start));
        }
        let within = member.start..member.start.saturating_add(member.bytes);
        let inner = TorchZip::open(self.zip.archive.file(), within)?;
        torch_zip::read(&inner, self.file, name, progress)
    }

    /// Adds what is in a member; numbers of storages and tensors go on.
    fn add(&mut self, inner: Content, stretches: &mut Vec<Stretch>, trees: &mut Vec<Tree>) {
        let whole = &mut self.whole;
        let (storages, tensors) = (whole.storages.len() as u32, whole.tensors.len() as u32);
        whole.storages.extend(inner.storages);
        stretches.extend(inner.stretches.into_iter().map(|mut stretch| {
            if let Class::Storage(index) = &mut stretch.class {
                *index += storages;
            }
            stretch
        }));
        whole.tensors.extend(inner.tensors.into_iter().map(|mut tensor| {
            tensor.views.iter_mut().for_each(|view| view.storage += storages);
            tensor
        }));
        trees.extend(inner.trees.into_iter().map(|mut tree| {
            tree.tensor_of.values_mut().for_each(|index| *index += tensors);
            tree
        }));
        whole.imports.merge(inner.imports);
        whole.warnings.extend(inner.warnings);
    }
}

/// Numbers from here on stand for members that are archives; a file has fewer members, because each
/// takes more than 64 bytes of memory.
const NESTED: u32 = 1 << 31;

fn is_json(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|extension| extension == "json")
}
