//! The index of a checkpoint in several files: `model.safetensors.index.json`, `pytorch_model.bin.index.json`.
//!
//! It names the file of each tensor. An untrusted index must not make us open files elsewhere, so it
//! may only name files that are beside it.
//!
//! # Cost
//!
//! `O(bytes of the index)`, which may be 100 MB, in time and memory.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::files::CheckpointFile;
use super::json::{self, Pairs, shortened};
use crate::error::{Error, Result};

const MAX_BYTES: u64 = 100_000_000;
/// Real checkpoints have some hundreds.
const MAX_SHARDS: usize = 100_000;

/// Which tensor is in which file.
#[derive(Debug, PartialEq, Eq)]
pub struct Index {
    /// The files' names, in the order in which the index first names them.
    pub shards: Vec<String>,
    /// The tensors' names, and the index of the file that each is in; in the index's order.
    pub weight_map: Vec<(String, u32)>,
    /// What the writer noted; what is not a string is JSON.
    pub metadata: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
    weight_map: Option<Pairs<String>>,
}

/// Reads an index.
pub fn read(file: &CheckpointFile) -> Result<Index> {
    if file.len() > MAX_BYTES {
        return Err(Error::checkpoint("the index is longer than 100 MB", 0));
    }
    let document: Document = json::parse(&file.part(0, file.len())?, "the index", 0)?;
    let wrong = |reason: String| Err(Error::checkpoint(reason, 0));
    let Some(map) = document.weight_map else {
        return wrong("it is JSON, but not the index of a checkpoint: it has no weight_map".into());
    };
    let mut shards: Vec<String> = Vec::new();
    let mut places: HashMap<String, u32> = HashMap::new();
    let mut weight_map = Vec::with_capacity(map.0.len());
    for (name, shard) in map.0 {
        let place = match places.get(&shard) {
            Some(&place) => place,
            None if !is_plain(&shard) => {
                return wrong(format!(
                    "the index names a file that is not beside it: {}",
                    shortened(&shard)
                ));
            }
            None if shards.len() == MAX_SHARDS => {
                return wrong(format!("the index names more than {MAX_SHARDS} files"));
            }
            None => {
                let place = shards.len() as u32;
                shards.push(shard.clone());
                places.insert(shard, place);
                place
            }
        };
        weight_map.push((name, place));
    }
    let mut seen = HashSet::with_capacity(weight_map.len());
    if let Some((name, _)) = weight_map.iter().find(|(name, _)| !seen.insert(name.as_str())) {
        return wrong(format!("the index has the tensor {} twice", shortened(name)));
    }
    let metadata = document.metadata.unwrap_or_default().into_iter();
    let metadata = metadata.map(|(key, value)| match value {
        serde_json::Value::String(text) => (key, text),
        other => (key, other.to_string()),
    });
    Ok(Index { shards, weight_map, metadata: metadata.collect() })
}

/// Whether this is the name of a file, and not a way to somewhere else, on any system.
fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', ':', '\0'])
}

impl Index {
    /// Where the files are, if all of them are there.
    pub fn paths(&self, index: &Path) -> Result<Vec<PathBuf>> {
        let directory = index.parent().unwrap_or(Path::new(""));
        let paths: Vec<PathBuf> = self.shards.iter().map(|shard| directory.join(shard)).collect();
        let missing: Vec<usize> = (0..paths.len()).filter(|&at| !paths[at].is_file()).collect();
        let Some(&first) = missing.first() else { return Ok(paths) };
        let (count, all) = (missing.len(), paths.len());
        let first = shortened(&self.shards[first]);
        let reason = match count {
            1 => format!("the index names {all} files, and {first} is missing"),
            _ => format!("the index names {all} files, and {count} are missing, {first} first"),
        };
        Err(Error::checkpoint(reason, 0))
    }

