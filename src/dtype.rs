//! The types that a tensor's elements can have, under all the names that files give them.

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // Each is torch's type of the same name.
pub enum DType {
    Float64,
    Float32,
    Float16,
    BFloat16,
    Float8E4M3Fn,
    Float8E5M2,
    Float8E4M3FnUz,
    Float8E5M2FnUz,
    Float8E8M0Fnu,
    /// Two values in a byte, the low half first; torch counts the bytes as elements.
    Float4E2M1FnX2,
    /// Four bits a value (safetensors only).
    Float4E2M1,
    /// Six bits a value (safetensors only).
    Float6E2M3,
    /// Six bits a value (safetensors only).
    Float6E3M2,
    Int64,
    Int32,
    Int16,
    Int8,
    UInt64,
    UInt32,
    UInt16,
    UInt8,
    Bool,
    Complex128,
    Complex64,
    Complex32,
    QInt32,
    QInt8,
    QUInt8,
    /// Two values in a byte; shapes count values.
    QUInt4x2,
    /// Four values in a byte; shapes count values.
    QUInt2x4,
    Bits1x8,
    Bits2x4,
    Bits4x2,
    Bits8,
    Bits16,
    /// `int1` to `int7`: a byte each in torch.
    Int(u8),
    /// `uint1` to `uint7`: a byte each in torch.
    UInt(u8),
}

/// Every type with torch's name, the name of its typed storage, its name in safetensors, and its bits.
const TABLE: &[(DType, &str, &str, &str, u32)] = &[
    (DType::Float64, "float64", "DoubleStorage", "F64", 64),
    (DType::Float32, "float32", "FloatStorage", "F32", 32),
    (DType::Float16, "float16", "HalfStorage", "F16", 16),
    (DType::BFloat16, "bfloat16", "BFloat16Storage", "BF16", 16),
    (DType::Float8E4M3Fn, "float8_e4m3fn", "Float8_e4m3fnStorage", "F8_E4M3", 8),
    (DType::Float8E5M2, "float8_e5m2", "Float8_e5m2Storage", "F8_E5M2", 8),
    (DType::Float8E4M3FnUz, "float8_e4m3fnuz", "Float8_e4m3fnuzStorage", "F8_E4M3FNUZ", 8),
    (DType::Float8E5M2FnUz, "float8_e5m2fnuz", "Float8_e5m2fnuzStorage", "F8_E5M2FNUZ", 8),
    (DType::Float8E8M0Fnu, "float8_e8m0fnu", "", "F8_E8M0", 8),
    (DType::Float4E2M1FnX2, "float4_e2m1fn_x2", "", "", 8),
    (DType::Float4E2M1, "float4_e2m1", "", "F4", 4),
    (DType::Float6E2M3, "float6_e2m3", "", "F6_E2M3", 6),
    (DType::Float6E3M2, "float6_e3m2", "", "F6_E3M2", 6),
    (DType::Int64, "int64", "LongStorage", "I64", 64),
    (DType::Int32, "int32", "IntStorage", "I32", 32),
    (DType::Int16, "int16", "ShortStorage", "I16", 16),
    (DType::Int8, "int8", "CharStorage", "I8", 8),
    (DType::UInt64, "uint64", "UInt64Storage", "U64", 64),
    (DType::UInt32, "uint32", "UInt32Storage", "U32", 32),
    (DType::UInt16, "uint16", "UInt16Storage", "U16", 16),
    (DType::UInt8, "uint8", "ByteStorage", "U8", 8),
    (DType::Bool, "bool", "BoolStorage", "BOOL", 8),
    (DType::Complex128, "complex128", "ComplexDoubleStorage", "C128", 128),
    (DType::Complex64, "complex64", "ComplexFloatStorage", "C64", 64),
    (DType::Complex32, "complex32", "ComplexHalfStorage", "C32", 32),
    (DType::QInt32, "qint32", "QInt32Storage", "", 32),
    (DType::QInt8, "qint8", "QInt8Storage", "", 8),
    (DType::QUInt8, "quint8", "QUInt8Storage", "", 8),
    (DType::QUInt4x2, "quint4x2", "QUInt4x2Storage", "", 4),
    (DType::QUInt2x4, "quint2x4", "QUInt2x4Storage", "", 2),
    (DType::Bits1x8, "bits1x8", "", "", 8),
    (DType::Bits2x4, "bits2x4", "", "", 8),
    (DType::Bits4x2, "bits4x2", "", "", 8),
    (DType::Bits8, "bits8", "", "", 8),
    (DType::Bits16, "bits16", "", "", 16),
    (DType::Int(1), "int1", "", "", 8),
    (DType::Int(2), "int2", "", "", 8),
    (DType::Int(3), "int3", "", "", 8),
    (DType::Int(4), "int4", "", "", 8),
    (DType::Int(5), "int5", "", "", 8),
    (DType::Int(6), "int6", "", "", 8),
    (DType::Int(7), "int7", "", "", 8),
    (DType::UInt(1), "uint1", "", "", 8),
    (DType::UInt(2), "uint2", "", "", 8),
    (DType::UInt(3), "uint3", "", "", 8),
    (DType::UInt(4), "uint4", "", "", 8),
    (DType::UInt(5), "uint5", "", "", 8),
    (DType::UInt(6), "uint6", "", "", 8),
    (DType::UInt(7), "uint7", "", "", 8),
];

