//! The rest of the language: opcodes that name classes, call them and fill them, and those of protocols
//! 0 and 1. Nothing is named, called or filled here: each becomes an [`Object`] for the builder.

use super::{Builder, Machine, Value, ends_early, op, refuse};
use crate::error::{Error, Result};

/// The meaning of an opcode that would run code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Object {
    /// A class or a function, by its module and its name.
    Global {
        /// The module.
        module: Value,
        /// The name.
        name: Value,
    },
    /// A class or a function that both sides have agreed on a number for.
    Extension(u32),
    /// What calling something returns.
    Call {
        /// What is called.
        callable: Value,
        /// A tuple.
        args: Value,
    },
    /// An instance of a class.
    New {
        /// The class.
        class: Value,
        /// A tuple.
        args: Value,
        /// A dict of named arguments.
        named: Option<Value>,
    },
    /// The object itself, given its state.
    WithState {
        /// The object.
        object: Value,
        /// What it is to be filled with.
        state: Value,
    },
    /// What the pickler kept elsewhere.
    Persistent(Value),
    /// An empty set; items are appended to it.
    Set {
        /// Whether nothing may be added to it later.
        is_frozen: bool,
    },
}

impl<'a, B: Builder> Machine<'a, '_, B> {
    #[inline(never)] // The loop over data stays small.
    pub(super) fn object_step(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            op::GLOBAL => self.global_lines().map(|global| self.push(global))?,
            op::STACK_GLOBAL => {
                let (module, name) = self.pop_two()?;
                self.object(Object::Global { module, name })?;
            }
            op::EXT1 => self.extension(1)?,
            op::EXT2 => self.extension(2)?,
            op::EXT4 => self.extension(4)?,

            op::REDUCE => {
                let (callable, args) = self.pop_two()?;
                self.object(Object::Call { callable, args })?;
            }
            op::NEWOBJ => {
                let (class, args) = self.pop_two()?;
                self.object(Object::New { class, args, named: None })?;
            }
            op::NEWOBJ_EX => {
                let named = Some(self.pop()?);
                let (class, args) = self.pop_two()?;
                self.object(Object::New { class, args, named })?;
            }
            op::INST => {
                let class = self.global_lines()?;
                let mark = self.mark()?;
                self.tuple(mark)?;
                let args = self.pop()?;
                self.object(Object::New { class, args, named: None })?;
            }
            op::OBJ => {
                let mark = self.mark()?;
                let Some(&class) = self.state.stack.get(mark) else {
                    return self.fail("an object without a class");
                };
                self.tuple(mark + 1)?;
                let args = self.pop()?;
                self.state.stack.truncate(mark);
                self.object(Object::New { class, args, named: None })?;
            }
            op::BUILD => {
                let (object, state) = self.pop_two()?;
                self.object(Object::WithState { object, state })?;
            }
            op::BINPERSID => self.pop().and_then(|id| self.object(Object::Persistent(id)))?,
            op::PERSID => self.line_text().and_then(|id| self.object(Object::Persistent(id)))?,

            op::EMPTY_SET => self.object(Object::Set { is_frozen: false })?,
            op::ADDITEMS => self.mark().and_then(|from| self.append(from))?,
            op::FROZENSET => {
                let mark = self.mark()?;
                let set = self.builder.make(Object::Set { is_frozen: true }, self.op_at)?;
                if let Value::Object(set) = set {
                    self.builder.append(set, &self.state.stack[mark..], self.op_at)?;
                }
                self.replace(mark, set);
            }
            _ => return self.old_step(opcode),
        }
        Ok(())
    }

    /// Takes two values off the stack: the one below the top, and the top.
    fn pop_two(&mut self) -> Result<(Value, Value)> {
        let top = self.pop()?;
        Ok((self.pop()?, top))
    }

    /// The opcodes of protocols 0 and 1, as Python 2 wrote them.
    fn old_step(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            op::INT => {
                let value = match self.line()? {
                    b"00" => Value::Bool(false),
                    b"01" => Value::Bool(true),
                    digits => self.decimal(digits)?,
                };
                self.push(value);
            }
            op::LONG => {
                let line = self.line()?;
                let value = self.decimal(line.strip_suffix(b"L").unwrap_or(line))?;
                self.push(value);
            }
            op::FLOAT => {
                let line = self.line()?;
                let number =
                    std::str::from_utf8(line).ok().and_then(|line| line.trim().parse().ok());
                let Some(number) = number else { return self.fail("a malformed float") };
                self.push(Value::Float(number));
            }
            op::STRING => {
                let line = self.line()?.trim_ascii();
                let ([b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"']) = line else {
                    return self.fail("a string without its quotes");
                };
                self.string(&unescaped(inner))?;
            }
            op::BINSTRING => self.binary_string(4)?,
            op::SHORT_BINSTRING => self.binary_string(1)?,
            op::UNICODE => {
                let text = self.line_text()?;
                self.push(text);
            }
            op::NEXT_BUFFER | op::READONLY_BUFFER => {
                return self.fail("some of its bytes are in buffers outside of it");
            }
            _ => return Err(refuse(opcode, self.op_at)),
        }
        Ok(())
    }

    fn object(&mut self, object: Object) -> Result<()> {
        let value = self.builder.make(object, self.op_at)?;
        self.push(value);
        Ok(())
    }

    fn extension(&mut self, width: usize) -> Result<()> {
        let code = self.length(width)? as u32;
        self.object(Object::Extension(code))
    }

    /// A module and a name, a line each.
    fn global_lines(&mut self) -> Result<Value> {
        let module = self.name_line()?;
        let name = self.name_line()?;
        self.builder.make(Object::Global { module, name }, self.op_at)
    }

    /// A name: UTF-8, without escapes.
    fn name_line(&mut self) -> Result<Value> {
        let text = String::from_utf8_lossy(self.line()?);
        Ok(Value::Text(self.builder.text(&text, self.op_at)?))
    }

    fn line_text(&mut self) -> Result<Value> {
        let text = unicode_unescaped(self.line()?);
        Ok(Value::Text(self.builder.text(&text, self.op_at)?))
    }

    /// The bytes up to the next newline.
    fn line(&mut self) -> Result<&'a [u8]> {
        let from = self.state.at;
        let rest = &self.state.input[from..];
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
            return Err(ends_early(self.state.input.len()));
        };
        self.state.at += end + 1;
        Ok(&self.state.input[from..from + end])
    }

    fn decimal(&self, digits: &[u8]) -> Result<Value> {
        let text = std::str::from_utf8(digits).unwrap_or_default().trim();
        if let Ok(value) = text.parse() {
            return Ok(Value::Int(value));
        }
        if let Ok(value) = text.parse() {
            return Ok(Value::Uint(value));
        }
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::malformed("a malformed integer", self.op_at));
        }
        Ok(Value::Huge)
    }

    fn binary_string(&mut self, prefix: usize) -> Result<()> {
        let length = self.length(prefix)?;
        let bytes = self.take(length)?;
        self.string(bytes)
    }

    /// A string of Python 2: text if it can be, else bytes.
    fn string(&mut self, bytes: &[u8]) -> Result<()> {
        let value = match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(self.builder.text(text, self.op_at)?),
            Err(_) => self.builder.bytes(bytes, self.op_at)?,
        };
        self.push(value);
        Ok(())
    }
}

