//! How values would be printed by Python, shortened.

use std::fmt::Write;

use super::describe::{class_name, cut, type_name};
use super::numpy::scalar;
use super::values::{Node, Values};
use crate::dtype::DType;
use crate::pickle::Value;
use crate::stats::Number;

/// The longest preview.
pub(super) const MAX_PREVIEW: usize = 200;

/// How Python would print a value, shortened; of a container, its type and its length.
#[must_use]
pub fn preview(values: &Values, value: Value) -> String {
    match value {
        Value::None => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Huge => "a very long integer".to_owned(),
        Value::Float(number) => float(number),
        Value::Text(id) => {
            let text = values.text_of(id);
            let shown = cut(text, MAX_PREVIEW);
            quoted(shown, false, shown.len() < text.len())
        }
        Value::Object(_) => match values.node(value) {
            Some(Node::Bytes(bytes)) => {
                let shown = &bytes.head[..bytes.len.min(bytes.head.len())];
                let text = bytes_text(shown, shown.len() < bytes.len);
                if bytes.is_mutable { format!("bytearray({text})") } else { text }
            }
            Some(Node::Integer(bytes)) => decimal(bytes),
            Some(Node::Global { module, name }) => class_name(module, name),
            Some(Node::Call(call)) => match values.as_global(call.callable) {
                Some((module, "scalar")) if module.starts_with("numpy") => {
                    of_scalar(values, call.args)
                }
                _ => None,
            }
            .unwrap_or_else(|| of_call(values, value, call.args)),
            Some(Node::Tuple(items)) if is_short(items) => {
                let shown: Vec<_> = items.iter().map(|&item| preview(values, item)).collect();
                let comma = if items.len() == 1 { "," } else { "" };
                cut(&format!("({}{comma})", shown.join(", ")), MAX_PREVIEW).to_owned()
            }
            _ => format!("{} of {}", type_name(values, value), values.parts(value).len()),
        },
    }
}

/// A few plain values.
fn is_short(items: &[Value]) -> bool {
    let is_plain = |item: &Value| !matches!(item, Value::Object(_));
    matches!(items.len(), 1..=4) && items.iter().all(is_plain)
}

/// The value of a scalar of NumPy.
fn of_scalar(values: &Values, args: Value) -> Option<String> {
    let (dtype, number) = scalar(values, args)?;
    Some(match number {
        Number::Bool(is_true) => if is_true { "True" } else { "False" }.to_owned(),
        Number::Int(number) => number.to_string(),
        Number::Uint(number) => number.to_string(),
        // The fewest digits that are this number in its own type.
        Number::Float(number) if dtype == DType::Float32 => {
            let text = (number as f32).to_string();
            float(text.parse().unwrap_or(number))
        }
        Number::Float(number) => float(number),
    })
}

fn of_call(values: &Values, value: Value, args: Value) -> String {
    let name = type_name(values, value);
    let args = values.as_items(args).unwrap_or_default();
    match (name.as_str(), args) {
        // Protocol 2 has no bytes: it writes a text whose characters stand for them.
        ("bytes", &[Value::Text(id), ..]) => {
            let text = values.text_of(id);
            let shown: Option<Vec<u8>> =
                text.chars().take(64).map(|letter| u8::try_from(u32::from(letter)).ok()).collect();
            if let Some(shown) = shown {
                return bytes_text(&shown, text.chars().nth(64).is_some());
            }
        }
        // No further than that: a file may give a call to itself as its argument.
        ("bytearray", &[inner]) if type_name(values, inner) == "bytes" => {
            return format!("bytearray({})", preview(values, inner));
        }
        ("torch.Size", &[sizes]) => {
            let sizes = values.as_items(sizes).unwrap_or_default();
            if sizes.len() <= 16 {
                let number = |&size: &Value| match size {
                    Value::Int(size) => size.to_string(),
                    _ => "?".to_owned(),
                };
                let sizes: Vec<_> = sizes.iter().map(number).collect();
                return format!("torch.Size([{}])", sizes.join(", "));
            }
        }
        ("complex", &[Value::Float(real), Value::Float(imaginary)]) => {
            return complex(real, imaginary);
        }
        _ => {}
    }
    if is_short(args) {
        let shown: Vec<_> = args.iter().map(|&arg| preview(values, arg)).collect();
        return cut(&format!("{name}({})", shown.join(", ")), MAX_PREVIEW).to_owned();
    }
    format!("{name} of {}", values.parts(value).len())
}

