//! What the bits of an element mean: any type's elements as 64-bit floats.
//!
//! Types of up to 16 bits go through a table of all their values, which the functions below fill by the
//! definition of the type; the wider ones are converted. A unit is what one element takes in a buffer:
//! its bytes, low byte first, or one byte for each element of a type that packs several into a byte.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::dtype::DType;

static HALVES: OnceLock<Vec<f64>> = OnceLock::new();
static BFLOATS: OnceLock<Vec<f64>> = OnceLock::new();

/// How the elements of a type become numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Units of a byte whose values are in a table.
    Byte,
    /// Bytes that hold two values each, the low half first.
    TwoInByte,
    /// Units of two bytes whose values are in a table.
    TwoBytes,
    F32,
    F64,
    I32,
    I64,
    U32,
    U64,
    /// Pairs of floats of this many bytes each.
    Complex(usize),
}

/// The values of a type.
pub(super) struct Values {
    pub form: Form,
    /// How many bits of the storage an element takes.
    pub bits: u64,
    /// How many bytes a unit has.
    pub unit_bytes: usize,
    /// How many bytes each number of a unit has (a complex unit has two numbers).
    pub part_bytes: usize,
    /// The value of each code, for forms with a table; of each half for pairs of halves.
    pub table: Cow<'static, [f64]>,
    /// The smallest normal number of a float; 0 for types without denormals.
    pub smallest_normal: f64,
}

impl Values {
    pub fn of(dtype: DType) -> Self {
        let bits = u64::from(dtype.bits());
        let form = match dtype {
            DType::Float64 => Form::F64,
            DType::Float32 => Form::F32,
            DType::Int64 => Form::I64,
            DType::UInt64 => Form::U64,
            DType::Int32 | DType::QInt32 => Form::I32,
            DType::UInt32 => Form::U32,
            DType::Complex128 => Form::Complex(8),
            DType::Complex64 => Form::Complex(4),
            DType::Complex32 => Form::Complex(2),
            DType::Float4E2M1FnX2 => Form::TwoInByte,
            _ if bits == 16 => Form::TwoBytes,
            _ => Form::Byte,
        };
        let unit_bytes = bits.div_ceil(8) as usize;
        let part_bytes = if let Form::Complex(part) = form { part } else { unit_bytes };
        let codes = match form {
            Form::Byte => 256,
            Form::TwoInByte => 16,
            Form::TwoBytes | Form::Complex(2) => 1 << 16,
            _ => 0,
        };
        let all = || (0..codes).map(|code| value(dtype, code)).collect::<Vec<_>>();
        // A model has thousands of small tensors of such types, and a table takes half a millisecond.
        let table = match (dtype, codes) {
            (DType::Float16 | DType::Complex32, _) => Cow::from(HALVES.get_or_init(all)),
            (DType::BFloat16, _) => Cow::from(BFLOATS.get_or_init(all)),
            _ => Cow::from(all()),
        };
        Self { form, bits, unit_bytes, part_bytes, table, smallest_normal: smallest_normal(dtype) }
    }

    /// How many numbers a unit becomes: the parts of a complex one, or both values of a byte.
    pub fn numbers_of_unit(&self) -> usize {
        if matches!(self.form, Form::TwoInByte | Form::Complex(_)) { 2 } else { 1 }
    }

    /// How many values an element stands for.
    pub fn values_of_element(&self) -> u64 {
        if self.form == Form::TwoInByte { 2 } else { 1 }
    }

    /// Converts units to numbers; `into` has room for exactly as many.
    #[inline(always)]
    pub fn numbers(&self, units: &[u8], into: &mut [f64]) {
        match self.form {
            Form::Byte => each(units, into, |[code]: [u8; 1]| self.table[usize::from(code)]),
            Form::TwoInByte => {
                for (code, pair) in units.iter().zip(into.as_chunks_mut::<2>().0) {
                    *pair = [code & 15, code >> 4].map(|half| self.table[usize::from(half)]);
                }
            }
            Form::TwoBytes | Form::Complex(2) => {
                each(units, into, |code| self.table[usize::from(u16::from_le_bytes(code))]);
            }
            Form::F32 | Form::Complex(4) => each(units, into, |x| f64::from(f32::from_le_bytes(x))),
            Form::F64 | Form::Complex(_) => each(units, into, f64::from_le_bytes),
            Form::I32 => each(units, into, |x| f64::from(i32::from_le_bytes(x))),
            Form::U32 => each(units, into, |x| f64::from(u32::from_le_bytes(x))),
            Form::I64 => each(units, into, |x| i64::from_le_bytes(x) as f64),
            Form::U64 => each(units, into, |x| u64::from_le_bytes(x) as f64),
        }
    }
}

#[inline(always)]
fn each<const N: usize>(units: &[u8], into: &mut [f64], convert: impl Fn([u8; N]) -> f64) {
    for (unit, number) in units.as_chunks::<N>().0.iter().zip(into) {
        *number = convert(*unit);
    }
}

