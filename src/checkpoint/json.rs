//! Untrusted JSON: what headers, indexes and configurations have in common.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};

use crate::error::{Error, Result};

/// Reads a whole text; `what` it is and where it begins are for the error. Nesting is limited by the
/// parser, everything else by the length of the text.
pub(super) fn parse<T: DeserializeOwned>(text: &[u8], what: &str, offset: u64) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| {
        let reason = shortened(&error.to_string());
        Error::checkpoint(format!("{what} is damaged: {reason}"), offset)
    })
}

/// The values of an object by their names, in the file's order; names that occur twice included.
pub(super) struct Pairs<T>(pub Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
    type Value = Pairs<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("values by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Pairs<T>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

/// Untrusted text for a message: one line, shortened.
pub(super) fn shortened(text: &str) -> String {
    const MAX: usize = 200;
    let clean = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    match text.chars().nth(MAX) {
        None => clean.collect(),
        Some(_) => clean.take(MAX).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_one_short_line() {
        assert_eq!(shortened("a\nb"), "a b");
        assert_eq!(shortened(&"é".repeat(1000)), "é".repeat(200) + "…");
    }

    #[test]
    fn nesting_without_end_is_refused() {
        let text = r#"{"a":"#.repeat(100_000);

        let error = parse::<serde::de::IgnoredAny>(text.as_bytes(), "it", 3);

        assert!(error.is_err_and(|error| error.to_string().starts_with("it is damaged")));
    }
}
