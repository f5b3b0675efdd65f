//! The colour of each allocation.
//!
//! Call stacks get a hue from their content, so that a line of code keeps its colour from run to run
//! and from file to file; all have the same chroma and one of two lightnesses, so that none shouts
//! and neighbours of like hue still differ, also for eyes that see few hues. Sizes and ages get a
//! scale that goes from one lightness to another. Names get eight fixed colours.
//!
//! # Cost
//!
//! 1 to 2 ns an allocation, once a style.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lifetimes::Lifetimes;
use crate::named::named;

named! {
    /// The property that colours show.
    pub enum ColorBy {
        /// The call stack that made it.
        #[default]
        Stack = "stack",
        /// How large it is, by its logarithm.
        Size = "size",
        /// Which stream it was made on.
        Stream = "stream",
        /// Which memory pool it is in.
        Pool = "pool",
        /// For how many events it lives, by its logarithm.
        Age = "age",
        /// What it is for.
        Category = "category",
    }
}

impl ColorBy {
    /// The least and the most of what the colours are a scale of; None if they are none.
    #[must_use]
    pub fn extent(self, lives: &Lifetimes) -> Option<(u64, u64)> {
        let number = self.number(lives)?;
        Some(extent((0..lives.allocations.len()).map(number)))
    }

    /// What the colours are a scale of, for each allocation; None if they are none.
    pub(super) fn number(self, lives: &Lifetimes) -> Option<impl Fn(usize) -> u64 + Copy> {
        let all = &lives.allocations;
        let is_size = match self {
            Self::Size => true,
            Self::Age => false,
            _ => return None,
        };
        Some(move |which: usize| {
            let events = || (all.free_event[which] - all.alloc_event[which]) as u64;
            if is_size { all.size[which] } else { events() }
        })
    }
}

named! {
    /// Light or dark.
    pub enum Theme {
        /// On white.
        #[default]
        Light = "light",
        /// On nearly black.
        Dark = "dark",
    }
}

impl Theme {
    /// Behind everything.
    #[must_use]
    pub fn background(self) -> u32 {
        match self {
            Self::Light => rgb(0xff, 0xff, 0xff),
            Self::Dark => rgb(0x16, 0x18, 0x1d),
        }
    }

    /// Free memory in a memory map.
    fn free(self) -> u32 {
        match self {
            Self::Light => rgb(0xe5, 0xe8, 0xeb),
            Self::Dark => rgb(0x2b, 0x2f, 0x36),
        }
    }

    /// Around the selection: inside and outside.
    fn outline(self) -> (u32, u32) {
        match self {
            Self::Light => (rgb(0xff, 0xff, 0xff), rgb(0x09, 0x69, 0xda)),
            Self::Dark => (rgb(0x16, 0x18, 0x1d), rgb(0x44, 0x93, 0xf8)),
        }
    }

    /// The two lightnesses of stacks, and as much chroma as every hue has there in sRGB.
    fn of_stacks(self) -> ([f64; 2], f64) {
        match self {
            Self::Light => ([0.68, 0.77], 0.114),
            Self::Dark => ([0.58, 0.68], 0.098),
        }
    }

    /// The colours from the least to the most of something. The most is the strongest.
    #[must_use]
    pub fn scale(self) -> Vec<u32> {
        let color = |step: usize| {
            let part = step as f64 / (STEPS - 1) as f64;
            let between = |from: f64, to: f64| from + (to - from) * part;
            let (lightness, chroma, hue) = match self {
                Self::Light => (between(0.93, 0.38), between(0.06, 0.14), between(105.0, 285.0)),
                Self::Dark => (between(0.36, 0.90), between(0.10, 0.14), between(285.0, 105.0)),
            };
            oklch(lightness, chroma, hue)
        };
        (0..STEPS).map(color).collect()
    }

    /// What has no stack, stream, pool, ….
    fn unknown(self) -> u32 {
        let lightness = match self {
            Self::Light => 0.80,
            Self::Dark => 0.44,
        };
        oklch(lightness, 0.0, 0.0)
    }

    /// The colour of something by its place among others.
    fn of_place(self, place: usize) -> u32 {
        match NAMED.get(place) {
            Some(&color) => color,
            // Multiples of the golden ratio keep away from each other.
            None => self.of_hash((place as u32).wrapping_mul(0x9e37_79b1) | 2),
        }
    }