    /// Compares the index with the names of the tensors that each file really has; what differs, in
    /// sentences.
    pub fn compare<'n, Names>(&self, held: impl IntoIterator<Item = Names>) -> Vec<String>
    where
        Names: IntoIterator<Item = &'n str>,
    {
        let mut promised: HashSet<(u32, &str)> =
            self.weight_map.iter().map(|(name, shard)| (*shard, name.as_str())).collect();
        let mut extra: Option<(usize, &str, u32)> = None;
        for (shard, names) in (0..).zip(held) {
            for name in names {
                if !promised.remove(&(shard, name)) {
                    let (count, first, of) = extra.unwrap_or((0, name, shard));
                    extra = Some((count + 1, first, of));
                }
            }
        }
        let mut warnings = Vec::new();
        let absent = self.weight_map.iter();
        let mut absent = absent.filter(|(name, shard)| promised.contains(&(*shard, name.as_str())));
        if let Some((name, shard)) = absent.next() {
            let count = 1 + absent.count();
            warnings.push(self.sentence(count, "in the index but not in its file", name, *shard));
        }
        if let Some((count, name, shard)) = extra {
            warnings.push(self.sentence(count, "in a file but not in the index", name, shard));
        }
        warnings
    }

    fn sentence(&self, count: usize, what: &str, name: &str, shard: u32) -> String {
        let tensors = if count == 1 { "1 tensor is" } else { &format!("{count} tensors are") };
        let shard = self.shards.get(shard as usize).map_or("", String::as_str);
        format!("{tensors} {what}: {} of {}", shortened(name), shortened(shard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Index> {
        read(&CheckpointFile::from_vec("m.safetensors.index.json", text.as_bytes().to_vec()))
    }

    const TEXT: &str = r#"{"metadata": {"total_size": 12, "format": "pt"},
        "weight_map": {"z": "b.bin", "a": "a.bin", "y": "b.bin"}}"#;

    #[test]
    fn files_and_tensors_come_in_the_order_of_the_index() {
        let index = read_text(TEXT).unwrap();

        assert_eq!(index.shards, ["b.bin", "a.bin"]);
        let expected = [("z", 0), ("a", 1), ("y", 0)];
        assert_eq!(index.weight_map, expected.map(|(name, shard)| (name.to_owned(), shard)));
        let noted: HashMap<_, _> = index.metadata.into_iter().collect();
        assert_eq!((noted["total_size"].as_str(), noted["format"].as_str()), ("12", "pt"));
    }

    #[test]
    fn an_index_can_only_name_files_beside_it() {
        for name in ["/etc/passwd", "../m", "..", ".", "", "a/b", "a\\b", "C:m", "a\0"] {
            let name = serde_json::to_string(name).unwrap();

            let error = read_text(&format!(r#"{{"weight_map": {{"w": {name}}}}}"#)).unwrap_err();

            assert!(error.to_string().contains("a file that is not beside it"), "{error}");
        }
        assert!(read_text(r#"{"weight_map": {"w": "..a.bin"}}"#).is_ok());
    }

    #[test]
    fn what_is_no_index_is_refused_in_a_sentence() {
        let other = read_text("{}").unwrap_err().to_string();
        assert!(other.contains("not the index of a checkpoint"), "{other}");
        for text in ["", "[]", r#"{"weight_map": []}"#, r#"{"weight_map": {"w": 1}}"#] {
            let error = read_text(text).unwrap_err().to_string();
            assert!(error.starts_with("the index is damaged"), "{error}");
        }
        let twice = r#"{"weight_map": {"w": "a", "w": "b"}}"#;
        assert!(read_text(twice).unwrap_err().to_string().contains("has the tensor w twice"));
    }

    #[test]
    fn files_that_are_missing_are_counted_and_the_first_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index.json");
        let index = read_text(TEXT).unwrap();
        let error = |index: &Index| index.paths(&path).unwrap_err().to_string();

        assert!(error(&index).contains("names 2 files, and 2 are missing, b.bin first"));
        std::fs::write(directory.path().join("b.bin"), "").unwrap();
        assert!(error(&index).contains("names 2 files, and a.bin is missing"));
        std::fs::write(directory.path().join("a.bin"), "").unwrap();
        assert_eq!(index.paths(&path).unwrap()[1], directory.path().join("a.bin"));
    }

    #[test]
    fn tensors_that_are_elsewhere_than_the_index_says_are_warnings() {
        let index = read_text(TEXT).unwrap();

        assert!(index.compare([vec!["y", "z"], vec!["a"]]).is_empty());
        assert_eq!(
            index.compare([vec!["z", "a"], vec!["b"]]),
            [
                "2 tensors are in the index but not in its file: a of a.bin",
                "2 tensors are in a file but not in the index: a of b.bin"
            ]
        );
        assert_eq!(
            index.compare([vec!["y", "z"], vec![]]),
            ["1 tensor is in the index but not in its file: a of a.bin"]
        );
    }
}
