//! Statistics and differences against a model that takes every element by itself.

use proptest::prelude::*;

use super::*;
use crate::strided::tests::{layouts, places};

const TYPES: &[&str] = &[
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn_x2",
    "float4_e2m1",
    "float6_e2m3",
    "float6_e3m2",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint64",
    "uint32",
    "uint16",
    "uint8",
    "bool",
    "complex128",
    "complex64",
    "complex32",
    "qint32",
    "qint8",
    "quint8",
    "quint4x2",
    "quint2x4",
    "bits1x8",
    "bits16",
    "int3",
    "uint5",
];

/// A tensor in memory.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub dtype: DType,
    pub layout: Strided,
    bytes: Vec<u8>,
    before: usize,
    is_big_endian: bool,
    pub quantization: Option<Quantization>,
}

impl Case {
    pub fn with<T>(&self, run: impl FnOnce(&Elements<'_>) -> T) -> T {
        let bytes = self.bytes.as_slice();
        run(&Elements {
            bytes: &bytes,
            start: self.before as u64,
            storage_bytes: (self.bytes.len() - self.before) as u64,
            dtype: self.dtype,
            layout: &self.layout,
            is_big_endian: self.is_big_endian,
            quantization: self.quantization.clone(),
        })
    }

    fn measure(&self, bins: usize, grain: Grain) -> Stats {
        self.with(|elements| measure_by(elements, bins, &Progress::none(), grain).unwrap())
    }

    /// The numbers of each element, one by one: two for complex ones and for two in a byte.
    pub fn numbers(&self) -> Vec<Vec<f64>> {
        let values = Values::of(self.dtype);
        let storage = &self.bytes[self.before..];
        let number = |place: u64, index: usize| {
            if values.bits < 8 {
                let bit = |at: u64| storage[(at / 8) as usize] >> (at % 8) & 1;
                let bits = (0..values.bits).map(|n| bit(place * values.bits + n) << n);
                return values.table[usize::from(bits.sum::<u8>())];
            }
            if values.form == Form::TwoInByte {
                return values.table[usize::from(storage[place as usize] >> (4 * index) & 15)];
            }
            let at = place as usize * values.unit_bytes + index * values.part_bytes;
            let mut part = storage[at..at + values.part_bytes].to_vec();
            if self.is_big_endian {
                part.reverse();
            }
            part.resize(8, 0);
            let code = u64::from_le_bytes(part.try_into().unwrap());
            match values.form {
                Form::F64 | Form::Complex(8) => f64::from_bits(code),
                Form::F32 | Form::Complex(4) => f64::from(f32::from_bits(code as u32)),
                Form::I64 => code as i64 as f64,
                Form::I32 => f64::from(code as i32),
                Form::U64 | Form::U32 => code as f64,
                _ => values.table[code as usize],
            }
        };
        let places = places(&self.layout).into_iter().enumerate();
        let element = |(at, place)| {
            let numbers = (0..values.numbers_of_unit()).map(|index| number(place, index));
            numbers.map(|number| self.dequantized(number, at)).collect()
        };
        places.map(element).collect()
    }

    /// What a number at this place of the tensor stands for.
    fn dequantized(&self, number: f64, at: usize) -> f64 {
        match &self.quantization {
            None => number,
            Some(Quantization::Tensor { scale, zero_point }) => {
                (number - *zero_point as f64) * scale
            }
            Some(Quantization::Channel { axis, scales, zero_points }) => {
                let inner: u64 = self.layout.shape[axis + 1..].iter().product();
                let channel = (at as u64 / inner % self.layout.shape[*axis]) as usize;
                (number - zero_points[channel]) * scales[channel]
            }
        }
    }
}

/// The same by the definitions.
fn plainly(case: &Case, bins: usize) -> Stats {
    let Values { smallest_normal: smallest, part_bytes, form, .. } = Values::of(case.dtype);
    let is_denormal = |x: &f64| *x != 0.0 && x.abs() < smallest;
    let elements = case.numbers();
    let is_complex = matches!(form, Form::Complex(_));
    let (all, denormal): (Vec<f64>, u64) = if is_complex {
        let whole = |element: &&Vec<f64>| element.iter().all(|part| part.is_finite());
        let small = |element: &&Vec<f64>| element.iter().any(is_denormal);
        let denormal = elements.iter().filter(whole).filter(small).count() as u64;
        let is_nan = |element: &Vec<f64>| element.iter().any(|part| part.is_nan());
        let length = |element: &Vec<f64>| magnitude(element[0], element[1], part_bytes);
        let size = |element| if is_nan(element) { f64::NAN } else { length(element) };
        (elements.iter().map(size).collect(), denormal)
    } else {
        let all = elements.concat();
        let denormal = all.iter().filter(|x| is_denormal(x)).count() as u64;
        (all, denormal)
    };
    let count = |is: fn(&&f64) -> bool| all.iter().filter(is).count() as u64;
    let finite: Vec<f64> = all.iter().copied().filter(|x| x.is_finite()).collect();
    let n = finite.len() as f64;
    let sum = |of: &dyn Fn(f64) -> f64| finite.iter().map(|&x| of(x)).sum::<f64>();
    let some = |x: f64| (n > 0.0 && x.is_finite()).then_some(x);
    let min = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let max = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = if min == max { min } else { sum(&|x| x) / n };
    let power = |power| sum(&|x| (x - mean).powi(power)) / n;
    let variance = power(2);
    let mut histogram = vec![0; if n > 0.0 { bins } else { 0 }];
    for x in finite.iter().filter(|_| bins > 0) {
        let place = if min < max { (x - min) * bins as f64 / (max - min) } else { 0.0 };
        histogram[(place as usize).min(bins - 1)] += 1;
    }
    let shares = histogram.iter().filter(|&&bin| bin > 0).map(|&bin| bin as f64 / n);
    let entropy = shares.map(|share| -share * share.log2()).sum::<f64>();
    let is_drawn = n > 0.0 && bins > 0;
    Stats {
        count: all.len() as u64,
        mean: some(mean),
        std: some((variance * n / (n - 1.0)).sqrt()),
        min: some(min),
        max: some(max),
        zeros: count(|x| **x == 0.0),
        nan: count(|x| x.is_nan()),
        inf: count(|x| x.is_infinite()),
        denormal,
        l1: sum(&f64::abs),
        l2: sum(&|x| x * x).sqrt(),
        skewness: some(power(3) / variance.powf(1.5)),
        kurtosis: some(power(4) / variance.powi(2) - 3.0),
        entropy: is_drawn.then_some(entropy),
        histogram,
        edges: is_drawn.then_some((min, max)),
    }
}

fn is_near(left: Option<f64>, right: Option<f64>, scale: f64) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => (left - right).abs() <= 1e-9 * scale.max(right.abs()),
        _ => left.is_none() && right.is_none(),
    }
}

