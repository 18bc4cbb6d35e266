//! Reads facts from the source of an element in a reply, even if the element is broken.

/// Whether an element is a mention of an action: it is `<action>`, `<tool_use>` or `<tool_call>`,
/// it has no attributes, and its content begins with neither JSON nor an element.
pub(super) fn is_mention(source: &str) -> bool {
    let mut names = ["<action>", "<tool_use>", "<tool_call>"].iter();
    let body = names.find_map(|it| source.strip_prefix(it)).map(str::trim_start);
    body.is_some_and(|it| !it.starts_with('{') && (!it.starts_with('<') || it.starts_with("</")))
}

/// The id of a call, or the name of its element if the call has no id. None for `metadata`,
/// `response` and the elements of thoughts.
pub(super) fn called(name: &str, source: &str) -> Option<String> {
    if !matches!(name, "metadata" | "thought" | "think" | "thinking" | "response") {
        let tag = &source[..source.find('>').unwrap_or(source.len())];
        let id = |quote: char| {
            let within = format!("id={quote}");
            let mut ends = tag.match_indices(&within);
            let (at, _) = ends.find(|(at, _)| tag[..*at].ends_with(char::is_whitespace))?;
            Some(tag[at + within.len()..].split_once(quote)?.0.to_owned())
        };
        return Some(id('"').or_else(|| id('\'')).unwrap_or_else(|| name.to_owned()));
    }
    None
}
