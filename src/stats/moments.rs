//! Count, extremes, sums and central moments of numbers, block by block.
//!
//! A block fits into the first-level cache, so two passes over it cost little: the first finds its mean,
//! the second the moments around that very mean. Blocks are then merged by the pairwise formulas of Chan
//! and Pébay, which keeps the error near that of one rounding whatever the number of elements.
//!
//! The loops have no branch and use the vectors that the processor has. Written as loops over arrays of
//! plain floats, of which the compiler should make vectors, they took over four times as long. A
//! block with something that is not finite, or with zeros or denormals, is looked at once more, number by
//! number.

use pulp::Simd;

/// How many numbers a block has: 16 KiB, half of a small first-level cache.
pub(super) const BLOCK: usize = 2048;

/// Vectors that are added up independently of each other, so that additions need not wait.
const LANES: usize = 2;

/// Moments of finite numbers, and how many are not finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moments {
    /// How many are finite.
    pub count: u64,
    pub mean: f64,
    /// Sums of the second, third and fourth powers of the distance to the mean.
    pub powers: [f64; 3],
    pub min: f64,
    pub max: f64,
    /// The sum of the absolute values.
    pub l1: f64,
    pub zeros: u64,
    pub nan: u64,
    pub inf: u64,
    pub denormal: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            count: 0,
            mean: 0.0,
            powers: [0.0; 3],
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            l1: 0.0,
            zeros: 0,
            nan: 0,
            inf: 0,
            denormal: 0,
        }
    }
}

impl Moments {
    /// Adds a block of numbers, of which those closer to 0 than `smallest_normal` are denormal.
    #[inline(always)]
    pub fn add<V: Simd>(&mut self, simd: V, block: &[f64], smallest_normal: f64) {
        let first = FirstPass::of(simd, block);
        if !first.l1.is_finite() {
            // Something is not finite, or the sum is too large.
            self.merge(&slowly(block, smallest_normal));
            return;
        }
        let count = block.len() as u64;
        let FirstPass { min, max, l1, closest, .. } = first;
        let mean = if min < max { first.sum / count as f64 } else { min };
        let powers = second_pass(simd, block, mean);
        let mut moments = Self { count, mean, powers, min, max, l1, ..Self::default() };
        if closest < smallest_normal || closest == 0.0 {
            moments.zeros = block.iter().map(|&x| u64::from(x == 0.0)).sum();
            let small: u64 = block.iter().map(|&x| u64::from(x.abs() < smallest_normal)).sum();
            moments.denormal = small.saturating_sub(moments.zeros);
        }
        self.merge(&moments);
    }

    /// Adds one number that comes `count` times, with the mean known (or near).
    pub fn add_value(&mut self, value: f64, count: u64, mean: f64, smallest_normal: f64) {
        if value.is_nan() {
            self.nan += count;
        } else if value.is_infinite() {
            self.inf += count;
        } else {
            let (times, distance) = (count as f64, value - mean);
            let square = distance * distance;
            self.count += count;
            self.powers[0] += times * square;
            self.powers[1] += times * square * distance;
            self.powers[2] += times * square * square;
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.l1 += times * value.abs();
            self.zeros += if value == 0.0 { count } else { 0 };
            self.denormal += if value != 0.0 && value.abs() < smallest_normal { count } else { 0 };
        }
    }