/// Asserts that two are equal where they can be, and near where they cannot.
fn assert_near(found: &Stats, expected: &Stats) {
    let exact = |stats: &Stats| Stats {
        mean: None,
        std: None,
        l1: 0.0,
        l2: 0.0,
        skewness: None,
        kurtosis: None,
        entropy: None,
        ..stats.clone()
    };
    assert_eq!(exact(found), exact(expected));
    let size = expected.l1 / expected.count.max(1) as f64;
    let near = |of: fn(&Stats) -> Option<f64>, scale| {
        assert!(is_near(of(found), of(expected), scale), "{found:?}\n{expected:?}");
    };
    near(|stats| stats.mean, size);
    near(|stats| stats.std, size);
    near(|stats| Some(stats.l1), 0.0);
    near(|stats| Some(stats.l2), 0.0);
    near(|stats| stats.entropy, 1.0);
    // Where all numbers are nearly the same, their differences have lost digits, in the model too.
    let lost = size / expected.std.unwrap_or(0.0) * 1e-5;
    near(|stats| stats.skewness, lost.max(100.0));
    near(|stats| stats.kurtosis, lost.max(100.0));
}

/// The bytes of one number, low byte first, from a random code: often something special.
fn number(dtype: DType, code: u64) -> Vec<u8> {
    let values = Values::of(dtype);
    let float = match code % 16 {
        0 => 0.0,
        1 => -0.0,
        2 => f64::NAN,
        3 => f64::INFINITY,
        4 => f64::NEG_INFINITY,
        5 => values.smallest_normal / 3.0,
        6 => -values.smallest_normal,
        7 => 1.0,
        _ => f64::from((code >> 8) as i32) / 1e6,
    };
    match values.form {
        Form::F64 | Form::Complex(8) => float.to_le_bytes().to_vec(),
        Form::F32 | Form::Complex(4) => (float as f32).to_le_bytes().to_vec(),
        _ if code.is_multiple_of(4) => (code % 3).to_le_bytes()[..values.part_bytes].to_vec(),
        _ => code.rotate_left(20).to_le_bytes()[..values.part_bytes].to_vec(),
    }
}

