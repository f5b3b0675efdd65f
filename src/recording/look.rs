//! Which allocations a picture shows, and in which colours.

use std::borrow::Cow;

use super::Recording;
use crate::error::Result;
use crate::filter::Filter;
use crate::raster::{self, ColorBy, Style, Theme};

/// Some of a device's allocations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subset {
    /// All of them.
    All,
    /// Those that a filter's text describes.
    Text(String),
    /// One truth value an allocation.
    Mask(Vec<bool>),
}

/// How a picture looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The property that colours show.
    pub by: ColorBy,
    /// Light or dark.
    pub theme: Theme,
    /// What is drawn at full contrast.
    pub kept: Subset,
}

impl Recording {
    /// One truth value an allocation of a device; None if it is all.
    pub fn subset<'s>(&self, which: usize, subset: &'s Subset) -> Result<Option<Cow<'s, [bool]>>> {
        Ok(match subset {
            Subset::All => None,
            Subset::Text(text) => Some(self.mask(which, &Filter::parse(text)?)?.into()),
            Subset::Mask(mask) => Some(mask.into()),
        })
    }

    /// The colour of each allocation of a device, all at full contrast.
    pub fn colors(&self, which: usize, by: ColorBy, theme: Theme) -> Result<Vec<u32>> {
        let hashes = self.stack_texts()?.hashes();
        Ok(raster::colors(&self.devices[which], hashes, by, theme))
    }

    /// The colours of a device's pictures with this look; nothing is selected.
    pub fn style(&self, which: usize, look: &Look) -> Result<Style> {
        let mut colors = self.colors(which, look.by, look.theme)?;
        if let Some(kept) = self.subset(which, &look.kept)? {
            raster::dim(&mut colors, look.theme.background(), |which| kept[which]);
        }
        Ok(Style::new(look.theme, colors.into(), None))
    }
}
