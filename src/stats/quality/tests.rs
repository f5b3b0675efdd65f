//! What tensors lose, against a model that takes every element by itself.

use proptest::prelude::*;

use super::super::tests::{Case, case, cases, floats, grains};
use super::super::{DType, Quantization, Strided, magnitude};
use super::*;

impl Case {
    fn quality(&self, grain: Grain) -> Quality {
        self.with(|elements| quality_by(elements, true, &Progress::none(), grain).unwrap())
    }

    /// The values, in the order of the tensor; complex ones as magnitudes.
    fn values(&self) -> Vec<f64> {
        let Values { form, part_bytes, .. } = Values::of(self.dtype);
        let elements = self.numbers();
        if matches!(form, Form::Complex(_)) {
            let length = |element: &Vec<f64>| magnitude(element[0], element[1], part_bytes);
            return elements.iter().map(length).collect();
        }
        elements.concat()
    }
}

/// A number of the format with this name, by its definition: the nearest of all there are, half to even.
fn rounded(y: f64, format: &str) -> f64 {
    let table: Vec<f64> = match format {
        "int8" => (-127..=127).map(f64::from).collect(),
        "int4" => (-7..=7).map(f64::from).collect(),
        "float8_e4m3fn" => Values::of(DType::Float8E4M3Fn).table.to_vec(),
        _ => Values::of(DType::Float8E5M2).table.to_vec(),
    };
    let distance = |x: &f64| (x - y).abs();
    table
        .into_iter()
        .filter(|x| x.is_finite())
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .unwrap()
}

/// Decibels by the definition, with one scale for each slice of this length.
fn plain_sqnr(values: &[f64], slice: usize, format: &str, largest: f64) -> Option<f64> {
    let (mut signal, mut noise) = (0.0, 0.0);
    // Scales of denormals would lose digits, and those of the largest floats become infinite.
    let factor = match values.iter().fold(0.0, |max: f64, x| max.max(x.abs())) {
        max if max < 1e-250 => 2f64.powi(600),
        max if max > 1e250 => 2f64.powi(-600),
        _ => 1.0,
    };
    let values: Vec<f64> = values.iter().map(|x| x * factor).collect();
    let whole = values.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
    for slice in values.chunks(slice.max(1)) {
        let scale = slice.iter().fold(0.0, |max: f64, x| max.max(x.abs())) / largest;
        for &x in slice {
            let back = if scale > 0.0 { rounded(x / scale, format) * scale } else { 0.0 };
            signal += (x / whole).powi(2);
            noise += ((x - back) / whole).powi(2);
        }
    }
    (whole > 0.0).then(|| {
        if noise / signal < NOTHING { f64::INFINITY } else { 10.0 * (signal / noise).log10() }
    })
}

fn is_near(found: Option<f64>, expected: Option<f64>) -> bool {
    match (found, expected) {
        (Some(found), Some(expected)) => {
            let is_finite = found.is_finite() && expected.is_finite();
            let distance = (found - expected).abs();
            // An error that is much smaller than the numbers has as many digits less than they have.
            let lost = 40.0 * f64::EPSILON * 10f64.powf(expected / 20.0);
            found == expected || is_finite && distance <= 1e-7 * expected.abs().max(1.0) + lost
        }
        _ => found == expected,
    }
}

/// Singular values by turning pairs of columns until all are at right angles (Jacobi).
fn singular_values(rows: usize, values: &[f64]) -> Vec<f64> {
    let width = values.len() / rows;
    let mut columns: Vec<Vec<f64>> =
        (0..width).map(|c| (0..rows).map(|r| values[r * width + c]).collect()).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for _ in 0..60 {
        for left in 0..width {
            for right in left + 1..width {
                let (a, b) = (columns[left].clone(), columns[right].clone());
                let (aa, bb, ab) = (dot(&a, &a), dot(&b, &b), dot(&a, &b));
                if ab.abs() <= 1e-17 * (aa * bb).sqrt() {
                    continue;
                }
                let zeta = (bb - aa) / (2.0 * ab);
                let tangent = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let tangent = if zeta == 0.0 { 1.0 } else { tangent };
                let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
                let turn = |x: f64, y: f64| cosine * x - cosine * tangent * y;
                columns[left] = a.iter().zip(&b).map(|(&a, &b)| turn(a, b)).collect();
                let turn = |x: f64, y: f64| cosine * tangent * x + cosine * y;
                columns[right] = a.iter().zip(&b).map(|(&a, &b)| turn(a, b)).collect();
            }
        }
    }
    let mut found: Vec<f64> = columns.iter().map(|column| dot(column, column).sqrt()).collect();
    found.sort_by(|a, b| b.total_cmp(a));
    found
}

