//! The text of `PYTORCH_ALLOC_CONF`, read as PyTorch does.

use super::rules::Rules;
use crate::error::{Error, Result};

/// Settings that decide nothing about where blocks are.
const WITHOUT_EFFECT: [&str; 8] = [
    "graph_capture_record_stream_reuse",
    "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb",
    "pinned_use_background_threads",
    "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register",
    "release_lock_on_cudamalloc",
    "release_lock_on_hipmalloc",
];

/// The settings that decide something.
const KNOWN: &str = "expandable_segments, max_split_size_mb, max_non_split_rounding_mb, \
                     roundup_power2_divisions, garbage_collection_threshold, \
                     per_process_memory_fraction, large_segment_size_mb";

/// What a text sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Conf {
    /// The allocator's rules.
    pub rules: Rules,
    /// `per_process_memory_fraction`, if set.
    pub fraction: Option<f64>,
}

/// Reads a text such as `expandable_segments:True,max_split_size_mb:128`. What it does not set has
/// PyTorch's default; what no setting decides is as in `recorded`.
pub fn parse(text: &str, recorded: &Rules) -> Result<Conf> {
    let Rules { ties, padding, align, .. } = *recorded;
    let defaults = Rules { padding, align, ties, ..Rules::default() };
    let mut conf = Conf { rules: defaults, fraction: None };
    for entry in entries(text) {
        let (name, value) = entry.split_once(':').ok_or_else(|| {
            Error::argument(format!("`{entry}` is not a setting: write name:value"))
        })?;
        conf.set(name.trim(), value.trim())?;
    }
    Ok(conf)
}

/// The parts between commas that are in no brackets.
fn entries(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let parts = text.split(|character: char| {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

impl Conf {
    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let wrong = |wanted: &str| Error::argument(format!("{name} takes {wanted}, not `{value}`"));
        let megabytes = |least: u64| {
            let number = value.parse::<u64>().ok().filter(|&number| number >= least);
            let bytes = number.and_then(|number| number.checked_mul(1 << 20));
            bytes.ok_or_else(|| wrong(&format!("megabytes, at least {least}")))
        };
        match name {
            "expandable_segments" => {
                self.rules.is_expandable = match value {
                    "True" | "true" => true,
                    "False" | "false" => false,
                    _ => return Err(wrong("True or False")),
                };
            }
            "max_split_size_mb" => self.rules.max_split = megabytes(21)?,
            "max_non_split_rounding_mb" => self.rules.max_unsplit_rest = megabytes(21)?,
            "large_segment_size_mb" => self.rules.large_segment = megabytes(2)?,
            "garbage_collection_threshold" => {
                let number = value.parse().ok().filter(|number| (0.0..1.0).contains(number));
                self.rules.collect_above = number.ok_or_else(|| wrong("a number from 0 to 1"))?;
            }
            "per_process_memory_fraction" => {
                let number = value.parse().ok().filter(|number| (0.0..=1.0).contains(number));
                self.fraction = Some(number.ok_or_else(|| wrong("a number from 0 to 1"))?);
            }
            "roundup_power2_divisions" => {
                self.rules.divisions = divisions(value)
                    .ok_or_else(|| wrong("a power of two, or [256:1,512:2,>:4]"))?;
            }
            "backend" if value == "native" => {}
            "backend" => return Err(wrong("native here: other backends cannot be simulated")),
            _ if WITHOUT_EFFECT.contains(&name) => {}
            _ => {
                let reason = format!("PyTorch has no setting `{name}` for memory; known: {KNOWN}");
                return Err(Error::argument(reason));
            }
        }
        Ok(())
    }
}

/// The divisions of each power of two, from one number or from a list of sizes in megabytes.
fn divisions(value: &str) -> Option<[u64; 16]> {
    let power = |text: &str| {
        let number = text.trim().parse::<u64>().ok()?;
        (number == 0 || number.is_power_of_two()).then_some(number)
    };
    let Some(list) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return Some([power(value)?; 16]);
    };
    let mut all = [0; 16];
    let mut before = None;
    for entry in list.split(',') {
        let (size, number) = entry.split_once(':')?;
        let number = power(number)?;
        if size.trim() == ">" {
            all[before.unwrap_or(0)..].fill(number);
            continue;
        }
        let size = size.trim().parse::<u64>().ok().filter(|size| size.is_power_of_two())?;
        let place = (size.ilog2() as usize).min(all.len() - 1);
        if before.is_none() {
            all[..place].fill(number);
        }
        all[place] = number;
        before = Some(place);
    }
    Some(all)
}
