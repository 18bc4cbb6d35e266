//! `read`: shows lines of a file, from a given line on. At most about `read_bytes_max` bytes of the
//! file are in memory, however large the file is.

use std::io::{self, BufRead, BufReader, Read as _};

use super::super::text::{cut, known};
use super::refuse::{failed, refused, too_large};
use super::root::{Root, text_of};
use super::{FileText, Read, Reason, Refused};

pub(super) fn read(root: &Root, it: Read) -> Result<FileText, Refused> {
    let path = it.path;
    let (file, _) = root.file(&path)?;
    let limits = &root.limits;
    let from = it.from.unwrap_or(1).max(1);
    let mut reader = BufReader::new(file.take(limits.scan_bytes_max as u64));
    let (lines, bytes) = skip(&mut reader, from - 1).map_err(|error| failed(&path, &error))?;
    if bytes >= limits.scan_bytes_max as u64 {
        let text = format!("line {from} of {} is too far from its beginning", cut(&path));
        return Err(too_large(&path, &text, "scan_bytes_max", limits.scan_bytes_max));
    }
    let most = limits.read_bytes_max;
    let mut read = Vec::new();
    // From here on, `read_bytes_max` limits the bytes that are read. `scan_bytes_max` no longer
    // applies.
    reader.get_mut().set_limit(most as u64 + 1);
    let taken = reader.take(most as u64 + 1).read_to_end(&mut read);
    taken.map_err(|error| failed(&path, &error))?;
    if read.is_empty() && from > 1 {
        let text = format!("{} has {lines} lines, and no line {from}", cut(&path));
        return Err(refused(Reason::Missing, &path, text));
    }
    let wanted = it.lines.unwrap_or(u64::MAX);
    let (end, shown) = whole_lines(&read, most, wanted);
    if end == 0 && !read.is_empty() {
        let text = format!("line {from} of {} is too long", cut(&path));
        return Err(too_large(&path, &text, "read_bytes_max", most));
    }
    let has_more = end < read.len();
    read.truncate(end);
    let text = text_of(&path, read)?;
    let replaced = text.chars().filter(|it| known(*it) != *it).count() as u64;
    let text = if replaced > 0 { text.chars().map(known).collect() } else { text };
    let to = from + shown - u64::from(shown > 0);
    let to = if shown == 0 { from - 1 } else { to };
    Ok(FileText {
        path: cut(&path),
        from,
        to,
        next: has_more.then_some(to + 1),
        replaced: (replaced > 0).then_some(replaced),
        text,
    })
}

/// Skips `lines` lines, or fewer if the file ends before. Returns the numbers of lines and bytes
/// that were skipped.
fn skip(reader: &mut impl BufRead, lines: u64) -> io::Result<(u64, u64)> {
    let (mut left, mut bytes, mut is_open) = (lines, 0_u64, false);
    while left > 0 {
        let there = reader.fill_buf()?;
        if there.is_empty() {
            break;
        }
        let end = there.iter().position(|it| *it == b'\n');
        let taken = end.map_or(there.len(), |it| it + 1);
        left -= u64::from(end.is_some());
        is_open = end.is_none();
        reader.consume(taken);
        bytes += taken as u64;
    }
    Ok((lines - left + u64::from(is_open), bytes))
}

/// Finds the first `wanted` whole lines, as far as they fit into `most` bytes. Returns the position
/// at which the last of these lines ends, and the number of lines.
fn whole_lines(bytes: &[u8], most: usize, wanted: u64) -> (usize, u64) {
    let (mut end, mut count) = (0, 0);
    for line in bytes.split_inclusive(|it| *it == b'\n') {
        let is_cut = bytes.len() > most && !line.ends_with(b"\n");
        if count == wanted || end + line.len() > most || is_cut {
            break;
        }
        end += line.len();
        count += 1;
    }
    (end, count)
}
