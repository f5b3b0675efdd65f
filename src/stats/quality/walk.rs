//! The elements of a tensor in the order of its storage, each with its index along the first dimension.
//!
//! In that order a tensor is an array of three dimensions: what is outside the first dimension of its shape
//! (nothing, unless it is transposed), the first dimension, and what is inside.

use std::ops::Range;

use pulp::{Arch, Simd};

use super::super::gather::{Gather, Window};
use super::super::moments::BLOCK;
use super::super::plan::{Affine, Grain, MAX_TASKS, check_channels, check_repeats};
use super::super::values::Values;
use super::super::{Blocks, Elements, Quantization, Sink, broken};
use crate::error::Result;
use crate::strided::Dim;

/// Where a dimension is among elements that come one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Along {
    /// How many indexes there are.
    pub size: u64,
    /// How many elements in a row have the same index.
    pub inner: u64,
}

impl Along {
    /// A dimension that is not there: all have the index 0.
    pub const NOWHERE: Self = Self { size: 1, inner: 1 << 62 };

    /// The index of an element.
    #[inline(always)]
    pub fn index(self, at: u64) -> u64 {
        at / self.inner % self.size
    }

    /// Cuts some elements, from the first on, into runs of the same index.
    #[inline(always)]
    pub fn runs(self, first: u64, count: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
        let (mut index, mut at) = (self.index(first), 0);
        let mut length = self.inner - first % self.inner;
        std::iter::from_fn(move || {
            let run = at..(length.min((count - at) as u64) as usize + at);
            let next = (run.start < count).then_some((index, run.clone()));
            index = if index + 1 == self.size { 0 } else { index + 1 };
            (at, length) = (run.end, self.inner);
            next
        })
    }
}

/// The elements of a tensor, expanded ones once.
pub(super) struct Walk<'a> {
    gather: Gather<'a>,
    pub values: &'a Values,
    affine: Affine,
    /// What the numbers of each channel stand for, if that depends on it.
    by_channel: Option<(Along, Vec<Affine>)>,
    /// How often each element is meant.
    pub copies: u64,
    /// The first dimension, among numbers.
    pub first: Along,
    pub threads: usize,
    chunk_units: u64,
}

/// What a thread needs for its work.
pub(super) struct Room {
    units: Vec<u8>,
    window: Window,
    numbers: Vec<f64>,
}

impl Default for Room {
    fn default() -> Self {
        Self { units: Vec::new(), window: Window::default(), numbers: vec![0.0; 2 * BLOCK] }
    }
}

impl<'a> Walk<'a> {
    /// The tensor must have elements.
    pub fn new(elements: &Elements<'a>, values: &'a Values, grain: Grain) -> Result<Self> {
        let layout = elements.layout;
        let nonsense = || broken("a tensor's shape and strides make no sense", elements.start);
        layout.span().ok_or_else(nonsense)?;
        check_channels(elements)?;
        let axis = match &elements.quantization {
            Some(Quantization::Channel { axis, .. }) => Some(*axis),
            _ => None,
        };
        let mut copies = 1;
        let mut dims = Vec::new();
        for (at, (&size, &stride)) in layout.shape.iter().zip(&layout.stride).enumerate() {
            if stride == 0 && axis != Some(at) {
                copies *= size;
            } else if size > 1 {
                dims.push((at, Dim { size, stride: stride.unsigned_abs() }));
            }
        }
        dims.sort_by_key(|(_, dim)| std::cmp::Reverse(dim.stride));
        let values_of_element = values.values_of_element();
        let along = |wanted: usize| match dims.iter().position(|&(at, _)| at == wanted) {
            Some(place) => {
                let inner: u64 = dims[place + 1..].iter().map(|(_, dim)| dim.size).product();
                Along { size: dims[place].1.size, inner: inner * values_of_element }
            }
            None => Along::NOWHERE,
        };
        let by_channel = match &elements.quantization {
            Some(Quantization::Channel { axis, scales, zero_points }) => {
                let affine = zero_points.iter().zip(scales).map(|(&z, &s)| Affine::new(z, s));
                Some((along(*axis), affine.collect()))
            }
            _ => None,
        };
        let first = along(0);
        let mut joined: Vec<Dim> = Vec::with_capacity(dims.len());
        for (_, dim) in dims {
            match joined.last_mut() {
                Some(outer) if dim.stride.checked_mul(dim.size) == Some(outer.stride) => {
                    *outer = Dim { size: outer.size * dim.size, stride: dim.stride };
                }
                _ => joined.push(dim),
            }
        }
        let count = joined.iter().map(|dim| dim.size).product();
        check_repeats(count, elements.storage_bytes, values, elements.start)?;
        let is_small = count.saturating_mul(values.unit_bytes as u64) < grain.alone_bytes;
        Ok(Self {
            gather: Gather::new(elements, values, layout.offset, joined)?,
            values,
            affine: Affine::of(elements),
            by_channel,
            copies,
            first,
            threads: if is_small { 1 } else { grain.threads },
            chunk_units: (grain.chunk_bytes / values.unit_bytes).max(1) as u64,
        })
    }

    /// How many elements are read.
    pub fn elements(&self) -> u64 {
        self.gather.elements()
    }

    /// How many numbers they are.
    pub fn numbers(&self) -> u64 {
        self.elements() * self.values.values_of_element()
    }

    /// Divides the work into at most this many tasks: how many elements each has, and how many there are.
    pub fn tasks(&self, most: u64) -> (u64, u64) {
        let chunks = self.elements().div_ceil(self.chunk_units);
        let of_task = chunks.div_ceil(most.clamp(1, MAX_TASKS)).max(1) * self.chunk_units;
        (of_task, self.elements().div_ceil(of_task))
    }

    /// Shows the sink all numbers of some elements, a block at a time, with the best instructions that the
    /// processor has.
    pub fn show(&self, elements: Range<u64>, room: &mut Room, sink: &mut impl Sink) -> Result<()> {
        let Room { units, window, numbers } = room;
        let (values, affine) = (self.values, self.affine);
        let sink = &mut Scaled { by_channel: self.by_channel.as_ref(), sink };
        let end = elements.end.min(self.elements());
        let mut at = elements.start;
        while at < end {
            let count = self.chunk_units.min(end - at);
            self.gather.fill(at, count as usize, window, units)?;
            let first = at * values.values_of_element();
            Arch::new().dispatch(Blocks { values, affine, first, units, numbers, sink });
            at += count;
        }
        Ok(())
    }
}

/// Scales the numbers of each channel.
struct Scaled<'a, S> {
    by_channel: Option<&'a (Along, Vec<Affine>)>,
    sink: &'a mut S,
}

impl<S: Sink> Sink for Scaled<'_, S> {
    #[inline(always)]
    fn add<V: Simd>(&mut self, simd: V, first: u64, numbers: &mut [f64], denormal: u64) {
        if let Some((along, affine)) = self.by_channel {
            for (index, run) in along.runs(first, numbers.len()) {
                affine[index as usize].apply(&mut numbers[run]);
            }
        }
        self.sink.add(simd, first, numbers, denormal);
    }
}
