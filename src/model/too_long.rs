//! Recognizes that a prompt was too long, in each provider's words, and reads from these words how
//! many tokens the prompt has and how many the model takes.

use serde_json::Value;

/// Words of providers about a prompt that is too long, in lower case. The comments name servers
/// that say them.
const WORDS: [&str; 29] = [
    // OpenAI, Azure, Groq, DeepSeek, OpenRouter, vLLM
    "context_length_exceeded",
    "context length",
    "context window",
    "request too large for",
    "tokens_limit_reached",
    // Anthropic, Fireworks, Ollama's cloud
    "prompt is too long",
    "prompt too long",
    "exceed context limit",
    "request_too_large",
    // Gemini
    "exceeds the maximum number of tokens allowed",
    // llama.cpp, Ollama
    "exceed_context_size",
    "exceeds the available context size",
    "context size",
    "exceeds maximum context",
    "exceeds the context",
    // vLLM
    "longer than the maximum model length",
    "exceeds the max_model_len",
    // Text Generation Inference
    "`inputs` must have less than",
    "`max_new_tokens` must be <=",
    // Mistral
    "too large for model with",
    // xAI
    "maximum prompt length",
    // Bedrock
    "input is too long",
    // LM Studio
    "tokens to keep from the initial prompt",
    "context the overflows",
    // Cohere
    "too many tokens:",
    // Moonshot, Z.ai, GitHub
    "exceeded model token limit",
    "prompt exceeds max length",
    "request body too large",
    "reduce the length of the",
];

/// Words after which the number of the prompt's tokens stands.
const PROMPT_AFTER: [&str; 9] = [
    "resulted in ",
    "prompt is too long: ",
    "input token count (",
    "length and `max_tokens` exceed context limit: ",
    "prompt contains ",
    "request contains ",
    "your request has ",
    "prompt (length ",
    "request (",
];
/// Words before which the number of the prompt's tokens stands.
const PROMPT_BEFORE: [&str; 5] =
    [" in the messages", " of text input", " input tokens", " `inputs` tokens", " in your prompt"];
/// Words after which the number of all tokens of the request stands.
const ALL_AFTER: [&str; 4] = ["you requested about ", "you requested ", "(requested: ", "given: "];
/// Words after which the number of the window's tokens stands.
const WINDOW_AFTER: [&str; 14] = [
    "maximum context length is ",
    "maximum context length of ",
    "maximum context length: ",
    "maximum prompt length is ",
    "maximum model length of ",
    "number of tokens allowed (",
    "number of tokens allowed ",
    "available context size (",
    "context length of only ",
    "must be <= ",
    "must have less than ",
    "token limit: ",
    "cannot exceed ",
    "max size: ",
];
/// Words before which the number of the window's tokens stands.
const WINDOW_BEFORE: [&str; 2] = [" maximum context length", " maximum"];

/// How much too long a prompt is, as far as its provider says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TooLong {
    /// The tokens of the prompt.
    pub(super) prompt_tokens: Option<u64>,
    /// The tokens that the model takes.
    pub(super) window: Option<u64>,
}

/// Whether words of a provider, in lower case, say that a prompt is too long.
pub(super) fn says_so(words: &str) -> bool {
    WORDS.iter().any(|it| words.contains(it))
}

impl TooLong {
    /// Whether the prompt takes less than half of the window. What doesn't fit is then the most
    /// tokens of the reply that the request asks for, and a shorter prompt is of no use.
    pub(super) fn is_short(self) -> bool {
        let both = self.prompt_tokens.zip(self.window);
        both.is_some_and(|(prompt, window)| prompt < window / 2)
    }

    /// Reads the numbers from an error in JSON, and from its message in lower case.
    pub(super) fn of(error: &Value, message: &str) -> TooLong {
        let field = |key: &str| error[key].as_u64().filter(|it| *it > 0);
        let all_before = || sum_before(message, " > ");
        let prompt = field("n_prompt_tokens")
            .or_else(|| after(message, &PROMPT_AFTER))
            .or_else(|| before(message, &PROMPT_BEFORE))
            .or_else(|| after(message, &ALL_AFTER))
            .or_else(all_before);
        let window = field("n_ctx")
            .or_else(|| after(message, &[" > "]))
            .or_else(|| after(message, &WINDOW_AFTER))
            .or_else(|| before(message, &WINDOW_BEFORE));
        TooLong { prompt_tokens: prompt, window }
    }
}

/// The number that follows the first of these words that has one.
fn after(text: &str, all: &[&str]) -> Option<u64> {
    all.iter().find_map(|it| leading(text.split_once(it)?.1))
}

/// The number that precedes the first of these words that has one.
fn before(text: &str, all: &[&str]) -> Option<u64> {
    all.iter().find_map(|it| trailing(text.split_once(it)?.0))
}

