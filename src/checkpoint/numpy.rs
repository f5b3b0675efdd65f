//! NumPy arrays and scalars in a pickle: their numbers are part of the pickle itself.

use super::tensors::elements;
use super::values::{Call, Node, Values};
use super::{InPickle, Tensor};
use crate::dtype::DType;
use crate::pickle::Value;
use crate::stats::{Number, number_of};

const MAX_DIMENSIONS: usize = 64;
/// How long NumPy's name of a type may be: `M8[25us]`.
const MAX_CODE: usize = 100;

/// The array that `_reconstruct` (with its state) or `_frombuffer` would make.
pub(super) fn array(
    values: &Values,
    function: &str,
    args: &[Value],
    call: &Call,
) -> Option<Tensor> {
    let (data, dtype, shape, is_fortran) = if function == "_frombuffer" {
        let &[data, dtype, shape, order, ..] = args else { return None };
        (data, dtype, shape, values.as_text(order) == Some("F"))
    } else {
        let state = call.then.as_ref()?.state?;
        let &[_, shape, dtype, is_fortran, data] = values.as_items(state)? else { return None };
        (data, dtype, shape, is_fortran == Value::Bool(true))
    };
    let shape = values.as_items(shape)?;
    if shape.len() > MAX_DIMENSIONS {
        return None;
    }
    let shape: Vec<u64> = shape
        .iter()
        .map(|size| match size {
            Value::Int(size) => u64::try_from(*size).ok(),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let (code, is_big_endian) = dtype_code(values, dtype)?;
    let known = DType::from_numpy(&code);
    let count = elements(&shape)?;
    let logical_bytes = match known {
        Some(dtype) => dtype.bytes_of(count)?,
        None => count.checked_mul(item_bytes(&code)?)?,
    };
    let in_pickle = known.and_then(|dtype| {
        let (value, is_latin1) = raw(values, data)?;
        Some(InPickle { tree: 0, value, is_latin1, dtype, is_big_endian, is_fortran })
    });
    Some(Tensor {
        name: String::new(),
        kind: "ndarray",
        dtype: known.map_or(code, |dtype| dtype.name().to_owned()),
        shape,
        device: "cpu".to_owned(),
        requires_grad: false,
        views: Vec::new(),
        logical_bytes,
        class: None,
        quantized: None,
        in_pickle,
    })
}

/// The type of the scalar that these arguments make, if torch has it.
pub(super) fn scalar_type(values: &Values, args: Value) -> Option<DType> {
    let &[dtype, ..] = values.as_items(args)? else { return None };
    DType::from_numpy(&dtype_code(values, dtype)?.0)
}

/// The scalar that these arguments make, with its type.
pub(super) fn scalar(values: &Values, args: Value) -> Option<(DType, Number)> {
    let &[dtype, data] = values.as_items(args)? else { return None };
    let (code, is_big_endian) = dtype_code(values, dtype)?;
    let known = DType::from_numpy(&code)?;
    let mut bytes = match (raw(values, data)?, values.node(data)) {
        ((value, true), _) => {
            let letters = values.as_text(value)?.chars().take(16);
            letters
                .map(|letter| u8::try_from(u32::from(letter)).ok())
                .collect::<Option<Vec<u8>>>()?
        }
        (_, Some(Node::Bytes(bytes))) => bytes.head.get(..bytes.len)?.to_vec(),
        _ => return None,
    };
    if is_big_endian {
        bytes.reverse();
    }
    Some((known, number_of(known, &bytes)?))
}

/// NumPy's code for a type (`f4`), and whether its high byte comes first.
fn dtype_code(values: &Values, dtype: Value) -> Option<(String, bool)> {
    let call = values.as_call(dtype)?;
    let code = values.as_text(*values.as_items(call.args)?.first()?)?;
    if code.len() > MAX_CODE {
        return None;
    }
    let state = call.then.as_ref().and_then(|then| then.state);
    let order = state.and_then(|state| values.as_text(*values.as_items(state)?.get(1)?));
    let (code, own) = match code.split_at_checked(1) {
        Some(("<" | ">" | "|" | "=", rest)) => (rest, Some(&code[..1])),
        _ => (code, None),
    };
    Some((code.to_owned(), order.or(own) == Some(">")))
}

/// How many bytes an element of a type takes that torch does not have: `U10`, `S5`, `O`, `M8[ns]`.
fn item_bytes(code: &str) -> Option<u64> {
    let digits = code.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let digits = digits.split(|letter: char| !letter.is_ascii_digit()).next()?;
    match code.chars().next()? {
        'U' => digits.parse::<u64>().ok()?.checked_mul(4),
        'O' => Some(8),
        _ => digits.parse().ok(),
    }
}

/// Where the array's bytes are: a bytes object, or a text that protocol 2 made of them.
fn raw(values: &Values, data: Value) -> Option<(Value, bool)> {
    match values.node(data) {
        Some(Node::Bytes(_)) => Some((data, false)),
        Some(Node::Call(call)) => {
            match (values.as_global(call.callable)?, values.as_items(call.args)?) {
                (("_codecs", "encode"), &[text @ Value::Text(_), ..]) => Some((text, true)),
                (_, &[only]) if matches!(values.node(only), Some(Node::Bytes(_))) => {
                    Some((only, false))
                }
                _ => None,
            }
        }
        // A string of Python 2 that happens to be text.
        None if matches!(data, Value::Text(_)) => Some((data, false)),
        _ => None,
    }
}