/// Any tensor; its storage is a little larger than it needs to be.
pub(super) fn cases(quantized: bool) -> impl Strategy<Value = Case> {
    let codes = proptest::collection::vec(any::<u64>(), 64);
    (0..TYPES.len(), layouts(), codes, 0..5usize, any::<bool>(), 0..3u8).prop_map(
        move |(dtype, layout, codes, before, is_big_endian, quantization)| {
            let dtype = DType::from_torch(TYPES[dtype]).unwrap();
            let values = Values::of(dtype);
            let mut bytes = vec![0xee; before];
            let storage = (layout.span().unwrap().end * values.bits).div_ceil(8) as usize + 3;
            for index in 0.. {
                let turn = codes[index % codes.len()].wrapping_mul(index as u64 / 64 * 2 + 1);
                let mut number = number(dtype, turn);
                if is_big_endian {
                    number.reverse();
                }
                bytes.extend(number);
                if bytes.len() >= before + storage {
                    break;
                }
            }
            let axis = layout.shape.len() / 2;
            let channels = layout.shape.get(axis).map_or(0, |&size| size as usize);
            let quantization = match quantization {
                1 if quantized => Some(Quantization::Tensor { scale: 0.125, zero_point: 3 }),
                2 if quantized && axis < layout.shape.len() => Some(Quantization::Channel {
                    axis,
                    scales: (0..channels).map(|channel| 0.5 + channel as f64).collect(),
                    zero_points: (0..channels).map(|channel| channel as f64).collect(),
                }),
                _ => None,
            };
            let is_integer = values.smallest_normal == 0.0
                && values.form != Form::Complex(2)
                && dtype != DType::Float8E8M0Fnu;
            let quantization = quantization.filter(|_| is_integer);
            Case { dtype, layout, bytes, before, is_big_endian, quantization }
        },
    )
}