/// The sum of the numbers before a word, as in `180 + 30 > 200`. None if it is too large.
fn sum_before(text: &str, word: &str) -> Option<u64> {
    let (terms, _) = text.split_once(word)?;
    let (first, last) = terms.rsplit_once(" + ").map_or(("", terms), |it| it);
    trailing(last.trim_end_matches(" tokens"))?.checked_add(trailing(first).unwrap_or(0))
}

fn is_of_number(it: char) -> bool {
    it.is_ascii_digit() || it == ','
}

/// The number at the beginning of a text. A number may have commas between its digits.
fn leading(text: &str) -> Option<u64> {
    let end = text.find(|it| !is_of_number(it)).unwrap_or(text.len());
    number(&text[..end])
}

/// The number at the end of a text.
fn trailing(text: &str) -> Option<u64> {
    let from = text.rfind(|it| !is_of_number(it)).map_or(0, |at| at + 1);
    // The character before a number may have several bytes.
    number(text.get(text.ceil_char_boundary(from)..)?)
}

fn number(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok().filter(|it| *it > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(said: &str, prompt: impl Into<Option<u64>>, window: impl Into<Option<u64>>) {
        let words = said.to_lowercase();
        assert!(says_so(&words), "{said}");
        let expected = TooLong { prompt_tokens: prompt.into(), window: window.into() };
        assert_eq!(TooLong::of(&Value::Null, &words), expected, "{said}");
    }

    #[test]
    fn providers_of_chat_completions_have_words_for_a_prompt_that_is_too_long() {
        // OpenAI, vLLM, OpenRouter, Groq, Mistral, xAI, LM Studio.
        check(
            "This model's maximum context length is 4000 tokens. However, your messages resulted \
             in 4066 tokens. Please reduce the length of the messages.",
            4_066,
            4_000,
        );
        check(
            "This model's maximum context length is 4096 tokens. However, you requested 5000 \
             tokens (4000 in the messages, 1000 in the completion).",
            4_000,
            4_096,
        );
        check(
            "This endpoint's maximum context length is 128,000 tokens. However, you requested \
             about 140,500 tokens (140,000 of text input, 500 in the output).",
            140_000,
            128_000,
        );
        check(
            "'max_tokens' is too large: 500. This model's maximum context length is 4096 tokens \
             and your request has 4000 input tokens (500 > 4096 - 4000).",
            4_000,
            4_096,
        );
        check("Please reduce the length of the messages or completion.", None, None);
        check(
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            5_000,
            4_096,
        );
        check(
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 \
             maximum context length",
            40_000,
            32_768,
        );
        check(
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            537_812,
            131_072,
        );
        check(
            "Trying to keep the first 5000 tokens when context the overflows. However, the model \
             is loaded with context length of only 4096 tokens",
            None,
            4_096,
        );
    }

    #[test]
    fn providers_of_other_wires_have_words_for_it_too() {
        // OpenAI's responses.
        check("Your input exceeds the context window of this model.", None, None);
        // Anthropic.
        check("prompt is too long: 4066 tokens > 4000 maximum", 4_066, 4_000);
        check(
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, \
             decrease input length or `max_tokens` and try again",
            188_240,
            200_000,
        );
        // Gemini.
        check(
            "The input token count (1104543) exceeds the maximum number of tokens allowed \
             (1048576).",
            1_104_543,
            1_048_576,
        );
        check(
            "The input token count exceeds the maximum number of tokens allowed 1048576.",
            None,
            1_048_576,
        );
        // llama.cpp and Ollama.
        check("the request exceeds the available context size, try increasing it", None, None);
        check(
            "request (5000 tokens) exceeds the available context size (4096 tokens), try \
             increasing it",
            5_000,
            4_096,
        );
        check("the input length exceeds the context length", None, None);
        check("prompt too long; exceeded max context length by 12 tokens", None, None);
        // Others.
        check(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: \
             5000 `inputs` tokens and 100 `max_new_tokens`",
            5_000,
            4_096,
        );
        check("Input is too long for requested model.", None, None);
        check("Your request exceeded model token limit: 8192 (requested: 9000)", 9_000, 8_192);
    }

    #[test]
    fn the_numbers_may_be_fields_of_the_error() {
        let error = json!({
            "code": 400, "message": "the request exceeds the available context size",
            "type": "exceed_context_size_error", "n_prompt_tokens": 5_000, "n_ctx": 4_096,
        });
        let expected = TooLong { prompt_tokens: Some(5_000), window: Some(4_096) };
        assert_eq!(TooLong::of(&error, ""), expected);
    }

    #[test]
    fn numbers_that_are_too_large_to_add_up_say_nothing() {
        let expected = TooLong { prompt_tokens: None, window: Some(5) };
        let words = format!("context window: {} + 1 > 5", u64::MAX);
        assert_eq!(TooLong::of(&Value::Null, &words), expected);
    }

    #[test]
    fn other_refusals_are_none_of_these() {
        for it in [
            "incorrect api key provided",
            "rate limit reached for requests",
            "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
            "the model `x` does not exist",
        ] {
            assert!(!says_so(it), "{it}");
        }
    }
}