    /// The colour of the stack with a hash; 0 is the empty one's.
    fn of_hash(self, hash: u32) -> u32 {
        if hash == 0 {
            return self.unknown();
        }
        let (lightness, chroma) = self.of_stacks();
        let hue = f64::from(hash >> 8) / f64::from(1 << 24) * 360.0;
        oklch(lightness[(hash & 1) as usize], chroma, hue)
    }
}

/// Eight colours that colour-blind people can distinguish (Okabe and Ito's, grey in place of black).
const NAMED: [u32; 8] = [
    rgb(0x56, 0xb4, 0xe9),
    rgb(0xe6, 0x9f, 0x00),
    rgb(0x00, 0x9e, 0x73),
    rgb(0xcc, 0x79, 0xa7),
    rgb(0xf0, 0xe4, 0x42),
    rgb(0x00, 0x72, 0xb2),
    rgb(0xd5, 0x5e, 0x00),
    rgb(0x99, 0x99, 0x99),
];

/// How a picture looks.
#[derive(Debug, Clone)]
pub struct Style {
    /// The colour of each allocation.
    pub colors: Arc<[u32]>,
    /// Behind everything.
    pub background: u32,
    /// Free memory in a memory map.
    pub free: u32,
    /// Around the selected allocation: inside and outside.
    pub outline: (u32, u32),
    /// The allocation that is outlined.
    pub selected: Option<u32>,
}

impl Style {
    /// Colours, and what goes with them in a theme.
    #[must_use]
    pub fn new(theme: Theme, colors: Arc<[u32]>, selected: Option<u32>) -> Self {
        let (background, free, outline) = (theme.background(), theme.free(), theme.outline());
        Self { colors, background, free, outline, selected }
    }

    /// The line between neighbours.
    #[inline]
    pub(super) fn edge(&self, color: u32) -> u32 {
        mix(color, self.background, 2)
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.colors, &other.colors)
            && (self.background, self.selected) == (other.background, other.selected)
    }
}

/// The colour of each allocation. `hashes` are those of the stacks' contents; `categories` are needed
/// for colours by category only.
#[must_use]
pub fn colors(
    lives: &Lifetimes,
    hashes: &[u32],
    categories: &[u8],
    by: ColorBy,
    theme: Theme,
) -> Vec<u32> {
    let all = &lives.allocations;
    match by {
        ColorBy::Stack => {
            let stacks: Vec<u32> = hashes.iter().map(|&hash| theme.of_hash(hash)).collect();
            let unknown = theme.unknown();
            let color = |&stack: &u32| stacks.get(stack as usize).copied().unwrap_or(unknown);
            all.stack.iter().map(color).collect()
        }
        ColorBy::Size | ColorBy::Age => by
            .number(lives)
            .map(|number| scaled((0..all.len()).map(number), theme))
            .unwrap_or_default(),
        ColorBy::Stream => named(all.stream.iter().copied(), theme),
        ColorBy::Pool => numbered(&all.pool, theme),
        ColorBy::Category => numbered(categories, theme),
    }
}

/// Steps of a scale: finer ones cannot be distinguished.
const STEPS: usize = 256;

/// Colours by the logarithm of a number.
fn scaled(numbers: impl Iterator<Item = u64> + Clone, theme: Theme) -> Vec<u32> {
    let steps = theme.scale();
    let (least, most) = extent(numbers.clone());
    let (least, most) = (log(least), log(most));
    let step = (STEPS - 1) as f64 / (most - least).max(f64::MIN_POSITIVE);
    let color = |number| steps[((log(number) - least) * step) as usize];
    numbers.map(color).collect()
}

/// The least and the most.
fn extent(numbers: impl Iterator<Item = u64>) -> (u64, u64) {
    let ends = |(least, most): (u64, u64), number: u64| (least.min(number), most.max(number));
    let (least, most) = numbers.fold((u64::MAX, 0), ends);
    (least.min(most), most)
}

fn log(number: u64) -> f64 {
    (number as f64).max(1.0).log2()
}

/// Colours of values that are names: the lowest eight get the fixed ones, others a hue of their own.
fn named<T: Ord + Copy>(values: impl Iterator<Item = T> + Clone, theme: Theme) -> Vec<u32> {
    let mut places = BTreeMap::new();
    let mut last = None;
    for value in values.clone() {
        // Neighbours are mostly alike.
        if last != Some(value) {
            places.insert(value, 0);
            last = Some(value);
        }
    }
    for (place, color) in places.values_mut().enumerate() {
        *color = theme.of_place(place);
    }
    let mut last: Option<(T, u32)> = None;
    let color = |value| match last {
        Some((same, color)) if same == value => color,
        _ => {
            let color = places[&value];
            last = Some((value, color));
            color
        }
    };
    values.map(color).collect()
}