/// Ways to cut the work, from one element at a time to all at once.
pub(super) fn grains() -> impl Strategy<Value = Grain> {
    let few = (1..40usize, 1..4usize);
    let few = few.prop_map(|(chunk_bytes, threads)| Grain { chunk_bytes, alone_bytes: 0, threads });
    prop_oneof![few, Just(Grain::usual())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_statistic_is_that_of_its_definition(
        case in cases(true),
        bins in prop_oneof![Just(0usize), 1..9usize, Just(64)],
        grain in grains(),
    ) {
        assert_near(&case.measure(bins, grain), &plainly(&case, bins));
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads(
        case in cases(true),
        chunk_bytes in 1..40usize,
    ) {
        let on = |threads| case.measure(7, Grain { chunk_bytes, alone_bytes: 0, threads });

        prop_assert_eq!(on(1), on(3));
    }

    #[test]
    fn a_difference_is_that_of_the_elements(
        case in cases(true),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..4),
        turned in any::<bool>(),
        rescaled in any::<bool>(),
        grain in grains(),
    ) {
        let other = altered(&case, &changes, turned, rescaled);

        let found = case.with(|a| {
            other.with(|b| compare::compare_by(a, b, &Progress::none(), grain).unwrap())
        });

        let expected = plain_difference(&case, &other);
        prop_assert_eq!(
            (found.is_equal, found.changed, found.count),
            (expected.is_equal, expected.changed, expected.count)
        );
        if !found.is_equal {
            prop_assert!(is_near(found.max_abs, expected.max_abs, 0.0));
            prop_assert!(is_near(found.mean_abs, expected.mean_abs, 0.0));
            prop_assert!(is_near(found.relative_l2, expected.relative_l2, 0.0));
        }
    }
}

/// The same shape with some numbers changed, perhaps lying in its storage the other way round.
fn altered(
    case: &Case,
    changes: &[(prop::sample::Index, u64)],
    turned: bool,
    rescaled: bool,
) -> Case {
    let mut other = case.clone();
    let values = Values::of(case.dtype);
    if turned && values.bits >= 8 {
        // Element by element into a storage where the first dimension is the innermost.
        let mut step = 1;
        for (&size, stride) in case.layout.shape.iter().zip(&mut other.layout.stride) {
            *stride = step;
            step *= size.max(1) as i64;
        }
        other.layout.offset = 0;
        other.before = 1;
        other.bytes = vec![0; 1 + step as usize * values.unit_bytes];
        let pairs = places(&case.layout).into_iter().zip(places(&other.layout));
        for (from, to) in pairs {
            let from = case.before + from as usize * values.unit_bytes;
            let to = 1 + to as usize * values.unit_bytes;
            let unit = &case.bytes[from..from + values.unit_bytes];
            other.bytes[to..to + values.unit_bytes].copy_from_slice(unit);
        }
    }
    for (place, code) in changes {
        let storage = &mut other.bytes[other.before..];
        let mut number = number(case.dtype, *code);
        if case.is_big_endian {
            number.reverse();
        }
        let at = place.index(storage.len().div_ceil(number.len())) * number.len();
        let count = number.len().min(storage.len() - at);
        storage[at..at + count].copy_from_slice(&number[..count]);
    }
    if let (true, Some(Quantization::Tensor { scale, .. })) = (rescaled, &mut other.quantization) {
        *scale = 0.25;
    }
    other
}

/// The bits of each number of each element.
fn codes(case: &Case) -> Vec<Vec<Vec<u8>>> {
    let values = Values::of(case.dtype);
    let unit = |place: u64| {
        if values.bits < 8 || values.form == Form::TwoInByte {
            return vec![Vec::new(); 2];
        }
        let at = case.before + place as usize * values.unit_bytes;
        let unit = &case.bytes[at..at + values.unit_bytes];
        unit.chunks(values.part_bytes).map(<[u8]>::to_vec).collect()
    };
    places(&case.layout).into_iter().map(unit).collect()
}

fn plain_difference(a: &Case, b: &Case) -> Difference {
    let is_complex = matches!(Values::of(a.dtype).form, Form::Complex(_));
    let is_wide = matches!(Values::of(a.dtype).form, Form::I64 | Form::U64);
    let (mut changed, mut distances, mut squares) = (0, Vec::new(), 0.0);
    let mut count = 0;
    let (mut to_nonfinite, mut from_nonfinite) = (0, 0);
    let codes = codes(a).into_iter().zip(codes(b));
    for ((x, y), (x_code, y_code)) in a.numbers().into_iter().zip(b.numbers()).zip(codes) {
        let differs = |n: usize| {
            let by_bits = x[n].is_nan() && y[n].is_nan() || is_wide;
            if by_bits && a.quantization == b.quantization {
                x_code[n] != y_code[n]
            } else {
                x[n] != y[n]
            }
        };
        let group = if is_complex { 2 } else { 1 };
        for first in (0..x.len()).step_by(group) {
            let parts = first..first + group;
            count += 1;
            changed += u64::from(parts.clone().any(differs));
            let was = parts.clone().all(|n| x[n].is_finite());
            let is = parts.clone().all(|n| y[n].is_finite());
            to_nonfinite += u64::from(was && !is);
            from_nonfinite += u64::from(is && !was);
            if parts.clone().all(|n| x[n].is_finite() && y[n].is_finite()) {
                distances.push(parts.clone().map(|n| y[n] - x[n]).fold(0.0, f64::hypot));
                squares += parts.map(|n| x[n].powi(2)).sum::<f64>();
            }
        }
    }
    let some = |x: f64| (!distances.is_empty() && x.is_finite()).then_some(x);
    let apart = distances.iter().map(|distance| distance.powi(2)).sum::<f64>();
    Difference {
        is_equal: changed == 0,
        changed,
        count,
        to_nonfinite,
        from_nonfinite,
        max_abs: some(distances.iter().copied().fold(0.0, f64::max)),
        mean_abs: some(distances.iter().sum::<f64>() / distances.len() as f64),
        relative_l2: some((apart / squares).sqrt()),
    }
}

pub(super) fn case(dtype: DType, shape: &[u64], stride: &[i64], bytes: Vec<u8>) -> Case {
    let layout = Strided { shape: shape.to_vec(), stride: stride.to_vec(), offset: 0 };
    Case { dtype, layout, bytes, before: 0, is_big_endian: false, quantization: None }
}

pub(super) fn floats(numbers: &[f64]) -> Case {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    case(DType::Float64, &[numbers.len() as u64], &[1], bytes)
}

#[test]
fn a_tensor_of_many_chunks_is_measured_as_the_model_does() {
    let numbers = (0..400_000u32).map(|n| f64::from(n.wrapping_mul(2_654_435_761) >> 8) - 3e6);
    let case = floats(&numbers.collect::<Vec<_>>());

    assert_near(&case.measure(64, Grain::usual()), &plainly(&case, 64));
}

#[test]
fn many_elements_of_two_bytes_are_measured_as_few_are() {
    for dtype in [DType::BFloat16, DType::Float16, DType::Int16, DType::Bits16] {
        let codes = (0..40_001u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 18) as u16);
        let bytes = codes.flat_map(u16::to_le_bytes).collect();
        let case = case(dtype, &[40_001], &[1], bytes);

        assert_near(&case.measure(64, Grain::usual()), &plainly(&case, 64));
    }
}