/// The value of a code of a type of up to 16 bits; of each half for pairs of halves.
fn value(dtype: DType, code: u32) -> f64 {
    let float = |exponent, mantissa, bias| small_float(code, exponent, mantissa, bias);
    let integer = |bits| f64::from((code << (32 - bits)) as i32 >> (32 - bits));
    match dtype {
        DType::Float16 | DType::Complex32 => ieee(code, 5, 10),
        DType::BFloat16 => ieee(code, 8, 7),
        DType::Float8E5M2 => ieee(code, 5, 2),
        DType::Float8E4M3Fn if code & 0x7f == 0x7f => f64::NAN,
        DType::Float8E4M3Fn => float(4, 3, 7),
        DType::Float8E4M3FnUz | DType::Float8E5M2FnUz if code == 0x80 => f64::NAN,
        DType::Float8E4M3FnUz => float(4, 3, 8),
        DType::Float8E5M2FnUz => float(5, 2, 16),
        DType::Float8E8M0Fnu if code == 0xff => f64::NAN,
        DType::Float8E8M0Fnu => 2f64.powi(code as i32 - 127),
        DType::Float4E2M1FnX2 | DType::Float4E2M1 => float(2, 1, 1),
        DType::Float6E2M3 => float(2, 3, 1),
        DType::Float6E3M2 => float(3, 2, 3),
        DType::Bool => f64::from(u8::from(code != 0)),
        DType::Int8 | DType::QInt8 => integer(8),
        DType::Int16 => integer(16),
        DType::Int(bits) => integer(u32::from(bits.clamp(1, 8))),
        DType::UInt(bits) => f64::from(code & ((1 << bits.clamp(1, 8)) - 1)),
        _ => f64::from(code),
    }
}

/// A float that keeps its largest exponent for infinities and NaN.
fn ieee(code: u32, exponent: u32, mantissa: u32) -> f64 {
    let largest = (1 << exponent) - 1;
    if code >> mantissa & largest != largest {
        return small_float(code, exponent, mantissa, largest as i32 >> 1);
    }
    let is_negative = code >> (exponent + mantissa) & 1 == 1;
    match (code & ((1 << mantissa) - 1), is_negative) {
        (0, false) => f64::INFINITY,
        (0, true) => f64::NEG_INFINITY,
        _ => f64::NAN,
    }
}

/// A float all of whose codes are numbers.
fn small_float(code: u32, exponent: u32, mantissa: u32, bias: i32) -> f64 {
    let fraction = f64::from(code & ((1 << mantissa) - 1)) / f64::from(1u32 << mantissa);
    let power = (code >> mantissa & ((1 << exponent) - 1)) as i32;
    let size = match power {
        0 => fraction * 2f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2f64.powi(power - bias),
    };
    if code >> (exponent + mantissa) & 1 == 1 { -size } else { size }
}

/// The smallest normal number of a float type, 0 if it has no denormals.
fn smallest_normal(dtype: DType) -> f64 {
    2f64.powi(match dtype {
        DType::Float64 | DType::Complex128 => -1022,
        DType::Float32 | DType::BFloat16 | DType::Complex64 => -126,
        DType::Float16 | DType::Complex32 | DType::Float8E5M2 => -14,
        DType::Float8E4M3Fn => -6,
        DType::Float8E4M3FnUz => -7,
        DType::Float8E5M2FnUz => -15,
        DType::Float4E2M1FnX2 | DType::Float4E2M1 | DType::Float6E2M3 => 0,
        DType::Float6E3M2 => -2,
        _ => return 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bit_floats_have_the_extremes_of_their_definitions() {
        let extremes = |dtype| {
            let table = Values::of(dtype).table;
            let finite = table.iter().copied().filter(|value| value.is_finite());
            let least = finite.clone().filter(|&value| value > 0.0).fold(f64::MAX, f64::min);
            let count = |is: fn(f64) -> bool| table.iter().filter(|&&value| is(value)).count();
            (finite.fold(0.0, f64::max), least, count(f64::is_nan), count(f64::is_infinite))
        };

        assert_eq!(extremes(DType::Float8E4M3Fn), (448.0, 2f64.powi(-9), 2, 0));
        assert_eq!(extremes(DType::Float8E5M2), (57344.0, 2f64.powi(-16), 6, 2));
        assert_eq!(extremes(DType::Float8E4M3FnUz), (240.0, 2f64.powi(-10), 1, 0));
        assert_eq!(extremes(DType::Float8E5M2FnUz), (57344.0, 2f64.powi(-17), 1, 0));
        assert_eq!(extremes(DType::Float8E8M0Fnu), (2f64.powi(127), 2f64.powi(-127), 1, 0));
        assert_eq!(extremes(DType::Float16), (65504.0, 2f64.powi(-24), 2046, 2));
    }

    #[test]
    fn every_bfloat16_is_the_upper_half_of_a_float32() {
        for (code, &value) in Values::of(DType::BFloat16).table.iter().enumerate() {
            let expected = f64::from(f32::from_bits((code as u32) << 16));

            assert!(value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan());
        }
    }

    #[test]
    fn small_floats_and_integers_have_the_values_of_their_definitions() {
        let table = |dtype| Values::of(dtype).table;

        let quarter_bytes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        assert_eq!(table(DType::Float4E2M1FnX2)[..8], quarter_bytes);
        assert_eq!(table(DType::Float4E2M1)[8..16], quarter_bytes.map(|value| -value));
        assert_eq!(table(DType::Float6E2M3)[31], 7.5);
        assert_eq!(table(DType::Float6E3M2)[31], 28.0);
        assert_eq!(table(DType::Int(3))[..8], [0.0, 1.0, 2.0, 3.0, -4.0, -3.0, -2.0, -1.0]);
        assert_eq!(table(DType::UInt(2))[..6], [0.0, 1.0, 2.0, 3.0, 0.0, 1.0]);
        assert_eq!(table(DType::Int8)[255], -1.0);
        assert_eq!(table(DType::Int16)[0x8000], -32768.0);
        assert_eq!(table(DType::Bool)[7], 1.0);
    }
}
