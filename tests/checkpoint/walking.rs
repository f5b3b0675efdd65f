//! The names of tensors, and trees that would never end.

use super::write::*;
use super::{names, walked};

#[test]
fn a_name_is_the_way_to_a_tensor() {
    let value = named(&[
        ("model", named(&[("layer.weight", tensor("0"))])),
        ("state", dict(&[(int(0), named(&[("exp_avg", tensor("1"))]))])),
        ("list", list(&[int(7), tuple(&[tensor("2")])])),
        ("odd", dict(&[(tuple(&[]), tensor("3")), (none(), tensor("4"))])),
        ("object", object("Thing", named(&[("inner", tensor("5"))]))),
    ]);

    let expected = [
        "model.layer.weight",
        "state[0].exp_avg",
        "list[1][0]",
        "odd[tuple of 0]",
        "odd[None]",
        "object.inner",
    ];
    assert_eq!(names(&value), expected);
    assert_eq!(names(&tensor("0")), ["root"]);
}

#[test]
fn modules_are_named_as_their_state_dict_is() {
    let module = |parameters: Ops, modules: Ops| {
        let parts = [("_parameters", parameters), ("_buffers", dict(&[])), ("_modules", modules)];
        object("Module", named(&parts))
    };
    let inner = module(named(&[("weight", tensor("0"))]), dict(&[]));
    let value = module(named(&[("bias", tensor("1"))]), named(&[("layer", inner)]));

    assert_eq!(names(&value), ["bias", "layer.weight"]);
    let only = object("Other", named(&[("_parameters", named(&[("weight", tensor("0"))]))]));
    assert_eq!(names(&only), ["_parameters.weight"]);
}

#[test]
fn a_tied_tensor_has_two_names_and_a_shared_container_one() {
    let value = named(&[
        ("a", put(1, tensor("0"))),
        ("b", get(1)),
        ("c", put(2, named(&[("x", tensor("1"))]))),
        ("d", get(2)),
    ]);

    let (tensors, tensor_of, _) = walked(&value);

    let names: Vec<_> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c.x"]);
    assert_eq!(tensor_of.len(), 2);
}

#[test]
fn what_many_objects_share_is_entered_once() {
    let state = put(1, named(&[("x", tensor("0"))]));
    let arguments = put(2, tuple(&[int(1), tensor("1")]));
    let call_of = |arguments| [global("a", "b"), arguments, b"R".to_vec()].concat();
    let value = named(&[
        ("first", object("A", state)),
        ("second", object("B", get(1))),
        ("third", call_of(arguments)),
        ("fourth", call_of(get(2))),
        ("pairs", call(global("collections", "OrderedDict"), &[put(3, list(&[]))])),
    ]);

    assert_eq!(names(&value), ["first.x", "third[1]"]);
}

#[test]
fn circles_end() {
    let circle = [
        b"}q\x01".to_vec(),
        text("self"),
        get(1),
        b"s".to_vec(),
        text("t"),
        tensor("0"),
        b"s".to_vec(),
    ];
    assert_eq!(names(&circle.concat()), ["t"]);

    let of_list = [b"]q\x01".to_vec(), global("a", "b"), b"h\x01Ra".to_vec()].concat();
    assert!(names(&of_list).is_empty());

    let state =
        [global("models", "A"), b")\x81q\x01}".to_vec(), text("me"), b"h\x01sb".to_vec()].concat();
    assert!(names(&state).is_empty());
}

#[test]
fn a_billion_laughs_are_one_tensor() {
    let mut value = [b"]".to_vec(), tensor("0"), b"aq\0".to_vec()].concat();
    for level in 0..60_u8 {
        value.extend(
            [b"]".to_vec(), get(level), b"a".to_vec(), get(level), b"aq".to_vec(), vec![level + 1]]
                .concat(),
        );
    }

    let (tensors, ..) = walked(&value);

    assert_eq!(tensors.len(), 1);
    assert!(tensors[0].name.starts_with("[0][0][0]"));
}

#[test]
fn what_is_nested_without_end_is_left_out_and_said() {
    let value = [tensor("0"), vec![0x85; 200_000]].concat();

    let (tensors, _, warnings) = walked(&value);

    assert!(tensors.is_empty());
    assert_eq!(warnings, ["what is nested deeper than 10000 levels is not listed"]);
}

#[test]
fn names_have_an_end() {
    let long = text(&"n".repeat(100_000));
    let mut value = tensor("0");
    for _ in 0..50 {
        value = dict(&[(long.clone(), value)]);
    }

    assert!(names(&value)[0].len() < 10_000);
}

#[test]
fn tensors_among_the_attributes_of_a_tensor_are_listed() {
    let grad = build(tensor("0"), named(&[("grad", tensor("1"))]));

    assert_eq!(names(&named(&[("w", grad)])), ["w", "w.grad"]);
}
