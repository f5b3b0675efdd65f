//! What a file would import, and which of it torch itself allows when it loads weights only.

use std::collections::BTreeSet;

use super::describe::cut;
use super::values::Values;

/// What torch 2.13 allows without being asked, with what it adds by itself when it is imported (a test
/// compares it with the installed torch).
const ALLOWED: &[&str] = &[
    "_codecs.encode",
    "builtins.bytearray",
    "builtins.complex",
    "builtins.set",
    "collections.Counter",
    "collections.OrderedDict",
    "torch.BFloat16Storage",
    "torch.BFloat16Tensor",
    "torch.BoolStorage",
    "torch.BoolTensor",
    "torch.ByteStorage",
    "torch.ByteTensor",
    "torch.CharStorage",
    "torch.CharTensor",
    "torch.ComplexDoubleStorage",
    "torch.ComplexFloatStorage",
    "torch.DoubleStorage",
    "torch.DoubleTensor",
    "torch.FloatStorage",
    "torch.FloatTensor",
    "torch.HalfStorage",
    "torch.HalfTensor",
    "torch.IntStorage",
    "torch.IntTensor",
    "torch.LongStorage",
    "torch.LongTensor",
    "torch.QInt32Storage",
    "torch.QInt8Storage",
    "torch.QUInt2x4Storage",
    "torch.QUInt4x2Storage",
    "torch.QUInt8Storage",
    "torch.ShortStorage",
    "torch.ShortTensor",
    "torch.Size",
    "torch.Tensor",
    "torch._tensor._rebuild_from_type_v2",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch._utils._rebuild_device_tensor_from_numpy",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch._utils._rebuild_nested_tensor",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_qtensor",
    "torch._utils._rebuild_sparse_tensor",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_wrapper_subclass",
    "torch.bfloat16",
    "torch.bits16",
    "torch.bits1x8",
    "torch.bits2x4",
    "torch.bits4x2",
    "torch.bits8",
    "torch.bool",
    "torch.complex128",
    "torch.complex32",
    "torch.complex64",
    "torch.cuda.BFloat16Storage",
    "torch.cuda.BFloat16Tensor",
    "torch.cuda.BoolStorage",
    "torch.cuda.BoolTensor",
    "torch.cuda.ByteStorage",
    "torch.cuda.ByteTensor",
    "torch.cuda.CharStorage",
    "torch.cuda.CharTensor",
    "torch.cuda.ComplexDoubleStorage",
    "torch.cuda.ComplexFloatStorage",
    "torch.cuda.DoubleStorage",
    "torch.cuda.DoubleTensor",
    "torch.cuda.FloatStorage",
    "torch.cuda.FloatTensor",
    "torch.cuda.HalfStorage",
    "torch.cuda.HalfTensor",
    "torch.cuda.IntStorage",
    "torch.cuda.IntTensor",
    "torch.cuda.LongStorage",
    "torch.cuda.LongTensor",
    "torch.cuda.ShortStorage",
    "torch.cuda.ShortTensor",
    "torch.cuda.sparse.BFloat16Tensor",
    "torch.cuda.sparse.ByteTensor",
    "torch.cuda.sparse.CharTensor",
    "torch.cuda.sparse.DoubleTensor",
    "torch.cuda.sparse.FloatTensor",
    "torch.cuda.sparse.HalfTensor",
    "torch.cuda.sparse.IntTensor",
    "torch.cuda.sparse.LongTensor",
    "torch.cuda.sparse.ShortTensor",
    "torch.device",
    "torch.distributed._mesh_layout._FlatLayout",
    "torch.distributed._mesh_layout._MeshLayout",
    "torch.float16",
    "torch.float32",
    "torch.float4_e2m1fn_x2",
    "torch.float64",
    "torch.float8_e4m3fn",
    "torch.float8_e4m3fnuz",
    "torch.float8_e5m2",
    "torch.float8_e5m2fnuz",
    "torch.float8_e8m0fnu",
    "torch.int1",
    "torch.int16",
    "torch.int2",
    "torch.int3",
    "torch.int32",
    "torch.int4",
    "torch.int5",
    "torch.int6",
    "torch.int64",
    "torch.int7",
    "torch.int8",
    "torch.nested._internal.nested_tensor.NestedTensor",
    "torch.nested._internal.nested_tensor._rebuild_njt",
    "torch.nn.parameter.Parameter",
    "torch.per_channel_affine",
    "torch.per_channel_affine_float_qparams",
    "torch.per_channel_symmetric",
    "torch.per_tensor_affine",
    "torch.per_tensor_symmetric",
    "torch.qint32",
    "torch.qint8",
    "torch.quint2x4",
    "torch.quint4x2",
    "torch.quint8",
    "torch.serialization._get_layout",
    "torch.sparse.BFloat16Tensor",
    "torch.sparse.ByteTensor",
    "torch.sparse.CharTensor",
    "torch.sparse.DoubleTensor",
    "torch.sparse.FloatTensor",
    "torch.sparse.HalfTensor",
    "torch.sparse.IntTensor",
    "torch.sparse.LongTensor",
    "torch.sparse.ShortTensor",
    "torch.storage.TypedStorage",
    "torch.storage.UntypedStorage",
    "torch.uint1",
    "torch.uint16",
    "torch.uint2",
    "torch.uint3",
    "torch.uint32",
    "torch.uint4",
    "torch.uint5",
    "torch.uint6",
    "torch.uint64",
    "torch.uint7",
    "torch.uint8",
];

