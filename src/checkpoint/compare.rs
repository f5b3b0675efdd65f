//! How a tensor of one checkpoint differs from one of another, whatever it is made of.

use super::open::Checkpoint;
use super::{Quantized, Tensor, View};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::stats::{self, Difference};

impl Checkpoint {
    /// How a tensor differs from one of another checkpoint with the same type and shape.
    ///
    /// Of a sparse or a nested tensor, the places of the values must be the same before values can be
    /// compared; if they are not, all of it has changed.
    pub fn compare(
        &self,
        tensor: usize,
        other: &Self,
        other_tensor: usize,
        progress: &Progress<'_>,
    ) -> Result<Difference> {
        let (one, two) = (&self.tensors[tensor], &other.tensors[other_tensor]);
        if one.dtype != two.dtype || one.shape != two.shape {
            let reason = format!("{} and {} differ in type or shape", one.name, two.name);
            return Err(Error::argument(reason));
        }
        let is_made_of_several =
            |tensor: &Tensor| tensor.views.len() > 1 && tensor.quantized.is_none();
        if is_made_of_several(one) || is_made_of_several(two) {
            return self.compare_parts(one, other, two, progress);
        }
        let (a, b) = (self.numbers(tensor)?, other.numbers(other_tensor)?);
        let is_turned = |tensor: &Tensor| tensor.quantized == Some(Quantized::Conjugate);
        if a.layout.shape != b.layout.shape || is_turned(one) != is_turned(two) {
            return Ok(all_changed(a.layout.elements().unwrap_or(0)));
        }
        stats::compare(&a.elements(), &b.elements(), progress)
            .map_err(|error| error.in_file(self.files[0].path()))
    }

    /// Compares part by part. Distances are those of the values.
    fn compare_parts(
        &self,
        one: &Tensor,
        other: &Self,
        two: &Tensor,
        progress: &Progress<'_>,
    ) -> Result<Difference> {
        let main = |view: &&View| view.role == "values";
        let count = one.views.iter().find(main).or(one.views.first());
        let count = count.and_then(|view| view.layout.elements()).unwrap_or(0);
        let is_alike = |(a, b): (&View, &View)| {
            a.role == b.role && a.dtype == b.dtype && a.layout.shape == b.layout.shape
        };
        let pairs = || one.views.iter().zip(&two.views);
        if one.kind != two.kind || one.views.len() != two.views.len() || !pairs().all(is_alike) {
            return Ok(all_changed(count));
        }
        let parts = one.views.len() as f64;
        let mut whole: Option<Difference> = None;
        for (done, (a, b)) in pairs().enumerate() {
            let progress = progress.part(done as f64 / parts, (done + 1) as f64 / parts);
            let (a_numbers, b_numbers) = (self.of_view(a), other.of_view(b));
            let part = stats::compare(&a_numbers.elements(), &b_numbers.elements(), &progress)
                .map_err(|error| error.in_file(self.files[0].path()))?;
            if a.role == "values" || !one.views.iter().any(|view| view.role == "values") {
                whole = Some(match whole {
                    Some(whole) => together(&whole, &part),
                    None => part,
                });
            } else if !part.is_equal {
                return Ok(all_changed(count));
            }
        }
        Ok(whole.unwrap_or_else(|| all_changed(count)))
    }
}

/// What is not in the same place, or not of the same make, has no distance.
fn all_changed(count: u64) -> Difference {
    Difference {
        is_equal: false,
        changed: count,
        count,
        to_nonfinite: 0,
        from_nonfinite: 0,
        max_abs: None,
        mean_abs: None,
        relative_l2: None,
    }
}

/// Two parts of a tensor that is nothing but its parts.
fn together(a: &Difference, b: &Difference) -> Difference {
    Difference {
        is_equal: a.is_equal && b.is_equal,
        changed: a.changed.saturating_add(b.changed),
        count: a.count.saturating_add(b.count),
        to_nonfinite: a.to_nonfinite.saturating_add(b.to_nonfinite),
        from_nonfinite: a.from_nonfinite.saturating_add(b.from_nonfinite),
        max_abs: [a.max_abs, b.max_abs].into_iter().flatten().reduce(f64::max),
        mean_abs: None,
        relative_l2: None,
    }
}
