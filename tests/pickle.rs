//! The pickle machine, opcode by opcode: what it reads, and what it refuses.

use snapviewer::error::Result;
use snapviewer::pickle::{self, Builder, Handle, Object, Value};
use snapviewer::progress::Progress;

/// Builds text: the obvious thing, for comparing with.
#[derive(Default)]
struct Show<const TAKES_OBJECTS: bool> {
    texts: Vec<String>,
    objects: Vec<String>,
}

impl<const TAKES_OBJECTS: bool> Show<TAKES_OBJECTS> {
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

impl<const TAKES_OBJECTS: bool> Builder for Show<TAKES_OBJECTS> {
    const TAKES_OBJECTS: bool = TAKES_OBJECTS;

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

    fn make(&mut self, object: Object, _at: usize) -> Result<Value> {
        let text = match object {
            Object::Global { module, name } => {
                format!("{}.{}", self.show(module), self.show(name)).replace('\'', "")
            }
            Object::Extension(code) => format!("extension {code}"),
            Object::Call { callable, args } => {
                format!("{}{}", self.show(callable), self.show(args))
            }
            Object::New { class, args, named } => {
                let named = named.map(|named| self.show(named)).unwrap_or_default();
                format!("new {}{}{named}", self.show(class), self.show(args))
            }
            Object::WithState { object, state } => {
                format!("{} with {}", self.show(object), self.show(state))
            }
            Object::Persistent(id) => format!("persistent {}", self.show(id)),
            Object::Set { is_frozen: false } => "set".to_owned(),
            Object::Set { is_frozen: true } => "frozenset".to_owned(),
        };
        Ok(Value::Object(self.made(text)))
    }
}

/// Runs a pickle with a builder that takes objects.
fn run_objects(input: &[u8]) -> std::result::Result<String, String> {
    let mut show = Show::<true>::default();
    let result = pickle::run(input, &mut show, &Progress::none());
    result.map(|(value, _)| show.show(value)).map_err(|error| error.to_string())
}

fn run(input: &[u8]) -> std::result::Result<String, String> {
    let mut show = Show::<false>::default();
    let result = pickle::run(input, &mut show, &Progress::none());
    result.map(|(value, _)| show.show(value)).map_err(|error| error.to_string())
}

type Run = fn(&[u8]) -> std::result::Result<String, String>;

fn assert_results(run: Run, cases: &[(&[u8], &str)]) {
    for (input, expected) in cases {
        assert_eq!(run(input).as_deref(), Ok(*expected), "{}", input.escape_ascii());
    }
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

    assert_results(run, cases);
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
        (b"\x8f.", "EMPTY_SET"),
        (b"](\x90.", "ADDITEMS"),
        (b"(\x91.", "FROZENSET"),
        (b"I1\n.", "INT"),
        (b"L1L\n.", "LONG"),
        (b"F1\n.", "FLOAT"),
        (b"S''\n.", "STRING"),
        (b"T\0\0\0\0.", "BINSTRING"),
        (b"U\0.", "SHORT_BINSTRING"),
        (b"V\n.", "UNICODE"),
        (b"\x97.", "NEXT_BUFFER"),
        (b"N\x98.", "READONLY_BUFFER"),
    ];

    for (input, name) in cases {
        let error = run(input).expect_err("code is refused");
        assert!(error.contains(&format!("opcode {name},")), "{error}");
    }
    assert!(run(b"\x80\x04cos\nsystem\n.").expect_err("refused").ends_with("(at byte 2)"));
}

#[test]
fn objects_are_handed_over_to_a_builder_that_takes_them() {
    let cases: &[(&[u8], &str)] = &[
        (b"cos\nsystem\n.", "os.system"),
        (b"\x8c\x02os\x8c\x06system\x93.", "os.system"),
        (b"NK\x01\x93.", "None.1"),
        (b"ca\nb\nK\x01\x85R.", "a.b(1)"),
        (b"ca\nb\n)\x81.", "new a.b()"),
        (b"ca\nb\n)}\x92.", "new a.b(){}"),
        (b"(K\x01K\x02ia\nb\n.", "new a.b(1 2)"),
        (b"(ca\nb\nK\x01o.", "new a.b(1)"),
        (b"(ca\nb\no.", "new a.b()"),
        (b"ca\nb\n)\x81}b.", "new a.b() with {}"),
        (b"\x82\x07.", "extension 7"),
        (b"\x83\x01\x02.", "extension 513"),
        (b"\x84\x01\0\0\x80.", "extension 2147483649"),
        (b"P12\n.", "persistent '12'"),
        (b"P\n.", "persistent ''"),
        (b"K\x01Q.", "persistent 1"),
        (b"\x8f.", "set"),
        (b"\x8f(K\x01K\x02\x90.", "set+[1 2]"),
        (b"(K\x01\x91.", "frozenset+[1]"),
        (b"\x8fK\x01a.", "set+[1]"),
        (b"ca\nb\n)RK\x01a.", "a.b()+[1]"),
        (b"ca\nb\n)RK\x01K\x02s.", "a.b()+{1 2}"),
        // Names are UTF-8, without escapes.
        (b"cm\\u00e9\xc3\xa9\nn\n.", "m\\u00e9\u{e9}.n"),
    ];

    assert_results(run_objects, cases);
}

