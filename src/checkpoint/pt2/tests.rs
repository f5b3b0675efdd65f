//! Archives as `torch.export.save` writes them, with what strangers could make of them.

use std::io::{Cursor, Write};

use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;
use crate::checkpoint::files::CheckpointFile;
use crate::checkpoint::ledger;
use crate::dtype::DType;
use crate::strided::Strided;

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, data) in members {
        writer.start_file(format!("m/{name}"), options).unwrap();
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

/// A file of `torch.save` with an empty dict, and a storage of 5 bytes that nobody uses.
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

    assert!(found.warnings[0].starts_with("m/data/sample_inputs/model.pt cannot be looked into"));
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
        (of(&meta(7, &[-2], &[1], 0)), "that are no numbers"),
        (of(&fine.replace("as_int", "as_expr")), "that are no numbers"),
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
