//! Where the numbers of a tensor are, for measuring and comparing them.

use std::borrow::Cow;
use std::io::Read;
use std::sync::{Mutex, PoisonError};

use super::files::{CheckpointFile, Window};
use super::open::Checkpoint;
use super::plain::latin1;
use super::values::Node;
use super::{InPickle, Quantized, Storage, Tensor, View};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::stats::{self, Bytes, Elements, Number, Quality, Quantization, Stats};
use crate::strided::Strided;

/// The most channels that a quantized tensor may have.
const MAX_CHANNELS: u64 = 1 << 24;

impl Checkpoint {
    /// Statistics of a tensor.
    pub fn measure(&self, tensor: usize, bins: usize, progress: &Progress<'_>) -> Result<Stats> {
        let numbers = self.numbers(tensor)?;
        stats::measure(&numbers.elements(), bins, progress)
            .map_err(|error| error.in_file(self.files[0].path()))
    }

    /// What a tensor would lose in fewer bits or with fewer values; with its singular values if asked.
    pub fn quality(
        &self,
        tensor: usize,
        with_spectrum: bool,
        progress: &Progress<'_>,
    ) -> Result<Quality> {
        let numbers = self.numbers(tensor)?;
        stats::quality(&numbers.elements(), with_spectrum, progress)
            .map_err(|error| error.in_file(self.files[0].path()))
    }

    /// The elements of a tensor one by one, at most `limit`.
    pub fn elements(&self, tensor: usize, limit: u64) -> Result<Vec<Number>> {
        stats::list(&self.numbers(tensor)?.elements(), limit)
            .map_err(|error| error.in_file(self.files[0].path()))
    }

    /// The numbers of a tensor.
    pub(super) fn numbers(&self, tensor: usize) -> Result<Numbers<'_>> {
        let tensor = &self.tensors[tensor];
        if let Some(place) = tensor.in_pickle {
            return self.in_pickle(tensor, place);
        }
        let view = main_view(tensor)?;
        let quantization = match tensor.quantized {
            // Of conjugates, sizes are the same.
            None | Some(Quantized::Conjugate) => None,
            Some(Quantized::Tensor { scale, zero_point }) => {
                Some(Quantization::Tensor { scale, zero_point })
            }
            Some(Quantized::Channel { axis }) => Some(Quantization::Channel {
                axis,
                scales: self.channel_numbers(tensor, "scales")?,
                zero_points: self.channel_numbers(tensor, "zero_points")?,
            }),
        };
        Ok(Numbers { quantization, ..self.of_view(view) })
    }

    pub(super) fn of_view<'a>(&'a self, view: &'a View) -> Numbers<'a> {
        let storage = &self.storages[view.storage as usize];
        let file = &self.files[storage.file as usize];
        let (source, start) = if storage.is_deflated {
            (Source::Deflated(Box::new(Inflating::new(file, storage))), 0)
        } else {
            (Source::File(file), storage.start)
        };
        Numbers {
            source,
            start,
            storage_bytes: storage.bytes,
            dtype: view.dtype,
            layout: Cow::Borrowed(&view.layout),
            is_big_endian: storage.is_big_endian,
            quantization: None,
        }
    }

    /// The numbers of an array that is part of the pickle.
    fn in_pickle(&self, tensor: &Tensor, place: InPickle) -> Result<Numbers<'_>> {
        let gone = || Error::argument(format!("the bytes of {} cannot be reached", tensor.name));
        let tree = self.trees.get(place.tree as usize).ok_or_else(gone)?;
        let bytes = if place.is_latin1 {
            let text = tree.values.as_text(place.value).ok_or_else(gone)?;
            latin1(text).ok_or_else(gone)?
        } else if let Some(text) = tree.values.as_text(place.value) {
            Cow::Borrowed(text.as_bytes())
        } else {
            let Some(Node::Bytes(at)) = tree.values.node(place.value) else { return Err(gone()) };
            Cow::Borrowed(self.content(tree, &at)?.ok_or_else(gone)?)
        };
        let mut layout = Strided::contiguous(tensor.shape.clone()).ok_or_else(gone)?;
        if place.is_fortran {
            let turned = tensor.shape.iter().rev().copied().collect();
            layout.stride = Strided::contiguous(turned).ok_or_else(gone)?.stride;
            layout.stride.reverse();
        }
        Ok(Numbers {
            start: 0,
            storage_bytes: bytes.len() as u64,
            source: Source::Memory(bytes),
            dtype: place.dtype,
            layout: Cow::Owned(layout),
            is_big_endian: place.is_big_endian,
            quantization: None,
        })
    }

    /// The scale or the zero of each channel.
    fn channel_numbers(&self, tensor: &Tensor, role: &str) -> Result<Vec<f64>> {
        let view = tensor.views.iter().find(|view| view.role == role);
        let is_readable = |view: &&View| {
            view.layout.elements().is_some_and(|count| count <= MAX_CHANNELS)
                && Strided::contiguous(view.layout.shape.clone())
                    .is_some_and(|plain| plain.stride == view.layout.stride)
                && matches!(
                    view.dtype,
                    DType::Float64 | DType::Float32 | DType::Int64 | DType::Int32
                )
        };
        let Some(view) = view.filter(is_readable) else {
            return Err(Error::argument(format!("{} has no {role}", tensor.name)));
        };
        let numbers = self.of_view(view);
        let width = u64::from(view.dtype.bits() / 8);
        let span = view.layout.span().filter(|span| span.end <= numbers.storage_bytes / width);
        let Some(span) = span else {
            let name = &tensor.name;
            return Err(Error::argument(format!("the {role} of {name} are not in the file")));
        };
        let mut bytes = vec![0; ((span.end - span.start) * width) as usize];
        numbers.source.read_at(numbers.start + span.start * width, &mut bytes)?;
        let number = |bytes: &[u8]| {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            if numbers.is_big_endian {
                eight[..bytes.len()].reverse();
            }
            match view.dtype {
                DType::Float64 => f64::from_le_bytes(eight),
                DType::Float32 => f64::from(f32::from_bits(u64::from_le_bytes(eight) as u32)),
                DType::Int32 => f64::from(u64::from_le_bytes(eight) as i32),
                _ => i64::from_le_bytes(eight) as f64,
            }
        };
        Ok(bytes.chunks_exact(width.max(1) as usize).map(number).collect())
    }
}