/// The names of Python 2 for what Python 3 calls otherwise, which protocol 2 still writes.
const OLD_NAMES: &[(&str, &str, &str)] = &[
    ("xrange", "builtins", "range"),
    ("reduce", "functools", "reduce"),
    ("intern", "sys", "intern"),
    ("unichr", "builtins", "chr"),
    ("unicode", "builtins", "str"),
    ("long", "builtins", "int"),
];

/// How many names are kept of each sort, and how much of each: files can name millions of long ones.
const MAX_NAMES: usize = 10_000;
const MAX_WORD: usize = 300;
/// What stands for the others.
const MORE: &str = "… and more names than are kept";

/// What Python 3 calls a name that may be Python 2's.
pub(super) fn in_python_3<'n>(module: &'n str, name: &'n str) -> (&'n str, &'n str) {
    match module {
        "__builtin__" => OLD_NAMES
            .iter()
            .find(|old| old.0 == name)
            .map_or(("builtins", name), |&(_, module, name)| (module, name)),
        "copy_reg" => ("copyreg", name),
        _ => (module, name),
    }
}

/// What the pickles of a file name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Imports {
    /// What torch allows.
    pub allowed: BTreeSet<String>,
    /// Everything else: loading it with `weights_only=False` would run what these names stand for.
    pub flagged: BTreeSet<String>,
}

impl Imports {
    /// Adds what a pickle names. In a `TorchScript` archive the classes are in the archive itself.
    pub fn add(&mut self, values: &Values, is_script: bool) {
        for (module, name) in values.globals() {
            let (module, name) = in_python_3(module, name);
            let full = format!("{}.{}", cut(module, MAX_WORD), cut(name, MAX_WORD));
            let is_allowed = ALLOWED.binary_search(&full.as_str()).is_ok()
                || is_script && (module.starts_with("__torch__") || module == "torch.jit._pickle");
            let list = if is_allowed { &mut self.allowed } else { &mut self.flagged };
            insert(list, full);
        }
    }

    /// Flags a part of a file that cannot be scanned: it may name anything.
    pub fn add_unknown(&mut self, part: &str) {
        insert(&mut self.flagged, format!("unknown, in {part}"));
    }

    /// Adds what another file names.
    pub fn merge(&mut self, other: Self) {
        other.allowed.into_iter().for_each(|name| insert(&mut self.allowed, name));
        other.flagged.into_iter().for_each(|name| insert(&mut self.flagged, name));
    }
}

fn insert(list: &mut BTreeSet<String>, name: String) {
    if list.len() < MAX_NAMES {
        list.insert(name);
    } else if !list.contains(&name) {
        list.insert(MORE.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_so_that_it_can_be_searched() {
        assert!(ALLOWED.is_sorted());
    }

    #[test]
    fn a_file_cannot_fill_the_memory_with_names() {
        let module = "m".repeat(10_000);
        let mut pickle = [&b"X\x10\x27\0\0"[..], module.as_bytes(), b"q\x00"].concat();
        for number in 0..=MAX_NAMES {
            pickle.extend(format!("0h\0U\x05{number:05}\u{0}").bytes());
            pickle.pop();
            pickle.extend(b"\x93");
        }
        pickle.push(b'.');

        let mut imports = Imports::default();
        imports.add(&super::super::values::names(&pickle), false);

        assert_eq!(imports.flagged.len(), MAX_NAMES + 1);
        assert!(imports.flagged.contains(MORE));
        assert!(imports.flagged.iter().all(|name| name.len() < 2 * MAX_WORD));
    }
}
