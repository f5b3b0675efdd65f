//! The functions that rebuild tensors, and arguments that they would not take.

use snapviewer::checkpoint::Quantized;

use super::walked;
use super::write::*;

/// Kind, type, shape, and the roles and storages of the views of the only tensor; none if there is none.
fn summary(value: &[u8]) -> Option<String> {
    let (tensors, ..) = walked(value);
    let tensor = tensors.first()?;
    let views: Vec<_> = tensor
        .views
        .iter()
        .map(|view| format!("{}{}@{}", view.role, view.storage, view.layout.offset))
        .collect();
    let grad = if tensor.requires_grad { " grad" } else { "" };
    let class = tensor.class.as_ref().map(|class| format!(" {class}")).unwrap_or_default();
    let (kind, dtype, shape) = (tensor.kind, &tensor.dtype, &tensor.shape);
    Some(format!("{kind} {dtype} {shape:?} [{}]{grad}{class}", views.join(" ")))
}

fn floats(key: &str) -> Ops {
    storage("FloatStorage", key, 4)
}

fn indices() -> Ops {
    let storage = storage("LongStorage", "1", 2);
    call(utils("_rebuild_tensor"), &[storage, int(0), ints(&[2]), ints(&[1])])
}

fn layout(name: &str) -> Ops {
    call(global("torch.serialization", "_get_layout"), &[text(name)])
}

/// Every function with arguments that it takes, and what comes of them.
fn rebuilding() -> Vec<(Ops, Vec<Ops>, &'static str)> {
    let place = |key| vec![floats(key), int(1), ints(&[3]), ints(&[1]), yes()];
    let with = |key, more: &[Ops]| [&place(key)[..], more].concat();
    let float32 = || global("torch", "float32");
    let affine = || global("torch", "per_tensor_affine");
    let channel = || global("torch", "per_channel_affine");
    let scales = || tuple(&[channel(), tensor("2"), indices(), int(0)]);
    let size = || call(global("torch", "Size"), &[ints(&[9, 9])]);
    let own = || global("mine", "Own");
    let from_type = || global("torch._tensor", "_rebuild_from_type_v2");
    let njt = || global("torch.nested._internal.nested_tensor", "_rebuild_njt");
    let device = || call(global("torch", "device"), &[text("cuda"), int(1)]);
    let wrapper =
        || tuple(&[own(), float32(), ints(&[8]), ints(&[1]), int(0), none(), device(), yes()]);
    vec![
        (utils("_rebuild_tensor"), place("0")[..4].to_vec(), "tensor float32 [3] [0@1]"),
        (utils("_rebuild_tensor_v2"), with("0", &[dict(&[])]), "tensor float32 [3] [0@1] grad"),
        (
            utils("_rebuild_tensor_v3"),
            with("0", &[dict(&[]), global("torch", "bfloat16")]),
            "tensor bfloat16 [3] [0@1] grad",
        ),
        (
            utils("_rebuild_parameter"),
            vec![tensor("3"), yes(), dict(&[])],
            "parameter float32 [2, 2] [3@0] grad",
        ),
        (
            utils("_rebuild_parameter_with_state"),
            vec![tensor("3"), no(), dict(&[]), named(&[("a", int(1))])],
            "parameter float32 [2, 2] [3@0]",
        ),
        (
            utils("_rebuild_qtensor"),
            [&place("0")[..4], &[tuple(&[affine(), float(0.5), int(3)]), no(), dict(&[])]].concat(),
            "quantized float32 [3] [0@1]",
        ),
        (
            utils("_rebuild_qtensor"),
            [&place("0")[..4], &[scales(), no(), dict(&[])]].concat(),
            "quantized float32 [3] [values0@1 scales2@0 zero_points1@0]",
        ),
        (
            utils("_rebuild_sparse_tensor"),
            vec![layout("torch.sparse_coo"), tuple(&[indices(), tensor("4"), size(), yes()])],
            "sparse_coo float32 [9, 9] [indices1@0 values4@0]",
        ),
        (
            utils("_rebuild_sparse_tensor"),
            vec![layout("torch.sparse_csc"), tuple(&[indices(), indices(), tensor("4"), size()])],
            "sparse_csc float32 [9, 9] [ccol_indices1@0 row_indices1@0 values4@0]",
        ),
        (
            utils("_rebuild_nested_tensor"),
            vec![tensor("0"), indices(), indices(), indices()],
            "nested float32 [2, 2] [values0@0 sizes1@0 strides1@0 offsets1@0]",
        ),
        (
            njt(),
            vec![named(&[("values", tensor("5")), ("offsets", indices()), ("other", none())])],
            "nested float32 [2, 2] [values5@0 offsets1@0]",
        ),
        (
            utils("_rebuild_meta_tensor_no_storage"),
            vec![float32(), ints(&[5]), ints(&[1]), yes()],
            "meta float32 [5] [] grad",
        ),
        (
            from_type(),
            vec![utils("_rebuild_tensor_v2"), own(), tuple(&with("0", &[])), named(&[])],
            "subclass float32 [3] [0@1] grad mine.Own",
        ),
        (
            from_type(),
            vec![
                utils("_rebuild_wrapper_subclass"),
                own(),
                wrapper(),
                named(&[("inner", tensor("6")), ("deeper", named(&[("scale", tensor("7"))]))]),
            ],
            "subclass float32 [8] [inner6@0 scale7@0] grad mine.Own",
        ),
        (
            utils("_rebuild_device_tensor_from_cpu_tensor"),
            vec![tensor("0"), float32(), text("cuda:0"), yes()],
            "tensor float32 [2, 2] [0@0] grad",
        ),
    ]
}

