//! Archives that say one thing to torch and another to whoever looks at them, and what hides in members.

use std::io::Read;

use flate2::Compression;
use flate2::read::DeflateEncoder;
use snapviewer::checkpoint::files::CheckpointFile;
use snapviewer::checkpoint::open::Checkpoint;
use snapviewer::error::Result;
use snapviewer::progress::Progress;

use super::write::*;

const EVIL: &[u8] = b"\x80\x02cposix\nsystem\n.";

/// A member of an archive: its name, its data as they are in the file, and how long they are unpacked
/// if they are packed.
type Member = (&'static str, Vec<u8>, Option<u64>);

fn plain(name: &'static str, data: &[u8]) -> Member {
    (name, data.to_vec(), None)
}

fn packed(name: &'static str, data: &[u8]) -> Member {
    let mut packed = Vec::new();
    DeflateEncoder::new(data, Compression::fast()).read_to_end(&mut packed).unwrap();
    (name, packed, Some(data.len() as u64))
}

/// An archive whose directory lists its members in this order.
fn zip(members: &[Member], order: &[usize]) -> Vec<u8> {
    let (mut file, mut records) = (Vec::new(), Vec::new());
    for (name, data, unpacked) in members {
        let start = (file.len() as u32).to_le_bytes();
        let method = if unpacked.is_some() { [8, 0] } else { [0, 0] };
        let length = (name.len() as u16).to_le_bytes();
        let packed_bytes = (data.len() as u32).to_le_bytes();
        // What does not fit into 32 bits is in a field of its own.
        let bytes = unpacked.unwrap_or(data.len() as u64);
        let (short, extra) = match u32::try_from(bytes) {
            Ok(bytes) => (bytes, Vec::new()),
            Err(_) => (u32::MAX, [&[1, 0, 8, 0], &bytes.to_le_bytes()[..]].concat()),
        };
        let sizes = [packed_bytes, short.to_le_bytes()].concat();
        let extra_bytes = (extra.len() as u16).to_le_bytes();
        file.extend(
            [b"PK\x03\x04\x14\0\0\0", &method[..], &[0; 8], &sizes, &length, &[0, 0]].concat(),
        );
        file.extend([name.as_bytes(), data].concat());
        records.push(
            [
                b"PK\x01\x02\0\0\0\0\0\0",
                &method[..],
                &[0; 8],
                &sizes,
                &length,
                &extra_bytes,
                &[0; 10],
                &start,
                name.as_bytes(),
                &extra,
            ]
            .concat(),
        );
    }
    let directory: Vec<u8> = order.iter().flat_map(|&index| records[index].clone()).collect();
    let count = (order.len() as u16).to_le_bytes();
    let begin = (file.len() as u32).to_le_bytes();
    let length = (directory.len() as u32).to_le_bytes();
    [file, directory, b"PK\x05\x06\0\0\0\0".to_vec(), count.to_vec(), count.to_vec()]
        .concat()
        .into_iter()
        .chain([length, begin].concat())
        .chain([0, 0])
        .collect()
}

fn in_order(members: &[Member]) -> Vec<u8> {
    zip(members, &(0..members.len()).collect::<Vec<_>>())
}

fn open(bytes: Vec<u8>) -> Result<Checkpoint> {
    Checkpoint::from_file(CheckpointFile::from_vec("it", bytes), &Progress::none())
}

fn flagged(bytes: Vec<u8>) -> Vec<String> {
    open(bytes).unwrap().content.imports.flagged.into_iter().collect()
}

#[test]
fn everything_is_in_the_folder_of_the_first_member_of_the_directory() {
    let one = pickle(&named(&[("one", tensor("0"))]));
    let two = pickle(&named(&[("two", tensor("0"))]));
    let members =
        [plain("a/data.pkl", &one), plain("b/data.pkl", &two), plain("b/data/0", &[0; 16])];

    let name = |order: &[usize]| open(zip(&members, order)).unwrap().tensors[0].name.clone();

    assert_eq!((name(&[0, 1, 2]), name(&[2, 1, 0])), ("one".to_owned(), "two".to_owned()));
}

#[test]
fn torch_does_not_distinguish_two_members_that_differ_in_capitals_only() {
    let innocent = pickle(&dict(&[]));
    for name in ["a/DATA.PKL", "A/data.pkl", "a/Constants.pkl"] {
        let members = [plain("a/data.pkl", &innocent), plain(name, EVIL)];

        let error = open(in_order(&members)).unwrap_err().to_string();

        assert!(error.contains("can be read in two ways"), "{name}: {error}");
    }
}

#[test]
fn pickles_in_other_members_are_flagged_however_they_are_wrapped() {
    let data = plain("a/data.pkl", &pickle(&dict(&[])));
    let stored = in_order(&[plain("x/y.pkl", EVIL)]);
    let deflated = in_order(&[packed("x/y.pkl", EVIL)]);
    let old = [&pickle(&int(1))[..], EVIL].concat();
    for hidden in [
        plain("a/.data/x", EVIL),
        packed("a/x.PKL", EVIL),
        plain("b/data.pkl", EVIL),
        plain("a/data/0", EVIL),
        plain("a/x", &stored),
        packed("a/x", &stored),
        plain("a/x", &deflated),
        packed("a/x", &deflated),
        plain("a/old.pkl", &old),
    ] {
        let name = hidden.0;
        let found = open(in_order(&[data.clone(), hidden])).unwrap();

        assert_eq!(found.imports.flagged.iter().collect::<Vec<_>>(), ["posix.system"], "{name}");
        assert!(found.warnings.iter().any(|warning| warning.contains("a pickle is in a member")));
    }
}

#[test]
fn what_cannot_be_looked_into_is_flagged_as_unknown() {
    let data = plain("a/data.pkl", &pickle(&dict(&[])));
    let bomb = (packed("a/x.pkl", EVIL).1, Some(1 << 40));
    for hidden in [
        ("a/x.pkl", b"\xff\xff\xff damaged".to_vec(), Some(100)),
        ("a/x.pkl", packed("", EVIL).1, Some(3)),
        ("a/x.pkl", bomb.0, bomb.1),
        plain("a/x.pkl", b"PK\x03\x04 no archive"),
        packed("a/x.pkl", b"PK\x03\x04 no archive"),
    ] {
        assert_eq!(flagged(in_order(&[data.clone(), hidden])), ["unknown, in a/x.pkl"]);
    }
}

/// A pickle of a tensor that is quantized by channel, whose scales begin at this element.
fn quantized(offset: i64) -> Vec<u8> {
    let of = |class, key, offset| {
        let storage = storage(class, key, 2);
        call(
            utils("_rebuild_tensor_v2"),
            &[storage, int(offset), ints(&[2]), ints(&[1]), no(), dict(&[])],
        )
    };
    let channel = global("torch", "per_channel_affine");
    let scales = of("DoubleStorage", "1", offset);
    let quantizer = tuple(&[channel, scales, of("LongStorage", "2", 0), int(0)]);
    let values = storage("QInt8Storage", "0", 2);
    let place = [values, int(0), ints(&[2]), ints(&[1]), quantizer, no(), dict(&[])];
    pickle(&named(&[("q", call(utils("_rebuild_qtensor"), &place))]))
}

#[test]
fn scales_that_are_not_in_their_storage_are_an_error() {
    let numbers = [1.0_f64, 2.0].map(f64::to_le_bytes).concat();
    let measured = |offset| {
        let data = plain("a/data.pkl", &quantized(offset));
        let storages =
            [plain("a/data/0", &[3, 4]), plain("a/data/1", &numbers), plain("a/data/2", &[0; 16])];
        let found = open(in_order(&[&[data], &storages[..]].concat())).unwrap();
        found.measure(0, 0, &Progress::none())
    };

    assert_eq!(measured(0).unwrap().max, Some(8.0));
    for offset in [1, 2, 1 << 61, i64::MAX] {
        let error = measured(offset).unwrap_err().to_string();
        assert!(error.contains("the scales of q are not in the file"), "{error}");
    }
}

#[test]
fn a_packed_storage_that_claims_more_than_it_has_is_an_error() {
    let storage = storage("ByteStorage", "0", 1 << 50);
    let place = [storage, int(1 << 49), ints(&[2]), ints(&[1]), no(), dict(&[])];
    let data = plain("a/data.pkl", &pickle(&call(utils("_rebuild_tensor_v2"), &place)));
    let (name, bytes, _) = packed("a/data/0", &[1; 1000]);
    let found = open(in_order(&[data, (name, bytes, Some(1 << 50))])).unwrap();

    let error = found.measure(0, 0, &Progress::none()).unwrap_err().to_string();

    assert!(error.contains("a packed storage is cut off"), "{error}");
}

#[test]
fn a_hundred_warnings_are_enough() {
    let storage = |key: usize| storage("FloatStorage", &key.to_string(), 1);
    let tensor = |key| {
        let place = [storage(key), int(1 << 40), ints(&[1]), ints(&[1]), no(), dict(&[])];
        call(utils("_rebuild_tensor_v2"), &place)
    };
    let tensors: Vec<_> = (0..150).map(tensor).collect();
    let names: Vec<String> = (0..150).map(|key| format!("a/data/{key}")).collect();
    let mut members = vec![plain("a/data.pkl", &pickle(&list(&tensors)))];
    members.extend(names.iter().map(|name| plain(name.clone().leak(), &[0; 4])));

    let found = open(in_order(&members)).unwrap();

    assert_eq!(found.warnings.len(), 101);
    assert_eq!(found.warnings[0], "[0] reaches beyond the end of its storage 0");
    assert_eq!(found.warnings[100], "50 more warnings like these");
}
