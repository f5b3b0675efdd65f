//! Memory that we write and the X server reads.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::raster::Pixel;

/// Memory for pixels, given back when dropped.
#[derive(Debug)]
pub(super) struct SharedMemory {
    map: MmapMut,
}

impl SharedMemory {
    /// Memory for at least this many pixels, and a file by which another process can map it to read.
    #[allow(unsafe_code)]
    pub fn new(pixels: usize) -> io::Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("snapviewer", flags)?);
        let bytes = pixels * size_of::<Pixel>();
        file.set_len(bytes as u64)?;
        // SAFETY: the file has no name, so that only this process and the server have it; and from
        // the seals below on, before the server gets it, it can neither be cut short nor be written
        // by any way but this map.
        let map = unsafe { MmapOptions::new().len(bytes).map_mut(&file)? };
        fcntl_add_seals(
            &file,
            SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL,
        )?;
        Ok((Self { map }, file.into()))
    }

    /// How many pixels it holds.
    pub fn len(&self) -> usize {
        self.map.len() / size_of::<Pixel>()
    }

    /// The pixels.
    pub fn pixels(&mut self) -> &mut [Pixel] {
        self.map.as_chunks_mut().0
    }
}