#[test]
fn a_large_mean_does_not_hide_a_small_spread() {
    let numbers: Vec<f64> = (0..10_000).map(|n| 1e9 + f64::from(n % 2)).collect();

    let stats = floats(&numbers).measure(2, Grain { chunk_bytes: 800, ..Grain::usual() });

    assert!(is_near(stats.std, Some((0.25f64 * 10_000.0 / 9_999.0).sqrt()), 0.0));
    assert!(is_near(stats.kurtosis, Some(-2.0), 0.0));
    assert_eq!(stats.histogram, [5000, 5000]);
}

#[test]
fn nothing_has_no_statistics() {
    let stats = floats(&[]).measure(4, Grain::usual());

    assert_eq!((stats.count, stats.mean, stats.l1, stats.edges), (0, None, 0.0, None));
    assert_eq!(floats(&[f64::NAN; 3]).measure(4, Grain::usual()).max, None);
    assert_eq!(floats(&[2.0]).measure(4, Grain::usual()).std, None);
}

#[test]
fn equal_numbers_are_all_in_one_bin() {
    let stats = floats(&[0.1; 77]).measure(4, Grain::usual());

    assert_eq!((stats.std, stats.skewness, stats.entropy), (Some(0.0), None, Some(0.0)));
    assert_eq!(stats.histogram, [77, 0, 0, 0]);
}

