//! A checkpoint around a pickle: the archive of torch with the pickle as its `data.pkl`.

/// The storages that every such archive has: a key, and how many bytes.
const STORAGES: [(&str, usize); 4] = [("0", 64), ("1", 0), ("2", 3), ("3", 4096)];

/// What is worth referring to, in the memo before the fuzzer's own opcodes: classes and functions,
/// storages, and the usual arguments. The numbers are those of the memo, in this order.
const GLOBALS: [&str; 20] = [
    "torch._utils\n_rebuild_tensor_v2",
    "torch._utils\n_rebuild_parameter",
    "collections\nOrderedDict",
    "torch._utils\n_rebuild_tensor_v3",
    "torch._utils\n_rebuild_qtensor",
    "torch._utils\n_rebuild_sparse_tensor",
    "torch._utils\n_rebuild_nested_tensor",
    "torch.nested._internal.nested_tensor\n_rebuild_njt",
    "torch._utils\n_rebuild_wrapper_subclass",
    "torch._tensor\n_rebuild_from_type_v2",
    "torch._utils\n_rebuild_meta_tensor_no_storage",
    "numpy.core.multiarray\n_reconstruct",
    "numpy\ndtype",
    "_codecs\nencode",
    "builtins\nbytearray",
    "torch\nSize",
    "torch\nfloat32",
    "torch\nsparse_coo",
    "torch\nper_channel_affine",
    "copyreg\n_reconstructor",
];
const CLASSES: [&str; 4] = ["FloatStorage", "LongStorage", "QUInt4x2Storage", "UntypedStorage"];

/// An archive with this pickle. The first byte says whether the memo is filled beforehand.
#[must_use]
pub fn around(data: &[u8]) -> Vec<u8> {
    let (first, own) = data.split_first().unwrap_or((&0, &[]));
    let mut pickle = b"\x80\x02".to_vec();
    if first % 4 != 0 {
        prelude(&mut pickle);
    }
    pickle.extend(own);
    // A pickle that does not stop is never looked into.
    pickle.push(b'.');
    let zeros = [0; 4096];
    let names: Vec<String> = STORAGES.iter().map(|(key, _)| format!("a/data/{key}")).collect();
    let storages =
        names.iter().zip(STORAGES).map(|(name, (_, size))| (name.as_str(), &zeros[..size]));
    let mut members = vec![("a/data.pkl", pickle.as_slice())];
    members.extend(storages);
    if first & 0x80 != 0 {
        members.push(("a/constants.pkl", b"\x80\x02]."));
    }
    zip(&members)
}

fn prelude(pickle: &mut Vec<u8>) {
    let mut memo = 0_u8;
    let mut keep = |pickle: &mut Vec<u8>| {
        pickle.extend([b'q', memo, b'0']);
        memo += 1;
    };
    for global in GLOBALS {
        pickle.push(b'c');
        pickle.extend(global.as_bytes());
        pickle.push(b'\n');
        keep(pickle);
    }
    for ((key, bytes), class) in STORAGES.iter().zip(CLASSES) {
        let elements = (*bytes as u16).to_le_bytes();
        pickle.extend(b"(U\x07storagectorch\n");
        pickle.extend(class.as_bytes());
        pickle.extend([b'\n', b'U', 1, key.as_bytes()[0]]);
        pickle.extend(b"U\x03cpuM");
        pickle.extend(elements);
        pickle.extend(b"tQ");
        keep(pickle);
    }
    // (2, 2), (2, 1), (), an empty dict.
    for arguments in [&b"K\x02K\x02\x86"[..], b"K\x02K\x01\x86", b")", b"}"] {
        pickle.extend(arguments);
        keep(pickle);
    }
}

/// Members that are not packed, as torch writes them.
#[must_use]
pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in members {
        let start = file.len() as u32;
        let mut checksum = flate2::Crc::new();
        checksum.update(data);
        let length = data.len() as u32;
        let sizes = [checksum.sum(), length, length].map(u32::to_le_bytes).concat();
        let length = (name.len() as u16).to_le_bytes();
        file.extend(b"PK\x03\x04\0\0\0\0\0\0\0\0\0\0");
        file.extend(&sizes);
        file.extend(length);
        file.extend([0, 0]);
        file.extend(name.as_bytes());
        file.extend(*data);
        directory.extend(b"PK\x01\x02\0\0\0\0\0\0\0\0\0\0\0\0");
        directory.extend(&sizes);
        directory.extend(length);
        directory.extend([0; 12]);
        directory.extend(start.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (begin, length) = (file.len() as u32, directory.len() as u32);
    let count = (members.len() as u16).to_le_bytes();
    file.extend(directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([count, count].concat());
    file.extend(length.to_le_bytes());
    file.extend(begin.to_le_bytes());
    file.extend([0, 0]);
    file
}