    /// Adds what is known of other numbers.
    pub fn merge(&mut self, other: &Self) {
        self.zeros += other.zeros;
        self.nan += other.nan;
        self.inf += other.inf;
        self.denormal += other.denormal;
        if other.count == 0 {
            return;
        }
        if self.count > 0 {
            let (left, right) = (self.count as f64, other.count as f64);
            let count = left + right;
            let apart = other.mean - self.mean;
            let step = apart / count;
            let ([two, three, four], [two_too, three_too, four_too]) = (self.powers, other.powers);
            let square = step * step;
            let between = apart * step * left * right;
            self.mean =
                if left >= right { self.mean + step * right } else { other.mean - step * left };
            self.powers = [
                two + two_too + between,
                three
                    + three_too
                    + between * step * (left - right)
                    + 3.0 * step * (left * two_too - right * two),
                four + four_too
                    + between * square * (left * left - left * right + right * right)
                    + 6.0 * square * (left * left * two_too + right * right * two)
                    + 4.0 * step * (left * three_too - right * three),
            ];
        } else {
            (self.mean, self.powers) = (other.mean, other.powers);
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.l1 += other.l1;
    }
}

/// Sums and extremes of a block.
struct FirstPass {
    sum: f64,
    l1: f64,
    min: f64,
    max: f64,
    /// How close to 0 the closest is.
    closest: f64,
}

impl FirstPass {
    #[inline(always)]
    fn of<V: Simd>(simd: V, block: &[f64]) -> Self {
        let (vectors, rest) = V::as_simd_f64s(block);
        let (zero, infinity) = (simd.splat_f64s(0.0), simd.splat_f64s(f64::INFINITY));
        let mut sum = [zero; LANES];
        let mut l1 = [zero; LANES];
        let mut min = [infinity; LANES];
        let mut max = [simd.neg_f64s(infinity); LANES];
        let mut closest = [infinity; LANES];
        let (groups, last) = vectors.as_chunks::<LANES>();
        for group in groups {
            for lane in 0..LANES {
                let x = group[lane];
                let size = simd.abs_f64s(x);
                sum[lane] = simd.add_f64s(sum[lane], x);
                l1[lane] = simd.add_f64s(l1[lane], size);
                min[lane] = simd.min_f64s(min[lane], x);
                max[lane] = simd.max_f64s(max[lane], x);
                closest[lane] = simd.min_f64s(closest[lane], size);
            }
        }
        let mut pass = Self {
            sum: sum.map(|sum| simd.reduce_sum_f64s(sum)).iter().sum(),
            l1: l1.map(|l1| simd.reduce_sum_f64s(l1)).iter().sum(),
            min: least(min.map(|min| simd.reduce_min_f64s(min))),
            max: -least(max.map(|max| -simd.reduce_max_f64s(max))),
            closest: least(closest.map(|closest| simd.reduce_min_f64s(closest))),
        };
        for &x in pulp::bytemuck::cast_slice::<_, f64>(last).iter().chain(rest) {
            pass.sum += x;
            pass.l1 += x.abs();
            pass.min = pass.min.min(x);
            pass.max = pass.max.max(x);
            pass.closest = pass.closest.min(x.abs());
        }
        pass
    }
}

fn least(numbers: [f64; LANES]) -> f64 {
    numbers.into_iter().fold(f64::INFINITY, f64::min)
}

/// Sums of the second, third and fourth powers of the distances to the mean.
#[inline(always)]
fn second_pass<V: Simd>(simd: V, block: &[f64], mean: f64) -> [f64; 3] {
    let (vectors, rest) = V::as_simd_f64s(block);
    let (zero, around) = (simd.splat_f64s(0.0), simd.splat_f64s(mean));
    let mut powers = [[zero; LANES]; 3];
    let (groups, last) = vectors.as_chunks::<LANES>();
    for group in groups {
        for lane in 0..LANES {
            let distance = simd.sub_f64s(group[lane], around);
            let square = simd.mul_f64s(distance, distance);
            powers[0][lane] = simd.add_f64s(powers[0][lane], square);
            powers[1][lane] = simd.mul_add_e_f64s(square, distance, powers[1][lane]);
            powers[2][lane] = simd.mul_add_e_f64s(square, square, powers[2][lane]);
        }
    }
    let mut powers = powers.map(|lanes| lanes.map(|lane| simd.reduce_sum_f64s(lane)).iter().sum());
    for &x in pulp::bytemuck::cast_slice::<_, f64>(last).iter().chain(rest) {
        let distance = x - mean;
        let square = distance * distance;
        powers[0] += square;
        powers[1] += square * distance;
        powers[2] += square * square;
    }
    powers
}

/// Any block, in two passes over what is finite.
#[cold]
fn slowly(block: &[f64], smallest_normal: f64) -> Moments {
    let finite = || block.iter().copied().filter(|x| x.is_finite());
    let count = finite().count() as f64;
    // Divided first: the sum itself may be too large.
    let mean = finite().map(|x| x / count).sum();
    let mut moments = Moments { mean, ..Moments::default() };
    for &x in block {
        moments.add_value(x, 1, mean, smallest_normal);
    }
    moments
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(numbers: &[f64]) -> Moments {
        let mut moments = Moments::default();
        moments.add(pulp::Scalar, numbers, f64::MIN_POSITIVE);
        moments
    }

    fn near(left: f64, right: f64, scale: f64) -> bool {
        (left - right).abs() <= 1e-12 * scale.max(1e-300)
    }

    #[test]
    fn a_block_of_one_value_has_no_spread_at_all() {
        assert_eq!(of(&[0.1; 1001]).powers, [0.0; 3]);
    }

    #[test]
    fn what_is_not_finite_is_counted_and_left_out() {
        let moments = of(&[1.0, f64::NAN, 3.0, f64::NEG_INFINITY, 0.0, -0.0, 1e-310]);

        assert_eq!((moments.count, moments.nan, moments.inf), (5, 1, 1));
        assert_eq!((moments.zeros, moments.denormal), (2, 1));
        assert_eq!((moments.min, moments.max, moments.l1), (0.0, 3.0, 4.0));
    }

    #[test]
    fn numbers_whose_sum_is_too_large_have_a_mean() {
        assert_eq!(of(&[1e308; 4]).mean, 1e308);
    }

    proptest! {
        #[test]
        fn parts_merge_to_the_whole(
            numbers in proptest::collection::vec(-1e3..1e3f64, 1..200),
            cut in any::<proptest::sample::Index>(),
            shift in prop_oneof![Just(0.0), Just(1e6)],
        ) {
            let numbers: Vec<f64> = numbers.into_iter().map(|x| x + shift).collect();
            let (left, right) = numbers.split_at(cut.index(numbers.len()));

            let mut merged = of(left);
            merged.merge(&of(right));

            let whole = of(&numbers);
            let scale: f64 = whole.powers[2] + 1.0;
            prop_assert_eq!((merged.count, merged.min, merged.max), (whole.count, whole.min, whole.max));
            prop_assert!(near(merged.mean, whole.mean, 1e3 + shift));
            for power in 0..3 {
                prop_assert!(near(merged.powers[power], whole.powers[power], scale * 1e3));
            }
        }
    }
}
