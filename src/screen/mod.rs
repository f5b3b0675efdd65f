//! Puts pictures into a window of another toolkit, such as Tk, without sending them through a
//! socket: the X server reads them from memory that it shares with us.
//!
//! The connection is our own: the window's owner neither knows nor waits. It should leave the window's
//! content alone (Tk does, if a picture's background is "") and show the picture again when it hears
//! that a part of the window was uncovered. Windows inside of the window are not painted over.
//!
//! # Invariants
//!
//! When [`Screen::show`] returns, the server has the picture and no longer reads the memory. What
//! the server refuses is an error, never the end of the program.
//!
//! # Cost
//!
//! Two round trips, one copy here and one by the server, most of both at the same time.

#[cfg(target_os = "linux")]
mod shared_memory;
#[cfg(target_os = "linux")]
mod x11;

#[cfg(target_os = "linux")]
pub use x11::Screen;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::Screen;

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use crate::error::{Error, Result};
    use crate::raster::{Mark, Picture};

    /// A window that pictures are put into; there is none on this system.
    #[derive(Debug)]
    pub enum Screen {}

    impl Screen {
        /// Fails.
        pub fn new(_window: u64, _display: Option<&str>) -> Result<Self> {
            Err(Error::screen("showing pictures directly is not available on this system"))
        }

        /// Cannot be called.
        pub fn prepare(&mut self, _pixels: usize) -> Result<()> {
            match *self {}
        }

        /// Cannot be called.
        pub fn show(&mut self, _: &Picture, _: &[Mark], _: (i64, i64)) -> Result<()> {
            match *self {}
        }
    }
}
