//! How a tensor lies in its storage: a shape, a stride for each dimension, and an offset.

/// Where the elements of a view are, counted in elements of its storage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Strided {
    /// How many elements there are along each dimension.
    pub shape: Vec<u64>,
    /// How far apart two neighbours along each dimension are; 0 in an expanded one.
    pub stride: Vec<i64>,
    /// Where the first element is.
    pub offset: u64,
}
