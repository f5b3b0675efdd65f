//! The program's own lookups in the database: frames, events, blocks, annotations.

use std::ops::Range;

use rusqlite::{Connection, params};

use crate::error::Result;
use crate::snapshot::event_text::{EventText, ExtrasText};
use crate::snapshot::stack_text::StackTexts;
use crate::store::limits::Reader;
use crate::store::packed::Packed;
use crate::store::{Store, damaged, frame_ids, inconsistent};

/// A line of a call stack: function, file, line.
pub type StackLine = (String, String, u64);

/// An annotation of the program: name, stage, device, and when in Unix microseconds.
pub type AnnotationRow = (String, String, Option<i32>, u64);

impl Store {
    /// The lines of a call stack, innermost first; none if there is no such stack.
    pub fn frames(&self, stack: u32) -> Result<Vec<StackLine>> {
        self.frames_of(stack).map_err(|error| damaged(&error))
    }

    fn frames_of(&self, stack: u32) -> rusqlite::Result<Vec<StackLine>> {
        let db = self.lock();
        let reader = self.limits.reader(&db)?;
        let ids: Vec<String> =
            reader.all("select frames from stacks where stack = ?", [stack], |row| row.get(0))?;
        let find = "select name, filename, line from frames where frame = ?";
        let mut lines = Vec::new();
        for id in ids.first().into_iter().flat_map(|ids| frame_ids(ids)) {
            let found = lines.len();
            reader.each(find, [id as i64], |row| {
                lines.push((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as u64));
                Ok(())
            })?;
            if lines.len() != found + 1 {
                return Err(inconsistent("a stack has a frame that is missing"));
            }
        }
        Ok(lines)
    }

    /// Every stack, of which there must be this many.
    pub fn stack_texts(&self, count: usize) -> Result<StackTexts> {
        let read = || {
            let db = self.lock();
            let reader = self.limits.reader(&db)?;
            let mut texts = StackTexts::default();
            read_frames(&reader, &mut texts)?;
            read_stacks(&reader, &mut texts)?;
            if texts.len() != count {
                return Err(inconsistent("it has another number of stacks"));
            }
            Ok(texts)
        };
        read().map_err(|error| damaged(&error))
    }

    /// The annotations of the program, in the file's order.
    pub fn annotations(&self) -> Result<Vec<AnnotationRow>> {
        let read = || {
            let db = self.lock();
            self.limits.reader(&db)?.all(
                "select coalesce(name, ''), coalesce(stage, ''), device, time_us
                 from annotations order by rowid",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, i64>(3)? as u64)),
            )
        };
        read().map_err(|error| damaged(&error))
    }

    /// Further top-level entries of the snapshot.
    pub fn entries(&self) -> Result<Vec<(String, serde_json::Value)>> {
        let read = || {
            let db = self.lock();
            self.limits.reader(&db)?.all(
                "select substr(key, 7), value from metadata where key like 'entry:%' order by rowid",
                [],
                |row| {
                    let value: String = row.get(1)?;
                    // A bundle is anyone's: what is no JSON stays a text.
                    let parsed =
                        serde_json::from_str(&value).unwrap_or(serde_json::Value::String(value));
                    Ok((row.get(0)?, parsed))
                },
            )
        };
        read().map_err(|error| damaged(&error))
    }

    /// The size of the block that is in use at an address at the end; None if there is none.
    pub fn block_size(&self, device: i32, address: u64) -> Result<Option<u64>> {
        let read = || {
            let db = self.lock();
            self.limits.reader(&db)?.all(
                "select b.size from blocks b join segments s on s.segment = b.segment
                 where b.address = ? and s.device = ? and b.state <> 'inactive'
                 order by b.block limit 1",
                params![address as i64, device],
                |row| row.get::<_, i64>(0),
            )
        };
        match read().map_err(|error| damaged(&error))?.first().map(|&size| u64::try_from(size)) {
            Some(Err(_)) => Err(damaged(&inconsistent("a block has no size"))),
            Some(Ok(size)) => Ok(Some(size)),
            None => Ok(None),
        }
    }

    /// Some events of a device, which must have `count` of them, decoded.
    pub fn event_texts(
        &self,
        device: i32,
        count: usize,
        events: Range<usize>,
    ) -> Result<Vec<EventText>> {
        let texts = self.events(device, count)?.texts(device, events);
        texts.map_err(|reason| damaged(&inconsistent(reason)))
    }

    /// The events of a device, which must have `count` of them, with this action.
    pub fn events_of(&self, device: i32, count: usize, action: &str) -> Result<Vec<i64>> {
        let found = self.events(device, count)?.with_action(device, action);
        found.map_err(|reason| damaged(&inconsistent(reason)))
    }

    /// The extras of each event of a device, which must have `count` of them, and what they are.
    pub fn tags(&self, device: i32, count: usize) -> Result<(Vec<u32>, Vec<ExtrasText>)> {
        let tags = self.events(device, count)?.tags(device);
        tags.map_err(|reason| damaged(&inconsistent(reason)))
    }

    /// A device's segments at the end, by address: where they begin, their bytes, and their kind.
    pub fn segments(&self, device: i32) -> Result<Vec<(u64, u64, String)>> {
        let read = || {
            let db = self.lock();
            self.limits.reader(&db)?.all(
                "select address, total_size, coalesce(segment_type, '') from segments where device = ?",
                [device],
                |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64, row.get(2)?)),
            )
        };
        let mut all = read().map_err(|error| damaged(&error))?;
        all.sort_unstable_by_key(|&(address, ..)| address);
        Ok(all)
    }

    fn events(&self, device: i32, count: usize) -> Result<&Packed> {
        let loaded = match self.events.get() {
            Some(loaded) => loaded,
            None => self.load_events(&self.lock()),
        };
        match loaded {
            Ok(packed) if packed.count(device) == count => Ok(packed),
            Ok(_) => Err(damaged(&inconsistent("it has another number of events"))),
            Err(reason) => Err(damaged(&inconsistent(reason.as_str()))),
        }
    }

    pub(super) fn load_events(&self, db: &Connection) -> &std::result::Result<Packed, String> {
        self.events.get_or_init(|| {
            let reader = self.limits.reader(db).map_err(|error| error.to_string())?;
            Packed::load(&reader).map_err(std::borrow::Cow::into_owned)
        })
    }
}

fn read_frames(reader: &Reader<'_>, texts: &mut StackTexts) -> rusqlite::Result<()> {
    let all = "select frame, name, filename, line from frames order by frame";
    reader.each(all, [], |row| {
        if row.get::<_, i64>(0)? != texts.frames().len() as i64 {
            return Err(inconsistent("a frame is missing"));
        }
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        texts.add_frame(text(1)?, text(2)?, row.get::<_, i64>(3)? as u64);
        Ok(())
    })
}

fn read_stacks(reader: &Reader<'_>, texts: &mut StackTexts) -> rusqlite::Result<()> {
    let mut ids = Vec::new();
    reader.each("select stack, frames from stacks order by stack", [], |row| {
        if row.get::<_, i64>(0)? != texts.len() as i64 {
            return Err(inconsistent("a stack is missing"));
        }
        ids.clear();
        for id in frame_ids(row.get_ref(1)?.as_str()?) {
            if id >= texts.frames().len() {
                return Err(inconsistent("a stack has a frame that is missing"));
            }
            ids.push(id as u32);
        }
        texts.add_stack(&ids);
        Ok(())
    })
}
