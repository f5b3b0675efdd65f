//! The files of torch before 1.6, and before 0.1.10: whole, cut off, and made to be read in two ways.

use std::ops::Range;

use snapviewer::checkpoint::files::CheckpointFile;
use snapviewer::checkpoint::open::Checkpoint;
use snapviewer::error::Result;
use snapviewer::progress::Progress;

use super::write::*;

const MAGIC: &[u8] = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19";
const EVIL: &[u8] = b"cposix\nsystem\n0";

fn open(bytes: Vec<u8>) -> Result<Checkpoint> {
    Checkpoint::from_file(CheckpointFile::from_vec("it", bytes), &Progress::none())
}

fn flagged(bytes: Vec<u8>) -> Vec<String> {
    open(bytes).unwrap().content.imports.flagged.into_iter().collect()
}

/// The five pickles and the storage of a legacy file.
fn legacy_parts() -> [Vec<u8>; 6] {
    let id =
        [text("storage"), global("torch", "FloatStorage"), text("k"), text("cpu"), int(4), none()];
    let storage = [tuple(&id), b"Q".to_vec()].concat();
    let arguments = [storage, int(0), ints(&[4]), ints(&[1]), no(), dict(&[])];
    let tensor = call(utils("_rebuild_tensor_v2"), &arguments);
    [
        pickle(MAGIC),
        pickle(&int(1001)),
        pickle(&named(&[("little_endian", yes())])),
        pickle(&named(&[("w", tensor)])),
        pickle(&list(&[text("k")])),
        [&4_i64.to_le_bytes()[..], &[0; 16]].concat(),
    ]
}

/// A member of a tar archive.
fn member(name: &[u8], kind: u8, data: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name);
    header[124..136].copy_from_slice(format!("{:011o}\0", data.len()).as_bytes());
    header[156] = kind;
    header[257..263].copy_from_slice(b"ustar\0");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let filling = vec![0; data.len().next_multiple_of(512) - data.len()];
    [header, data.to_vec(), filling].concat()
}

/// The members of a tar checkpoint with one tensor of two numbers.
fn tar_parts() -> Vec<(&'static str, Vec<u8>)> {
    let of = |values: &[Vec<u8>]| pickle(&tuple(values));
    let storage = of(&[int(5), text("cpu"), global("torch", "LongStorage")]);
    let numbers = [2_i64.to_le_bytes(), 7_i64.to_le_bytes(), 8_i64.to_le_bytes()].concat();
    let tensor = of(&[int(1), int(5), global("torch", "LongTensor")]);
    let shape = [1_i64, 2, 1, 0].map(i64::to_le_bytes).concat();
    vec![
        ("sys_info", pickle(&dict(&[]))),
        ("pickle", pickle(&named(&[("w", [text("1"), b"Q".to_vec()].concat())]))),
        ("tensors", [pickle(&int(1)), tensor, shape].concat()),
        ("storages", [pickle(&int(1)), storage, numbers, pickle(&list(&[]))].concat()),
    ]
}

fn tar(parts: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let members = parts.iter().map(|(name, data)| member(name.as_bytes(), b'0', data));
    [members.collect::<Vec<_>>().concat(), vec![0; 1024]].concat()
}

#[test]
fn a_legacy_stream_is_read_to_the_byte() {
    let parts = legacy_parts();
    let found = open(parts.concat()).unwrap();

    assert_eq!((found.format, found.tensors[0].name.as_str()), ("torch legacy", "w"));
    assert_eq!((found.ledger.tensors, found.ledger.archive), (16, 8));
    let pickles: usize = parts[..5].iter().map(Vec::len).sum();
    assert_eq!(found.ledger.pickle, pickles as u64);
    assert_eq!(found.measure(0, 0, &Progress::none()).unwrap().zeros, 4);
}

#[test]
fn a_tar_is_read_to_the_byte() {
    let found = open(tar(&tar_parts())).unwrap();

    assert_eq!((found.format, found.tensors[0].name.as_str()), ("torch tar", "w"));
    assert_eq!(found.ledger.tensors, 16);
    assert_eq!(found.measure(0, 0, &Progress::none()).unwrap().max, Some(8.0));
}

/// Cut at every byte, a file is refused, or read because nothing that counts is missing.
fn cut_everywhere(whole: &[u8], needed: Range<usize>) {
    for length in needed {
        let result = open(whole[..length].to_vec());
        assert!(result.is_err(), "cut to {length} of {} bytes", whole.len());
    }
}

#[test]
fn a_stream_that_is_cut_off_anywhere_is_refused() {
    let parts = legacy_parts();
    let whole = parts.concat();
    // Its first pickle alone is a pickle: of a number, and of no tensors.
    cut_everywhere(&whole, 0..parts[0].len());
    cut_everywhere(&whole, parts[0].len() + 1..whole.len());
}