#[test]
fn every_function_that_rebuilds_a_tensor_is_understood() {
    for (function, arguments, expected) in rebuilding() {
        let summary = summary(&call(function, &arguments));

        assert_eq!(summary.as_deref(), Some(expected));
    }
}

#[test]
fn arguments_that_make_no_sense_make_no_tensor_or_less_of_one() {
    let many = tuple(&vec![int(1); 65]);
    let odd = [
        none(),
        int(-1),
        int(i64::MAX),
        float(f64::NAN),
        text("x"),
        ints(&[-1]),
        ints(&[i64::MAX, i64::MAX]),
        many,
        list(&[none()]),
        dict(&[(none(), none())]),
        global("torch", "nothing"),
        storage("FloatStorage", "99", -1),
        call(global("a", "b"), &[]),
        // Itself, by way of a list.
        [b"]q\xfe".to_vec(), global("torch._utils", "_rebuild_parameter"), b"h\xfeRa".to_vec()]
            .concat(),
    ];

    for (function, arguments, _) in rebuilding() {
        for position in 0..arguments.len() {
            for odd in &odd {
                let mut arguments = arguments.clone();
                arguments[position].clone_from(odd);
                walked(&call(function.clone(), &arguments));
            }
            walked(&call(function.clone(), &arguments[..position]));
        }
        for whole in &odd {
            walked(&[function.clone(), whole.clone(), b"R".to_vec()].concat());
        }
    }
}

#[test]
fn what_every_tensor_needs_is_asked_for() {
    let good = [floats("0"), int(1), ints(&[3]), ints(&[1]), yes(), dict(&[])];
    for (position, wrong) in [
        (0, none()),
        (0, text("0")),
        (0, [tuple(&[text("storage"), int(1)]), b"Q".to_vec()].concat()),
        (0, storage("FloatStorage", &"long".repeat(300), 1)),
        (1, int(-1)),
        (1, text("1")),
        (2, ints(&[-3])),
        (2, ints(&[3, 3])),
        (2, ints(&[i64::MAX, i64::MAX])),
        (2, none()),
        (3, float(1.0)),
        (3, ints(&[])),
    ] {
        let mut arguments = good.to_vec();
        arguments[position] = wrong;

        let summary = summary(&call(utils("_rebuild_tensor_v2"), &arguments));

        assert_ne!(summary.as_deref(), Some("tensor float32 [3] [0@1] grad"));
        assert!(
            summary.is_none_or(|summary| summary.starts_with("storage")),
            "argument {position}"
        );
    }
}

#[test]
fn a_storage_that_is_not_in_the_file_leaves_a_tensor_without_bytes() {
    let (tensors, ..) = walked(&tensor("77"));

    assert_eq!((tensors.len(), tensors[0].views.len(), tensors[0].logical_bytes), (1, 0, 16));
}

#[test]
fn quantizers_are_kept_beside_the_numbers() {
    let quantized: Vec<_> = rebuilding()
        .into_iter()
        .filter_map(|(function, arguments, _)| walked(&call(function, &arguments)).0[0].quantized)
        .collect();

    let expected =
        [Quantized::Tensor { scale: 0.5, zero_point: 3 }, Quantized::Channel { axis: 0 }];
    assert_eq!(quantized, expected);
}

#[test]
fn a_file_cannot_multiply_long_words_or_parts() {
    let long = "w".repeat(1 << 16);
    let parts: Vec<_> = (0..3000).map(|_| (put(2, text(&long)), get(1))).collect();
    let parts: Vec<_> = parts
        .into_iter()
        .enumerate()
        .map(|(at, part)| if at == 0 { part } else { (get(2), part.1) })
        .collect();
    let class = global(&long, &long);
    let device = call(global("torch", "device"), &[text(&long)]);
    let float32 = global("torch", "float32");
    let inner =
        tuple(&[class.clone(), float32, ints(&[8]), ints(&[1]), int(0), none(), device, yes()]);
    let wrapper = utils("_rebuild_wrapper_subclass");
    let function = global("torch._tensor", "_rebuild_from_type_v2");
    let whole = call(function, &[wrapper, class, inner, dict(&parts)]);

    let (tensors, ..) = walked(&list(&[put(1, tensor("0")), whole]));

    let wide = &tensors[1];
    assert!((500..=2000).contains(&wide.views.len()), "{}", wide.views.len());
    assert!(wide.views.iter().all(|view| view.role.len() <= 200));
    assert!(wide.device.len() <= 200 && wide.class.as_ref().unwrap().len() <= 401);
}
