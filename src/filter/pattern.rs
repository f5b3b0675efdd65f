//! A regular expression that a user types: linear in what it searches, and limited in size.

use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// The most bytes that an expression may have when compiled; `\w{20}` has as many.
const MAX_COMPILED: usize = 1 << 20;

/// A regular expression that ignores case, unless it has an upper-case letter.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles an expression. The error says what is wrong with it.
    pub fn new(text: &str) -> Result<Self> {
        let compiled = RegexBuilder::new(text)
            .case_insensitive(!has_upper_case(text))
            .size_limit(MAX_COMPILED)
            .build();
        compiled.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                Error::argument("it is too large; use smaller counts in braces")
            }
            error => {
                // Several lines, of which the last says what is wrong.
                let error = error.to_string();
                Error::argument(error.rsplit("error: ").next().unwrap_or_default().trim_end())
            }
        })
    }

    /// Whether it matches somewhere in a text.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Whether a match ends after the first `characters` characters of a text.
    #[must_use]
    pub fn ends_behind(&self, text: &str, characters: usize) -> bool {
        let start = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
        self.0.find_iter(text).any(|found| found.end() > start)
    }

    /// Where it matches in a text, in characters.
    #[must_use]
    pub fn spans(&self, text: &str) -> Vec<(usize, usize)> {
        let (mut bytes, mut characters) = (0, 0);
        let mut place = |byte: usize| {
            characters += text[bytes..byte].chars().count();
            bytes = byte;
            characters
        };
        self.0.find_iter(text).map(|found| (place(found.start()), place(found.end()))).collect()
    }
}

/// Whether there is an upper-case letter other than in escapes such as `\S`.
fn has_upper_case(text: &str) -> bool {
    let mut is_escaped = false;
    text.chars().any(|letter| {
        let counts = !is_escaped && letter.is_uppercase();
        is_escaped = !is_escaped && letter == '\\';
        counts
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters() {
        let pattern = Pattern::new("b+").unwrap();

        assert_eq!(pattern.spans("äbböb"), [(1, 3), (4, 5)]);
        assert!(pattern.ends_behind("äbbö", 2));
        assert!(!pattern.ends_behind("äbbö", 3));
        assert!(!pattern.ends_behind("b", 9));
    }

    #[test]
    fn no_expression_takes_long() {
        let text = "a".repeat(10_000) + "!";

        assert!(!Pattern::new("(a+)+$").unwrap().is_match(&text));
        assert!(Pattern::new("(").unwrap_err().to_string().contains("unclosed group"));
        assert!(Pattern::new("a{9999}{9999}").is_err());
    }
}
