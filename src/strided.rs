//! The layout of a tensor in its storage: a shape, a stride for each dimension, and an offset.
//!
//! The numbers come from files, so every sum is checked: a layout that leaves 64 bits, or that has a
//! negative stride (torch has none), has no span and no pattern.
//!
//! A [`Pattern`] is the same elements in the order of the storage, with as few dimensions as possible:
//! a transposed tensor becomes one run, an expanded one a run and a number of copies.
//!
//! # Invariants
//!
//! A pattern and its layout name the same elements of the storage, each as often. A pattern has at
//! most 63 dimensions, because every one of them has two elements or more.
//!
//! # Cost
//!
//! `O(dimensions × log dimensions)`; walking the runs `O(runs)`, each amortised constant.

use std::cmp::Reverse;
use std::ops::Range;

/// Where the elements of a view are, counted in elements of its storage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Strided {
    /// How many elements there are along each dimension.
    pub shape: Vec<u64>,
    /// How far apart two neighbours along each dimension are; 0 in an expanded one.
    pub stride: Vec<i64>,
    /// Where the first element is.
    pub offset: u64,
}

impl Strided {
    /// Elements in a row, the last dimension the closest together; none if they leave 64 bits.
    #[must_use]
    pub fn contiguous(shape: Vec<u64>) -> Option<Self> {
        let mut stride = vec![0; shape.len()];
        let mut step = 1i64;
        for (stride, &size) in stride.iter_mut().zip(&shape).rev() {
            *stride = step;
            step = step.checked_mul(i64::try_from(size).ok()?.max(1))?;
        }
        Some(Self { shape, stride, offset: 0 })
    }

    /// How many elements it has; none if that is beyond 2⁶⁴.
    #[must_use]
    pub fn elements(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size))
    }

    /// From the first element of the storage that it reaches to behind the last; empty if it has none.
    #[must_use]
    pub fn span(&self) -> Option<Range<u64>> {
        if self.shape.len() != self.stride.len() {
            return None;
        }
        if self.elements()? == 0 {
            return Some(self.offset..self.offset);
        }
        let mut end = self.offset.checked_add(1)?;
        for (&size, &stride) in self.shape.iter().zip(&self.stride) {
            if size > 1 {
                let last = u64::try_from(stride).ok()?.checked_mul(size - 1)?;
                end = end.checked_add(last)?;
            }
        }
        Some(self.offset..end)
    }

    /// The same elements in the order of the storage.
    #[must_use]
    pub fn pattern(&self) -> Option<Pattern> {
        self.span()?;
        let dims = self.shape.iter().zip(&self.stride);
        let dims = dims.map(|(&size, &stride)| (size, [stride.unsigned_abs()]));
        let (copies, dims) = merge(dims.collect());
        let dims = dims.into_iter().map(|(size, [stride])| Dim { size, stride }).collect();
        Some(Pattern { offset: self.offset, copies, dims })
    }
}

/// One dimension of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dim {
    /// How many there are; at least 2.
    pub size: u64,
    /// How far apart.
    pub stride: u64,
}

/// Elements of a storage in its order: the widest stride first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// Where the first element is.
    pub offset: u64,
    /// How often each element is meant (expanded dimensions); 0 if there are no elements.
    pub copies: u64,
    /// The dimensions, the widest stride first; none of them is expanded.
    pub dims: Vec<Dim>,
}

impl Pattern {
    /// How many elements a walk over it meets; expanded ones once.
    #[must_use]
    pub fn elements(&self) -> u64 {
        if self.copies == 0 { 0 } else { self.dims.iter().map(|dim| dim.size).product() }
    }

