//! Values in words and in bytes.

use snapviewer::checkpoint::describe::{self, Sizes};
use snapviewer::checkpoint::preview::preview;
use snapviewer::checkpoint::walk::TensorOf;
use snapviewer::pickle::Value;

use super::read;
use super::write::*;

#[test]
fn types_are_called_as_in_python() {
    for (value, expected) in [
        (none(), "NoneType"),
        (yes(), "bool"),
        (int(1), "int"),
        (b"\x8a\x09\0\0\0\0\0\0\0\0\x01".to_vec(), "int"),
        (float(1.0), "float"),
        (text(""), "str"),
        (bytes(b""), "bytes"),
        (list(&[]), "list"),
        (tuple(&[]), "tuple"),
        (dict(&[]), "dict"),
        (b"\x8f".to_vec(), "set"),
        (b"(\x91".to_vec(), "frozenset"),
        (global("torch", "float32"), "torch.dtype"),
        (global("models", "Net"), "type"),
        (global("models", "make"), "function"),
        (storage("FloatStorage", "0", 1), "torch.storage"),
        (call(global("collections", "OrderedDict"), &[]), "OrderedDict"),
        (call(global("__builtin__", "xrange"), &[]), "range"),
        (call(global("_codecs", "encode"), &[text("")]), "bytes"),
        (call(global("copyreg", "_reconstructor"), &[global("a", "B")]), "a.B"),
        (call(global("copyreg", "_reconstructor"), &[]), "object"),
        (call(global("numpy.core.multiarray", "scalar"), &[]), "numpy scalar"),
        (object("Net", none()), "models.Net"),
        (call(none(), &[]), "object"),
    ] {
        let (values, root) = read(&value);

        assert_eq!(describe::type_name(&values, root), expected);
    }
}

#[test]
fn previews_are_short_and_safe_to_print() {
    let long = "é".repeat(300);
    for (value, expected) in [
        (none(), "None"),
        (no(), "False"),
        (int(i64::MIN), "-9223372036854775808"),
        (float(0.1), "0.1"),
        (float(f64::NEG_INFINITY), "-inf"),
        (float(f64::NAN), "nan"),
        (text("a\n'\u{1b}"), r#""a\n'\x1b""#),
        (bytes(b"ab\0"), r"b'ab\x00'"),
        (bytes(&[b'x'; 65]), &format!("b'{}…'", "x".repeat(64))),
        (list(&[none(), none()]), "list of 2"),
        (named(&[("a", none())]), "dict of 1"),
        (global("a", "b"), "a.b"),
        (call(global("torch", "device"), &[text("cuda"), int(1)]), "torch.device('cuda', 1)"),
        (call(global("a", "B"), &[list(&[int(1), int(2)])]), "a.B of 2"),
        (object("Net", named(&[("x", none())])), "models.Net of 1"),
        (text(&long), &format!("'{}…'", "é".repeat(100))),
    ] {
        let (values, root) = read(&value);

        assert_eq!(preview(&values, root), expected);
    }
}

#[test]
fn long_names_are_cut_in_types_and_previews() {
    let long = "m".repeat(100_000);
    let (values, root) = read(&call(global(&long, &long), &[int(1)]));

    assert!(describe::type_name(&values, root).len() < 500);
    assert!(preview(&values, root).len() < 500);
}

fn total(value: &[u8]) -> u64 {
    let (values, root) = read(value);
    let sizes = Sizes::new(&values, root, &TensorOf::new(), |_| 0);
    assert!(sizes.parts <= sizes.of(&values, root));
    sizes.of(&values, root)
}

/// The numbers are those of `sys.getsizeof` in 64-bit `CPython`.
#[test]
fn values_take_as_many_bytes_as_in_python() {
    for (value, expected) in [
        (none(), 16),
        (int(1), 28),
        (int(1 << 30), 32),
        (int(i64::MIN), 36),
        (float(0.0), 24),
        (text("abc"), 52),
        (text("é"), 74),
        (text("€"), 76),
        (text("😀"), 80),
        (bytes(b"abc"), 36),
        (tuple(&[]), 40),
        (list(&[]), 56),
        (dict(&[]), 64),
        (call(global("_codecs", "encode"), &[text("é"), text("latin1")]), 34),
        (call(global("builtins", "bytearray"), &[bytes(b"ab")]), 59),
        (call(global("torch", "Size"), &[list(&[int(1), int(2)])]), 56),
    ] {
        assert_eq!(total(&value), expected);
    }
}

#[test]
fn what_occurs_twice_is_counted_once() {
    let twice = tuple(&[put(1, list(&[put(2, text("some text"))])), get(1), get(2)]);

    assert_eq!(total(&twice), (40 + 3 * 8) + (56 + 8) + (49 + 9));
    let keys = list(&[named(&[("k", int(1))])]);
    assert_eq!(total(&keys), (56 + 8) + total(&named(&[("k", int(1))])));
}

#[test]
fn the_parts_of_a_container_add_up_to_it() {
    let value = list(&[
        named(&[("a", list(&[int(1), text("xyz")]))]),
        object("A", named(&[("b", none())])),
    ]);
    let (values, root) = read(&value);
    let sizes = Sizes::new(&values, root, &TensorOf::new(), |_| 0);

    let parts = values.parts(root);
    let inner: u64 =
        (0..parts.len()).map(|index| sizes.of(&values, parts.get(&values, index).unwrap().1)).sum();

    assert_eq!((sizes.of(&values, root), sizes.parts), (56 + 16 + inner, inner));
}

#[test]
fn circles_and_depth_have_a_size_too() {
    let circle = [b"]q\x01".to_vec(), get(1), b"a".to_vec()].concat();
    assert_eq!(total(&circle), 64);
    assert!(total(&[none(), vec![0x85; 100_000]].concat()) > 10_000 * 48);

    // A bytearray of itself, and one of one of one of …
    let itself =
        [b"]q\x01".to_vec(), global("builtins", "bytearray"), b"h\x01Ra".to_vec()].concat();
    total(&itself);
    let makers = global("builtins", "bytearray").repeat(50_000);
    let (values, root) = read(&[makers, none(), b"\x85R".repeat(50_000)].concat());
    assert_eq!(describe::own_bytes(&values, root), 57);
    assert!(!describe::is_container(&values, root));
}

#[test]
fn what_a_tensor_adds_never_overflows() {
    let (values, root) = read(&list(&[tuple(&[]), tuple(&[int(1)])]));
    let items = values.as_items(root).unwrap();
    let handles = items.iter().map(|item| match item {
        Value::Object(handle) => (*handle, 0),
        _ => unreachable!(),
    });
    let tensor_of: TensorOf = handles.collect();

    let sizes = Sizes::new(&values, root, &tensor_of, |_| u64::MAX);

    assert_eq!((sizes.of(&values, root), sizes.parts), (u64::MAX, u64::MAX));
}
