//! The elements of a small tensor, one by one and exactly.

use super::Elements;
use super::values::Values;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// An element as it is: 64-bit integers are not rounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that may be beyond the range of `Int`.
    Uint(u64),
    /// Any float.
    Float(f64),
}

/// The elements in the order of their indexes, the last dimension the fastest; at most `limit`.
pub fn list(elements: &Elements<'_>, limit: u64) -> Result<Vec<Number>> {
    let values = Values::of(elements.dtype);
    let (width, layout) = (values.unit_bytes, elements.layout);
    let is_listed = values.bits == 8 * width as u64
        && values.numbers_of_unit() == 1
        && elements.quantization.is_none();
    let refused = |why: String| Err(Error::argument(why));
    if !is_listed {
        return refused(format!("elements of type {} are not listed", elements.dtype.name()));
    }
    let (Some(count), Some(span)) = (layout.elements(), layout.span()) else {
        return refused("the shape is impossible".to_owned());
    };
    if count > limit {
        return refused(format!("the tensor has {count} elements, and at most {limit} are listed"));
    }
    if elements.dtype.bytes_of(span.end).is_none_or(|end| end > elements.storage_bytes) {
        return refused("the tensor reaches beyond the end of its storage".to_owned());
    }
    let mut found = Vec::with_capacity(count as usize);
    for number in 0..count {
        let (mut rest, mut at) = (number, layout.offset);
        for (&size, &stride) in layout.shape.iter().zip(&layout.stride).rev() {
            at += rest % size * stride as u64;
            rest /= size;
        }
        let mut unit = [0; 8];
        elements.bytes.read_at(elements.start + at * width as u64, &mut unit[..width])?;
        if elements.is_big_endian {
            unit[..width].reverse();
        }
        found.push(one(elements.dtype, &values, unit));
    }
    Ok(found)
}

/// The number that these bytes are, the low one first; None if the type has another size or is no single number.
#[must_use]
pub fn number_of(dtype: DType, bytes: &[u8]) -> Option<Number> {
    let values = Values::of(dtype);
    let is_one = values.bits == 8 * values.unit_bytes as u64 && values.numbers_of_unit() == 1;
    let mut unit = [0; 8];
    let place =
        unit.get_mut(..bytes.len()).filter(|_| is_one && bytes.len() == values.unit_bytes)?;
    place.copy_from_slice(bytes);
    Some(one(dtype, &values, unit))
}

fn one(dtype: DType, values: &Values, unit: [u8; 8]) -> Number {
    let number = || {
        let mut into = [0.0];
        values.numbers(&unit[..values.unit_bytes], &mut into);
        into[0]
    };
    match dtype {
        DType::Bool => Number::Bool(unit[0] != 0),
        DType::Int64 => Number::Int(i64::from_le_bytes(unit)),
        DType::UInt64 => Number::Uint(u64::from_le_bytes(unit)),
        DType::Int32 | DType::Int16 | DType::Int8 | DType::Int(_) => Number::Int(number() as i64),
        DType::UInt32 | DType::UInt16 | DType::UInt8 | DType::UInt(_) => {
            Number::Uint(number() as u64)
        }
        _ => Number::Float(number()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strided::Strided;

    fn listed(bytes: &[u8], dtype: DType, layout: &Strided, limit: u64) -> Result<Vec<Number>> {
        let elements = Elements {
            bytes: &bytes,
            start: 0,
            storage_bytes: bytes.len() as u64,
            dtype,
            layout,
            is_big_endian: false,
            quantization: None,
        };
        list(&elements, limit)
    }

    #[test]
    fn elements_come_in_the_order_of_their_indexes_and_exactly() {
        let large = (1_i64 << 53) + 1;
        let bytes: Vec<u8> =
            [1, 2, 3, large, -5, 6].into_iter().flat_map(i64::to_le_bytes).collect();
        let transposed = Strided { shape: vec![3, 2], stride: vec![1, 3], offset: 0 };

        let found = listed(&bytes, DType::Int64, &transposed, 6).unwrap();

        assert_eq!(found, [1, large, 2, -5, 3, 6].map(Number::Int));
    }

    #[test]
    fn what_is_too_much_or_not_there_is_refused() {
        let row = Strided::contiguous(vec![4]).unwrap();

        assert_eq!(
            listed(&[0, 2], DType::Bool, &Strided::contiguous(vec![2]).unwrap(), 2).unwrap(),
            [Number::Bool(false), Number::Bool(true)]
        );
        for (bytes, limit, word) in [(16, 3, "at most 3"), (15, 4, "beyond the end")] {
            let error = listed(&vec![0; bytes], DType::Float32, &row, limit).unwrap_err();

            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(listed(&[0; 16], DType::Complex32, &row, 4).is_err());
    }
}
