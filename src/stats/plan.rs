//! Which elements are read together, and on which thread.
//!
//! A plan has parts (one, or one for each channel that is quantized in its own way), parts have chunks
//! (what a buffer holds), and some chunks in a row are a task (what a thread does at once).

use super::gather::{Gather, Window};
use super::moments::BLOCK;
use super::parallel::Threads;
use super::values::Values;
use super::{Elements, Quantization, broken};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::strided::{self, Dim, Strided};

/// More tasks than this would only take memory.
pub(super) const MAX_TASKS: u64 = 1 << 14;

/// A view that repeats its storage more often than this, and has more elements than that, is not one that
/// somebody made to compute with: measuring it could take days.
const MAX_REPEATS: u64 = 64;
const MANY: u64 = 1 << 32;

/// How work is cut; the tests use small numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grain {
    /// How many bytes of units a chunk has.
    pub chunk_bytes: usize,
    /// How many bytes are too few for threads.
    pub alone_bytes: u64,
    pub threads: usize,
}

impl Grain {
    pub fn usual() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { chunk_bytes: 256 << 10, alone_bytes: 1 << 20, threads }
    }
}

/// What numbers stand for: (x − zero point) × scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Affine(Option<(f64, f64)>);

impl Affine {
    pub fn new(zero_point: f64, scale: f64) -> Self {
        Self(Some((zero_point, scale)))
    }

    /// What all elements of a tensor stand for, if they are not quantized by channels.
    pub fn of(elements: &Elements<'_>) -> Self {
        match elements.quantization {
            Some(Quantization::Tensor { scale, zero_point }) => Self::new(zero_point as f64, scale),
            _ => Self(None),
        }
    }

    #[inline(always)]
    pub fn value(self, x: f64) -> f64 {
        self.0.map_or(x, |(zero_point, scale)| (x - zero_point) * scale)
    }

    #[inline(always)]
    pub fn apply(self, numbers: &mut [f64]) {
        if let Some((zero_point, scale)) = self.0 {
            for x in numbers {
                *x = (*x - zero_point) * scale;
            }
        }
    }
}

/// Elements that are converted in the same way; of several tensors, those at the same indexes.
pub(super) struct Part<'a, const N: usize> {
    pub gather: [Gather<'a>; N],
    pub affine: [Affine; N],
    /// The number of its first chunk.
    first_chunk: u64,
}

/// All elements of a tensor, or of several of the same type and shape, side by side.
pub(super) struct Plan<'a, const N: usize> {
    pub parts: Vec<Part<'a, N>>,
    /// How often each element is meant.
    pub copies: u64,
    chunk_units: u64,
    chunks: u64,
    chunks_of_task: u64,
    threads: usize,
}

/// What a thread needs for its work.
pub(super) struct Buffers<const N: usize> {
    units: [Vec<u8>; N],
    windows: [Window; N],
    numbers: [Vec<f64>; N],
}

impl<const N: usize> Default for Buffers<N> {
    fn default() -> Self {
        Self {
            units: [const { Vec::new() }; N],
            windows: std::array::from_fn(|_| Window::default()),
            numbers: std::array::from_fn(|_| vec![0.0; 2 * BLOCK]),
        }
    }
}

