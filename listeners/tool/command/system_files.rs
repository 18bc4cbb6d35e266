//! The files and folders of the system that every program may use.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The files and folders that every program may read and execute. The folders `/proc/PID` aren't
/// among them, because `/proc/PID/environ` of the pump shows the pump's environment.
const READ: [&str; 19] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix",
    "/sys",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/uptime",
    "/proc/version",
    "/proc/vmstat",
    "/dev/urandom",
];

/// The devices that every program may read and write.
pub(super) const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random"];

/// The folder of the system's settings. It also has passwords, private keys and the credentials of
/// services, so programs may read only [`SETTINGS`] and [`RUNTIMES`] of it.
const ETC: &str = "/etc";

/// The settings that programs need: those of the linker, names, certificates, the time zone, the
/// language and the terminal.
const SETTINGS: [&str; 50] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "ethertypes",
    "fonts",
    "gai.conf",
    "gitconfig",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "ld-musl-aarch64.path",
    "ld-musl-x86_64.path",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "locale.alias",
    "locale.conf",
    "localtime",
    "lsb-release",
    "magic",
    "magic.mime",
    "mime.types",
    "networks",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/java",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "protocols",
    "resolv.conf",
    "rpc",
    "services",
    "shells",
    "ssl/ca-bundle.pem",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "static/ssl/certs",
    "system-release",
    "terminfo",
    "timezone",
    "zoneinfo",
];

/// The beginnings of the names of folders that interpreters need, such as `python3.11`.
const RUNTIMES: [&str; 3] = ["java-", "perl", "python3"];

/// The permission of a file, and those of a folder, that everybody may read.
const READABLE: (u32, u32) = (0o004, 0o005);

/// Returns the files and folders that every program may read and execute. Of `/etc`, these are the
/// settings that programs need, without what only some users may read.
pub(super) fn readable() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = READ.iter().map(PathBuf::from).collect();
    all.extend(settings(Path::new(ETC)));
    all
}

fn settings(folder: &Path) -> Vec<PathBuf> {
    let runtimes = fs::read_dir(folder).into_iter().flatten().flatten();
    let runtimes = runtimes.map(|it| it.path()).filter(|it| {
        let name = it.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        RUNTIMES.iter().any(|start| name.starts_with(start))
    });
    let named = SETTINGS.iter().map(|it| folder.join(it));
    named.chain(runtimes).flat_map(|it| public(&it)).collect()
}

/// Returns a path, if everybody may read what is there. Of a folder that has something else, too,
/// returns the paths of those parts that everybody may read. A link in a folder counts as readable:
/// a program may follow it only to what the program may read anyway.
fn public(path: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::metadata(path) else { return Vec::new() };
    if !is_public(&found) {
        return Vec::new();
    }
    if !found.is_dir() || are_all_public(path) {
        return vec![path.to_owned()];
    }
    parts(path).filter(|(_, it)| !it.is_symlink()).flat_map(|(it, _)| public(&it)).collect()
}

fn are_all_public(folder: &Path) -> bool {
    parts(folder).all(|(path, it)| {
        it.is_symlink() || is_public(&it) && (!it.is_dir() || are_all_public(&path))
    })
}

fn parts(folder: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter_map(|it| Some((it.path(), it.metadata().ok()?)))
}

fn is_public(it: &Metadata) -> bool {
    let needed = if it.is_dir() { READABLE.1 } else { READABLE.0 };
    it.permissions().mode() & needed == needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_settings_programs_read_what_they_need_and_everybody_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let write = |name: &str, mode: u32| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "x").unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        for name in ["hosts", "ssl/certs/a.pem", "python3.11/sitecustomize.py", "fonts/a/b"] {
            write(name, 0o644);
        }
        for name in ["shadow", "sudoers", "ssl/private/key.pem", "ssh/ssh_host_key", "ours"] {
            write(name, 0o644);
        }
        write("passwd", 0o600);
        write("fonts/secret", 0o640);
        std::os::unix::fs::symlink(at("shadow"), at("fonts/link")).unwrap();
        let mut all = settings(folder.path());
        all.sort();
        let expected = ["fonts/a", "hosts", "python3.11", "ssl/certs"];
        assert_eq!(all, expected.map(at));
    }

    #[test]
    fn nothing_that_only_some_may_read_is_among_the_systems_files() {
        for path in ["shadow", "gshadow", "sudoers", "ssl/private", "ssh", "security"] {
            let path = Path::new(ETC).join(path);
            assert!(!readable().iter().any(|it| path.starts_with(it)), "{}", path.display());
        }
    }
}