#[test]
fn bins_span_everything_that_floats_can() {
    let widest = [f64::MIN, -1e308, 0.0, 1e308, f64::MAX];
    let closest = [0.0, 5e-324, 1e-323, 1.5e-323];

    assert_eq!(floats(&widest).measure(4, Grain::usual()).histogram, [2, 0, 1, 2]);
    assert_eq!(floats(&closest).measure(3, Grain::usual()).histogram, [1, 1, 2]);
}

#[test]
fn an_expanded_tensor_is_read_once_and_counted_as_often_as_it_is_large() {
    let stats = case(DType::UInt8, &[1 << 50, 2], &[0, 1], vec![1, 3]).measure(2, Grain::usual());

    assert_eq!((stats.count, stats.mean), (1 << 51, Some(2.0)));
    assert!(is_near(stats.std, Some(1.0), 0.0));
    assert_eq!(stats.histogram, [1 << 50, 1 << 50]);
}

#[test]
fn a_storage_that_is_cut_short_is_refused() {
    let short = case(DType::Float32, &[3], &[1], vec![0; 11]);
    let nonsense = case(DType::Float32, &[3], &[-1], vec![0; 12]);
    let knot = case(DType::UInt8, &[1 << 20, 1 << 20], &[1, 1], vec![0; 1 << 21]);
    let error = |case: &Case| {
        case.with(|elements| measure(elements, 0, &Progress::none()).unwrap_err().to_string())
    };

    assert!(error(&short).contains("beyond the end of its storage"));
    assert!(error(&nonsense).contains("make no sense"));
    assert!(error(&knot).contains("too often"));
}

#[test]
fn a_file_that_is_shorter_than_it_says_is_refused() {
    let bytes = [0u8; 8].as_slice();
    let layout = Strided::contiguous(vec![4]).unwrap();
    let elements = Elements {
        bytes: &bytes,
        start: 0,
        storage_bytes: 16,
        dtype: DType::Float32,
        layout: &layout,
        is_big_endian: false,
        quantization: None,
    };

    let error = measure(&elements, 0, &Progress::none()).unwrap_err();

    assert!(error.to_string().contains("cut short"));
}

#[test]
fn scales_must_be_as_many_as_channels() {
    let mut case = case(DType::QInt8, &[2, 2], &[2, 1], vec![0; 4]);
    let zero_points = vec![0.0];
    case.quantization = Some(Quantization::Channel { axis: 0, scales: vec![1.0], zero_points });

    let error = case.with(|elements| measure(elements, 0, &Progress::none()).unwrap_err());

    assert!(error.to_string().contains("one scale for each channel"));
}

#[test]
fn zeros_of_both_signs_are_equal_and_different_nans_are_not() {
    let quiet = f64::NAN;
    let other = f64::from_bits(quiet.to_bits() + 1);
    let (a, b) = (floats(&[0.0, quiet, quiet, 1.0]), floats(&[-0.0, quiet, other, 1.0]));

    let found = a.with(|a| b.with(|b| compare(a, b, &Progress::none()).unwrap()));

    assert_eq!((found.is_equal, found.changed, found.max_abs), (false, 1, Some(0.0)));
}

#[test]
fn equal_tensors_differ_by_nothing_and_empty_ones_have_no_difference() {
    let same =
        |case: &Case| case.with(|a| case.with(|b| compare(a, b, &Progress::none()).unwrap()));

    let (equal, empty) = (same(&floats(&[1.0, 2.0])), same(&floats(&[])));

    let sizes = |found: Difference| (found.max_abs, found.mean_abs, found.relative_l2);
    assert!(equal.is_equal && empty.is_equal);
    assert_eq!(sizes(equal), (Some(0.0), Some(0.0), Some(0.0)));
    assert_eq!(sizes(empty), (None, None, None));
}
