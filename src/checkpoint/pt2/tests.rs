//! Archives as `torch.export.save` writes them, and malicious variants.

use std::io::{Cursor, Write};

use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;
use crate::checkpoint::files::CheckpointFile;
use crate::checkpoint::imports::Imports;
use crate::checkpoint::ledger;
use crate::checkpoint::open::Checkpoint;
use crate::dtype::DType;
use crate::strided::Strided;

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let members: Vec<_> = members.iter().map(|(name, data)| (format!("m/{name}"), *data)).collect();
    zipped(&members, zip::CompressionMethod::Stored)
}

fn zipped(members: &[(String, &[u8])], method: zip::CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, data) in members {
        writer.start_file(name.as_str(), options).unwrap();
        writer.write_all(data).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn entry(name: &str, path: &str, meta: &str) -> String {
    format!(
        r#""{name}": {{"path_name": "{path}", "is_param": true, "use_pickle": false, "tensor_meta": {meta}}}"#
    )
}

fn meta(dtype: u64, sizes: &[i64], strides: &[i64], offset: i64) -> String {
    let list = |numbers: &[i64]| {
        let items = numbers.iter().map(|number| format!(r#"{{"as_int": {number}}}"#));
        items.collect::<Vec<_>>().join(", ")
    };
    format!(
        r#"{{"dtype": {dtype}, "sizes": [{}], "requires_grad": true, "device": {{"type": "cuda", "index": 1}}, "strides": [{}], "storage_offset": {{"as_int": {offset}}}, "layout": 7}}"#,
        list(sizes),
        list(strides)
    )
}

fn config(entries: &[String]) -> String {
    format!(r#"{{"config": {{{}}}}}"#, entries.join(", "))
}

fn read(bytes: Vec<u8>) -> Result<(Content, u64)> {
    let file = CheckpointFile::from_vec("m.pt2", bytes);
    let length = file.len();
    let zip = TorchZip::open(&file, 0..length)?;
    Ok((content(&zip, 0, &Progress::none())?, length))
}

/// Reads a file as any other, and settles its accounts.
fn open(bytes: Vec<u8>) -> Checkpoint {
    Checkpoint::from_file(CheckpointFile::from_vec("m.pt2", bytes), &Progress::none()).unwrap()
}

fn flagged(found: &Imports) -> Vec<&str> {
    found.flagged.iter().map(String::as_str).collect()
}

/// A pickle that calls `posix.system`.
const EVIL: &[u8] = b"\x80\x02cposix\nsystem\nX\x02\0\0\0ls\x85R.";

/// A file of `torch.save` with one tensor of two 64-bit numbers.
fn with_tensor(name: &str) -> Vec<u8> {
    let id = b"(X\x07\0\0\0storagectorch\nLongStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x02tQ";
    let head = [b"\x80\x02}X", &(name.len() as u32).to_le_bytes()[..], name.as_bytes()].concat();
    let call = b"ctorch._utils\n_rebuild_tensor_v2\n(";
    let pickle = [&head[..], call, id, b"K\0K\x02\x85K\x01\x85\x89}tRs."].concat();
    archive(&[("data.pkl", &pickle), ("data/0", &[1; 16])])
}

/// A file of `torch.save` with an empty dict, and a storage of 5 bytes that is not used.
fn saved() -> Vec<u8> {
    archive(&[("data.pkl", b"\x80\x02}q\0."), ("data/0", b"12345")])
}

#[test]
fn weights_constants_and_what_nobody_uses_are_found() {
    let weights = config(&[
        entry("a", "weight_0", &meta(7, &[2, 2], &[1, 2], 1)),
        entry("tied", "weight_0", &meta(7, &[5], &[1], 0)),
        entry("fake", "weight_1", &meta(7, &[1000], &[1], 0)),
    ]);
    let constants = config(&[entry("c", "tensor_0", &meta(13, &[], &[], 0))]);
    let bytes = archive(&[
        ("data/weights/weight_0", &[0; 20]),
        ("data/weights/weight_1", b""),
        ("data/weights/weight_2", &[0; 7]),
        ("data/weights/model_weights_config.json", weights.as_bytes()),
        ("data/constants/tensor_0", &[0; 2]),
        ("data/constants/model_constants_config.json", constants.as_bytes()),
        ("data/sample_inputs/model.pt", &saved()),
        ("archive_format", b"pt2"),
        ("byteorder", b"big"),
    ]);

    let (found, length) = read(bytes).unwrap();

    let named: Vec<_> =
        found.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.kind)).collect();
    assert_eq!(
        named,
        [("a", "parameter"), ("tied", "parameter"), ("fake", "meta"), ("c", "parameter")]
    );
    let [a, tied, fake, c] = &found.tensors[..] else { panic!("there are four") };
    assert_eq!((a.device.as_str(), a.requires_grad, a.logical_bytes), ("cuda:1", true, 16));
    assert_eq!(a.views[0].layout, Strided { shape: vec![2, 2], stride: vec![1, 2], offset: 1 });
    assert_eq!(a.views[0].storage, tied.views[0].storage);
    assert!(fake.views.is_empty());
    assert_eq!(c.views[0].dtype, DType::BFloat16);
    let keys: Vec<_> = found.storages.iter().map(|storage| storage.key.as_str()).collect();
    assert_eq!(keys, ["weight_0", "weight_1", "weight_2", "tensor_0", "0"]);
    assert!(found.storages[0].is_big_endian && !found.storages[4].is_big_endian);
    let ledger =
        ledger::add_up(&[length], &found.stretches, &found.storages, &[20, 0, 0, 2, 0]).unwrap();
    assert_eq!((ledger.tensors, ledger.unreferenced, ledger.pickle), (22, 7 + 5, 6));
    assert_eq!(ledger.padding, 0, "every byte is in a stretch");
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
}

#[test]
fn what_is_pickled_is_read_where_it_lies() {
    let weights = r#"{"config": {"w": {"path_name": "weight_0", "is_param": false,
        "use_pickle": true, "tensor_meta": null}}}"#;
    let evil = archive(&[("data.pkl", b"\x80\x02cposix\nsystem\nX\x02\0\0\0ls\x85R.")]);
    let bytes = archive(&[
        ("data/weights/weight_0", &evil),
        ("data/weights/model_weights_config.json", weights.as_bytes()),
    ]);

    let (found, _) = read(bytes).unwrap();

    assert_eq!(found.imports.flagged.iter().collect::<Vec<_>>(), ["posix.system"]);
}

