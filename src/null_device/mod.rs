//! The null device: a library, written in C, that stands for a GPU and its libraries in a process
//! that runs `PyTorch`. Here are only its bytes; `capture/null_device.py` preloads it.

/// The shared library; none where it cannot be used.
#[cfg(null_device)]
pub const LIBRARY: Option<&[u8]> =
    Some(include_bytes!(concat!(env!("OUT_DIR"), "/null_device.so")));

/// The shared library; none where it cannot be used.
#[cfg(not(null_device))]
pub const LIBRARY: Option<&[u8]> = None;