/// Colours of things that have a number, from 1; 0 is not known.
fn numbered<T: Copy + Into<u32>>(numbers: &[T], theme: Theme) -> Vec<u32> {
    let color = |&number: &T| match number.into() {
        0 => theme.unknown(),
        number => theme.of_place(number as usize - 1),
    };
    numbers.iter().map(color).collect()
}

/// Draws what is left out of a selection at a third of its contrast.
pub fn dim(colors: &mut [u32], background: u32, is_kept: impl Fn(usize) -> bool) {
    let behind = background.to_le_bytes();
    for (which, color) in colors.iter_mut().enumerate() {
        if !is_kept(which) {
            let mut faint = color.to_le_bytes();
            for (channel, &behind) in faint.iter_mut().zip(&behind) {
                *channel = ((u16::from(*channel) + 2 * u16::from(behind)) / 3) as u8;
            }
            *color = u32::from_le_bytes(faint);
        }
    }
}

/// Some quarters of one colour, the rest of another.
#[inline]
pub(super) fn mix(one: u32, other: u32, quarters: u32) -> u32 {
    let quarter = |color: u32| (color >> 2) & 0x3f3f_3f3f;
    (quarter(one) * (4 - quarters) + quarter(other) * quarters) | 0xff00_0000
}

/// A pixel as a number, its bytes in the order red, green, blue, 255.
const fn rgb(red: u8, green: u8, blue: u8) -> u32 {
    u32::from_le_bytes([red, green, blue, 0xff])
}

/// A colour by lightness (0 to 1), chroma and hue (degrees), as eyes see them: OKLCH to sRGB.
fn oklch(lightness: f64, chroma: f64, hue: f64) -> u32 {
    let (sin, cos) = hue.to_radians().sin_cos();
    let (a, b) = (chroma * cos, chroma * sin);
    let long = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let medium = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let short = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let channel = |linear: f64| {
        let linear = linear.clamp(0.0, 1.0);
        let value = if linear <= 0.003_130_8 {
            12.92 * linear
        } else {
            1.055 * linear.powf(1.0 / 2.4) - 0.055
        };
        (value * 255.0).round() as u8
    };
    rgb(
        channel(4.076_741_662_1 * long - 3.307_711_591_3 * medium + 0.230_969_929_2 * short),
        channel(-1.268_438_004_6 * long + 2.609_757_401_1 * medium - 0.341_319_396_5 * short),
        channel(-0.004_196_086_3 * long - 0.703_418_614_7 * medium + 1.707_614_701_0 * short),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_colours_come_out_of_oklch() {
        // Red, green and blue of sRGB as others have converted them.
        assert_eq!(oklch(0.627_955, 0.257_683, 29.233_9), rgb(0xff, 0, 0));
        assert_eq!(oklch(0.866_440, 0.294_827, 142.495), rgb(0, 0xff, 0));
        assert_eq!(oklch(0.452_014, 0.313_214, 264.052), rgb(0, 0, 0xff));
        assert_eq!(oklch(1.0, 0.0, 0.0), rgb(0xff, 0xff, 0xff));
    }

    #[test]
    fn a_quarter_of_a_colour_is_a_quarter_of_each_channel() {
        assert_eq!(mix(rgb(200, 100, 40), rgb(0, 40, 80), 2), rgb(100, 70, 60));
        assert_eq!(mix(rgb(200, 100, 40), rgb(0, 40, 80), 0), rgb(200, 100, 40));
    }

    #[test]
    fn every_hue_exists_at_the_lightness_and_chroma_of_stacks() {
        for theme in [Theme::Light, Theme::Dark] {
            for hash in
                (0..=255).map(|high| high << 24 | 1).chain((0..=255).map(|high| high << 24 | 2))
            {
                let color = theme.of_hash(hash);
                let has_grey =
                    color.to_le_bytes()[..3].iter().all(|&channel| channel > 0 && channel < 255);
                assert!(has_grey, "{theme:?} {hash:x}: {color:x} is cut off");
            }
        }
    }
}
