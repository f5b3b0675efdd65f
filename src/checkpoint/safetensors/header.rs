//! The header of a safetensors file, as the file has it: in its order, names that occur twice included.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::checkpoint::json::Pairs;

/// A tensor as the header describes it.
#[derive(Deserialize)]
pub(super) struct Info {
    pub dtype: String,
    pub shape: Vec<u64>,
    pub data_offsets: [u64; 2],
}

#[derive(Default)]
pub(super) struct Header {
    pub tensors: Vec<(String, Info)>,
    pub metadata: Vec<(String, String)>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Header;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a description of each tensor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Header, A::Error> {
        let mut header = Header::default();
        let mut has_metadata = false;
        while let Some(name) = map.next_key::<String>()? {
            if name != "__metadata__" {
                header.tensors.push((name, map.next_value()?));
            } else if std::mem::replace(&mut has_metadata, true) {
                return Err(serde::de::Error::duplicate_field("__metadata__"));
            } else {
                header.metadata = map.next_value::<Pairs<String>>()?.0;
            }
        }
        Ok(header)
    }
}
