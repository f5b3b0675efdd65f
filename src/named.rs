//! Enums whose variants have names that users write.

/// An enum, and `NAMES`: every variant with its name.
macro_rules! named {
    ($(#[$about:meta])* pub enum $enum:ident {
        $($(#[$attribute:meta])* $variant:ident = $name:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $enum {
            $($(#[$attribute])* $variant,)+
        }

        impl $enum {
            /// All of them, with their names.
            pub const NAMES: &[(&str, Self)] = &[$(($name, Self::$variant),)+];
        }
    };
}

pub(crate) use named;
