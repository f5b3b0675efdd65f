//! Bundles whose columns were changed number by number.
//!
//! Changed at random, the packed bytes of a column never unpack, and figures that do not follow from the
//! columns are refused at once. So here numbers are changed, and the figures are put right.

use std::io::{Read, Write};

use arbitrary::{Result, Unstructured};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use crate::bundle;
use crate::samples::SAMPLES;

const NAMES: [&str; 12] = [
    "address",
    "size",
    "stream",
    "alloc_event",
    "free_event",
    "free_requested",
    "stack",
    "free_stack",
    "flags",
    "pool",
    "category",
    "time_us",
];

/// Changes a sample as the bytes say, and reads it.
///
/// # Panics
///
/// If what is accepted does not add up.
pub fn check(data: &[u8]) {
    let mut from = Unstructured::new(data);
    let Ok(sample) = from.choose(SAMPLES.as_slice()) else { return };
    let mut document = sample.document.clone();
    // What the bytes do not say stays as it is.
    let _ = change(&mut from, &mut document);
    let mut text = document.to_string();
    text.pop();
    bundle::check_parts(text.as_bytes(), &sample.elements);
}

fn change(from: &mut Unstructured<'_>, document: &mut Value) -> Result<()> {
    let devices = document["devices"].as_array_mut().map_or(&mut [][..], Vec::as_mut_slice);
    if devices.is_empty() {
        return Ok(());
    }
    let device = from.choose_index(devices.len())?;
    let device = &mut devices[device];
    let changed = change_columns(from, device);
    put_right(device);
    changed?;
    while !from.is_empty() && from.ratio(1, 8)? {
        let figures =
            ["events", "allocations", "peak_event", "peak_bytes", "final_bytes", "device"];
        device[*from.choose(&figures)?] = json!(number(from, 0)?);
    }
    Ok(())
}

fn change_columns(from: &mut Unstructured<'_>, device: &mut Value) -> Result<()> {
    for _ in 0..from.int_in_range(1..=6)? {
        let name = *from.choose(&NAMES)?;
        let Some(mut column) = unpacked(&device["columns"][name]) else { return Ok(()) };
        for _ in 0..from.int_in_range(1..=4)? {
            if column.is_empty() || from.ratio(1, 30)? {
                column.push(from.arbitrary()?);
                continue;
            }
            let at = from.choose_index(column.len())?;
            match from.int_in_range(0..=9)? {
                0 => _ = column.remove(at),
                1 => column.truncate(at),
                2 => column[at] = column[from.choose_index(column.len())?],
                _ => column[at] = number(from, column[at])?,
            }
        }
        device["columns"][name] = packed(&column).into();
    }
    Ok(())
}

/// A number that is near another one, small, or anything.
fn number(from: &mut Unstructured<'_>, near: u64) -> Result<u64> {
    Ok(match from.int_in_range(0..=5)? {
        0 => from.arbitrary()?,
        1 => u64::MAX - u64::from(from.arbitrary::<u8>()?),
        2 => 1 << from.int_in_range(0..=63)?,
        3 => u64::from(from.arbitrary::<u8>()?),
        _ => near.wrapping_add(from.arbitrary::<i8>()? as u64),
    })
}

/// Computes the figures of a device from its columns.
fn put_right(device: &mut Value) {
    let column = |name: &str| unpacked(&device["columns"][name]).unwrap_or_default();
    let (sizes, allocs, frees) = (column("size"), column("alloc_event"), column("free_event"));
    let flags = column("flags");
    let events = device["events"].as_u64().unwrap_or(0);
    // 1 is the first event, and a free counts from there.
    let alive = |event: u64| -> u64 {
        let lives = allocs.iter().zip(&frees).zip(&sizes);
        let is_alive = |&((&from, &to), _): &((&u64, &u64), &u64)| {
            from <= event && event < from.wrapping_add(to)
        };
        lives.filter(is_alive).fold(0, |sum, (_, &size)| sum.wrapping_add(size))
    };
    let totals: Vec<u64> = (1..=events).map(alive).collect();
    let initial = alive(0);
    let most = totals.iter().copied().max().unwrap_or(0);
    let is_before = totals.is_empty() || initial > most;
    let peak_event = if is_before {
        -1
    } else {
        totals.iter().position(|&one| one == most).map_or(-1, |at| at as i64)
    };
    let last = totals.last().copied().unwrap_or(initial);
    let count = |bit: u64| flags.iter().filter(|&&one| one & bit != 0).count() as u64;
    let older = allocs.iter().filter(|&&event| event == 0).count() as u64;
    device["initial_bytes"] = json!(initial);
    device["peak_bytes"] = json!(most.max(initial));
    device["peak_event"] = json!(peak_event);
    device["final_bytes"] = json!(last);
    device["allocations"] = json!(sizes.len());
    for (name, value) in [
        ("initial_bytes", initial),
        ("peak_bytes", most.max(initial)),
        ("final_bytes", last),
        ("implicit_frees", count(1)),
        ("missing_blocks", count(2)),
        ("unknown_frees", older.saturating_sub(count(4))),
    ] {
        device["check"][name] = json!(value);
    }
}

fn unpacked(column: &Value) -> Option<Vec<u64>> {
    let packed = STANDARD.decode(column.as_str()?).ok()?;
    let (&[shift, is_delta, width], stream) = packed.split_first_chunk::<3>()?;
    let mut planes = Vec::new();
    ZlibDecoder::new(stream).read_to_end(&mut planes).ok()?;
    // Samples have one block each.
    let count = planes.len() / usize::from(width);
    let mut last = 0_u64;
    let value = |at: usize| {
        let bytes =
            (0..usize::from(width)).map(|byte| u64::from(planes[byte * count + at]) << (8 * byte));
        let value = bytes.sum::<u64>();
        if is_delta == 1 {
            last = last.wrapping_add((value >> 1) ^ (value & 1).wrapping_neg());
            return last << shift;
        }
        value << shift
    };
    Some((0..count).map(value).collect())
}

fn packed(column: &[u64]) -> String {
    let mut encoder = ZlibEncoder::new(vec![0, 0, 8], Compression::none());
    for byte in 0..8 {
        let plane: Vec<u8> = column.iter().map(|value| (value >> (8 * byte)) as u8).collect();
        encoder.write_all(&plane).expect("memory");
    }
    STANDARD.encode(encoder.finish().expect("memory"))
}
