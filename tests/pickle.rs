//! The pickle machine, opcode by opcode: what it reads, and what it refuses.

use snapviewer::error::Result;
use snapviewer::pickle::{self, Builder, Handle, Value};
use snapviewer::progress::Progress;

/// Builds text: the obvious thing, for comparing with.
#[derive(Default)]
struct Show {
    texts: Vec<String>,
    objects: Vec<String>,
}

impl Show {
    fn show(&self, value: Value) -> String {
        match value {
            Value::None => "None".to_owned(),
            Value::Bool(is) => is.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Uint(number) => number.to_string(),
            Value::Huge => "huge".to_owned(),
            Value::Float(number) => format!("{number:?}"),
            Value::Text(id) => format!("'{}'", self.texts[id as usize]),
            Value::Object(handle) => self.objects[handle.id as usize].clone(),
        }
    }

    fn all(&self, values: &[Value]) -> String {
        values.iter().map(|&value| self.show(value)).collect::<Vec<_>>().join(" ")
    }

    fn made(&mut self, text: String) -> Handle {
        self.objects.push(text);
        Handle { kind: 0, id: self.objects.len() as u32 - 1 }
    }
}

impl Builder for Show {
    fn text(&mut self, text: &str, _at: usize) -> Result<u32> {
        self.texts.push(text.to_owned());
        Ok(self.texts.len() as u32 - 1)
    }

    fn bytes(&mut self, bytes: &[u8], _at: usize) -> Result<Value> {
        Ok(Value::Object(self.made(format!("{bytes:?}"))))
    }

    fn new_list(&mut self, _at: usize) -> Result<Handle> {
        Ok(self.made("[]".to_owned()))
    }

    fn new_dict(&mut self, _at: usize) -> Result<Handle> {
        Ok(self.made("{}".to_owned()))
    }

    fn tuple(&mut self, items: &[Value], _at: usize) -> Result<Value> {
        let text = format!("({})", self.all(items));
        Ok(Value::Object(self.made(text)))
    }

    fn append(&mut self, list: Handle, items: &[Value], _at: usize) -> Result<()> {
        let text = format!("{}+[{}]", self.objects[list.id as usize], self.all(items));
        self.objects[list.id as usize] = text;
        Ok(())
    }

    fn set_items(&mut self, dict: Handle, items: &[Value], _at: usize) -> Result<()> {
        let text = format!("{}+{{{}}}", self.objects[dict.id as usize], self.all(items));
        self.objects[dict.id as usize] = text;
        Ok(())
    }
}

fn run(input: &[u8]) -> std::result::Result<String, String> {
    let mut show = Show::default();
    let result = pickle::run(input, &mut show, &Progress::none());
    result.map(|(value, _)| show.show(value)).map_err(|error| error.to_string())
}

