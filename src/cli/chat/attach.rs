//! Reads files to attach to a conversation, and says why a file can't be attached.

use std::io::{ErrorKind, Read as _};
use std::path::Path;

use crate::listeners::agent::attachments::{ATTACHMENT_BYTES, grouped};
use crate::model::{media_type_of, takes};
use crate::regular_file;
use crate::wire::core::Attachment;

/// The extensions of text files, and their media types.
const TEXTS: [(&str, &str); 3] =
    [("txt", "text/plain"), ("md", "text/markdown"), ("markdown", "text/markdown")];

/// The extensions of binary files, and their media types. Only errors use these types: the type of
/// a binary file comes from its first bytes.
const BINARIES: [(&str, &str); 6] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("pdf", "application/pdf"),
];

/// Reads a file as an attachment. `taken` has the media types that the agent's model takes, if they
/// are known.
///
/// # Errors
/// The file can't be read, is empty or too large, or has a media type that the model doesn't take.
/// The error says why.
pub(super) fn read(path: &Path, taken: Option<&[String]>) -> Result<Attachment, String> {
    let shown = path.display();
    let unread = |it: std::io::Error| match it.kind() {
        ErrorKind::InvalidInput => format!("{shown} is no file; name a file"),
        _ => format!("{shown} can't be read: {it}"),
    };
    let file = regular_file::open(path).map_err(unread)?;
    let data = file.metadata().map_err(unread)?;
    // The file may grow while it is read, so one byte more than the limit is read. Otherwise a file
    // that is too large might seem to fit.
    let mut content = Vec::new();
    file.take(ATTACHMENT_BYTES + 1).read_to_end(&mut content).map_err(unread)?;
    let size = data.len().max(content.len() as u64);
    if size > ATTACHMENT_BYTES {
        let most = grouped(ATTACHMENT_BYTES);
        let size = grouped(size);
        return Err(format!(
            "{shown} has {size} bytes, and a prompt shows {most}; make it smaller"
        ));
    }
    let media_type = media_type(path, &content)?;
    if let Some(taken) = taken.filter(|it| !takes(it, media_type)) {
        let taken = if taken.is_empty() { "none".to_owned() } else { taken.join(", ") };
        return Err(format!(
            "{shown} is {media_type}, and of attachments the agent's model takes {taken}; if it \
             can read more, list that in `attachments` of the model in the manifest"
        ));
    }
    Ok(Attachment::new(media_type.to_owned(), content.into()))
}

/// Returns the media type of a file: by the first bytes of a binary file, or by the extension of a
/// text file.
fn media_type(path: &Path, content: &[u8]) -> Result<&'static str, String> {
    let shown = path.display();
    if content.is_empty() {
        return Err(format!("{shown} is empty; attach a file with something in it"));
    }
    if let Some(found) = media_type_of(content) {
        return Ok(found);
    }
    let end = path.extension().map(|it| it.to_string_lossy().to_ascii_lowercase());
    let named = |all: &[(&str, &'static str)]| {
        all.iter().find(|(it, _)| Some(*it) == end.as_deref()).map(|(_, media_type)| *media_type)
    };
    match (named(&TEXTS), named(&BINARIES)) {
        (Some(text), _) if std::str::from_utf8(content).is_ok() => Ok(text),
        (Some(_), _) => Err(format!("{shown} is no text in UTF-8; save it as UTF-8")),
        (_, Some(binary)) => Err(format!(
            "{shown} does not begin as {binary} does; check that the file is what its name says"
        )),
        _ => Err(format!(
            "{shown} is of a kind that can't be attached; attach a PNG, a JPEG, a GIF, a WebP, a \
             PDF, or a text in a .txt or .md file"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, content: &[u8], taken: Option<&[&str]>, expected: Result<&str, &str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let taken: Option<Vec<String>> =
            taken.map(|it| it.iter().map(|it| (*it).to_owned()).collect());
        match (read(&path, taken.as_deref()), expected) {
            (Ok(it), Ok(media_type)) => {
                assert_eq!((&*it.media_type, &*it.content), (media_type, content));
            }
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (it, _) => panic!("{name}: {it:?}"),
        }
    }

    #[test]
    fn a_file_is_what_it_begins_as_and_a_text_what_its_name_says() {
        check("a.png", b"\x89PNG\r\n\x1a\n", None, Ok("image/png"));
        check("photo", b"\xff\xd8\xff\xe0", Some(&["image/*"]), Ok("image/jpeg"));
        check("a.png", b"GIF89a", None, Ok("image/gif"));
        check("a.pdf", b"%PDF-1.7", None, Ok("application/pdf"));
        check("NOTES.MD", b"# Notes", Some(&["text/*"]), Ok("text/markdown"));
        check("a.txt", "é".as_bytes(), None, Ok("text/plain"));
    }

    #[test]
    fn what_cannot_be_attached_says_why_and_what_to_do() {
        check("a.png", b"PNG", None, Err("a.png does not begin as image/png does; check"));
        check("a.txt", b"\xff", None, Err("a.txt is no text in UTF-8; save"));
        check("a.doc", b"Dear", None, Err("can't be attached; attach a PNG"));
        check("a.txt", b"", None, Err("a.txt is empty; attach"));
        check("a.gif", b"GIF89a", Some(&[]), Err("a.gif is image/gif, and of attachments"));
        check("a.gif", b"GIF89a", Some(&["image/png"]), Err("model takes image/png; if"));
        let large = usize::try_from(ATTACHMENT_BYTES).unwrap() + 1;
        check(
            "a.gif",
            &vec![0; large],
            None,
            Err("has 8,388,609 bytes, and a prompt shows 8,388,"),
        );
        let none = read(Path::new("no/such.png"), None).unwrap_err();
        assert!(none.starts_with("no/such.png can't be read: "), "{none}");
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path(), None).unwrap_err().ends_with("is no file; name a file"));
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_is_no_attachment_and_holds_nothing_up() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("a.txt");
        let mode = rustix::fs::Mode::from_bits_truncate(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let (to, told) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || to.send(read(&fifo, None)));
        let told = told.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
        assert!(told.unwrap_err().ends_with("is no file; name a file"));
    }
}