/// A string as Python's `repr` shows it.
#[must_use]
pub fn repr(text: &str) -> String {
    quoted(text, false, false)
}

/// A string in quotes, with Python's escapes; of bytes, each character stands for one.
fn quoted(letters: &str, is_bytes: bool, is_cut: bool) -> String {
    let quote = if letters.contains('\'') && !letters.contains('"') { '"' } else { '\'' };
    let mut text = String::from(quote);
    for letter in letters.chars() {
        let code = u32::from(letter);
        // Writing into a string cannot fail.
        _ = match letter {
            '\n' => write!(text, "\\n"),
            '\r' => write!(text, "\\r"),
            '\t' => write!(text, "\\t"),
            '\\' => write!(text, "\\\\"),
            _ if letter == quote => write!(text, "\\{letter}"),
            '\0'..='\x1f' | '\x7f'..='\u{a0}' | '\u{ad}' => write!(text, "\\x{code:02x}"),
            '\u{80}'.. if is_bytes => write!(text, "\\x{code:02x}"),
            // What turns or hides the text around it.
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                write!(text, "\\u{code:04x}")
            }
            _ => write!(text, "{letter}"),
        };
    }
    if is_cut {
        text.push('…');
    }
    text.push(quote);
    text
}

fn bytes_text(bytes: &[u8], is_cut: bool) -> String {
    let letters: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    format!("b{}", quoted(&letters, true, is_cut))
}

fn complex(real: f64, imaginary: f64) -> String {
    let number = |value: f64| float(value).trim_end_matches(".0").to_owned();
    let sign = if imaginary.is_sign_negative() { "" } else { "+" };
    if real == 0.0 && !real.is_sign_negative() {
        return format!("{}j", number(imaginary));
    }
    format!("({}{sign}{}j)", number(real), number(imaginary))
}

fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = format!("{number:?}");
    // Python writes 1e-07 and 1e+16 where we would write 1e-7 and 1e16.
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{}e{sign}{exponent:0>2}", digits.trim_end_matches(".0"))
        }
        None => text,
    }
}

/// A little-endian two's complement integer of any length, in decimal digits.
fn decimal(bytes: &[u8]) -> String {
    let is_negative = bytes.last().is_some_and(|&top| top >= 0x80);
    let mut rest: Vec<u8> = bytes.to_vec();
    if is_negative {
        let mut carry = true;
        for byte in &mut rest {
            let (flipped, overflows) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (flipped, overflows);
        }
    }
    let mut digits = Vec::new();
    while rest.iter().any(|&byte| byte != 0) {
        let mut remainder = 0_u32;
        for byte in rest.iter_mut().rev() {
            let value = remainder << 8 | u32::from(*byte);
            *byte = (value / 10) as u8;
            remainder = value % 10;
        }
        digits.push(char::from(b'0' + remainder as u8));
    }
    if is_negative {
        digits.push('-');
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_integers_are_written_in_digits() {
        let mut power = [0; 14];
        power[12] = 16; // 2¹⁰⁰

        assert_eq!(decimal(&power), "1267650600228229401496703205376");
        assert_eq!(decimal(&[0, 0, 0, 0, 0, 0, 0, 0, 0xff]), "-18446744073709551616");
    }

    #[test]
    fn floats_are_written_as_python_does() {
        let written = [2.5, 1e-7, 1e22, -0.0, 1.5e-10, 100.0].map(float);

        assert_eq!(written, ["2.5", "1e-07", "1e+22", "-0.0", "1.5e-10", "100.0"]);
    }

    #[test]
    fn texts_and_bytes_are_quoted_as_python_does() {
        assert_eq!(quoted("é\n\u{1b}[31m", false, false), "'é\\n\\x1b[31m'");
        assert_eq!(quoted("it's", false, false), "\"it's\"");
        assert_eq!(bytes_text(b"\x00\xffa'", true), "b\"\\x00\\xffa'…\"");
        assert_eq!(complex(1.0, 2.0), "(1+2j)");
        assert_eq!(complex(0.0, -2.5), "-2.5j");
    }
}
