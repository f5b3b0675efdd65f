//! The files in an archive beside its tensors: code, descriptions, the inputs of a trace.

use super::files::CheckpointFile;
use super::json::shortened;
use super::open::Checkpoint;
use crate::error::{Error, Result};
use crate::progress::Progress;

impl Checkpoint {
    /// The bytes of a member of the archive, by its name in the archive's folder; at most `limit`.
    pub fn member(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        let file = &self.files[0];
        let member = self.members.iter().find(|member| member.name == name).ok_or_else(|| {
            Error::checkpoint(format!("the archive has no member {}", shortened(name)), 0)
        });
        let contents = member.and_then(|member| member.contents(file, limit));
        contents.map(std::borrow::Cow::into_owned).map_err(|error| error.in_file(file.path()))
    }

    /// Reads a member that is a checkpoint itself, or a pickle.
    pub fn open_member(&self, name: &str, limit: u64, progress: &Progress<'_>) -> Result<Self> {
        let path = self.files[0].path().join(name);
        let file = CheckpointFile::from_vec(path.clone(), self.member(name, limit)?);
        Self::from_file(file, progress).map_err(|error| error.in_file(&path))
    }
}
