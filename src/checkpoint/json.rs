//! JSON of strangers: what headers, indexes and configurations have in common.

use std::fmt;

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

/// The strings of an object, in the file's order.
pub(super) struct Pairs(pub Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("strings by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

/// A stranger's words in a sentence of ours: not more than a line of them.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 200;
    let clean = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    match text.chars().nth(MOST) {
        None => clean.collect(),
        Some(_) => clean.take(MOST).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_words_are_one_short_line() {
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