    /// From the first element to behind the last.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        match self.copies {
            0 => self.offset..self.offset,
            _ => self.offset..self.offset + extent(&self.dims),
        }
    }

    /// Whether it is one row of neighbours (or one element, or none).
    #[must_use]
    pub fn is_dense(&self) -> bool {
        matches!(self.dims.as_slice(), [] | [Dim { stride: 1, .. }])
    }

    /// Whether each dimension steps over all that is inside it: no element comes twice, and a walk
    /// goes upwards. Otherwise elements may come twice (`unfold`, `as_strided`), or may not.
    #[must_use]
    pub fn nests(&self) -> bool {
        (0..self.dims.len()).all(|at| self.dims[at].stride >= extent(&self.dims[at + 1..]))
    }

    /// The same set of elements, each once where that can be said with dimensions: windows that slide
    /// over a row become the row.
    #[must_use]
    pub fn distinct(&self) -> Self {
        let mut dims: Vec<Dim> = Vec::with_capacity(self.dims.len());
        for &outer in self.dims.iter().rev() {
            match dims.last_mut() {
                // n steps of k·t over m elements that are t apart: n·k + m − k elements, t apart.
                Some(inner)
                    if outer.stride % inner.stride == 0
                        && outer.stride / inner.stride <= inner.size =>
                {
                    inner.size += (outer.size - 1) * (outer.stride / inner.stride);
                }
                _ => dims.push(outer),
            }
        }
        dims.reverse();
        Self { offset: self.offset, copies: self.copies.min(1), dims }
    }

    /// How many runs [`Self::runs`] gives.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        if self.copies == 0 { 0 } else { self.split().0.iter().map(|dim| dim.size).product() }
    }

    /// Rows of neighbours as (first element, how many); upwards and apart if the pattern nests.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        let (outer, length) = self.split();
        Runs {
            dims: outer,
            length,
            at: (self.copies > 0).then_some(self.offset),
            index: vec![0; outer.len()],
        }
    }

    /// The dimensions around the innermost row, and how long that is.
    fn split(&self) -> (&[Dim], u64) {
        match self.dims.as_slice() {
            [outer @ .., Dim { size, stride: 1 }] => (outer, *size),
            dims => (dims, 1),
        }
    }
}

/// The runs of a pattern.
#[derive(Debug, Clone)]
pub struct Runs<'a> {
    dims: &'a [Dim],
    length: u64,
    at: Option<u64>,
    index: Vec<u64>,
}

impl Iterator for Runs<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let start = self.at?;
        let mut at = start;
        self.at = None;
        for (dim, index) in self.dims.iter().zip(&mut self.index).rev() {
            *index += 1;
            if *index < dim.size {
                self.at = Some(at + dim.stride);
                break;
            }
            *index = 0;
            at -= dim.stride * (dim.size - 1);
        }
        Some((start, self.length))
    }
}

/// How many elements are between the first and the last of some dimensions, both included.
fn extent(dims: &[Dim]) -> u64 {
    dims.iter().map(|dim| (dim.size - 1) * dim.stride).sum::<u64>() + 1
}