#[test]
fn what_cannot_be_looked_into_is_a_warning() {
    let bytes = archive(&[
        ("data/sample_inputs/model.pt", b"PK\x03\x04 but no archive"),
        ("archive_format", b"pt2"),
    ]);

    let (found, length) = read(bytes).unwrap();

    assert!(
        found.warnings[0].starts_with("m/data/sample_inputs/model.pt cannot be read: it is cut")
    );
    assert!(found.warnings[1].ends_with("model.pt cannot be scanned: it is a damaged archive"));
    let flagged: Vec<_> = found.imports.flagged.iter().collect();
    assert_eq!(flagged, ["unknown, in m/data/sample_inputs/model.pt"]);
    assert_eq!(found.stretches.iter().map(|stretch| stretch.bytes).sum::<u64>(), length);
}

#[test]
fn several_models_have_their_names_in_front() {
    let one = config(&[entry("w", "weight_0", &meta(1, &[2], &[1], 0))]);
    let bytes = archive(&[
        ("data/weights/weight_0", &[0; 2]),
        ("data/weights/a_weights_config.json", one.as_bytes()),
        ("data/weights/b_weights_config.json", one.as_bytes()),
    ]);

    let (found, _) = read(bytes).unwrap();

    let names: Vec<_> = found.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!((names, found.storages.len()), (vec!["a.w", "b.w"], 1));
}

