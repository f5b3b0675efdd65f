//! A writer that keeps its first error and then pretends to go on.
//!
//! [`zip::ZipWriter`] prints errors to standard error when it is dropped after one. It never sees any
//! here; the caller asks for the error at the end.

use std::cell::Cell;
use std::io::{self, Seek, SeekFrom, Write};

/// A write of nothing.
const FULL: io::ErrorKind = io::ErrorKind::WriteZero;

pub(super) struct FirstError<'a, W> {
    to: W,
    error: &'a Cell<Option<io::Error>>,
    has_failed: bool,
    /// Where the next byte goes, and where the last one ended.
    at: u64,
    end: u64,
}

impl<'a, W: Write + Seek> FirstError<'a, W> {
    pub fn new(to: W, error: &'a Cell<Option<io::Error>>) -> Self {
        Self { to, error, has_failed: false, at: 0, end: 0 }
    }

    /// The result of an operation, or what it would be.
    fn kept<T>(&mut self, act: impl FnOnce(&mut W) -> io::Result<T>, otherwise: T) -> T {
        if self.has_failed {
            return otherwise;
        }
        act(&mut self.to).unwrap_or_else(|error| {
            self.has_failed = true;
            self.error.set(Some(error));
            otherwise
        })
    }
}

impl<W: Write + Seek> Write for FirstError<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let whole =
            |count: usize| if count > 0 || bytes.is_empty() { Ok(count) } else { Err(FULL) };
        let count = self.kept(|to| Ok(to.write(bytes).map(whole)??), bytes.len());
        self.at += count as u64;
        self.end = self.end.max(self.at);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.kept(Write::flush, ());
        Ok(())
    }
}

impl<W: Write + Seek> Seek for FirstError<'_, W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        let place = place.ok_or(io::ErrorKind::InvalidInput)?;
        self.at = self.kept(|file| file.seek(to), place);
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_an_error_nothing_is_written_and_positions_go_on() {
        let error = Cell::new(None);
        let mut room = [0; 4];
        let mut file = FirstError::new(io::Cursor::new(&mut room[..]), &error);

        file.write_all(b"abc").unwrap();
        file.write_all(b"def").unwrap();
        file.seek(SeekFrom::Start(1)).unwrap();
        file.write_all(b"x").unwrap();

        assert_eq!(file.stream_position().unwrap(), 2);
        assert_eq!(file.seek(SeekFrom::End(-1)).unwrap(), 5);
        assert!(error.take().is_some());
        assert_eq!(&room, b"abcd");
    }
}
