//! From a line of text to its terms.

use crate::error::{Error, Result};
use crate::filter::{MAX_CHARACTERS, MAX_TERMS};

/// One term, without its quotes and the `!` before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// Whether it must hold, or must not.
    pub wanted: bool,
    /// Whether any of it was in quotes.
    pub is_quoted: bool,
    pub text: String,
}

/// Splits at spaces outside of quotes.
pub(super) fn split(text: &str) -> Result<Vec<Term>> {
    if text.chars().nth(MAX_CHARACTERS).is_some() {
        let reason = format!("it has more than {MAX_CHARACTERS} characters; write a shorter one");
        return Err(Error::filter(reason));
    }
    let mut terms = Vec::new();
    let mut rest = text.chars().peekable();
    loop {
        while rest.next_if(|letter| letter.is_whitespace()).is_some() {}
        if rest.peek().is_none() {
            return Ok(terms);
        }
        if terms.len() == MAX_TERMS {
            let reason = format!("it has more than {MAX_TERMS} terms; join expressions with |");
            return Err(Error::filter(reason));
        }
        terms.push(next(&mut rest)?);
    }
}

/// Takes the term that begins here.
fn next(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Term> {
    let wanted = rest.next_if_eq(&'!').is_none();
    let mut term = Term { wanted, is_quoted: false, text: String::new() };
    let mut is_inside = false;
    while let Some(letter) = rest.next_if(|letter| is_inside || !letter.is_whitespace()) {
        match letter {
            '"' => {
                is_inside = !is_inside;
                term.is_quoted = true;
            }
            '\\' if rest.next_if_eq(&'"').is_some() => term.text.push('"'),
            '\\' => {
                // What follows is escaped for the expression: `\\` does not escape a quote.
                term.text.push('\\');
                term.text.extend(rest.next_if(|letter| is_inside || !letter.is_whitespace()));
            }
            _ => term.text.push(letter),
        }
    }
    if is_inside {
        let reason = "a quote is not closed; write \"like this\", and \\\" for a quote itself";
        return Err(Error::filter(reason));
    }
    if term.text.is_empty() && !term.is_quoted {
        return Err(Error::filter("a ! without a term; write it right before one, as in !conv"));
    }
    Ok(term)
}

/// A term as errors show it.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        split(text).unwrap_err().to_string()
    }

    /// The terms, with a `!` before those that must not hold and quotes around quoted ones.
    fn shown(text: &str) -> Vec<String> {
        let one = |term: Term| {
            let (not, quote) =
                (if term.wanted { "" } else { "!" }, if term.is_quoted { "'" } else { "" });
            format!("{not}{quote}{}{quote}", term.text)
        };
        split(text).unwrap().into_iter().map(one).collect()
    }

    #[test]
    fn spaces_separate_terms_except_in_quotes() {
        assert!(shown(" \t\n").is_empty());
        assert_eq!(shown("  conv  size>5\tx\u{a0}y "), ["conv", "size>5", "x", "y"]);
        assert_eq!(shown(r#""a  b" c"d e"f"#), ["'a  b'", "'cd ef'"]);
        assert_eq!(shown(r#""" !"""#), ["''", "!''"]);
    }

    #[test]
    fn an_exclamation_mark_counts_at_the_beginning_only() {
        assert_eq!(
            shown(r#"!a b! !!c !"d e" "!f" size!=5"#),
            ["!a", "b!", "!!c", "!'d e'", "'!f'", "size!=5"]
        );
        assert!(refusal("a ! b").contains("as in !conv"));
    }

    #[test]
    fn a_backslash_makes_a_quote_a_letter_and_stays_before_anything_else() {
        assert_eq!(shown(r#""say \"hi\"""#), [r#"'say "hi"'"#]);
        assert_eq!(shown(r#"say\"hi"#), [r#"say"hi"#]);
        assert_eq!(shown(r#""a\\" b"#), [r"'a\\'", "b"]);
        assert_eq!(shown(r"\d+\ x \"), [r"\d+\", "x", r"\"]);
    }

    #[test]
    fn an_open_quote_and_too_much_text_are_refused() {
        assert!(refusal(r#"a "b c"#).starts_with("filter: a quote is not closed"));
        assert!(refusal(&"a".repeat(10_000_000)).contains("more than 4096 characters"));
        assert!(refusal(&"a ".repeat(65)).contains("more than 64 terms"));
        assert_eq!(split(&"a ".repeat(64)).unwrap().len(), 64);
    }

    #[test]
    fn a_long_term_is_cut_at_a_letter() {
        assert_eq!(shortened("abc"), "`abc`");
        assert_eq!(shortened(&"é".repeat(61)), format!("`{}…`", "é".repeat(60)));
    }
}
