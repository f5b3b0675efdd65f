//! Archives as torch, zip tools and attackers write them.

use std::io::{Cursor, Write};

use proptest::prelude::*;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

/// What a stretch is for, with the members' data as storages by their index.
fn stretches(archive: &Archive<'_>) -> Vec<Stretch> {
    archive.stretches(0, |index, _| Class::Storage(index as u32))
}

fn assert_tiles(archive: &Archive<'_>, length: u64) {
    let mut at = 0;
    for stretch in stretches(archive) {
        assert_eq!(stretch.start, at, "no gap and no overlap");
        assert_ne!(stretch.bytes, 0);
        at += stretch.bytes;
    }
    assert_eq!(at, length, "to the last byte");
}

/// A header, then data, then sizes: as torch writes a member. Gives the member's directory record.
fn add_like_torch(out: &mut Vec<u8>, name: &str, data: &[u8]) -> Vec<u8> {
    let header_start = out.len() as u32;
    let padding = (64 - (out.len() + 30 + name.len() + 4) % 64) % 64;
    let number = |value: usize| (value as u32).to_le_bytes();
    out.extend(b"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0");
    out.extend([0; 12]);
    out.extend([name.len() as u8, 0, padding as u8 + 4, 0]);
    out.extend(name.as_bytes());
    out.extend([b'F', b'B', padding as u8, 0]);
    out.extend(vec![b'Z'; padding]);
    out.extend(data);
    out.extend(b"PK\x07\x08\x01\x02\x03\x04");
    out.extend([number(data.len()), number(data.len())].concat());
    let mut record = b"PK\x01\x02\0\0\0\0\x08\x08\0\0\0\0\0\0\x01\x02\x03\x04".to_vec();
    record.extend([number(data.len()), number(data.len())].concat());
    record.extend([name.len() as u8, 0]);
    record.extend([0; 12]);
    record.extend(header_start.to_le_bytes());
    record.extend(name.as_bytes());
    record
}

fn finish(mut out: Vec<u8>, records: &[Vec<u8>]) -> Vec<u8> {
    let start = out.len() as u32;
    out.extend(records.concat());
    let bytes = out.len() as u32 - start;
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([records.len() as u8, 0, records.len() as u8, 0]);
    out.extend([bytes.to_le_bytes(), start.to_le_bytes()].concat());
    out.extend([0, 0]);
    out
}

fn like_torch() -> Vec<u8> {
    let mut out = Vec::new();
    let records = [
        add_like_torch(&mut out, "m/data.pkl", b"\x80\x02}q\0."),
        add_like_torch(&mut out, "m/data/0", &[7; 100]),
        add_like_torch(&mut out, "m/version", b"3\n"),
    ];
    finish(out, &records)
}

fn refusal(bytes: Vec<u8>) -> String {
    Archive::read(&CheckpointFile::from_vec("m", bytes)).unwrap_err().to_string()
}

fn place_of(bytes: &[u8], text: &[u8]) -> usize {
    bytes.windows(text.len()).position(|window| window == text).unwrap()
}

fn last_place_of(bytes: &[u8], text: &[u8]) -> usize {
    bytes.windows(text.len()).rposition(|window| window == text).unwrap()
}

#[test]
fn members_of_torchs_files_are_found_with_their_padding_and_sizes() {
    let file = CheckpointFile::from_vec("m", like_torch());

    let archive = Archive::read(&file).unwrap();

    let data = &archive.members()[archive.find("m/data/0").unwrap()];
    assert_eq!((data.start % 64, data.bytes, data.is_deflated), (0, 100, false));
    assert_eq!(*archive.contents(data, 1000).unwrap(), [7; 100]);
    assert_eq!(archive.find("m/data"), None);
    assert_tiles(&archive, file.len());
    let stretches = stretches(&archive);
    let of = |class| stretches.iter().filter(move |stretch| stretch.class == class);
    // 30 bytes of a header, 4 and 18 of an extra field for padding, 10 of a name.
    assert_eq!(of(Class::Padding).next().unwrap().bytes, 4 + 20);
    assert_eq!(of(Class::Archive).next().unwrap().bytes, 30 + 10);
    let after_data = of(Class::Archive).find(|next| next.start == data.start + 100).unwrap();
    assert_eq!(after_data.bytes, 16 + 30 + 9, "the sizes, and the next header");
    assert!(archive.warnings.is_empty());
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let whole = like_torch();

    for length in 0..whole.len() {
        assert!(refusal(whole[..length].to_vec()).contains("it is cut off"), "{length}");
    }
}

