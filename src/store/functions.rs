//! SQL functions of our own, in place of those of SQLite that can take hours in one call.
//!
//! SQLite can be stopped between the steps of its machine, not inside a function. `instr`, `replace`,
//! `trim`, `LIKE` and `GLOB` take the product of the lengths of their texts; these here take their sum, or
//! look at the flag that stops a query. [`ALLOWED`] lists the functions that take no more than the sum of
//! the lengths; the others are refused.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result};

use crate::store::pattern::{self, Pattern};
use crate::store::query::MAX_VALUE;

/// What queries may call, besides `is_chosen` and `callstack`.
pub(super) const ALLOWED: &[&str] = &[
    "->",
    "->>",
    "abs",
    "avg",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "count",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "dense_rank",
    "first_value",
    "format",
    "glob",
    "group_concat",
    "hex",
    "if",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_each",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_object",
    "json_quote",
    "json_tree",
    "json_type",
    "json_valid",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "lower",
    "ltrim",
    "max",
    "min",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "printf",
    "quote",
    "random",
    "randomblob",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "soundex",
    "sqlite_version",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "time",
    "timediff",
    "total",
    "trim",
    "typeof",
    "unhex",
    "unicode",
    "unistr",
    "unistr_quote",
    "unixepoch",
    "unlikely",
    "upper",
    "zeroblob",
    "subtype",
    "callstack",
    "callstack_place",
    "callstack_text",
    "is_chosen",
];

/// Replaces the functions of a connection.
pub(super) fn register(db: &Connection, stop: &Arc<AtomicBool>) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    db.create_scalar_function("instr", 2, flags, |context| Ok(instr(context)))?;
    db.create_scalar_function("replace", 3, flags, replace)?;
    for (name, from_left, from_right) in
        [("trim", true, true), ("ltrim", true, false), ("rtrim", false, true)]
    {
        let trimmed = move |context: &Context<'_>| Ok(trim(context, from_left, from_right));
        db.create_scalar_function(name, 2, flags, trimmed)?;
    }
    for (name, arguments) in [("like", 2), ("like", 3), ("glob", 2)] {
        let stop = Arc::clone(stop);
        db.create_scalar_function(name, arguments, flags, move |context| {
            is_like(context, name == "glob", &stop)
        })?;
    }
    Ok(())
}

/// An argument as text, as SQLite would convert it; None if it is null.
fn text<'a>(context: &'a Context<'_>, place: usize) -> Option<Cow<'a, [u8]>> {
    match context.get_raw(place) {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string().into_bytes().into()),
        ValueRef::Real(number) => Some(real(number).into_bytes().into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.into()),
    }
}

/// A real number with 15 digits and a decimal point.
fn real(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let scientific = format!("{number:.14e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..15).contains(&exponent) {
        let digits = digits.trim_end_matches('0');
        let zero = if digits.ends_with('.') { "0" } else { "" };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}{zero}e{sign}{:02}", exponent.abs());
    }
    let places = usize::try_from(14 - exponent).unwrap_or(0);
    let plain = format!("{number:.places$}");
    let plain = plain.trim_end_matches('0');
    match plain {
        whole if whole.ends_with('.') => format!("{whole}0"),
        whole if !whole.contains('.') => format!("{number:.1}"),
        fraction => fraction.to_owned(),
    }
}

/// The place of a text in another, in characters, from 1; of a blob in a blob in bytes.
fn instr(context: &Context<'_>) -> Option<i64> {
    let (within, of) = (text(context, 0)?, text(context, 1)?);
    let are_blobs = [0, 1].map(|place| matches!(context.get_raw(place), ValueRef::Blob(_)));
    let Some(at) = memchr::memmem::find(&within, &of) else { return Some(0) };
    let before = &within[..at];
    let place = if are_blobs == [true, true] { at } else { characters(before) };
    Some(place as i64 + 1)
}

fn characters(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

fn replace(context: &Context<'_>) -> Result<Option<String>> {
    let texts = [0, 1, 2].map(|place| text(context, place));
    let [Some(within), Some(of), Some(with)] = texts else { return Ok(None) };
    if of.is_empty() {
        return Ok(Some(String::from_utf8_lossy(&within).into_owned()));
    }
    let mut result = Vec::new();
    let mut from = 0;
    for at in memchr::memmem::find_iter(&within, &of) {
        result.extend_from_slice(&within[from..at]);
        result.extend_from_slice(&with);
        from = at + of.len();
        if result.len() > MAX_VALUE as usize {
            return Err(too_long());
        }
    }
    result.extend_from_slice(&within[from..]);
    Ok(Some(String::from_utf8_lossy(&result).into_owned()))
}

/// Removes characters of a set from the ends.
fn trim(context: &Context<'_>, from_left: bool, from_right: bool) -> Option<String> {
    let (within, of) = (text(context, 0)?, text(context, 1)?);
    let (within, of) = (String::from_utf8_lossy(&within), String::from_utf8_lossy(&of));
    let set: HashSet<char> = of.chars().collect();
    let has = |letter: char| set.contains(&letter);
    let mut rest = &*within;
    if from_left {
        rest = rest.trim_start_matches(has);
    }
    if from_right {
        rest = rest.trim_end_matches(has);
    }
    Some(rest.to_owned())
}

/// `like(pattern, text)`, `like(pattern, text, escape)` or `glob(pattern, text)`.
fn is_like(context: &Context<'_>, is_glob: bool, stop: &AtomicBool) -> Result<Option<bool>> {
    let (Some(wanted), Some(within)) = (text(context, 0), text(context, 1)) else {
        return Ok(None);
    };
    let escape = if context.len() == 3 { Some(text(context, 2)) } else { None };
    let escape = match &escape {
        None => None,
        Some(None) => return Ok(None),
        Some(Some(escape)) if characters(escape) == 1 => Some(&**escape),
        Some(Some(_)) => {
            return Err(failed("ESCAPE expression must be a single character"));
        }
    };
    let kind = if is_glob { Pattern::Glob } else { Pattern::Like(escape) };
    let matched = pattern::matches(kind, &wanted, &within, &|| stop.load(Ordering::Relaxed));
    matched.map(Some).ok_or_else(|| failed("interrupted"))
}

pub(super) fn too_long() -> Error {
    failed("string or blob too big")
}

fn failed(reason: &str) -> Error {
    Error::UserFunctionError(reason.into())
}
