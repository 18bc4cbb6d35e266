//! The executable `pumphouse` that is measured.

use std::io;
use std::path::{Path, PathBuf};

/// Returns the path of the executable `pumphouse`, built with the same profile as this program. The
/// benchmarks measure the one built with the profile `dist`, as others get it.
///
/// # Errors
/// If it isn't built. The error says how to build it.
pub fn executable() -> io::Result<PathBuf> {
    let path = beside(&std::env::current_exe()?);
    if path.is_file() {
        return Ok(path);
    }
    let how = "`cargo build --profile dist` builds it for the folder `dist`, `cargo build` for \
               `debug`";
    Err(io::Error::other(format!("there is no {}; {how}", path.display())))
}

/// Returns the path of `pumphouse` for a program of ours. Cargo puts benchmarks in the folder
/// `deps` of `release`, whatever their profile is.
fn beside(program: &Path) -> PathBuf {
    let folder = program.parent().unwrap_or(Path::new(""));
    let folder = match folder.file_name() {
        Some(name) if name == "deps" => folder.join("../../dist"),
        _ => folder.to_owned(),
    };
    folder.join(format!("pumphouse{}", std::env::consts::EXE_SUFFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_stands_beside_the_program_or_for_a_benchmark_in_dist() {
        let check = |program: &str, expected: &str| {
            let expected = format!("{expected}{}", std::env::consts::EXE_SUFFIX);
            assert_eq!(beside(Path::new(program)), PathBuf::from(expected), "{program}");
        };
        check("target/dist/pumphouse-bench", "target/dist/pumphouse");
        check("target/debug/pumphouse-bench", "target/debug/pumphouse");
        check("target/release/deps/soak-1f", "target/release/deps/../../dist/pumphouse");
    }
}
