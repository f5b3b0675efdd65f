//! Which allocations a picture shows, and in which colours.

use std::borrow::Cow;
use std::sync::Arc;

use super::Recording;
use crate::error::Result;
use crate::filter::Filter;
use crate::raster::{self, ColorBy, Style, Theme};
use crate::timeline::{Order, Timeline};

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
        let categories = self.needed_categories(which, by == ColorBy::Category)?;
        Ok(raster::colors(&self.devices[which], hashes, &categories, by, theme))
    }

    /// What each allocation is for, if that is needed; else nothing.
    pub fn needed_categories(&self, which: usize, is_needed: bool) -> Result<Cow<'_, [u8]>> {
        if !is_needed {
            return Ok(Cow::default());
        }
        Ok(self.categories(which)?.category.clone().into())
    }

    /// Stacks a device's allocations in an order: those of a filter, or all.
    pub fn timeline(
        &self,
        which: usize,
        order: Order,
        filter: Option<Vec<bool>>,
    ) -> Result<Timeline> {
        let categories = self.needed_categories(which, order == Order::Category)?;
        Timeline::with_categories(Arc::clone(&self.devices[which]), order, &categories, filter)
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