/// Puts dimensions of one or several layouts of the same shape (the size, and the stride in each) into
/// the first layout's order and joins those that follow each other in all of them.
///
/// Returns how often each element is meant, and the dimensions that are left.
pub(crate) fn merge<const N: usize>(mut dims: Vec<(u64, [u64; N])>) -> (u64, Vec<(u64, [u64; N])>) {
    if dims.iter().any(|dim| dim.0 == 0) {
        return (0, Vec::new());
    }
    let is_expanded = |dim: &(u64, [u64; N])| dim.1 == [0; N];
    let copies = dims.iter().filter(|dim| is_expanded(dim)).map(|dim| dim.0).product();
    dims.retain(|dim| dim.0 > 1 && !is_expanded(dim));
    dims.sort_by_key(|dim| Reverse(dim.1));
    let mut merged: Vec<(u64, [u64; N])> = Vec::with_capacity(dims.len());
    for (size, stride) in dims {
        match merged.last_mut() {
            Some((outer, apart))
                if (0..N).all(|n| stride[n].checked_mul(size) == Some(apart[n])) =>
            {
                *outer *= size;
                *apart = stride;
            }
            _ => merged.push((size, stride)),
        }
    }
    (copies, merged)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every element that a layout names, by counting.
    pub fn places(layout: &Strided) -> Vec<u64> {
        let mut places = vec![layout.offset];
        for (&size, &stride) in layout.shape.iter().zip(&layout.stride) {
            let one = |place: u64| (0..size).map(move |index| place + index * stride as u64);
            places = places.into_iter().flat_map(one).collect();
        }
        places
    }

    /// Layouts of any kind: dense, transposed, strided, expanded, sliding, empty.
    pub fn layouts() -> impl Strategy<Value = Strided> {
        let free = proptest::collection::vec((0u64..5, 0i64..14), 0..4)
            .prop_map(|dims| dims.into_iter().unzip());
        let dense = proptest::collection::vec(1u64..6, 0..4)
            .prop_map(|shape| Strided::contiguous(shape).unwrap())
            .prop_map(|layout| (layout.shape, layout.stride));
        let turned = dense.clone().prop_map(|(mut shape, mut stride)| {
            shape.reverse();
            stride.reverse();
            (shape, stride)
        });
        (prop_oneof![free, dense, turned], 0u64..9).prop_map(|((shape, stride), offset)| Strided {
            shape,
            stride,
            offset,
        })
    }

    fn layout(shape: &[u64], stride: &[i64]) -> Strided {
        Strided { shape: shape.to_vec(), stride: stride.to_vec(), offset: 0 }
    }

    #[test]
    fn a_transposed_tensor_is_one_run() {
        let pattern = layout(&[4, 3, 5], &[1, 20, 4]).pattern().unwrap();

        assert!(pattern.is_dense());
        assert_eq!(pattern.runs().collect::<Vec<_>>(), [(0, 60)]);
    }

    #[test]
    fn an_expanded_dimension_is_a_number_of_copies() {
        let pattern = layout(&[7, 3], &[0, 1]).pattern().unwrap();

        assert_eq!((pattern.copies, pattern.elements()), (7, 3));
    }

    #[test]
    fn windows_that_slide_over_a_row_reach_the_row() {
        let pattern = layout(&[8, 3], &[1, 1]).pattern().unwrap();

        assert!(!pattern.nests());
        assert_eq!(pattern.distinct().runs().collect::<Vec<_>>(), [(0, 10)]);
    }

    #[test]
    fn layouts_that_leave_64_bits_have_no_span() {
        assert_eq!(layout(&[u64::MAX, 2], &[1, 1]).elements(), None);
        assert_eq!(layout(&[4], &[i64::MAX]).span(), None);
        assert_eq!(layout(&[2], &[-1]).span(), None);
        assert_eq!(layout(&[2], &[]).span(), None);
        assert_eq!(layout(&[u64::MAX, 2, 0], &[1, 1, 1]).span(), Some(0..0));
        assert_eq!(Strided { offset: u64::MAX, ..layout(&[], &[]) }.span(), None);
    }

    proptest! {
        #[test]
        fn a_pattern_names_the_elements_of_its_layout_as_often(layout in layouts()) {
            let pattern = layout.pattern().unwrap();
            let mut expected = places(&layout);
            expected.sort_unstable();

            let runs = pattern.runs().flat_map(|(start, length)| start..start + length);
            let copies = |place| std::iter::repeat_n(place, pattern.copies as usize);
            let mut met: Vec<u64> = runs.flat_map(copies).collect();
            let upwards = met.is_sorted();
            met.sort_unstable();

            prop_assert_eq!(layout.elements(), Some(expected.len() as u64));
            prop_assert_eq!(pattern.elements() * pattern.copies, expected.len() as u64);
            prop_assert_eq!(pattern.runs().count() as u64, pattern.run_count());
            prop_assert_eq!(&met, &expected);
            prop_assert_eq!(layout.span(), Some(pattern.span()));
            if let (Some(first), Some(last)) = (expected.first(), expected.last()) {
                prop_assert_eq!(pattern.span(), *first..*last + 1);
            }

            expected.dedup();
            if pattern.nests() {
                prop_assert!(upwards);
                prop_assert_eq!(pattern.elements(), expected.len() as u64);
            }
            let distinct = pattern.distinct();
            let runs = distinct.runs().flat_map(|(start, length)| start..start + length);
            let mut met: Vec<u64> = runs.collect();
            met.sort_unstable();
            met.dedup();
            prop_assert_eq!(met, expected);
        }
    }
}
