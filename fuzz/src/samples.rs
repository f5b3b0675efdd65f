//! Good bundles, which the fuzzers spoil: of two small snapshots, and of those that `make_seeds.py` found.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use snapviewer::bundle;
use snapviewer::progress::Progress;

use crate::common;

/// The two files of a bundle.
pub struct Sample {
    /// `allocations.json` without its two digests.
    pub document: Value,
    /// `elements.db`.
    pub elements: Vec<u8>,
}

/// All of them; the first two are always there.
///
/// # Panics
///
/// If one cannot be made or read.
pub static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut samples = Vec::new();
    for (number, json) in [common::rich(), common::long(300)].iter().enumerate() {
        let (snapshot, lives) = common::read(json);
        let path = directory.path().join(number.to_string());
        let progress = Progress::none();
        bundle::write(&snapshot, &lives, &common::origin(), &path, false, &progress)
            .expect("a bundle of a good snapshot");
        samples.push(Sample::read(&path));
    }
    // Made by this version of the program, of real snapshots where there are some.
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/sample_bundles");
    let found = fs::read_dir(found).into_iter().flatten().flatten();
    let mut found: Vec<_> = found.map(|entry| entry.path()).collect();
    found.sort();
    samples.extend(found.iter().map(|path| Sample::read(path)));
    samples
});

impl Sample {
    fn read(path: &Path) -> Self {
        let document = fs::read(path.join(bundle::DOCUMENT)).expect("allocations.json");
        let mut document: Value = serde_json::from_slice(&document).expect("JSON");
        for digest in ["elements", "digest"] {
            document.as_object_mut().expect("an object").remove(digest);
        }
        let elements = fs::read(path.join(bundle::ELEMENTS)).expect("elements.db");
        Self { document, elements }
    }
}
