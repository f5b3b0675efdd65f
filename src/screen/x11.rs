//! A window of an X11 server, over a connection of our own.

use std::borrow::Cow;
use std::ops::Range;

use x11rb::connection::{Connection, RequestConnection};
use x11rb::cookie::VoidCookie;
use x11rb::errors::ReplyOrIdError;
use x11rb::protocol::shm::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    ConnectionExt as _, CreateGCAux, ImageFormat, ImageOrder, Setup, VisualClass, Visualid, Window,
};
use x11rb::protocol::{ErrorKind, xproto};
use x11rb::reexports::x11rb_protocol::parse_display::parse_display;
use x11rb::rust_connection::RustConnection;

use super::shared_memory::SharedMemory;
use crate::error::Error;
use crate::raster::{Area, Channels, Mark, Picture, Pixel};

/// A window that pictures are put into.
#[derive(Debug)]
pub struct Screen {
    connection: RustConnection,
    window: Window,
    context: xproto::Gcontext,
    attached: Option<Attached>,
}

/// Memory that the server knows.
#[derive(Debug)]
struct Attached {
    id: shm::Seg,
    memory: SharedMemory,
}

/// Pixels that are copied and put at a time: while the server puts some, the next are copied. At
/// 2400 × 1000 pixels a picture takes 3.6 ms in one go, 2.6 ms so, and 2.9 ms with an eighth of it.
const BAND: usize = 1 << 18;

impl Screen {
    /// Connects to the server of a window, which it must know already; without a display's name, to
    /// the one that the environment names.
    pub fn new(window: u64, display: Option<&str>) -> Result<Self, Error> {
        Self::open(window, display).map_err(Failed::into_error)
    }

    fn open(window: u64, display: Option<&str>) -> Result<Self, Failed> {
        let window = Window::try_from(window)
            .map_err(|_| Failed::new(format!("{window} is not a window of X11")))?;
        let connection = connect(display)?;
        let has_memory = connection.extension_information(shm::X11_EXTENSION_NAME)?.is_some();
        let version = if has_memory {
            let version = connection.shm_query_version()?.reply()?;
            (version.major_version, version.minor_version)
        } else {
            (0, 0)
        };
        if version < (1, 2) {
            return Err(Failed::new("the X server cannot share memory (MIT-SHM 1.2)"));
        }
        let visual = connection.get_window_attributes(window)?.reply()?.visual;
        let depth = connection.get_geometry(window)?.reply()?.depth;
        if !is_supported(connection.setup(), visual, depth) {
            return Err(Failed::new(
                "the window does not have 32 bits per pixel, in the order blue, green, red",
            ));
        }
        let context = connection.generate_id()?;
        // It leaves out windows inside of the window, unless asked not to.
        connection.create_gc(context, window, &CreateGCAux::new())?.check()?;
        Ok(Self { connection, window, context, attached: None })
    }

    /// Allocates memory for a picture of this many pixels, so that the first one need not wait for it.
    pub fn prepare(&mut self, pixels: usize) -> Result<(), Error> {
        let attached = with_room(&self.connection, &mut self.attached, pixels);
        attached.map_err(Failed::into_error)?.memory.pixels()[..pixels].fill([0; 4]);
        Ok(())
    }

    /// Puts a picture into the window, with marks on it and its upper left corner at a place, and
    /// waits until it is there. What is outside of the window is left out.
    pub fn show(
        &mut self,
        picture: &Picture,
        marks: &[Mark],
        place: (i64, i64),
    ) -> Result<(), Error> {
        self.put(picture, marks, place).map_err(Failed::into_error)
    }

    fn put(&mut self, picture: &Picture, marks: &[Mark], place: (i64, i64)) -> Result<(), Failed> {
        let Self { connection, window, context, attached } = self;
        let connection = &*connection;
        // Events that every client gets must not add up.
        while connection.poll_for_event()?.is_some() {}
        let geometry = connection.get_geometry(*window)?.reply()?;
        let Area { columns, rows } = picture.area();
        let columns = visible(place.0, columns.len(), geometry.width);
        let rows = visible(place.1, rows.len(), geometry.height);
        if columns.is_empty() || rows.is_empty() {
            return Ok(());
        }
        let width = columns.len();
        let Attached { id, memory } = with_room(connection, attached, width * rows.len())?;
        let step = (BAND / width).max(1);
        let mut last: Option<VoidCookie<'_, _>> = None;
        for first in rows.clone().step_by(step) {
            let area = Area { columns: columns.clone(), rows: first..rows.end.min(first + step) };
            let offset = (first - rows.start) * width;
            picture.copy_marked(&area, marks, Channels::Bgr, &mut memory.pixels()[offset..]);
            let (width, height) = (width as u16, area.rows.len() as u16);
            let put = connection.shm_put_image(
                *window,
                *context,
                width,
                height,
                0,
                0,
                width,
                height,
                (place.0 + columns.start as i64) as i16,
                (place.1 + first as i64) as i16,
                geometry.depth,
                u8::from(ImageFormat::Z_PIXMAP),
                false,
                *id,
                (offset * size_of::<Pixel>()) as u32,
            )?;
            connection.flush()?;
            // A server that refuses one of them refuses the last one, too.
            if let Some(before) = last.replace(put) {
                before.ignore_error();
            }
        }
        Ok(last.map_or(Ok(()), VoidCookie::check)?)
    }
}

