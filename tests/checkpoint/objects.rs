//! What objects consist of: what they were made from, what was put into them, their attributes.

use proptest::prelude::*;
use snapviewer::checkpoint::describe::{self, Sizes};
use snapviewer::checkpoint::preview::preview;
use snapviewer::checkpoint::values::{self, Node};
use snapviewer::checkpoint::walk;
use snapviewer::progress::Progress;

use super::write::*;
use super::{Ten, read};

/// The parts of a value: `label: preview`.
fn parts(value: &[u8]) -> Vec<String> {
    let (values, root) = read(value);
    let parts = values.parts(root);
    let part = |index| {
        let (label, value) = parts.get(&values, index).unwrap();
        format!("{}: {}", describe::label(&values, label), preview(&values, value))
    };
    (0..parts.len()).map(part).collect()
}

#[test]
fn collections_consist_of_what_is_in_them() {
    let ordered = || global("collections", "OrderedDict");
    let pairs = list(&[list(&[text("a"), int(1)]), tuple(&[text("b"), int(2)]), int(3)]);
    let filled = |made: Ops| [made, text("k"), int(1), b"s".to_vec()].concat();

    assert_eq!(parts(&call(ordered(), &[pairs])), ["a: 1", "b: 2", "[2]: 3"]);
    assert_eq!(parts(&filled(call(ordered(), &[]))), ["k: 1"]);
    let missing = call(global("collections", "defaultdict"), &[global("builtins", "list")]);
    assert_eq!(parts(&filled(missing)), ["k: 1"]);
    let counter = call(global("collections", "Counter"), &[named(&[("x", int(2))])]);
    assert_eq!(parts(&counter), ["x: 2"]);
    assert_eq!(parts(&call(global("builtins", "set"), &[list(&[int(4)])])), ["[0]: 4"]);
    let appended = [call(global("collections", "deque"), &[]), int(1), b"a".to_vec()].concat();
    assert_eq!(parts(&appended), ["[0]: 1"]);
    assert_eq!(parts(b"\x8f(K\x01K\x02\x90"), ["[0]: 1", "[1]: 2"]);
    assert_eq!(parts(b"(K\x01\x91"), ["[0]: 1"]);
}

#[test]
fn objects_consist_of_arguments_and_attributes() {
    let object = |function: Ops, arguments: &[Ops], state| build(call(function, arguments), state);
    let class = || global("models", "A");
    let constructor = || global("copyreg", "_reconstructor");

    let old = object(
        constructor(),
        &[class(), global("builtins", "object"), none()],
        named(&[("a", int(1))]),
    );
    assert_eq!(parts(&old), ["[0]: None", "a: 1"]);
    let slots = tuple(&[none(), named(&[("slot", int(2))])]);
    assert_eq!(parts(&object(class(), &[], slots)), ["slot: 2"]);
    let both = tuple(&[named(&[("a", int(1))]), named(&[("slot", int(2))])]);
    assert_eq!(parts(&object(class(), &[], both)), ["a: 1", "slot: 2"]);
    let other = tuple(&[int(1), int(2)]);
    assert_eq!(parts(&object(class(), &[], other)), ["state: (1, 2)"]);
    assert_eq!(parts(&object(class(), &[int(5)], none())), ["[0]: 5"]);
    let keywords = [class(), tuple(&[int(1)]), named(&[("b", int(2))]), b"\x92".to_vec()].concat();
    assert_eq!(parts(&keywords), ["[0]: 1", "b: 2"]);
}

#[test]
fn arguments_that_are_no_tuple_are_no_parts() {
    for arguments in [none(), int(1), text("x"), dict(&[]), global("a", "b")] {
        let value = [global("a", "b"), arguments, b"R".to_vec()].concat();

        assert!(parts(&value).is_empty());
    }
}

#[test]
fn a_persistent_class_with_its_source_is_a_class() {
    let class =
        tuple(&[text("module"), global("models", "A"), text("a.py"), text("class A: pass")]);
    let value = [class, b"Q)R".to_vec()].concat();

    let (values, root) = read(&value);

    assert_eq!(describe::type_name(&values, root), "models.A");
}