#[test]
fn a_member_with_two_names_is_refused() {
    let mut bytes = like_torch();
    let at = place_of(&bytes, b"m/data/0");
    bytes[at] = b'n';

    assert!(refusal(bytes).contains("one name in its header and another in the directory"));
}

#[test]
fn two_members_with_one_name_are_refused() {
    let mut out = Vec::new();
    let records = [add_like_torch(&mut out, "m/a", b"1"), add_like_torch(&mut out, "m/a", b"2")];

    assert!(refusal(finish(out, &records)).contains("two members of the archive have the same"));
}

#[test]
fn one_header_for_two_members_is_refused() {
    let mut out = Vec::new();
    let record = add_like_torch(&mut out, "m/a", b"1");

    assert!(refusal(finish(out, &[record.clone(), record])).contains("overlaps what follows it"));
}

#[test]
fn a_member_that_reaches_into_the_directory_is_refused() {
    let mut bytes = like_torch();
    let at = last_place_of(&bytes, b"PK\x01\x02");
    for size in [at + 20, at + 24] {
        bytes[size..size + 4].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f]);
    }

    assert!(refusal(bytes).contains("reaches beyond the end of the file"));
}

#[test]
fn what_is_encrypted_or_packed_in_other_ways_is_refused() {
    let mut encrypted = like_torch();
    let record = place_of(&encrypted, b"PK\x01\x02");
    encrypted[record + 8] |= 1;
    let mut packed = like_torch();
    packed[record + 10] = 12;
    let mut locally = like_torch();
    locally[6] |= 1;

    assert!(refusal(encrypted).contains("a member is encrypted"));
    assert!(refusal(packed).contains("neither stored nor deflated"));
    assert!(refusal(locally).contains("a member is encrypted"));
}

#[test]
fn a_header_that_is_not_there_is_refused() {
    let mut bytes = like_torch();
    bytes[0] = 0;

    assert!(refusal(bytes).contains("is not where the archive's directory says"));
}

#[test]
fn bytes_that_no_member_uses_are_padding_and_a_warning_unless_they_are_zero() {
    for (between, warnings) in [(&[0; 10], 0), (b"an implant", 1)] {
        let mut out = Vec::new();
        let mut records = vec![add_like_torch(&mut out, "m/a", b"1")];
        let at = out.len() as u64;
        out.extend(between);
        records.push(add_like_torch(&mut out, "m/b", b"2"));
        let file = CheckpointFile::from_vec("m", finish(out, &records));

        let archive = Archive::read(&file).unwrap();

        assert_tiles(&archive, file.len());
        let gap = stretches(&archive).into_iter().find(|stretch| stretch.start == at).unwrap();
        assert_eq!((gap.bytes, gap.class), (10, Class::Padding));
        assert_eq!(archive.warnings.len(), warnings);
    }
}

#[test]
fn an_archive_in_a_member_is_read_where_it_is() {
    let mut out = Vec::new();
    let records = [add_like_torch(&mut out, "m/inner.pt", &like_torch())];
    let file = CheckpointFile::from_vec("m", finish(out, &records));
    let outer = Archive::read(&file).unwrap();
    let Member { start, bytes, .. } = outer.members()[0];

    let inner = Archive::read_within(&file, start..start + bytes).unwrap();

    let member = &inner.members()[inner.find("m/data/0").unwrap()];
    assert_eq!(*file.part(member.start, member.bytes).unwrap(), [7; 100]);
    assert_eq!(stretches(&inner)[0].start, start);
    assert_eq!(stretches(&inner).iter().map(|stretch| stretch.bytes).sum::<u64>(), bytes);
}

/// A member whose header claims this unpacked size.
fn deflated(data: &[u8], says: u32) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    writer.start_file("m/data.pkl", options).unwrap();
    writer.write_all(data).unwrap();
    let mut bytes = writer.finish().unwrap().into_inner();
    let record = last_place_of(&bytes, b"PK\x01\x02");
    for at in [22, record + 24] {
        bytes[at..at + 4].copy_from_slice(&says.to_le_bytes());
    }
    bytes
}

#[test]
fn a_packed_member_is_unpacked_if_its_size_is_right() {
    let data = b"weights ".repeat(1000);
    for (says, is_right) in [(8000, true), (7999, false), (8001, false)] {
        let file = CheckpointFile::from_vec("m", deflated(&data, says));
        let archive = Archive::read(&file).unwrap();
        let member = &archive.members()[0];

        let contents = archive.contents(member, 1 << 20);

        assert_eq!(contents.is_ok(), is_right);
        assert_eq!(archive.head(member, 7).unwrap(), b"weights");
        let error = archive.contents(member, 1000).unwrap_err().to_string();
        assert!(error.contains("at most 1000 are read"), "{error}");
    }
}

