//! The opcodes of the pickle language.

#![allow(missing_docs)]

macro_rules! opcodes {
    ($($name:ident = $code:literal,)+) => {
        $(pub const $name: u8 = $code;)+
    };
}

/// The name of an opcode that we refuse.
macro_rules! refused {
    ($($name:ident = $code:literal,)+) => {
        opcodes! { $($name = $code,)+ }

        pub(super) fn refused(opcode: u8) -> Option<&'static str> {
            match opcode {
                $($name => Some(stringify!($name)),)+
                _ => None,
            }
        }
    };
}

opcodes! {
    MARK = b'(', STOP = b'.', POP = b'0', POP_MARK = b'1', DUP = b'2', BININT = b'J',
    BININT1 = b'K', BININT2 = b'M', NONE = b'N', BINUNICODE = b'X', APPEND = b'a', APPENDS = b'e',
    BINBYTES = b'B', SHORT_BINBYTES = b'C', DICT = b'd', EMPTY_DICT = b'}', GET = b'g',
    BINGET = b'h', LONG_BINGET = b'j', LIST = b'l', EMPTY_LIST = b']', PUT = b'p', BINPUT = b'q',
    LONG_BINPUT = b'r', SETITEM = b's', SETITEMS = b'u', TUPLE = b't', EMPTY_TUPLE = b')',
    BINFLOAT = b'G', PROTO = 0x80, TUPLE1 = 0x85, TUPLE2 = 0x86, TUPLE3 = 0x87, NEWTRUE = 0x88,
    NEWFALSE = 0x89, LONG1 = 0x8a, LONG4 = 0x8b, SHORT_BINUNICODE = 0x8c, BINUNICODE8 = 0x8d,
    BINBYTES8 = 0x8e, MEMOIZE = 0x94, FRAME = 0x95, BYTEARRAY8 = 0x96,
}

// These only a builder that takes objects sees.
refused! {
    GLOBAL = b'c', STACK_GLOBAL = 0x93, INST = b'i', OBJ = b'o', NEWOBJ = 0x81, NEWOBJ_EX = 0x92,
    REDUCE = b'R', BUILD = b'b', EXT1 = 0x82, EXT2 = 0x83, EXT4 = 0x84, PERSID = b'P',
    BINPERSID = b'Q', NEXT_BUFFER = 0x97, READONLY_BUFFER = 0x98, EMPTY_SET = 0x8f,
    ADDITEMS = 0x90, FROZENSET = 0x91, FLOAT = b'F', INT = b'I', LONG = b'L', STRING = b'S',
    BINSTRING = b'T', SHORT_BINSTRING = b'U', UNICODE = b'V',
}