/// The part of a tensor that its statistics are about.
fn main_view(tensor: &Tensor) -> Result<&View> {
    let name = &tensor.name;
    match tensor.views.as_slice() {
        [] if tensor.kind == "meta" => {
            Err(Error::argument(format!("{name} is on the meta device: it has no numbers")))
        }
        [] => Err(Error::argument(format!("the numbers of {name} are not in the file"))),
        [only] => Ok(only),
        several => several
            .iter()
            .find(|view| view.role == "values")
            .ok_or_else(|| Error::argument(format!("{name} is made of {} tensors", several.len()))),
    }
}

/// Where the numbers of a view are, and what they mean.
pub(super) struct Numbers<'a> {
    source: Source<'a>,
    start: u64,
    storage_bytes: u64,
    dtype: DType,
    pub layout: Cow<'a, Strided>,
    is_big_endian: bool,
    quantization: Option<Quantization>,
}

impl Numbers<'_> {
    pub fn elements(&self) -> Elements<'_> {
        Elements {
            bytes: &self.source,
            start: self.start,
            storage_bytes: self.storage_bytes,
            dtype: self.dtype,
            layout: &self.layout,
            is_big_endian: self.is_big_endian,
            quantization: self.quantization.clone(),
        }
    }
}

enum Source<'a> {
    File(&'a CheckpointFile),
    Memory(Cow<'a, [u8]>),
    Deflated(Box<Inflating<'a>>),
}

impl Bytes for Source<'_> {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<()> {
        match self {
            Self::File(file) => file.read_at(at, into),
            Self::Memory(bytes) => {
                let from = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
                match from.and_then(|from| from.get(..into.len())) {
                    Some(found) => {
                        into.copy_from_slice(found);
                        Ok(())
                    }
                    None => Err(Error::checkpoint("an array has fewer bytes than elements", at)),
                }
            }
            Self::Deflated(bytes) => bytes.read_at(at, into),
        }
    }

    fn is_sequential(&self) -> bool {
        matches!(self, Self::Deflated(_))
    }
}

const BLOCK: u64 = 1 << 18;
/// How many blocks are kept: threads read a little apart from each other.
const KEPT: usize = 64;

/// A storage that is packed, unpacked as it is read. Reading on from the last position costs nothing
/// extra; going back by more than 16 MiB starts again from the beginning.
struct Inflating<'a> {
    file: &'a CheckpointFile,
    start: u64,
    packed_bytes: u64,
    bytes: u64,
    state: Mutex<Unpacked<'a>>,
}

struct Unpacked<'a> {
    decoder: flate2::read::DeflateDecoder<Window<'a>>,
    /// The number of the block that comes next.
    next: u64,
    /// The last blocks, and their numbers.
    kept: std::collections::VecDeque<(u64, Vec<u8>)>,
}

impl<'a> Inflating<'a> {
    fn new(file: &'a CheckpointFile, storage: &Storage) -> Self {
        let Storage { start, packed_bytes, bytes, .. } = *storage;
        let decoder = file.inflate(start, packed_bytes);
        let state = Unpacked { decoder, next: 0, kept: std::collections::VecDeque::new() };
        Self { file, start, packed_bytes, bytes, state: Mutex::new(state) }
    }

    fn read_at(&self, mut at: u64, mut into: &mut [u8]) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !into.is_empty() {
            let block = self.block(&mut state, at / BLOCK)?;
            let from = (at % BLOCK) as usize;
            let Some(found) = block.get(from..).filter(|found| !found.is_empty()) else {
                return Err(Error::checkpoint("a packed storage is cut off", self.start));
            };
            let count = found.len().min(into.len());
            into[..count].copy_from_slice(&found[..count]);
            into = &mut into[count..];
            at += count as u64;
        }
        Ok(())
    }

    fn block<'s>(&self, state: &'s mut Unpacked<'a>, number: u64) -> Result<&'s [u8]> {
        let oldest = state.kept.front().map_or(state.next, |block| block.0);
        if number < oldest {
            state.decoder = self.file.inflate(self.start, self.packed_bytes);
            state.next = 0;
            state.kept.clear();
        }
        while state.next <= number {
            let length = self.bytes.saturating_sub(state.next * BLOCK).min(BLOCK);
            let mut block = Vec::with_capacity(length as usize);
            (&mut state.decoder).take(length).read_to_end(&mut block).map_err(|error| {
                Error::checkpoint(format!("a packed storage is damaged: {error}"), self.start)
            })?;
            if (block.len() as u64) < length || length == 0 {
                return Err(Error::checkpoint("a packed storage is cut off", self.start));
            }
            if state.kept.len() == KEPT {
                state.kept.pop_front();
            }
            state.kept.push_back((state.next, block));
            state.next += 1;
        }
        let oldest = state.kept.front().map_or(0, |block| block.0);
        Ok(&state.kept[(number - oldest) as usize].1)
    }
}