#[test]
fn every_opcode_that_a_snapshot_needs_is_understood() {
    let cases: &[(&[u8], &str)] = &[
        (b"\x80\x02N.", "None"),
        (b"\x80\x04\x95\x01\0\0\0\0\0\0\0\x88.", "true"),
        (b"K\xff.", "255"),
        (b"M\xff\xff.", "65535"),
        (b"J\xff\xff\xff\xff.", "-1"),
        (b"\x8a\x00.", "0"),
        (b"\x8a\x01\xff.", "-1"),
        (b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", "9223372036854775807"),
        (b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.", "18446744073709551615"),
        (b"\x8a\x0a\x01\0\0\0\0\0\0\0\0\0.", "1"),
        (b"\x8a\x09\0\0\0\0\0\0\0\0\x01.", "huge"),
        (b"\x8b\x02\0\0\0\x00\x80.", "-32768"),
        (b"G\x3f\xf8\0\0\0\0\0\0.", "1.5"),
        (b"\x8c\x02hi.", "'hi'"),
        (b"X\x02\0\0\0hi.", "'hi'"),
        (b"\x8d\x02\0\0\0\0\0\0\0hi.", "'hi'"),
        (b"\x8c\x03\xed\xa0\x80.", "'\u{fffd}'"),
        (b"C\x01a.", "[97]"),
        (b"B\x01\0\0\0a.", "[97]"),
        (b"\x8e\x01\0\0\0\0\0\0\0a.", "[97]"),
        (b"\x96\x01\0\0\0\0\0\0\0a.", "[97]"),
        (b"].", "[]"),
        (b"]K\x01a.", "[]+[1]"),
        (b"](K\x01K\x02e.", "[]+[1 2]"),
        (b"(K\x01l.", "[]+[1]"),
        (b"}.", "{}"),
        (b"}K\x01K\x02s.", "{}+{1 2}"),
        (b"}(K\x01K\x02u.", "{}+{1 2}"),
        (b"(K\x01K\x02d.", "{}+{1 2}"),
        (b").", "()"),
        (b"K\x01\x85.", "(1)"),
        (b"K\x01K\x02\x86.", "(1 2)"),
        (b"K\x01K\x02K\x03\x87.", "(1 2 3)"),
        (b"(K\x01K\x02t.", "(1 2)"),
        (b"K\x01K\x020.", "1"),
        (b"K\x01(K\x021.", "1"),
        (b"K\x01(0.", "1"),
        (b"K\x012\x86.", "(1 1)"),
        (b"K\x07\x94K\x01h\x00\x86.", "(1 7)"),
        (b"K\x07q\x05j\x05\0\0\0\x86.", "(7 7)"),
        (b"K\x07r\x05\0\0\0h\x05\x86.", "(7 7)"),
        (b"K\x07p5\ng5\n\x86.", "(7 7)"),
        (b"N.rest is not read", "None"),
    ];

    for (input, expected) in cases {
        assert_eq!(run(input).as_deref(), Ok(*expected), "{}", input.escape_ascii());
    }
}

#[test]
fn what_could_run_code_is_refused_by_name_and_offset() {
    let cases: &[(&[u8], &str)] = &[
        (b"\x80\x04cos\nsystem\n.", "GLOBAL"),
        (b"NN\x93.", "STACK_GLOBAL"),
        (b"NNR.", "REDUCE"),
        (b"NNb.", "BUILD"),
        (b"(ios\nsystem\n.", "INST"),
        (b"(No.", "OBJ"),
        (b"NN\x81.", "NEWOBJ"),
        (b"NNN\x92.", "NEWOBJ_EX"),
        (b"\x82\x01.", "EXT1"),
        (b"\x83\x01\x01.", "EXT2"),
        (b"\x84\x01\x01\x01\x01.", "EXT4"),
        (b"Px\n.", "PERSID"),
        (b"NQ.", "BINPERSID"),
    ];

    for (input, name) in cases {
        let error = run(input).expect_err("code is refused");
        assert!(error.contains(&format!("opcode {name},")), "{error}");
    }
    assert!(run(b"\x80\x04cos\nsystem\n.").expect_err("refused").ends_with("(at byte 2)"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let cases: &[&[u8]] = &[
        b"",
        b"N",
        b".",
        b"\x80\x06N.",
        b"0.",
        b"(.",
        b"e.",
        b"](e",
        b"(K\x01e.",
        b"K\x01K\x02a.",
        b"}(K\x01u.",
        b"h\x00.",
        b"Nr\xff\xff\xff\xff.",
        b"\x8c\x05hi.",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x3fhi.",
        b"\x8b\xff\xff\xff\xff.",
        b"\x95\xff\xff\xff\xff\xff\xff\xff\x3fN.",
        b"\x8c\x01\xff.",
        b"gx\n.",
        b"\xff.",
        b"K\x01(\x85.",
    ];

    for input in cases {
        let error = run(input).expect_err("it makes no sense");
        assert!(error.starts_with("not a PyTorch memory snapshot: "), "{error}");
    }
}

#[test]
fn no_file_makes_the_machine_take_more_than_its_length_allows() {
    let deep = [b"](".repeat(2_000_000), b".".to_vec()].concat();
    let wide = [b"]".to_vec(), vec![b'N'; 3_000_000], b".".to_vec()].concat();
    let memo = [b"N".to_vec(), vec![0x94; 3_000_000], b".".to_vec()].concat();
    let long = [b"\x8b\x00\x00\x20\x00".to_vec(), vec![0; 1 << 21], b".".to_vec()].concat();

    assert!(run(&deep).expect_err("deep").contains("nested deeper"));
    assert!(run(&wide).expect_err("wide").contains("more objects"));
    assert!(run(&memo).expect_err("memo").contains("more objects"));
    assert_eq!(run(&long).as_deref(), Ok("0"));
}
