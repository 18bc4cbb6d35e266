//! The commands of a conversation: lines that begin with `/`.

/// The text that `/help` shows.
pub(super) const HELP: &str = "\
/again       asks the last question once more, in a fork: the thread as it was before it
/edit TEXT   asks this instead of the last question, in a fork
/attach FILE sends an image, a PDF or a text, for the next message
/why         what led to the last answer
/budget      what the conversation took of models
/help        this
//TEXT       a message that begins with a slash";

/// A command of the conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Again,
    Edit(String),
    Attach(String),
    Why,
    Budget,
    /// The line begins like a command, but is no valid command.
    Unknown(String),
}

/// A line of the user: a command or a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatLine<'a> {
    Command(Command),
    Message(&'a str),
}

impl ChatLine<'_> {
    pub(super) fn parse(line: &str) -> ChatLine<'_> {
        let Some(rest) = line.strip_prefix('/') else { return ChatLine::Message(line) };
        if rest.starts_with('/') {
            return ChatLine::Message(rest);
        }
        let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        ChatLine::Command(match (name, text.trim()) {
            ("help" | "?", _) => Command::Help,
            ("again", "") => Command::Again,
            ("edit", text) if !text.is_empty() => Command::Edit(text.to_owned()),
            ("attach", file) if !file.is_empty() => Command::Attach(file.to_owned()),
            ("why", "") => Command::Why,
            ("budget", "") => Command::Budget,
            _ => Command::Unknown(line.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_slash_is_a_command_and_with_two_a_message() {
        let command = |line: &str| match ChatLine::parse(line) {
            ChatLine::Command(it) => it,
            ChatLine::Message(it) => panic!("{it}"),
        };
        assert_eq!(command("/help"), Command::Help);
        assert_eq!(command("/again "), Command::Again);
        assert_eq!(command("/edit  What is 7*7?"), Command::Edit("What is 7*7?".to_owned()));
        assert_eq!(command("/attach a b.png "), Command::Attach("a b.png".to_owned()));
        for wrong in ["/edit", "/attach", "/agian", "/", "/again now"] {
            assert_eq!(command(wrong), Command::Unknown(wrong.to_owned()));
        }
        assert_eq!(ChatLine::parse("//etc is a folder"), ChatLine::Message("/etc is a folder"));
        assert_eq!(ChatLine::parse("1/2"), ChatLine::Message("1/2"));
    }
}