#[test]
fn names_go_on_behind_the_end_of_a_pickle_and_up_to_where_it_breaks() {
    let found = |input: &[u8]| -> Vec<String> {
        let values = values::names(input);
        values.globals().map(|(module, name)| format!("{module}.{name}")).collect()
    };

    assert_eq!(found(b"\x80\x02ca\nb\n."), ["a.b"]);
    assert_eq!(found(b"\x80\x02ca\nb\n0cc\nd\n\xff"), ["a.b", "c.d"]);
    assert_eq!(found(b"I1\n.I2\n.\x80\x02ca\nb\n."), ["a.b"]);
    assert_eq!(found(b"\x82\x05."), ["copyreg extension.5"]);
    assert!(found(b"").is_empty());
}

#[test]
fn bytes_stay_in_the_pickle() {
    let pickle = pickle(&tuple(&[bytes(b"hello, world, hello"), b"U\x02\xff\xfe".to_vec()]));
    let (values, root, _) = values::read(&pickle, &Progress::none()).unwrap();

    let contents: Vec<_> = values
        .as_items(root)
        .unwrap()
        .iter()
        .map(|&item| match values.node(item) {
            Some(Node::Bytes(at)) => values::Values::content(&pickle, &at).unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();

    assert_eq!(contents, [&b"hello, world, hello"[..], b"\xff\xfe"]);
}

/// Opcodes that do something, so that random streams of them get far.
fn opcode() -> impl Strategy<Value = Vec<u8>> {
    let plain = b")]}(N\x88\x89012esuatlRbQo\x81\x85\x86\x87\x8f\x90\x91\x92\x93\x94d".to_vec();
    let functions = [
        "_rebuild_tensor_v2",
        "_rebuild_parameter",
        "_rebuild_sparse_tensor",
        "_rebuild_njt",
        "_rebuild_wrapper_subclass",
        "_rebuild_from_type_v2",
        "_rebuild_qtensor",
    ];
    prop_oneof![
        6 => proptest::sample::select(plain).prop_map(|op| vec![op]),
        2 => (0..6_u8).prop_map(|number| vec![b'h', number]),
        2 => (0..6_u8).prop_map(|number| vec![b'q', number]),
        2 => (0..4_u8).prop_map(|number| vec![b'K', number]),
        1 => proptest::sample::select(functions.to_vec()).prop_map(utils),
        1 => Just(global("builtins", "bytearray")),
        1 => Just(global("collections", "OrderedDict")),
        1 => Just(tensor("0")),
        1 => Just(storage("FloatStorage", "1", 4)),
        1 => proptest::sample::select(vec!["values", "_parameters", "x"]).prop_map(text),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever a pickle says, it can be read or refused, walked over, described and measured.
    #[test]
    fn no_stream_of_opcodes_is_too_much(
        opcodes in proptest::collection::vec(opcode(), 0..200),
        dropped in 0..4_usize,
    ) {
        // What is on the stack at the end becomes one value, so that little is lost.
        let mut stream = b"\x80\x02]q\0".to_vec();
        stream.extend(opcodes.concat());
        stream.extend(vec![b'1'; dropped]);
        stream.extend(b"\x85.");
        let Ok((values, root, _)) = values::read(&stream, &Progress::none()) else { return Ok(()) };
        let mut storages = Ten::default();

        let (tensors, tensor_of) =
            walk::tensors(&values, root, "", &mut storages, &Progress::none()).unwrap();
        let sizes = Sizes::new(&values, root, &tensor_of, |index| {
            tensors[index as usize].logical_bytes
        });

        prop_assert!(values.held() <= 64 * stream.len() + 4096, "{}", values.held());
        prop_assert!(sizes.parts <= sizes.of(&values, root));
        prop_assert!(tensor_of.values().all(|&index| (index as usize) < tensors.len()));
        prop_assert!(!preview(&values, root).is_empty());
    }
}