impl<'a, const N: usize> Plan<'a, N> {
    pub fn of(tensors: [&Elements<'a>; N], values: &Values, grain: Grain) -> Result<Self> {
        let mut plan = Self {
            parts: Vec::new(),
            copies: 1,
            chunk_units: (grain.chunk_bytes / values.unit_bytes).max(1) as u64,
            chunks: 0,
            chunks_of_task: 1,
            threads: 1,
        };
        let axis = common_axis(&tensors)?;
        let mut ways = Vec::with_capacity(N);
        for elements in tensors {
            ways.push(slices(elements, axis)?);
        }
        let mut bytes = 0u64;
        for way in 0..ways.first().map_or(0, Vec::len) {
            let layouts: [&Strided; N] = std::array::from_fn(|n| &ways[n][way].0);
            let (copies, dims) = strided::merge(joined(layouts));
            plan.copies = copies;
            if copies == 0 {
                continue;
            }
            let count = dims.iter().map(|dim| dim.0).product::<u64>();
            let longest = tensors.iter().map(|elements| elements.storage_bytes).max().unwrap_or(0);
            check_repeats(count, longest, values, tensors[0].start)?;
            let mut gather = Vec::with_capacity(N);
            for n in 0..N {
                let dims = dims.iter().map(|&(size, stride)| Dim { size, stride: stride[n] });
                let offset = layouts[n].offset;
                gather.push(Gather::new(tensors[n], values, offset, dims.collect())?);
            }
            let Ok(gather) = gather.try_into() else { unreachable!("there are as many as N") };
            let affine = std::array::from_fn(|n| ways[n][way].1);
            plan.parts.push(Part { gather, affine, first_chunk: plan.chunks });
            plan.chunks += count.div_ceil(plan.chunk_units);
            bytes = bytes.saturating_add(count.saturating_mul(values.unit_bytes as u64));
        }
        plan.chunks_of_task = plan.chunks.div_ceil(MAX_TASKS).max(1);
        if bytes >= grain.alone_bytes {
            plan.threads = grain.threads.min(usize::try_from(plan.tasks()).unwrap_or(usize::MAX));
        }
        Ok(plan)
    }

    /// How many elements are read.
    pub fn elements(&self) -> u64 {
        self.parts.iter().map(|part| part.gather[0].elements()).sum()
    }

    pub fn tasks(&self) -> u64 {
        self.chunks.div_ceil(self.chunks_of_task)
    }

    pub fn threads<'p>(&self, progress: &'p Progress<'p>) -> Threads<'p> {
        Threads { count: self.threads, progress }
    }

    /// Shows all units of a task, chunk by chunk, with room for a block of numbers.
    pub fn chunks(
        &self,
        task: u64,
        buffers: &mut Buffers<N>,
        mut show: impl FnMut(&Part<'a, N>, &[Vec<u8>; N], &mut [Vec<f64>; N]),
    ) -> Result<()> {
        let Buffers { units, windows, numbers } = buffers;
        let first = task * self.chunks_of_task;
        for chunk in first..(first + self.chunks_of_task).min(self.chunks) {
            let part = self.parts.partition_point(|part| part.first_chunk <= chunk) - 1;
            let part = &self.parts[part];
            let first = (chunk - part.first_chunk) * self.chunk_units;
            let count = (part.gather[0].elements() - first).min(self.chunk_units) as usize;
            for ((gather, window), units) in part.gather.iter().zip(&mut *windows).zip(&mut *units)
            {
                gather.fill(first, count, window, units)?;
            }
            show(part, units, numbers);
        }
        Ok(())
    }
}

/// Refuses to read a storage unreasonably often.
pub(super) fn check_repeats(count: u64, bytes: u64, values: &Values, start: u64) -> Result<()> {
    let storage = u128::from(bytes) * 8 / u128::from(values.bits);
    if count > MANY && u128::from(count) > storage * u128::from(MAX_REPEATS) {
        return Err(broken("a tensor repeats its storage too often to be measured", start));
    }
    Ok(())
}

/// Refuses scales that are not as many as the indexes along their dimension.
pub(super) fn check_channels(elements: &Elements<'_>) -> Result<()> {
    if let Some(Quantization::Channel { axis, scales, zero_points }) = &elements.quantization {
        let channels = elements.layout.shape.get(*axis).map(|&size| size as usize);
        if channels != Some(scales.len()) || scales.len() != zero_points.len() {
            let reason = "a quantized tensor does not have one scale for each channel";
            return Err(broken(reason, elements.start));
        }
    }
    Ok(())
}

/// The dimension along which some tensor is quantized, if any is.
fn common_axis(tensors: &[&Elements<'_>]) -> Result<Option<usize>> {
    let mut common = None;
    for elements in tensors {
        if let Some(Quantization::Channel { axis, .. }) = &elements.quantization {
            if common.is_some_and(|common| common != *axis) {
                return Err(Error::argument(
                    "the tensors are quantized along different dimensions",
                ));
            }
            common = Some(*axis);
        }
    }
    Ok(common)
}

/// The layouts of the parts, one for each index along the axis, and what their numbers stand for.
fn slices(elements: &Elements<'_>, axis: Option<usize>) -> Result<Vec<(Strided, Affine)>> {
    let layout = elements.layout;
    let nonsense = || broken("a tensor's shape and strides make no sense", elements.start);
    layout.span().ok_or_else(nonsense)?;
    let whole = Affine::of(elements);
    let Some(axis) = axis else { return Ok(vec![(layout.clone(), whole)]) };
    let channels = layout.shape.get(axis).copied().ok_or_else(nonsense)?;
    let affine = |index: usize| match &elements.quantization {
        Some(Quantization::Channel { scales, zero_points, .. }) => {
            Affine::new(zero_points[index], scales[index])
        }
        _ => whole,
    };
    check_channels(elements)?;
    let mut rest = layout.clone();
    rest.shape.remove(axis);
    let stride = rest.stride.remove(axis).unsigned_abs();
    let is_empty = layout.elements() == Some(0);
    let channel = |index: u64| {
        let ahead = if is_empty { 0 } else { index * stride };
        (Strided { offset: layout.offset + ahead, ..rest.clone() }, affine(index as usize))
    };
    Ok((0..channels).map(channel).collect())
}

/// The dimensions of layouts of the same shape: the size, and the stride in each.
fn joined<const N: usize>(layouts: [&Strided; N]) -> Vec<(u64, [u64; N])> {
    let shape = layouts.first().map_or(&[][..], |layout| &layout.shape);
    let strides = |at: usize| layouts.map(|layout| layout.stride[at].unsigned_abs());
    shape.iter().enumerate().map(|(at, &size)| (size, strides(at))).collect()
}
