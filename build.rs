//! Compiles the null device (`src/null_device/`), a library of its own whose bytes the Python module
//! carries. Only Linux has a loader that can put it before NVIDIA's.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(null_device)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/null_device");
    let set = |name: &str| env::var(name).unwrap_or_default();
    let is_supported = set("CARGO_CFG_TARGET_OS") == "linux"
        && ["x86_64", "aarch64"].contains(&set("CARGO_CFG_TARGET_ARCH").as_str());
    if is_supported && env::var_os("CARGO_FEATURE_PYTHON").is_some() {
        compile(&PathBuf::from(set("OUT_DIR")).join("null_device.so"));
        println!("cargo::rustc-cfg=null_device");
    }
}

fn compile(library: &Path) {
    let mut sources: Vec<PathBuf> = fs::read_dir("src/null_device")
        .expect("the sources are in the crate")
        .map(|entry| entry.expect("a directory can be listed").path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "c"))
        .collect();
    sources.sort();
    // Without debug information and paths, the same sources give the same bytes.
    let compiler = cc::Build::new().opt_level(1).debug(false).get_compiler();
    let status = compiler
        .to_command()
        .args(["-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"])
        // The name of the driver's library: what looks for that one finds this one.
        .args(["-s", "-Wl,--build-id=none", "-Wl,-soname,libcuda.so.1", "-o"])
        .arg(library)
        .args(sources)
        .args(["-ldl", "-lpthread"])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the null device did not compile");
}
