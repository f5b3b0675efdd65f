//! `LIKE` and `GLOB` of any length, which can be stopped.
//!
//! As SQLite's own: letters of ASCII have no case in `LIKE`, and wildcards stand for characters, not for
//! bytes. A pattern is compared piece by piece; after `%` the text is searched for the next piece, and
//! only the last `%` is ever tried again, so a comparison takes at most the product of both lengths.

/// Which of the two.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pattern<'a> {
    /// `%` and `_`, and a character before which they stand for themselves.
    Like(Option<&'a [u8]>),
    /// `*`, `?` and `[a-z]`.
    Glob,
}

/// Bytes that are compared between two looks at the flag.
const PERIOD: usize = 1 << 14;

/// Whether a pattern describes a whole text; None if it was stopped.
pub(super) fn matches(
    kind: Pattern<'_>,
    pattern: &[u8],
    text: &[u8],
    is_stopped: &dyn Fn() -> bool,
) -> Option<bool> {
    let many = if matches!(kind, Pattern::Glob) { b'*' } else { b'%' };
    let (mut at, mut from) = (0, 0);
    // Where the pattern goes on after the last wildcard, and the text that was tried for it.
    let mut again: Option<(usize, usize)> = None;
    let mut work = 0;
    loop {
        work += 1;
        if work >= PERIOD {
            work = 0;
            if is_stopped() {
                return None;
            }
        }
        if pattern.get(at) == Some(&many) && !is_escape(kind, &pattern[at..]) {
            at += 1;
            if at == pattern.len() {
                return Some(true);
            }
            again = Some((at, from));
            continue;
        }
        if at == pattern.len() && from == text.len() {
            return Some(true);
        }
        if at < pattern.len()
            && let Some((used, taken)) = one(kind, &pattern[at..], &text[from..], &mut work)
        {
            (at, from) = (at + used, from + taken);
            continue;
        }
        let Some((piece, tried)) = again else { return Some(false) };
        if tried >= text.len() {
            return Some(false);
        }
        let next = tried + width(&text[tried..]);
        let skipped = next + skip(kind, pattern[piece], &text[next..]);
        again = Some((piece, skipped));
        (at, from) = (piece, skipped);
    }
}

/// How much of the pattern and of the text one step takes; None if they differ.
fn one(kind: Pattern<'_>, pattern: &[u8], text: &[u8], work: &mut usize) -> Option<(usize, usize)> {
    let &first = text.first()?;
    match (kind, pattern[0]) {
        (Pattern::Like(Some(escape)), _) if pattern.starts_with(escape) => {
            let (used, letter) = (escape.len(), pattern.get(escape.len())?);
            (letter.eq_ignore_ascii_case(&first)).then_some((used + 1, 1))
        }
        (Pattern::Like(_), b'_') | (Pattern::Glob, b'?') => Some((1, width(text))),
        (Pattern::Like(_), letter) => letter.eq_ignore_ascii_case(&first).then_some((1, 1)),
        (Pattern::Glob, b'[') => {
            let (letter, taken) = character(text);
            let set = set(&pattern[1..], letter);
            *work += set.map_or(pattern.len(), |(used, _)| used);
            let (used, has) = set?;
            has.then_some((1 + used, taken))
        }
        (Pattern::Glob, letter) => (letter == first).then_some((1, 1)),
    }
}

fn is_escape(kind: Pattern<'_>, pattern: &[u8]) -> bool {
    matches!(kind, Pattern::Like(Some(escape)) if pattern.starts_with(escape))
}

/// How long a set such as `a-z]` is, and whether it has a character; None if it does not end.
fn set(pattern: &[u8], letter: u32) -> Option<(usize, bool)> {
    let is_inverted = pattern.first() == Some(&b'^');
    let mut at = usize::from(is_inverted);
    let (mut has, mut before) = (false, None);
    if pattern.get(at) == Some(&b']') {
        (has, at) = (letter == u32::from(b']'), at + 1);
    }
    loop {
        match *pattern.get(at)? {
            b']' => return Some((at + 1, has != is_inverted)),
            b'-' if before.is_some() && pattern.get(at + 1).is_some_and(|&next| next != b']') => {
                let (last, length) = character(&pattern[at + 1..]);
                has |= before.is_some_and(|first| (first..=last).contains(&letter));
                (before, at) = (None, at + 1 + length);
            }
            _ => {
                let (one, length) = character(&pattern[at..]);
                has |= one == letter;
                (before, at) = (Some(one), at + length);
            }
        }
    }
}

/// How far it is to a text that can begin with this letter of the pattern.
fn skip(kind: Pattern<'_>, letter: u8, text: &[u8]) -> usize {
    let found = match (kind, letter) {
        (Pattern::Like(Some(_)), _)
        | (Pattern::Like(None), b'_' | b'%')
        | (Pattern::Glob, b'?' | b'[' | b'*') => return 0,
        (Pattern::Like(None), letter) => {
            let (lower, upper) = (letter.to_ascii_lowercase(), letter.to_ascii_uppercase());
            memchr::memchr2(lower, upper, text)
        }
        (Pattern::Glob, letter) => memchr::memchr(letter, text),
    };
    found.unwrap_or(text.len())
}

/// The bytes of the first character.
fn width(text: &[u8]) -> usize {
    let rest = text.iter().skip(1).take_while(|&&byte| byte & 0xc0 == 0x80).count();
    if text.first().is_some_and(|&byte| byte >= 0xc0) { 1 + rest } else { 1.min(text.len()) }
}

/// The first character as a number to compare, and its bytes.
fn character(text: &[u8]) -> (u32, usize) {
    let width = width(text);
    let decoded = std::str::from_utf8(&text[..width]).ok().and_then(|text| text.chars().next());
    (decoded.map_or_else(|| u32::from(text[0]), u32::from), width)
}
