//! Estimates of how many tokens a text has, before a provider counts them.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::model::attachments::Attached;
use crate::model::interface::Model;
use crate::model::prompt::{Format, Prompt, PromptMessage, Tool};
use crate::regular_file;

/// Approximate bytes of a token, where no tokenizer counts.
pub const TOKEN_BYTES: u64 = 4;
/// Approximate tokens that a chat template adds to a message, where a tokenizer counts the rest.
const MESSAGE_TOKENS: u64 = 4;
/// The largest file that is read as a tokenizer, in bytes.
pub const TOKENIZER_BYTES_MAX: u64 = 64 << 20;
/// The most counts that a tokenizer caches.
const REMEMBERED_MAX: usize = 16_384;

/// Estimates the tokens of a text from its length in bytes.
#[must_use]
pub fn tokens_of_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(TOKEN_BYTES)
}

/// The bytes of a prompt's system text and messages, with calls and signed parts, but without
/// tools, format and attachments.
#[must_use]
pub fn prompt_bytes(prompt: &Prompt) -> u64 {
    let messages: u64 = prompt.messages.iter().map(message_bytes).sum();
    prompt.system.len() as u64 + messages
}

/// Estimates the tokens of a message's attachments.
fn attached_tokens(it: &PromptMessage) -> u64 {
    it.attached.iter().map(Attached::tokens).sum()
}

fn tool_bytes(it: &Tool) -> u64 {
    (it.name.len() + it.description.len() + it.parameters.to_string().len()) as u64
}

fn format_bytes(it: &Format) -> u64 {
    (it.name.len() + it.description.len() + it.schema.to_string().len()) as u64
}

fn message_bytes(it: &PromptMessage) -> u64 {
    let calls = it.calls.iter().map(|it| it.name.len() + it.arguments.len());
    (it.text.len() + calls.sum::<usize>()) as u64 + signed_bytes(it)
}

fn signed_bytes(it: &PromptMessage) -> u64 {
    it.signed.iter().map(|it| it.json.len() as u64).sum()
}

impl dyn Model + '_ {
    /// Estimates the tokens of a prompt: by the model's tokenizer, or else as a quarter of the
    /// prompt's bytes. Signed parts always count as a quarter of their bytes, because they are
    /// mostly encrypted. An image or a document counts by [`Attached::tokens`].
    #[must_use]
    pub fn prompt_tokens(&self, prompt: &Prompt) -> u64 {
        let Some(system) = self.tokens(&prompt.system) else {
            let tools: u64 = prompt.tools.iter().map(tool_bytes).sum();
            let tools = tools + prompt.format.as_ref().map_or(0, format_bytes);
            let attached: u64 = prompt.messages.iter().map(attached_tokens).sum();
            return tokens_of_bytes(prompt_bytes(prompt) + tools) + attached;
        };
        let count = |text: &str| self.tokens(text).unwrap_or_default();
        let messages: u64 = prompt.messages.iter().map(|it| self.message_tokens(it)).sum();
        let tools = prompt
            .tools
            .iter()
            .map(|it| count(&it.name) + count(&it.description) + count(&it.parameters.to_string()));
        let format = prompt
            .format
            .as_ref()
            .map(|it| count(&it.name) + count(&it.description) + count(&it.schema.to_string()));
        system + messages + tools.sum::<u64>() + format.unwrap_or_default()
    }

    /// Estimates the tokens of one message, as `prompt_tokens` does.
    #[must_use]
    pub fn message_tokens(&self, it: &PromptMessage) -> u64 {
        let Some(text) = self.tokens(&it.text) else {
            return tokens_of_bytes(message_bytes(it)) + attached_tokens(it);
        };
        let count = |text: &str| self.tokens(text).unwrap_or_default();
        let calls = it.calls.iter().map(|it| count(&it.name) + count(&it.arguments));
        let signed = tokens_of_bytes(signed_bytes(it));
        text + calls.sum::<u64>() + signed + attached_tokens(it) + MESSAGE_TOKENS
    }
}

/// A model's tokenizer, read from the model's `tokenizer.json` in the format of Hugging Face's
/// tokenizers.
pub struct Tokenizer {
    #[cfg(feature = "tokenizers")]
    tokenizer: tokenizers::Tokenizer,
    /// Maps the digest of a text to the text's number of tokens. The cache serves later prompts,
    /// since each prompt repeats most of the one before.
    known: Mutex<HashMap<blake3::Hash, u64>>,
}

/// The error of a file that can't be read as a tokenizer.
#[derive(Debug)]
pub struct NoTokenizer {
    text: String,
}

impl fmt::Display for NoTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for NoTokenizer {}

impl Tokenizer {
    /// Reads a tokenizer from a file.
    ///
    /// # Errors
    /// If the file can't be read, has more than [`TOKENIZER_BYTES_MAX`], or holds no tokenizer, and
    /// without the feature `tokenizers`.
    pub fn read(file: impl AsRef<Path>) -> Result<Tokenizer, NoTokenizer> {
        let file = file.as_ref();
        let shown = file.display();
        let wrong = |text: String| NoTokenizer { text: format!("{shown}: {text}") };
        let bytes = regular_file::bytes(file, TOKENIZER_BYTES_MAX);
        let bytes = bytes.map_err(|it| wrong(it.to_string()))?;
        Tokenizer::of_bytes(bytes).map_err(wrong)
    }