/// Second names that torch gives to some types.
const ALIASES: &[(&str, DType)] = &[
    ("double", DType::Float64),
    ("float", DType::Float32),
    ("half", DType::Float16),
    ("long", DType::Int64),
    ("int", DType::Int32),
    ("short", DType::Int16),
    ("cdouble", DType::Complex128),
    ("cfloat", DType::Complex64),
    ("chalf", DType::Complex32),
];

impl DType {
    /// The type that torch calls so, without `torch.` in front.
    #[must_use]
    pub fn from_torch(name: &str) -> Option<Self> {
        let named = TABLE.iter().find(|row| row.1 == name).map(|row| row.0);
        named.or_else(|| ALIASES.iter().find(|row| row.0 == name).map(|row| row.1))
    }

    /// The type of a typed storage, such as `FloatStorage`.
    #[must_use]
    pub fn from_storage(class: &str) -> Option<Self> {
        TABLE.iter().find(|row| !row.2.is_empty() && row.2 == class).map(|row| row.0)
    }

    /// The type that a safetensors header calls so.
    #[must_use]
    pub fn from_safetensors(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| !row.3.is_empty() && row.3 == name).map(|row| row.0)
    }

    /// The type of a NumPy array, such as `f4` or `i8` (without the byte order).
    #[must_use]
    pub fn from_numpy(code: &str) -> Option<Self> {
        Some(match code {
            "f8" => Self::Float64,
            "f4" => Self::Float32,
            "f2" => Self::Float16,
            "i8" => Self::Int64,
            "i4" => Self::Int32,
            "i2" => Self::Int16,
            "i1" => Self::Int8,
            "u8" => Self::UInt64,
            "u4" => Self::UInt32,
            "u2" => Self::UInt16,
            "u1" => Self::UInt8,
            "b1" => Self::Bool,
            "c16" => Self::Complex128,
            "c8" => Self::Complex64,
            _ => return None,
        })
    }

    /// Torch's name, without `torch.` in front.
    #[must_use]
    pub fn name(self) -> &'static str {
        TABLE.iter().find(|row| row.0 == self).map_or("unknown", |row| row.1)
    }

    /// How many bits of a file an element takes.
    #[must_use]
    pub fn bits(self) -> u32 {
        TABLE.iter().find(|row| row.0 == self).map_or(8, |row| row.4)
    }

    /// The bytes that a number of elements take; none if that is beyond 2⁶⁴.
    #[must_use]
    pub fn bytes_of(self, elements: u64) -> Option<u64> {
        let bytes = (u128::from(elements) * u128::from(self.bits())).div_ceil(8);
        u64::try_from(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_type() {
        for &(dtype, torch, storage, safetensors, bits) in TABLE {
            assert_eq!(DType::from_torch(torch), Some(dtype));
            assert_eq!((dtype.name(), dtype.bits()), (torch, bits));
            if !storage.is_empty() {
                assert_eq!(DType::from_storage(storage), Some(dtype));
            }
            if !safetensors.is_empty() {
                assert_eq!(DType::from_safetensors(safetensors), Some(dtype));
            }
        }
        assert_eq!(DType::from_storage(""), None);
        assert_eq!(DType::from_safetensors(""), None);
    }

    #[test]
    fn packed_elements_share_their_last_byte() {
        assert_eq!(DType::QUInt4x2.bytes_of(5), Some(3));
        assert_eq!(DType::Float6E2M3.bytes_of(4), Some(3));
        assert_eq!(DType::Float64.bytes_of(u64::MAX), None);
    }
}