/// Asserts that all is as the definitions have it.
fn check_but_spectrum(case: &Case, found: &Quality) {
    let all = case.values();
    let finite: Vec<f64> = all.iter().map(|&x| if x.is_finite() { x } else { 0.0 }).collect();
    let shape = &case.layout.shape;
    let count = |is: fn(&&f64) -> bool| all.iter().filter(is).count() as u64;
    assert_eq!(found.count, all.len() as u64);
    assert_eq!((found.nan, found.inf), (count(|x| x.is_nan()), count(|x| x.is_infinite())));

    let slice = shape.first().map_or(1, |&rows| all.len() / (rows as usize).max(1));
    for (trip, largest) in found.round_trips.iter().zip([127.0, 7.0, 448.0, 57344.0]) {
        let expected = plain_sqnr(&finite, finite.len(), trip.format, largest);
        assert!(is_near(trip.sqnr_db, expected), "{trip:?} {expected:?}");
        let expected = plain_sqnr(&finite, slice, trip.format, largest);
        let expected = expected.filter(|_| shape.len() > 1 && !all.is_empty());
        assert!(is_near(trip.channel_sqnr_db, expected), "{trip:?} {expected:?}");
    }

    let mut sizes: Vec<f64> = all.iter().filter(|x| x.is_finite()).map(|x| x.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let max = sizes.last().copied();
    assert_eq!(found.max_abs, max);
    assert_eq!(found.pruning.len(), if sizes.is_empty() { 0 } else { 9 });
    let square = |x: &f64| (x / max.unwrap_or(1.0).max(1e-300)).powi(2);
    let total: f64 = sizes.iter().map(square).sum();
    for (point, tenths) in found.pruning.iter().zip(1..) {
        let pruned = &sizes[..sizes.len() * tenths / 10];
        let threshold = pruned.last().copied().unwrap_or(0.0);
        let lost = if total > 0.0 { pruned.iter().map(square).sum::<f64>() / total } else { 0.0 };
        let bound = (threshold * 2f64.powi(-24)).max(1e-314);
        assert!((point.threshold - threshold).abs() <= bound, "{point:?} {threshold}");
        // A threshold within 2⁻²⁴ moves squares by twice that.
        assert!((point.lost - lost).abs() <= 3e-7, "{point:?} {lost}");
    }
    check_channels(case, found, &finite, slice);
}

fn check(case: &Case, found: &Quality) {
    check_but_spectrum(case, found);
    check_spectrum(case, found);
}

/// The same for what is along the first dimension.
fn check_channels(case: &Case, found: &Quality, finite: &[f64], slice: usize) {
    if case.layout.shape.len() < 2 || finite.is_empty() {
        assert!(found.channels.is_err() && found.spectrum.is_err());
        return;
    }
    let norm = |slice: &[f64]| slice.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut norms: Vec<f64> = finite.chunks(slice).map(norm).collect();
    norms.sort_by(f64::total_cmp);
    let median = f64::midpoint(norms[(norms.len() - 1) / 2], norms[norms.len() / 2]);
    match &found.channels {
        Ok(channels) => {
            assert_eq!(channels.count, norms.len() as u64);
            assert!((channels.median_norm - median).abs() <= 1e-9 * median);
            let largest = norms[norms.len() - 1];
            let mean =
                norms.iter().map(|norm| (norm / largest).powi(2)).sum::<f64>() / norms.len() as f64;
            let is_small = |norm: f64, tenth: f64| {
                norm < tenth * median || norm / largest < tenth / 10.0 * mean.sqrt()
            };
            let near =
                |tenth: f64| norms.iter().filter(|norm| is_small(**norm, tenth)).count() as u64;
            assert!((near(0.099_999)..=near(0.100_001)).contains(&channels.small));
        }
        Err(_) => assert!(!median.is_finite()),
    }
}

/// The same for singular values.
fn check_spectrum(case: &Case, found: &Quality) {
    let finite = case.values().into_iter().map(|x| if x.is_finite() { x } else { 0.0 });
    let finite: Vec<f64> = finite.collect();
    if case.layout.shape.len() < 2 || finite.is_empty() {
        return;
    }
    if matches!(Values::of(case.dtype).form, Form::Complex(_)) {
        assert_eq!(found.spectrum, Err("it is complex".to_owned()));
        return;
    }
    let spectrum = found.spectrum.as_ref().unwrap();
    let max = found.max_abs.unwrap_or(0.0);
    let scaled: Vec<f64> = finite.iter().map(|x| if max > 0.0 { x / max } else { 0.0 }).collect();
    let expected = singular_values(case.layout.shape[0] as usize, &scaled);
    assert!((spectrum.norm - expected[0] * max).abs() <= 1e-9 * spectrum.norm, "{spectrum:?}");
    if max > 0.0 {
        let squares: f64 = expected.iter().map(|x| x * x).sum();
        let stable = squares / (expected[0] * expected[0]);
        assert!((spectrum.stable_rank.unwrap() - stable).abs() <= 1e-9 * stable);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn everything_that_a_tensor_loses_is_as_its_definition_has_it(
        case in cases(true),
        grain in grains(),
    ) {
        check(&case, &case.quality(grain));
    }

    #[test]
    fn the_loss_does_not_depend_on_the_number_of_threads(
        case in cases(true),
        chunk_bytes in 1..40usize,
    ) {
        let on = |threads| case.quality(Grain { chunk_bytes, alone_bytes: 0, threads });

        prop_assert_eq!(on(1), on(3));
    }
}

/// Numbers without a pattern, between −1 and 1.
fn scattered(count: usize) -> impl Iterator<Item = f64> {
    (0..count as u64).map(|n| {
        let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    })
}

fn floats32(shape: &[u64], stride: &[i64], numbers: impl Iterator<Item = f64>) -> Case {
    let bytes = numbers.flat_map(|number| (number as f32).to_le_bytes()).collect();
    case(DType::Float32, shape, stride, bytes)
}

#[test]
fn a_tensor_of_many_chunks_loses_what_the_model_says() {
    let numbers = || scattered(60 * 4000).enumerate().map(|(n, x)| x.powi(5) * (n / 4000) as f64);
    let case = floats32(&[60, 40, 100], &[4000, 100, 1], numbers());

    let grain = Grain { chunk_bytes: 10_000, alone_bytes: 0, threads: 2 };

    check_but_spectrum(&case, &case.quality(grain));
}

#[test]
fn a_transposed_tensor_loses_what_the_model_says() {
    let case = floats32(&[300, 7], &[1, 300], scattered(2100));

    let grain = Grain { chunk_bytes: 500, alone_bytes: 0, threads: 2 };

    check(&case, &case.quality(grain));
}

#[test]
fn numbers_at_the_ends_of_the_floats_are_measured() {
    for numbers in [[f64::MAX, -1e308, 3e307, 0.0], [5e-324, 1e-323, 0.0, -4e-320]] {
        let mut case = floats(&numbers);
        case.layout = Strided::contiguous(vec![2, 2]).unwrap();

        let found = case.quality(Grain::usual());

        let expected = plain_sqnr(&numbers, 4, "int8", 127.0);
        assert!(is_near(found.round_trips[0].sqnr_db, expected), "{found:?} {expected:?}");
        assert!(found.spectrum.unwrap().norm > 0.0);
    }
}

#[test]
fn an_expanded_tensor_is_as_large_as_it_says() {
    let case = case(DType::UInt8, &[3, 4, 5], &[0, 1, 0], vec![1, 3, 0, 7]);

    let found = case.quality(Grain::usual());

    check(&case, &found);
    assert_eq!(found.count, 60);
}

#[test]
fn an_estimate_is_close_to_the_norm_and_never_above_it() {
    let numbers = scattered(200 * 150).collect::<Vec<_>>();
    for (shape, stride) in [([200, 150], [150, 1]), ([150, 200], [200, 1]), ([200, 150], [1, 200])]
    {
        let case = floats32(&shape, &stride, numbers.iter().copied());
        let values = Values::of(DType::Float32);

        let exact = singular_values(shape[0] as usize, &case.values())[0];
        let found = case.with(|elements| {
            let walk = Walk::new(elements, &values, Grain::usual()).unwrap();
            let matrix = matrix::Matrix::new(&walk, 1.0);
            lanczos::largest(&matrix, &Progress::none()).unwrap().unwrap()
        });

        assert!(found.norm <= exact * (1.0 + 1e-10), "{} {exact}", found.norm);
        assert!(found.norm >= exact * (1.0 - 1e-9), "{} {exact}", found.norm);
        assert!(found.upper_bound >= exact);
    }
}

#[test]
fn panels_of_any_size_hold_every_row_or_column_once() {
    let sorted = |mut numbers: Vec<f64>| {
        numbers.sort_by(f64::total_cmp);
        numbers
    };
    // By rows, by columns, and with elements outside, along and inside of the first dimension.
    for stride in [[12, 4, 1], [1, 20, 5], [4, 20, 1]] {
        let case = floats32(&[5, 3, 4], &stride, scattered(60));
        let (rows, values) = (case.values(), Values::of(DType::Float32));
        let lines = |whole| -> Vec<Vec<f64>> {
            let columns = (0..12).map(|column| rows.iter().skip(column).step_by(12).copied());
            let mut lines: Vec<_> = match whole {
                matrix::Whole::Columns => rows.chunks(12).map(|row| sorted(row.to_vec())).collect(),
                matrix::Whole::Rows => columns.map(|column| sorted(column.collect())).collect(),
            };
            lines.sort_by(|a, b| a[0].total_cmp(&b[0]));
            lines
        };
        for whole in [matrix::Whole::Rows, matrix::Whole::Columns] {
            for indexes in 1..=13 {
                let found = case.with(|elements| {
                    let walk = Walk::new(elements, &values, Grain::usual()).unwrap();
                    let matrix = matrix::Matrix::new(&walk, 1.0);
                    let panels = matrix.panels(whole, indexes);
                    let (mut room, mut panel) = (walk::Room::default(), Vec::new());
                    let mut found = Vec::new();
                    for number in 0..panels.count {
                        panels.read(number, &mut room, &mut panel).unwrap();
                        found.extend(panel.chunks(panels.width).map(|line| sorted(line.to_vec())));
                    }
                    found
                });
                let mut found = found;
                found.sort_by(|a, b| a[0].total_cmp(&b[0]));
                assert_eq!(found, lines(whole), "{whole:?} {indexes} {stride:?}");
            }
        }
    }
}

#[test]
fn many_channels_are_none() {
    let case = case(DType::UInt8, &[MAX_CHANNELS + 1, 2], &[2, 1], vec![1; 9_000_000]);

    let found = case.with(|elements| quality(elements, false, &Progress::none()).unwrap());

    assert!(found.channels.unwrap_err().contains("more than 4194304"));
    assert_eq!(found.round_trips[0].channel_sqnr_db, None);
    assert_eq!(found.round_trips[0].sqnr_db, Some(f64::INFINITY));
}

#[test]
fn channels_of_scales_that_do_not_fit_are_refused() {
    let mut case = case(DType::QInt8, &[2, 2], &[2, 1], vec![0; 4]);
    let zero_points = vec![0.0];
    case.quantization = Some(Quantization::Channel { axis: 0, scales: vec![1.0], zero_points });

    let error = case.with(|elements| quality(elements, true, &Progress::none()).unwrap_err());

    assert!(error.to_string().contains("one scale for each channel"));
}