#[test]
fn a_bomb_is_refused_before_it_is_unpacked() {
    let file = CheckpointFile::from_vec("m", deflated(&[0; 1000], 1 << 30));
    let archive = Archive::read(&file).unwrap();

    let error = archive.contents(&archive.members()[0], u64::MAX).unwrap_err().to_string();

    assert!(error.contains("unpacks to more than 150 times its size"), "{error}");
}

#[test]
fn pickles_are_known_by_their_first_bytes() {
    for yes in [&b"\x80\x02}"[..], b"\x80\x05", b"cposix\nsystem\n(S'ls'\ntR.", b"(cos.path\nx\n"] {
        assert!(looks_like_pickle(yes), "{yes:?}");
    }
    for no in [&b""[..], b"\x80", b"\x80\x06", b"3\n", b"class A:\n  pass\n", b"c\n\n", b"code"] {
        assert!(!looks_like_pickle(no), "{no:?}");
    }
}

#[derive(Debug, Clone)]
struct Written {
    data: Vec<u8>,
    is_deflated: bool,
    alignment: u16,
    is_large: bool,
}

fn written() -> impl Strategy<Value = Written> {
    let data = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..80),
        (any::<u8>(), 0..2000_usize).prop_map(|(byte, count)| vec![byte; count]),
    ];
    (data, any::<bool>(), prop_oneof![Just(1), Just(16), Just(64)], any::<bool>()).prop_map(
        |(data, is_deflated, alignment, is_large)| Written {
            data,
            is_deflated,
            alignment,
            is_large,
        },
    )
}

/// Writes members with the `zip` crate, after `prefix`; as a stream, with sizes after the data.
fn write(prefix: &[u8], members: &[Written], is_stream: bool) -> Vec<u8> {
    fn fill<W: Write + std::io::Seek>(writer: &mut ZipWriter<W>, members: &[Written]) {
        for (index, member) in members.iter().enumerate() {
            let method = if member.is_deflated {
                zip::CompressionMethod::Deflated
            } else {
                zip::CompressionMethod::Stored
            };
            let options = SimpleFileOptions::default()
                .compression_method(method)
                .with_alignment(member.alignment)
                .large_file(member.is_large);
            writer.start_file(format!("m/data/{index}"), options).unwrap();
            writer.write_all(&member.data).unwrap();
        }
    }
    if is_stream {
        let mut writer = ZipWriter::new_stream(prefix.to_vec());
        fill(&mut writer, members);
        return writer.finish().unwrap().into_inner();
    }
    let mut out = Cursor::new(prefix.to_vec());
    out.set_position(prefix.len() as u64);
    let mut writer = ZipWriter::new(out);
    fill(&mut writer, members);
    writer.finish().unwrap().into_inner()
}

proptest! {
    #[test]
    fn every_member_is_read_back_and_every_byte_is_accounted_for(
        members in proptest::collection::vec(written(), 0..6),
        prefix in proptest::collection::vec(any::<u8>(), 0..40),
        is_stream in any::<bool>(),
    ) {
        let prefix = if is_stream { &[][..] } else { &prefix };
        let file = CheckpointFile::from_vec("m", write(prefix, &members, is_stream));

        let archive = Archive::read(&file).unwrap();

        assert_tiles(&archive, file.len());
        prop_assert_eq!(archive.members().len(), members.len());
        prop_assert_eq!(archive.warnings.len(), usize::from(prefix.iter().any(|&byte| byte != 0)));
        for (index, member) in members.iter().enumerate() {
            let found = archive.find(&format!("m/data/{index}")).unwrap();
            let found = &archive.members()[found];
            prop_assert_eq!(&*archive.contents(found, 1 << 20).unwrap(), &member.data);
            prop_assert_eq!(found.is_deflated, member.is_deflated);
        }
    }

    #[test]
    fn an_archive_with_wrong_bytes_is_refused_or_accounted_for(
        members in proptest::collection::vec(written(), 1..4),
        is_stream in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        at_the_end in any::<bool>(),
    ) {
        let mut bytes = write(&[], &members, is_stream);
        let from = if at_the_end { bytes.len().saturating_sub(100) } else { 0 };
        for (index, byte) in changes {
            let at = from + index.index(bytes.len() - from);
            bytes[at] = byte;
        }
        let file = CheckpointFile::from_vec("m", bytes);

        if let Ok(archive) = Archive::read(&file) {
            assert_tiles(&archive, file.len());
            for member in archive.members() {
                let _ = archive.contents(member, 1 << 20);
                let _ = archive.head(member, 64);
            }
        }
    }
}