/// The memory for this many pixels: the present one, or a larger one in its place.
fn with_room<'s>(
    connection: &RustConnection,
    attached: &'s mut Option<Attached>,
    pixels: usize,
) -> Result<&'s mut Attached, Failed> {
    let kept = match attached.take() {
        Some(small) if small.memory.len() < pixels => {
            connection.shm_detach(small.id)?.ignore_error();
            None
        }
        kept => kept,
    };
    let wanted = match kept {
        Some(attached) => attached,
        None => {
            // What is not written takes no room, so there may be some for a window that grows.
            let (memory, file) = SharedMemory::new(pixels.next_power_of_two())
                .map_err(|error| Failed::new(format!("the system refuses memory: {error}")))?;
            let id = connection.generate_id()?;
            connection.shm_attach_fd(id, file, true)?.check()?;
            Attached { id, memory }
        }
    };
    Ok(attached.insert(wanted))
}

/// Connects to a server of this machine: others cannot share memory, and may take long to answer.
fn connect(display: Option<&str>) -> Result<RustConnection, Failed> {
    let parsed = parse_display(display)
        .map_err(|error| Failed::new(format!("there is no X11 display: {error}")))?;
    let is_local = parsed.host.is_empty()
        || parsed.host == "unix"
        || parsed.protocol.as_deref() == Some("unix");
    if !is_local {
        return Err(Failed::new("the X11 display is on another machine, or reached as if it were"));
    }
    let (connection, _) = RustConnection::connect(display)
        .map_err(|error| Failed::new(format!("the X11 display does not answer: {error}")))?;
    Ok(connection)
}

/// Whether pixels of a visual are four bytes: blue, green, red, and one that does not matter.
fn is_supported(setup: &Setup, visual: Visualid, depth: u8) -> bool {
    let formats = &setup.pixmap_formats;
    let depths = setup.roots.iter().flat_map(|screen| &screen.allowed_depths);
    let mut visuals = depths.flat_map(|depth| &depth.visuals);
    setup.image_byte_order == ImageOrder::LSB_FIRST
        && formats.iter().any(|format| format.depth == depth && format.bits_per_pixel == 32)
        && visuals.any(|one| {
            one.visual_id == visual
                && one.class == VisualClass::TRUE_COLOR
                && (one.red_mask, one.green_mask, one.blue_mask) == (0xff_0000, 0xff00, 0xff)
        })
}

/// What of a picture of a length is in a window of a length, if it begins at a place of it.
fn visible(place: i64, length: usize, room: u16) -> Range<usize> {
    // X11 has no places further than that.
    let room = i64::from(room).min(i64::from(i16::MAX));
    let from = place.saturating_neg().clamp(0, length as i64);
    let to = room.saturating_sub(place).clamp(from, length as i64);
    from as usize..to as usize
}

/// Why it failed, in a sentence.
struct Failed(Cow<'static, str>);

impl Failed {
    fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self(reason.into())
    }

    fn into_error(self) -> Error {
        Error::screen(self.0)
    }
}

impl<E: Into<ReplyOrIdError>> From<E> for Failed {
    fn from(error: E) -> Self {
        match error.into() {
            ReplyOrIdError::X11Error(error) => match error.error_kind {
                ErrorKind::Window | ErrorKind::Drawable => Self::new("the window is gone"),
                kind => Self::new(format!("the X server refused to show the picture ({kind:?})")),
            },
            error => Self::new(format!("the connection to the X server is lost: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn a_picture_is_cut_to_its_window() {
        assert_eq!(visible(0, 100, 100), 0..100);
        assert_eq!(visible(-30, 100, 50), 30..80, "both ends are outside");
        assert_eq!(visible(40, 100, 50), 0..10);
        assert!(visible(50, 100, 50).is_empty(), "right of the window");
        assert!(visible(-100, 100, 50).is_empty(), "left of it");
        assert!(visible(i64::MIN, 100, 50).is_empty());
        assert!(visible(i64::MAX, 100, 50).is_empty());
    }

    #[test]
    fn no_place_is_too_far_for_x11() {
        assert_eq!(visible(0, 1 << 16, u16::MAX), 0..32_767);
        assert_eq!(visible(-50_000, 1 << 16, u16::MAX), 50_000..65_536);
    }
}