#[test]
fn a_tar_that_is_cut_off_anywhere_is_refused() {
    let whole = tar(&tar_parts());
    // Behind the last member's bytes there is filling, and two blocks of zeros.
    let last = tar_parts()[3].1.len();
    let end = whole.len() - 1024 - (last.next_multiple_of(512) - last);
    cut_everywhere(&whole, 0..end);
    assert!(open(whole[..end].to_vec()).is_ok());
}

#[test]
fn every_pickle_of_a_stream_counts() {
    for index in 0..5 {
        let mut parts = legacy_parts();
        parts[index].splice(2..2, EVIL.iter().copied());

        assert_eq!(flagged(parts.concat()), ["posix.system"], "pickle {index}");
    }
}

#[test]
fn every_pickle_of_a_tar_that_torch_loads_counts() {
    let parts = tar_parts();
    let mut tried = 0;
    for index in 1..parts.len() {
        let starts = parts[index].1.windows(2).enumerate().filter(|(_, pair)| *pair == b"\x80\x02");
        for (start, _) in starts {
            let mut parts = parts.clone();
            parts[index].1.splice(start + 2..start + 2, EVIL.iter().copied());

            assert_eq!(flagged(tar(&parts)), ["posix.system"], "{} {start}", parts[index].0);
            tried += 1;
        }
    }
    assert_eq!(tried, 1 + 2 + 3);
}

#[test]
fn the_magic_number_counts_wherever_it_stands() {
    let mut parts = legacy_parts();
    parts[0].splice(2..2, b"N0".repeat(100));
    parts[3].splice(2..2, EVIL.iter().copied());

    assert_eq!(flagged(parts.concat()), ["posix.system"]);
}

#[test]
fn a_stream_without_the_magic_number_is_no_stream() {
    let mut parts = legacy_parts();
    parts[0] = pickle(&[text("\0\0"), bytes(&MAGIC[2..]), b"0".to_vec()].concat());

    let error = open(parts.concat()).unwrap_err().to_string();

    assert!(error.contains("does not begin with the number"), "{error}");
}

#[test]
fn a_storage_that_comes_twice_is_refused() {
    let mut parts = legacy_parts();
    parts[4] = pickle(&list(&[text("k"), text("k")]));
    parts[5] = parts[5].repeat(2);

    let error = open(parts.concat()).unwrap_err().to_string();

    assert!(error.contains("has the storage k twice"), "{error}");
}

#[test]
fn what_is_a_tar_to_torch_is_one_here_too() {
    // The name of the first member is the beginning of a stream.
    let start = [&pickle(MAGIC)[..], b"x"].concat();
    let mut parts = tar_parts();
    parts[1].1.splice(2..2, EVIL.iter().copied());
    let both = [member(&start, b'0', b""), tar(&parts)].concat();

    assert_eq!(open(both).unwrap().format, "torch tar");
}

#[test]
fn a_tar_that_can_be_read_in_two_ways_is_refused() {
    let parts = tar_parts();
    let rest = tar(&parts);
    let time = member(b"./PaxHeaders/x", b'x', b"20 mtime=1500000.25\n");
    assert!(open([time, rest.clone()].concat()).is_ok(), "Python writes such records");

    for odd in [
        member(b"./PaxHeaders/x", b'x', b"17 path=storages\n"),
        member(b"./PaxHeaders/x", b'x', b"no record"),
        member(b"././@LongLink", b'L', b"storages"),
    ] {
        let error = open([odd, rest.clone()].concat()).unwrap_err().to_string();
        assert!(error.contains("can be read in two ways"), "{error}");
    }
    let link = [member(b"storages", b'2', b""), tar(&parts[..3])].concat();
    assert!(open(link).unwrap_err().to_string().contains("can be read in two ways"));
    let mut elsewhere = member(b"storages", b'0', &parts[3].1);
    elsewhere[345] = b'x';
    elsewhere[148..156].fill(b' ');
    let sum: u32 = elsewhere[..512].iter().map(|&byte| u32::from(byte)).sum();
    elsewhere[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let error = open([elsewhere, tar(&parts[..3])].concat()).unwrap_err().to_string();
    assert!(error.contains("without the member storages"), "{error}");
}

#[test]
fn tensors_of_a_tar_that_lie_are_refused() {
    let (count, of) = (pickle(&int(1)), tar_parts());
    let head = |storage| {
        let tuple = tuple(&[int(1), int(storage), global("torch", "LongTensor")]);
        [count.clone(), pickle(&tuple)].concat()
    };
    for (tensors, says) in [
        ([head(5), 65_i64.to_le_bytes().to_vec()].concat(), "more than 64 dimensions"),
        ([head(5), [1_i64, -2, 1, 0].map(i64::to_le_bytes).concat()].concat(), "negative size"),
        (
            [head(9), [1_i64, 2, 1, 0].map(i64::to_le_bytes).concat()].concat(),
            "storage that is not there",
        ),
        (pickle(&text("x")), "without its length"),
        ([count.clone(), pickle(&none())].concat(), "without a key"),
    ] {
        let mut parts = of.clone();
        parts[2].1 = tensors;

        let error = open(tar(&parts)).unwrap_err().to_string();

        assert!(error.contains(says), "{error}");
    }
}
