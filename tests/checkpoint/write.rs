//! Writes pickles by hand: each function returns the opcodes that leave one value on the stack.

pub type Ops = Vec<u8>;

pub fn none() -> Ops {
    b"N".to_vec()
}

pub fn yes() -> Ops {
    b"\x88".to_vec()
}

pub fn no() -> Ops {
    b"\x89".to_vec()
}

pub fn int(number: i64) -> Ops {
    [b"\x8a\x08".to_vec(), number.to_le_bytes().to_vec()].concat()
}

pub fn float(number: f64) -> Ops {
    [b"G".to_vec(), number.to_be_bytes().to_vec()].concat()
}

pub fn text(text: &str) -> Ops {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

pub fn bytes(bytes: &[u8]) -> Ops {
    [b"B", &(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

pub fn tuple(items: &[Ops]) -> Ops {
    [b"(", items.concat().as_slice(), b"t"].concat()
}

pub fn list(items: &[Ops]) -> Ops {
    [b"](", items.concat().as_slice(), b"e"].concat()
}

pub fn dict(entries: &[(Ops, Ops)]) -> Ops {
    let entries: Vec<u8> =
        entries.iter().flat_map(|(key, value)| [key.clone(), value.clone()].concat()).collect();
    [b"}(", entries.as_slice(), b"u"].concat()
}

/// A dict whose keys are texts.
pub fn named(entries: &[(&str, Ops)]) -> Ops {
    dict(&entries.iter().map(|(key, value)| (text(key), value.clone())).collect::<Vec<_>>())
}

pub fn global(module: &str, name: &str) -> Ops {
    format!("c{module}\n{name}\n").into_bytes()
}

/// What `function` returns.
pub fn call(function: Ops, arguments: &[Ops]) -> Ops {
    [function, tuple(arguments), b"R".to_vec()].concat()
}

/// An object with its state.
pub fn build(object: Ops, state: Ops) -> Ops {
    [object, state, b"b".to_vec()].concat()
}

/// An object of a class, with its state.
pub fn object(class: &str, state: Ops) -> Ops {
    build([global("models", class), b")\x81".to_vec()].concat(), state)
}

/// The value, kept in the memo under a number.
pub fn put(number: u8, value: Ops) -> Ops {
    [value, vec![b'q', number]].concat()
}

pub fn get(number: u8) -> Ops {
    vec![b'h', number]
}

/// A storage of `elements` of the type that the class stands for.
pub fn storage(class: &str, key: &str, elements: i64) -> Ops {
    let id = [text("storage"), global("torch", class), text(key), text("cpu"), int(elements)];
    [tuple(&id), b"Q".to_vec()].concat()
}

pub fn ints(numbers: &[i64]) -> Ops {
    tuple(&numbers.iter().map(|&number| int(number)).collect::<Vec<_>>())
}

/// Something of `torch._utils`.
pub fn utils(name: &str) -> Ops {
    global("torch._utils", name)
}

/// A tensor of four floats, two by two, in the storage with this key.
pub fn tensor(key: &str) -> Ops {
    let storage = storage("FloatStorage", key, 4);
    call(
        utils("_rebuild_tensor_v2"),
        &[storage, int(0), ints(&[2, 2]), ints(&[2, 1]), no(), dict(&[])],
    )
}

/// A whole pickle.
pub fn pickle(value: &[u8]) -> Vec<u8> {
    [b"\x80\x02", value, b"."].concat()
}