/// What `'…'` of Python 2 stands for.
fn unescaped(quoted: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted;
    while let [first, after @ ..] = rest {
        rest = after;
        let (byte, after) = match (*first, after) {
            (b'\\', [b'n', after @ ..]) => (b'\n', after),
            (b'\\', [b't', after @ ..]) => (b'\t', after),
            (b'\\', [b'r', after @ ..]) => (b'\r', after),
            (b'\\', [b'x', high, low, after @ ..]) => match hex(&[*high, *low]) {
                Some(code) => (code as u8, after),
                None => (b'x', &rest[1..]),
            },
            (b'\\', [escaped, after @ ..]) => (*escaped, after),
            (byte, after) => (byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    bytes
}

/// Text in Python's `raw-unicode-escape`: Latin-1 with `\uXXXX` and `\UXXXXXXXX`.
fn unicode_unescaped(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let [first, after @ ..] = rest {
        let escape = match after {
            [b'u', tail @ ..] if *first == b'\\' => tail.split_at_checked(4),
            [b'U', tail @ ..] if *first == b'\\' => tail.split_at_checked(8),
            _ => None,
        };
        let code = escape.and_then(|(digits, after)| Some((hex(digits)?, after)));
        if let Some((code, after)) = code {
            text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            rest = after;
        } else {
            text.push(char::from(*first));
            rest = after;
        }
    }
    text
}

fn hex(digits: &[u8]) -> Option<u32> {
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u32::from_str_radix(text, 16).ok()
}