#[test]
fn descriptions_that_lie_are_refused_in_a_sentence() {
    let of = |meta: &str| config(&[entry("w", "weight_0", meta)]);
    let fine = meta(7, &[2], &[1], 0);
    for (text, says) in [
        (of(&meta(99, &[2], &[1], 0)), "w has a type that is not known"),
        (of(&fine.replace(r#""layout": 7"#, r#""layout": 1"#)), "w has a layout that is not known"),
        (of(&meta(7, &[-2], &[1], 0)), "that are not numbers"),
        (of(&fine.replace("as_int", "as_expr")), "that are not numbers"),
        (of(&meta(7, &[2], &[], 0)), "more dimensions than strides"),
        (of(&meta(7, &[i64::MAX, 4], &[1, 1], 0)), "more elements than can be counted"),
        (of("null"), "w is not described"),
        (config(&[entry("w", "weight_9", &fine)]), "weight_9, which is not there"),
        (
            config(&[entry("w", "weight_0", &fine), entry("w", "weight_0", &fine)]),
            "w is described twice",
        ),
        ("[]".to_owned(), "the description of the weights is damaged"),
    ] {
        let bytes = archive(&[
            ("data/weights/weight_0", &[0; 8]),
            ("data/weights/model_weights_config.json", text.as_bytes()),
        ]);

        let error = read(bytes).unwrap_err().to_string();

        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_packed_archive_is_unpacked_for_what_it_holds() {
    let inner = with_tensor("x");
    let evil = archive(&[("data.pkl", EVIL)]);
    let members = [
        ("m/archive_format".to_owned(), &b"pt2"[..]),
        ("m/data/sample_inputs/a.pt".to_owned(), &inner),
        ("m/data/sample_inputs/b.pt".to_owned(), &evil),
    ];

    let found = open(zipped(&members, zip::CompressionMethod::Deflated));

    let names: Vec<_> = found.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["a.sample_inputs.x"]);
    assert!(found.tensors[0].views.is_empty() && found.storages.is_empty());
    assert_eq!(flagged(&found.imports), ["posix.system"]);
    assert!(found.warnings.iter().any(|warning| warning.contains("an archive that is packed")));
    let error = found.measure(0, 0, &Progress::none()).unwrap_err().to_string();
    assert!(error.contains("are not in the file"), "{error}");
}

#[test]
fn a_pickle_in_any_member_is_flagged() {
    let hidden = archive(&[("x/evil.pkl", EVIL)]);
    let broken = archive(&[("data.pkl", &[EVIL, b"?"].concat()[..EVIL.len() - 1])]);
    for member in [
        ("models/model.json", EVIL),
        ("data/weights/weight_0", EVIL),
        ("extra/hidden.zip", &hidden),
        ("data/sample_inputs/model.pt", EVIL),
        ("data/sample_inputs/model.pt", &broken),
        ("data/sample_inputs/model.pt", &[b"I1\n.", EVIL].concat()),
    ] {
        let members =
            [("m/archive_format".to_owned(), &b"pt2"[..]), (format!("m/{}", member.0), member.1)];
        for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
            let found = open(zipped(&members, method));

            assert_eq!(flagged(&found.imports), ["posix.system"], "{} {method:?}", member.0);
            assert!(!found.warnings.is_empty());
        }
    }
}

#[test]
fn archives_in_archives_are_flagged_where_nobody_looks_any_more() {
    let mut inner = archive(&[("x/evil.pkl", EVIL)]);
    for _ in 0..4 {
        inner = archive(&[("inner.zip", &inner)]);
    }
    let bytes = archive(&[("archive_format", b"pt2"), ("extra/inner.zip", &inner)]);

    let found = open(bytes);

    assert_eq!(flagged(&found.imports), ["unknown, in m/inner.zip"]);
}

#[test]
fn the_older_layout_is_read() {
    let (weights, inputs) = (with_tensor("layer.weight"), with_tensor("x"));
    for folder in ["", "m/"] {
        let member = |name: &str| format!("{folder}{name}");
        let members = [
            (member("serialized_exported_program.json"), &b"{}"[..]),
            (member("serialized_state_dict.pt"), &weights),
            (member("serialized_constants.pt"), b""),
            (member("serialized_example_inputs.pt"), &inputs),
            (member("version"), b"8.7"),
        ];

        let found = open(zipped(&members, zip::CompressionMethod::Stored));

        let names: Vec<_> = found.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        assert_eq!((found.format, names), ("pt2", vec!["layer.weight", "sample_inputs.x"]));
        assert_eq!(found.ledger.tensors, 32);
        assert_eq!(found.measure(1, 0, &Progress::none()).unwrap().count, 2);
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
        let root = &found.trees[found.root_tree];
        assert_eq!(root.values.parts(root.root).len(), 2);
    }
}

#[test]
fn arrays_in_the_pickles_of_members_are_measured_in_the_right_one() {
    let array = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0\x85C\x01bt\
        R(K\x01K\x02\x85cnumpy\ndtype\n(X\x02\0\0\0u1K\0K\x01tR\x89C\x02\x07\x09tb.";
    let bytes = archive(&[
        ("archive_format", b"pt2"),
        ("data/sample_inputs/a.pt", &archive(&[("data.pkl", b"\x80\x02N.")])),
        ("data/sample_inputs/b.pt", &archive(&[("data.pkl", array)])),
    ]);

    let found = open(bytes);

    assert_eq!(found.tensors.len(), 1);
    assert_eq!(found.measure(0, 0, &Progress::none()).unwrap().max, Some(9.0));
}