    #[cfg(feature = "tokenizers")]
    fn of_bytes(bytes: Vec<u8>) -> Result<Tokenizer, String> {
        let tokenizer = tokenizers::Tokenizer::from_bytes(bytes);
        let tokenizer = tokenizer.map_err(|it| format!("no tokenizer.json: {it}"))?;
        Ok(Tokenizer { tokenizer, known: Mutex::default() })
    }

    #[cfg(not(feature = "tokenizers"))]
    fn of_bytes(_: Vec<u8>) -> Result<Tokenizer, String> {
        Err("this program was built without the feature `tokenizers`".to_owned())
    }

    /// How many tokens a text has. None if the tokenizer fails on the text.
    #[must_use]
    pub fn count(&self, text: &str) -> Option<u64> {
        let digest = blake3::hash(text.as_bytes());
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = known().get(&digest) {
            return Some(*count);
        }
        let count = self.encoded(text)?;
        let mut known = known();
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(digest, count);
        Some(count)
    }
}

impl Tokenizer {
    #[cfg(feature = "tokenizers")]
    fn encoded(&self, text: &str) -> Option<u64> {
        Some(self.tokenizer.encode_fast(text, false).ok()?.len() as u64)
    }

    #[cfg(not(feature = "tokenizers"))]
    #[expect(clippy::unused_self, reason = "with the feature it counts")]
    fn encoded(&self, _: &str) -> Option<u64> {
        None
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(feature = "tokenizers")]
mod tests {
    use super::*;
    use crate::model::interface::{Boxed, Reply};
    use crate::model::piece::Signed;
    use crate::model::prompt::Role;
    use crate::model::wire_name::Wire;

    /// A tokenizer whose tokens are words.
    const WORDS: &str = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],
        "normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,
        "decoder":null,"model":{"type":"WordLevel","vocab":{"[UNK]":0},"unk_token":"[UNK]"}}"#;

    #[derive(Debug)]
    struct Counted(Tokenizer);

    impl Model for Counted {
        fn turn(&self, _: Prompt) -> Boxed<'_, Box<dyn Reply>> {
            Box::pin(std::future::pending())
        }

        fn tokens(&self, text: &str) -> Option<u64> {
            self.0.count(text)
        }

        fn describe(&self) -> String {
            "counted".to_owned()
        }
    }

    fn words() -> Counted {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokenizer.json");
        std::fs::write(&file, WORDS).unwrap();
        Counted(Tokenizer::read(file).unwrap())
    }

    #[test]
    fn a_tokenizer_counts_what_a_prompt_says() {
        let counted = words();
        let model: &dyn Model = &counted;
        let mut prompt = Prompt::new("You are an oracle");
        assert_eq!(model.prompt_tokens(&prompt), 4);
        prompt.messages.push(PromptMessage::new(Role::User, "Extraordinarily long words"));
        assert_eq!(model.prompt_tokens(&prompt), 4 + 3 + MESSAGE_TOKENS);
        assert_eq!(model.prompt_tokens(&prompt), 4 + 3 + MESSAGE_TOKENS, "from memory");
    }

    #[test]
    fn a_tokenizer_counts_signed_parts_and_the_form_of_the_answer_too() {
        let counted = words();
        let model: &dyn Model = &counted;
        let mut said = PromptMessage::new(Role::Assistant, "Extraordinarily long words");
        // Signed parts are mostly encrypted, so their bytes tell more than their words.
        said.signed.push(Signed::new(Wire::AnthropicMessages, 0, "x".repeat(400)));
        assert_eq!(model.message_tokens(&said), 3 + 100 + MESSAGE_TOKENS);
        let format = Format::new("sum", "The sum of all", serde_json::json!("any"));
        let prompt = Prompt { format: Some(format), ..Prompt::new("") };
        assert_eq!(model.prompt_tokens(&prompt), 1 + 4 + 3);
    }

    #[test]
    fn without_one_a_token_is_four_bytes() {
        let model: &dyn Model = &crate::model::scripted::Scripted::replies(["a"]);
        let mut prompt = Prompt::new("12345678");
        prompt.messages.push(PromptMessage::new(Role::User, "123456789"));
        assert_eq!(model.prompt_tokens(&prompt), 5);
    }

    #[test]
    fn an_image_counts_beside_the_text_by_either_count() {
        let mut said = PromptMessage::new(Role::User, "Look");
        said.attached.push(Attached::new("image/png", &[0; 300_000]));
        let model: &dyn Model = &crate::model::scripted::Scripted::replies(["a"]);
        assert_eq!(model.message_tokens(&said), 1 + 1_600);
        let counted = words();
        let model: &dyn Model = &counted;
        assert_eq!(model.message_tokens(&said), 1 + 1_600 + MESSAGE_TOKENS);
        let prompt = Prompt { messages: vec![said], ..Prompt::new("") };
        assert_eq!(model.prompt_tokens(&prompt), 1 + 1_600 + MESSAGE_TOKENS);
    }

    #[test]
    fn a_file_that_is_no_tokenizer_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokenizer.json");
        std::fs::write(&file, "{}").unwrap();
        let text = Tokenizer::read(&file).unwrap_err().to_string();
        assert!(text.contains("tokenizer.json: no tokenizer.json: "), "{text}");
        assert!(Tokenizer::read(folder.path().join("none")).is_err());
    }
}
