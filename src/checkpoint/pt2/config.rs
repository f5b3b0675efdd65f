//! The JSON that describes weights and constants: names, and the place and layout of each one's bytes.

use serde::Deserialize;

use crate::checkpoint::archive::{Archive, Member};
use crate::checkpoint::json::{self, Pairs, shortened};
use crate::checkpoint::tensors::{elements, plain};
use crate::checkpoint::{Tensor, View};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::strided::Strided;

/// How long all descriptions may be together.
pub(super) const MAX_CONFIGS: u64 = 100_000_000;
/// The number that stands for a dense tensor with strides.
const STRIDED: u64 = 7;

#[derive(Deserialize)]
struct Config {
    config: Pairs<Payload>,
}

/// The description of one weight, constant or object.
#[derive(Deserialize)]
pub(super) struct Payload {
    pub path_name: String,
    #[serde(default)]
    pub is_param: bool,
    #[serde(default)]
    pub use_pickle: bool,
    tensor_meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    dtype: u64,
    sizes: Vec<Size>,
    strides: Vec<Size>,
    storage_offset: Size,
    #[serde(default)]
    requires_grad: bool,
    device: Device,
    layout: u64,
}

/// A number, or an expression in its place, which saved tensors do not have.
#[derive(Deserialize)]
struct Size {
    as_int: Option<i64>,
}

#[derive(Deserialize)]
struct Device {
    #[serde(rename = "type")]
    kind: String,
    index: Option<i64>,
}

/// Reads a description, and takes its length from what is `left`; names that occur twice are refused.
pub(super) fn payloads(
    archive: &Archive<'_>,
    member: &Member,
    left: &mut u64,
) -> Result<Vec<(String, Payload)>> {
    let text = archive.contents(member, *left)?;
    *left -= member.bytes;
    let Config { config } = json::parse(&text, "the description of the weights", member.start)?;
    let mut names: Vec<&str> = config.0.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let reason = format!("{} is described twice", shortened(pair[0]));
        return Err(Error::checkpoint(reason, member.start));
    }
    Ok(config.0)
}

impl Payload {
    /// The tensor, without its name; or what is wrong with it.
    pub fn tensor(&self, storage: u32) -> std::result::Result<Tensor, &'static str> {
        let meta = self.tensor_meta.as_ref().ok_or("is not described")?;
        let dtype = dtype(meta.dtype).ok_or("has a type that is not known")?;
        if meta.layout != STRIDED {
            return Err("has a layout that is not known");
        }
        let numbers = |sizes: &[Size]| sizes.iter().map(|size| size.as_int).collect();
        let count = |size: i64| u64::try_from(size).ok();
        let sizes: Option<Vec<i64>> = numbers(&meta.sizes);
        let shape: Option<Vec<u64>> =
            sizes.and_then(|sizes| sizes.into_iter().map(count).collect());
        let stride: Option<Vec<i64>> = numbers(&meta.strides);
        let offset = meta.storage_offset.as_int.and_then(count);
        let (Some(shape), Some(stride), Some(offset)) = (shape, stride, offset) else {
            return Err("has a shape, strides or an offset that are not numbers");
        };
        if shape.len() != stride.len() {
            return Err("has more dimensions than strides, or fewer");
        }
        let bytes = elements(&shape).and_then(|elements| dtype.bytes_of(elements));
        let logical_bytes = bytes.ok_or("has more elements than can be counted")?;
        let kind = if self.is_param { "parameter" } else { "tensor" };
        let device = match meta.device.index {
            Some(index) => format!("{}:{index}", meta.device.kind),
            None => meta.device.kind.clone(),
        };
        let layout = Strided { shape: shape.clone(), stride, offset };
        Ok(Tensor {
            requires_grad: meta.requires_grad,
            views: vec![View { role: String::new(), storage, dtype, layout }],
            logical_bytes,
            ..plain(kind, dtype, shape, device)
        })
    }
}

/// The type that torch's schema of exported programs gives this number.
fn dtype(number: u64) -> Option<DType> {
    Some(match number {
        1 => DType::UInt8,
        2 => DType::Int8,
        3 => DType::Int16,
        4 => DType::Int32,
        5 => DType::Int64,
        6 => DType::Float16,
        7 => DType::Float32,
        8 => DType::Float64,
        9 => DType::Complex32,
        10 => DType::Complex64,
        11 => DType::Complex128,
        12 => DType::Bool,
        13 => DType::BFloat16,
        28 => DType::UInt16,
        29 => DType::Float8E4M3Fn,
        30 => DType::Float8E5M2,
        31 => DType::Float8E4M3FnUz,
        32 => DType::Float8E5M2FnUz,
        33 => DType::Float8E8M0Fnu,
        34 => DType::UInt32,
        35 => DType::UInt64,
        _ => return None,
    })
}
