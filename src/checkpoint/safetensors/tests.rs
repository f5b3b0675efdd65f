//! Files as the safetensors package writes them, and malformed ones.

use proptest::prelude::*;

use super::*;

fn file(header: &str, data: &[u8]) -> CheckpointFile {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    CheckpointFile::from_vec("m", bytes)
}

fn refusal(header: &str, data: &[u8]) -> String {
    read(&file(header, data), 0, 0).unwrap_err().to_string()
}

#[test]
fn tensors_metadata_and_padding_are_read_in_the_files_order() {
    let header = concat!(
        r#"{"__metadata__":{"format":"pt"},"#,
        r#""w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"#,
        r#""b":{"dtype":"BF16","shape":[],"data_offsets":[24,26]},"#,
        r#""none":{"dtype":"F32","shape":[0,4],"data_offsets":[26,26]}}   "#,
    );
    let file = file(header, &[0; 26]);

    let found = read(&file, 3, 10).unwrap();

    assert_eq!(found.metadata, [("format".to_owned(), "pt".to_owned())]);
    let names: Vec<_> = found.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["w", "b", "none"]);
    let view = &found.tensors[0].views[0];
    assert_eq!((view.storage, view.dtype), (10, DType::Float32));
    assert_eq!(
        (view.layout.shape.as_slice(), view.layout.stride.as_slice()),
        (&[2, 3][..], &[3, 1][..])
    );
    assert_eq!(found.tensors[2].views[0].layout.stride, [4, 1]);
    assert_eq!((found.storages[1].start, found.storages[1].bytes), (file.len() - 2, 2));
    let end = 8 + header.len() as u64;
    let expected = [
        (0, end - 3, Class::Archive),
        (end - 3, 3, Class::Padding),
        (end, 24, Class::Storage(10)),
        (end + 24, 2, Class::Storage(11)),
    ];
    assert_eq!(
        found.stretches,
        expected.map(|(start, bytes, class)| Stretch { file: 3, start, bytes, class })
    );
    assert!(found.warnings.is_empty());
}

#[test]
fn a_file_without_tensors_is_fine() {
    assert!(read(&file("{}", &[]), 0, 0).unwrap().tensors.is_empty());
}

#[test]
fn a_file_that_is_cut_off_says_what_it_should_have() {
    let header = r#"{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;

    let error = refusal(header, &[0; 3]);

    let (announced, has) = (8 + header.len() + 4, 8 + header.len() + 3);
    assert!(error.contains(&format!("announces {announced} bytes, the file has {has}")), "{error}");
    let whole = file(header, &[0; 4]);
    for length in 0..whole.len() as usize {
        let cut = CheckpointFile::from_vec("m", whole.map().unwrap()[..length].to_vec());
        assert!(read(&cut, 0, 0).unwrap_err().to_string().starts_with("it is cut off"));
    }
}

#[test]
fn headers_that_lie_are_refused_in_a_sentence() {
    let of = |dtype: &str, shape: &str, range: &str| {
        format!(r#"{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{range}}}}}"#)
    };
    for (header, says) in [
        (of("F32", "[2]", "[0,4]"), "the tensor w needs 8 bytes and has 4"),
        (of("F32", "[1]", "[4,0]"), "the tensor w ends at 0, before it begins at 4"),
        (of("F99", "[1]", "[0,4]"), "the tensor w has the unknown type F99"),
        (of("F32", "[4294967296,4294967296]", "[0,0]"), "more elements than can be counted"),
        (of("F32", "[-1]", "[0,4]"), "the safetensors header is damaged"),
        (of("F32", "[1]", "[0,4,8]"), "the safetensors header is damaged"),
        ("{}{}".to_owned(), "the safetensors header is damaged"),
        ("[]".to_owned(), "its header does not begin with {"),
        (r#"{"__metadata__":{},"__metadata__":{}}"#.to_owned(), "duplicate field"),
    ] {
        let error = refusal(&header, &[0; 8]);
        assert!(error.contains(says), "{error}");
    }
    let twice = r#""w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    assert!(refusal(&format!("{{{twice},{twice}}}"), &[]).contains("has the tensor w twice"));
}

#[test]
fn a_header_of_more_than_100_mb_is_not_read() {
    let mut bytes = 100_000_001_u64.to_le_bytes().to_vec();
    bytes.extend(b"{}");

    let error = read(&CheckpointFile::from_vec("m", bytes), 0, 0).unwrap_err().to_string();

    assert!(error.contains("longer than 100 MB"), "{error}");
}

#[test]
fn a_safetensors_file_is_known_by_its_first_bytes() {
    assert!(looks_like_safetensors(file("{}", &[]).map().unwrap()));
    assert!(!looks_like_safetensors(b"PK\x03\x04\0\0\x08\x08\0"));
    assert!(!looks_like_safetensors(b"\x02\0\0\0"));
}

proptest! {
    /// Ranges anywhere: refused if any two overlap, otherwise each byte is its tensor's or padding.
    #[test]
    fn every_byte_is_accounted_for_once(
        ranges in proptest::collection::vec((0..40_u64, 0..8_u64), 0..6),
        after in 0..5_u64,
        spaces in 0..5_usize,
    ) {
        let entries: Vec<String> = ranges.iter().enumerate().map(|(index, (start, bytes))| format!(
            r#""{index}":{{"dtype":"U8","shape":[{bytes}],"data_offsets":[{start},{}]}}"#, start + bytes
        )).collect();
        let header = format!("{{{}}}{}", entries.join(","), " ".repeat(spaces));
        let end = ranges.iter().map(|(start, bytes)| start + bytes).max().unwrap_or(0) + after;
        let file = file(&header, &vec![1; end as usize]);

        // The model: which tensors use each byte.
        let data = 8 + header.len();
        let mut owners = vec![Vec::new(); file.len() as usize];
        for (index, &(start, bytes)) in ranges.iter().enumerate() {
            for byte in start..start + bytes {
                owners[data + byte as usize].push(index as u32);
            }
        }
        let found = read(&file, 0, 0);
        prop_assert_eq!(found.is_err(), owners.iter().any(|owners| owners.len() > 1));
        if let Ok(found) = found {
            let mut classes = Vec::new();
            for stretch in &found.stretches {
                prop_assert_eq!(stretch.start, classes.len() as u64);
                classes.extend(std::iter::repeat_n(stretch.class, stretch.bytes as usize));
            }
            let expected: Vec<Class> = owners.iter().enumerate().map(|(at, owners)| match owners[..] {
                [owner] => Class::Storage(owner),
                _ if at < data - spaces => Class::Archive,
                _ => Class::Padding,
            }).collect();
            prop_assert_eq!(classes, expected);
            let unused = owners[data..].iter().filter(|owners| owners.is_empty()).count();
            prop_assert_eq!(found.warnings.len(), usize::from(unused > 0));
        }
    }

    #[test]
    fn headers_of_any_bytes_are_read_or_refused(
        header in r#"\{("(w|__metadata__)":(\{|\[|"dtype"|:|,|-?[0-9]{1,20}|"F32"|\]|\})*)*\}"#,
        data in proptest::collection::vec(any::<u8>(), 0..10),
    ) {
        let _ = read(&file(&header, &data), 0, 0);
    }
}
