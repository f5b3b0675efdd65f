//! The analyses of each device of a recording, made at the first use and kept.

use std::sync::{Arc, OnceLock};

use super::{Content, Recording};
use crate::analysis::categories::{self, Categories};
use crate::analysis::leaks::{self, Leaks};
use crate::analysis::phases::Phases;
use crate::analysis::steps::{self, Steps};
use crate::analysis::{Facts, GroupBy, Keys, SegmentRange, Tags};
use crate::error::Result;
use crate::filter::Filter;
use crate::snapshot::event_text;
use crate::store::AnnotationRow;

/// What was computed of one device.
#[derive(Debug, Default)]
pub(super) struct Analysed {
    known: OnceLock<Known>,
    keys: [OnceLock<Arc<Keys>>; GroupBy::NAMES.len()],
    phases: OnceLock<Phases>,
    categories: OnceLock<Arc<Categories>>,
    steps: OnceLock<Arc<Steps>>,
    leaks: OnceLock<Arc<Leaks>>,
}

/// What analyses need that a recording does not keep otherwise.
#[derive(Debug)]
struct Known {
    tags: Tags,
    segments: Vec<SegmentRange>,
    annotations: Vec<AnnotationRow>,
    times: Vec<u64>,
}

/// The value of a cell, which is made at the first use.
fn once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    match cell.get() {
        Some(value) => Ok(value),
        None => {
            let new = make()?;
            Ok(cell.get_or_init(|| new))
        }
    }
}

impl Recording {
    /// What the analyses of a device know.
    pub fn facts(&self, which: usize) -> Result<Facts<'_>> {
        let known = once(&self.analysed[which].known, || self.find_known(which))?;
        Ok(Facts {
            lives: &self.devices[which],
            texts: self.stack_texts()?,
            tags: &known.tags,
            segments: &known.segments,
            annotations: &known.annotations,
            times: &known.times,
        })
    }

    fn find_known(&self, which: usize) -> Result<Known> {
        let lives = &self.devices[which];
        let device = lives.device;
        let mut annotations = self.annotations()?;
        annotations.retain(|(_, _, of, _)| of.is_none_or(|of| of == device));
        let times = self.times(which).into_owned();
        let (tags, segments) = match &self.content {
            Content::Snapshot(snapshot) => {
                let first = snapshot.traces[which].rows.start;
                let of_event = |event: usize| snapshot.events.extras_id(first + event);
                let tags = Tags::new(lives, of_event, event_text::all_extras(snapshot));
                let of_device = snapshot.segments.iter().filter(|one| one.device == device);
                let range = of_device.map(|one| SegmentRange {
                    address: one.address,
                    bytes: one.total_size,
                    kind: snapshot.strings.get(one.segment_type).to_owned(),
                });
                let mut segments: Vec<_> = range.collect();
                segments.sort_unstable_by_key(|one| one.address);
                (tags, segments)
            }
            Content::Bundle(_) => self.with_store(|store| {
                let (ids, texts) = store.tags(device, lives.totals.len())?;
                let tags = Tags::new(lives, |event| ids[event], texts);
                let segments = store.segments(device)?.into_iter();
                let range = |(address, bytes, kind)| SegmentRange { address, bytes, kind };
                Ok((tags, segments.map(range).collect()))
            })?,
        };
        Ok(Known { tags, segments, annotations, times })
    }

    /// The group of each allocation of a device.
    pub fn keys(&self, which: usize, by: GroupBy) -> Result<Arc<Keys>> {
        let keys = once(&self.analysed[which].keys[by as usize], || {
            Ok(Arc::new(match by {
                GroupBy::Category => self.categories(which)?.keys(),
                GroupBy::Step => self.steps(which)?.keys(&self.facts(which)?),
                _ => Keys::of(&self.facts(which)?, by),
            }))
        })?;
        Ok(Arc::clone(keys))
    }

    /// What a program was doing when it made each allocation of a device.
    pub fn phases(&self, which: usize) -> Result<&Phases> {
        once(&self.analysed[which].phases, || Ok(Phases::of(&self.facts(which)?)))
    }

    /// What each allocation of a device is for.
    pub fn categories(&self, which: usize) -> Result<Arc<Categories>> {
        let found = once(&self.analysed[which].categories, || {
            let (facts, phases) = (self.facts(which)?, self.phases(which)?);
            // A rule about categories means the file's own.
            let rule = |(category, filter): &(u8, Filter)| {
                let mask = filter.mask(facts.lives, facts.texts, facts.times)?;
                Ok((*category, mask))
            };
            let rules = self.rules.iter().map(rule).collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(categories::categories(&facts, phases, &rules)))
        })?;
        Ok(Arc::clone(found))
    }

    /// The steps of a device's trace.
    pub fn steps(&self, which: usize) -> Result<Arc<Steps>> {
        let found = once(&self.analysed[which].steps, || {
            let lines = self.keys(which, GroupBy::Line)?;
            Ok(Arc::new(steps::steps(&self.facts(which)?, self.phases(which)?, &lines)))
        })?;
        Ok(Arc::clone(found))
    }

    /// What grows from step to step.
    pub fn leaks(&self, which: usize) -> Result<Arc<Leaks>> {
        let found = once(&self.analysed[which].leaks, || {
            let (steps, lines) = (self.steps(which)?, self.keys(which, GroupBy::Line)?);
            Ok(Arc::new(leaks::leaks(&self.facts(which)?, &steps, &lines)))
        })?;
        Ok(Arc::clone(found))
    }
}