#[test]
fn what_python_2_wrote_is_understood() {
    let cases: &[(&[u8], &str)] = &[
        (b"I1\n.", "1"),
        (b"I-7\n.", "-7"),
        (b"I01\n.", "true"),
        (b"I00\n.", "false"),
        (b"I 5 \n.", "5"),
        (b"I18446744073709551615\n.", "18446744073709551615"),
        (b"L-3L\n.", "-3"),
        (b"L3\n.", "3"),
        (b"L119547037146038801333356L\n.", "huge"),
        (b"L-99999999999999999999L\n.", "huge"),
        (b"F1.5\n.", "1.5"),
        (b"F-inf\n.", "-inf"),
        (b"Fnan\n.", "NaN"),
        (b"F1e309\n.", "inf"),
        (b"S'it'\n.", "'it'"),
        (b"S\"it's\"\n.", "'it's'"),
        (b"S''\n.", "''"),
        (
            br"S'\\\'\n\t\r\x41'
.",
            "'\\'\n\t\rA'",
        ),
        (
            br"S'\xff'
.",
            "[255]",
        ),
        (
            br"S'\xg0'
.",
            "'xg0'",
        ),
        (
            br"S'\x4'
.",
            "'x4'",
        ),
        (b"T\x02\0\0\0hi.", "'hi'"),
        (b"U\x02hi.", "'hi'"),
        (b"U\x02\xff\0.", "[255, 0]"),
        (b"Vhi\n.", "'hi'"),
        (
            br"V\u20ac\U0001f600\n
.",
            "'\u{20ac}\u{1f600}\\n'",
        ),
        (b"V\xe9\n.", "'\u{e9}'"),
        (
            br"V\ud800\u12
.",
            "'\u{fffd}\\u12'",
        ),
    ];

    assert_results(run_objects, cases);
}

#[test]
fn objects_that_make_no_sense_are_refused() {
    let cases: &[&[u8]] = &[
        b"cos",
        b"cos\nsystem",
        b"N\x93.",
        b"NR.",
        b"Nb.",
        b"N\x81.",
        b"NN\x92.",
        b"ia\nb\n.",
        b"(ia\n",
        b"o.",
        b"(o.",
        b"Q.",
        b"Px",
        b"\x82",
        b"\x83\x01",
        b"\x84\x01\x01",
        b"\x90.",
        b"(\x90.",
        b"\x91.",
        b"N(K\x01\x90.",
        b"Ix\n.",
        b"I\n.",
        b"I1",
        b"I0x10\n.",
        b"I1.5\n.",
        b"L1LL\n.",
        b"L-\n.",
        b"Fx\n.",
        b"F\n.",
        b"S'\n.",
        b"Sx\n.",
        b"S'x\"\n.",
        b"T\xff\xff\xff\xff.",
        b"U\x05hi.",
        b"\x97.",
        b"N\x98.",
        b"N(R.",
        b"NN(b.",
        b"\xff.",
    ];

    for input in cases {
        let result = run_objects(input);
        assert!(result.is_err(), "{} is {result:?}", input.escape_ascii());
    }
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

    // Each leaves a gap as long as the memo is.
    let mut gaps = b"N".to_vec();
    let mut next = 65_536_u64;
    while next < u64::MAX / 4 {
        gaps.extend(format!("p{next}\n").bytes());
        next = 2 * next + 65_536;
    }

    assert!(run(&gaps).expect_err("gaps").contains("far beyond"));
    assert!(run_objects(&gaps).expect_err("gaps").contains("far beyond"));
    assert!(run(&deep).expect_err("deep").contains("nested deeper"));
    assert!(run(&wide).expect_err("wide").contains("more objects"));
    assert!(run(&memo).expect_err("memo").contains("more objects"));
    assert_eq!(run(&long).as_deref(), Ok("0"));
}
