//! `list`: shows the files and folders in a folder.

use cap_std::fs::DirEntry;

use super::super::text::{cut, known};
use super::refuse::failed;
use super::root::{Root, relative};
use super::{Kind, Listed, Listing, Refused};

pub(super) fn list(root: &Root, path: &str) -> Result<Listing, Refused> {
    let at = relative(path)?;
    let entries = root.dir.read_dir(at).map_err(|error| root.missing(path, &error))?;
    let most = root.limits.items_max;
    let mut item = Vec::new();
    let mut more = false;
    for entry in entries {
        let entry = entry.map_err(|error| failed(path, &error))?;
        if item.len() == most {
            more = true;
            break;
        }
        item.push(described(&entry));
    }
    item.sort_by(|a: &Listed, b| a.name.cmp(&b.name));
    Ok(Listing { path: cut(path), more, item })
}

fn described(entry: &DirEntry) -> Listed {
    let name: String = entry.file_name().to_string_lossy().chars().map(known).collect();
    let kind = match entry.file_type() {
        Ok(it) if it.is_file() => Kind::File,
        Ok(it) if it.is_dir() => Kind::Folder,
        Ok(it) if it.is_symlink() => Kind::Link,
        _ => Kind::Other,
    };
    let is_file = kind == Kind::File;
    let bytes = is_file.then(|| entry.metadata().ok()).flatten().map(|it| it.len());
    Listed { name, kind, bytes }
}
