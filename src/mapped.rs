//! Files mapped into memory, which another process may cut short meanwhile.
//!
//! The system ends a process with SIGBUS when it looks at a page of a map that the file no longer has.
//! Reading into a buffer instead would need as much memory as the file has bytes, and take longer. So
//! the signal is handled: from that page on the map becomes zeros, and it is noted. Whoever reads a map
//! asks at the end whether it [`Mapped::has_changed`], and reports that instead of what was read.
//!
//! A fault that is not of one of our maps goes to whoever handled the signal before.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::time::SystemTime;

/// A file in memory, read-only.
#[derive(Debug)]
pub(crate) struct Mapped {
    // Dropped first.
    watch: watch::Watch,
    map: memmap2::Mmap,
    file: File,
    /// Its length and when it was last written to, before.
    before: (u64, Option<SystemTime>),
}

impl Mapped {
    /// Maps a whole file.
    #[allow(unsafe_code)]
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        let before = state(&file.metadata()?);
        // SAFETY: the map is read-only and private; see above for a file that is cut short. One that is
        // written to may show other bytes at another look: they are plain bytes, checked when used.
        // (Advice to the system was tried: sequential access costs 10 %, the rest changes nothing.)
        let map = unsafe { memmap2::MmapOptions::new().map_copy_read_only(&file)? };
        let watch = watch::Watch::new(&map)?;
        Ok(Self { watch, map, file, before })
    }

    /// The map itself, to advise the system.
    pub(crate) fn map(&self) -> &memmap2::Mmap {
        &self.map
    }

    /// Whether the file was written to or cut short since it was mapped.
    pub(crate) fn has_changed(&self) -> bool {
        let is_as_before = |now: Metadata| state(&now) == self.before;
        self.watch.is_cut() || !self.file.metadata().is_ok_and(is_as_before)
    }
}

fn state(metadata: &Metadata) -> (u64, Option<SystemTime>) {
    (metadata.len(), metadata.modified().ok())
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(unix)]
#[allow(unsafe_code)]
mod watch {
    use std::io;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Where a map is; 0 and 0 if the place is free, 1 and 0 while it is being taken.
    struct Slot {
        start: AtomicUsize,
        end: AtomicUsize,
        is_cut: AtomicBool,
    }

    /// A handler of a signal may not lock or allocate: so the maps are in places that are always there.
    static SLOTS: [Slot; 1024] = [const {
        Slot {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_cut: AtomicBool::new(false),
        }
    }; 1024];
    static PAGE: AtomicUsize = AtomicUsize::new(4096);
    static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();

    /// A map that is watched until this is dropped, which must be before the map is.
    #[derive(Debug)]
    pub(super) struct Watch(Option<usize>);

    impl Watch {
        pub(super) fn new(map: &[u8]) -> io::Result<Self> {
            if map.is_empty() {
                return Ok(Self(None));
            }
            BEFORE.get_or_init(install);
            let take = |slot: &Slot| {
                slot.start.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            };
            let Some(number) = SLOTS.iter().position(take) else {
                return Err(io::Error::other("too many files are open at once"));
            };
            let start = map.as_ptr() as usize;
            SLOTS[number].is_cut.store(false, Ordering::Relaxed);
            SLOTS[number].start.store(start, Ordering::Release);
            SLOTS[number].end.store(start + map.len(), Ordering::Release);
            Ok(Self(Some(number)))
        }

        pub(super) fn is_cut(&self) -> bool {
            self.0.is_some_and(|number| SLOTS[number].is_cut.load(Ordering::Acquire))
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            if let Some(number) = self.0 {
                SLOTS[number].end.store(0, Ordering::Release);
                SLOTS[number].start.store(0, Ordering::Release);
            }
        }
    }

    /// Handles the signal from now on; returns how it was handled before.
    fn install() -> Option<libc::sigaction> {
        // SAFETY: all zeros are a valid `sigaction`, which both calls fill or read; the handler has the
        // signature that SA_SIGINFO asks for.
        unsafe {
            PAGE.store(libc::sysconf(libc::_SC_PAGESIZE).max(4096) as usize, Ordering::Relaxed);
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = on_bus_error as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut ours.sa_mask);
            let mut before: libc::sigaction = std::mem::zeroed();
            (libc::sigaction(libc::SIGBUS, &raw const ours, &raw mut before) == 0).then_some(before)
        }
    }

    extern "C" fn on_bus_error(
        _signal: libc::c_int,
        info: *mut libc::siginfo_t,
        _context: *mut libc::c_void,
    ) {
        // SAFETY: the system gives a valid `info` to a handler with SA_SIGINFO.
        let address = unsafe { (*info).si_addr() } as usize;
        let page = PAGE.load(Ordering::Relaxed);
        for slot in &SLOTS {
            let (start, end) =
                (slot.start.load(Ordering::Acquire), slot.end.load(Ordering::Acquire));
            if !(start..end).contains(&address) {
                continue;
            }
            slot.is_cut.store(true, Ordering::Release);
            let from = address & !(page - 1);
            let length = end.next_multiple_of(page) - from;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED;
            // SAFETY: replaces pages of our own map, which is read-only, by read-only zeros.
            let zeros = unsafe {
                libc::mmap(from as *mut libc::c_void, length, libc::PROT_READ, flags, -1, 0)
            };
            if zeros != libc::MAP_FAILED {
                return;
            }
        }
        // Not of our maps: whoever was there before gets it, when the same access faults again.
        // SAFETY: `before` is what the system returned, or all zeros: the default.
        unsafe {
            let before = BEFORE.get().copied().flatten().unwrap_or(std::mem::zeroed());
            libc::sigaction(libc::SIGBUS, &raw const before, std::ptr::null_mut());
        }
    }
}

#[cfg(not(unix))]
mod watch {
    /// Elsewhere a file cannot be cut short while it is mapped.
    #[derive(Debug)]
    pub(super) struct Watch;

    impl Watch {
        #[allow(clippy::unnecessary_wraps)]
        pub(super) fn new(_map: &[u8]) -> std::io::Result<Self> {
            Ok(Self)
        }

        #[allow(clippy::unused_self)]
        pub(super) fn is_cut(&self) -> bool {
            false
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_short_reads_as_zeros_and_is_known_to_have_changed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; 100_000]).unwrap();
        let mapped = Mapped::new(&File::open(file.path()).unwrap()).unwrap();
        assert_eq!((mapped[99_999], mapped.has_changed()), (7, false));

        file.as_file().set_len(5000).unwrap();

        assert_eq!((mapped[0], mapped[99_999], mapped.has_changed()), (7, 0, true));
    }

    #[test]
    fn a_file_that_grows_is_known_to_have_changed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        let mapped = Mapped::new(&File::open(file.path()).unwrap()).unwrap();

        file.as_file().set_len(5000).unwrap();

        assert_eq!((&mapped[..], mapped.has_changed()), (&b"abc"[..], true));
    }
}
