//! The table of all names that are sent to a collector, each with its meaning and the page that
//! defines it.
//!
//! A span takes only attributes of this table, so no other name can be sent.

/// The version of the convention that the names come from.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai/0.1.0";

/// A name, and the page that defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// What the name stands for in the pump's spans and metrics.
    pub text: &'static str,
    /// The page that defines the name.
    pub page: &'static str,
}

macro_rules! names {
    ($($constant:ident = $name:literal, $page:ident, $text:literal;)+) => {
        $(
            #[doc = $text]
            pub const $constant: Named = Named { name: $name, text: $text, page: $page };
        )+
        /// All names of attributes.
        pub const ALL: &[Named] = &[$($constant),+];
    };
}

const SPANS: &str = "https://github.com/open-telemetry/semantic-conventions-genai/blob/v0.1.0/\
    docs/gen-ai/client-inference.md";
const AGENTS: &str = "https://github.com/open-telemetry/semantic-conventions-genai/blob/v0.1.0/\
    docs/gen-ai/invoke-agent.md";
const ERRORS: &str = "https://opentelemetry.io/docs/specs/semconv/registry/attributes/error/";
const METRICS: &str = "https://github.com/open-telemetry/semantic-conventions-genai/blob/v0.1.0/\
    docs/gen-ai/client-inference.md#metrics";
const SDK: &str = "https://opentelemetry.io/docs/specs/otel/metrics/sdk/#overflow-attribute";
const EXCEPTIONS: &str = "https://opentelemetry.io/docs/specs/semconv/exceptions/exceptions-spans/";
const SERVERS: &str = "https://opentelemetry.io/docs/specs/semconv/registry/attributes/server/";
const SERVICES: &str = "https://opentelemetry.io/docs/specs/semconv/resource/#service";
const OWN: &str = "docs/opentelemetry.md";

names! {
    OPERATION_NAME = "gen_ai.operation.name", SPANS,
        "What the span is: `invoke_agent`, `chat` or `execute_tool`.";
    PROVIDER_NAME = "gen_ai.provider.name", SPANS,
        "The provider of the model, by the host of its URL.";
    REQUEST_MODEL = "gen_ai.request.model", SPANS, "The model that was asked.";
    REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens", SPANS,
        "How many tokens the reply may have.";
    REQUEST_TEMPERATURE = "gen_ai.request.temperature", SPANS, "How freely the model chooses.";
    RESPONSE_MODEL = "gen_ai.response.model", SPANS,
        "The model that answered, where a router chose it.";
    FINISH_REASONS = "gen_ai.response.finish_reasons", SPANS, "Why the reply ended.";
    INPUT_TOKENS = "gen_ai.usage.input_tokens", SPANS,
        "Tokens of the prompt, as the provider counted them.";
    OUTPUT_TOKENS = "gen_ai.usage.output_tokens", SPANS,
        "Tokens of the reply, as the provider counted them.";
    CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens", SPANS,
        "Of the prompt's tokens, those that the provider had kept.";
    CACHE_WRITE_TOKENS = "gen_ai.usage.cache_write.input_tokens", SPANS,
        "Of the prompt's tokens, those that the provider keeps for later.";
    REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens", SPANS,
        "Of the reply's tokens, those of reasoning.";
    OVERFLOW = "otel.metric.overflow", SDK,
        "The series that sums what has no series of its own; in metrics only.";
    CONVERSATION_ID = "gen_ai.conversation.id", SPANS, "The session: the root of the threads.";
    AGENT_NAME = "gen_ai.agent.name", AGENTS, "The agent.";
    TOOL_NAME = "gen_ai.tool.name", SPANS, "What an action calls.";
    TOOL_TYPE = "gen_ai.tool.type", SPANS, "The type of the tool: `function`.";
    TOOL_CALL_ID = "gen_ai.tool.call.id", SPANS, "The id that the agent gave the action.";
    TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments", SPANS,
        "Content: the parameters of an action.";
    TOOL_CALL_RESULT = "gen_ai.tool.call.result", SPANS, "Content: the result of an action.";
    INPUT_MESSAGES = "gen_ai.input.messages", SPANS, "Content: the message that began the work.";
    OUTPUT_MESSAGES = "gen_ai.output.messages", SPANS,
        "Content: the reply of the model, or the response of the agent.";
    ERROR_TYPE = "error.type", ERRORS, "What went wrong, in a word or the number of a fault.";
    EXCEPTION_TYPE = "exception.type", EXCEPTIONS, "The same, in the event `exception`.";
    EXCEPTION_MESSAGE = "exception.message", EXCEPTIONS, "Content: what went wrong, in a sentence.";
    SERVER_ADDRESS = "server.address", SERVERS, "The host of the model's URL.";
    SERVER_PORT = "server.port", SERVERS, "The port of the model's URL.";
    SERVICE_NAME = "service.name", SERVICES, "The pump: its name in the manifest, or `pumphouse`.";
    SERVICE_INSTANCE_ID = "service.instance.id", SERVICES, "The log, by its UUID.";
    THREAD_ID = "pumphouse.thread.id", OWN, "The thread.";
    ENTRY_ID = "pumphouse.entry.id", OWN, "The entry that the span begins with.";
    TURN = "pumphouse.turn", OWN, "The number of the agent's turn in the thread.";
}

/// The histogram of the tokens of prompts.
pub const INPUT_TOKENS_OF_REQUESTS: Named = Named {
    name: "gen_ai.client.inference.operation.input_tokens",
    text: "Tokens of a request's prompt, as the provider counted them.",
    page: METRICS,
};
/// The histogram of the tokens of replies.
pub const OUTPUT_TOKENS_OF_REQUESTS: Named = Named {
    name: "gen_ai.client.inference.operation.output_tokens",
    text: "Tokens of a request's reply, as the provider counted them.",
    page: METRICS,
};
/// The histogram of the durations of requests.
pub const INFERENCE_DURATION: Named = Named {
    name: "gen_ai.client.inference.duration",
    text: "The time of a turn's request, from its first entry to its last.",
    page: METRICS,
};

/// The name of the event that says what went wrong.
pub const EXCEPTION: &str = "exception";

/// The error type of a turn that has no end in the log.
pub(super) const UNFINISHED: &str = "unfinished";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_stands_in_the_table_once_and_has_a_page() {
        let names: BTreeSet<&str> = ALL.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), ALL.len());
        for it in ALL {
            let is_own = it.name.starts_with("pumphouse.");
            assert_eq!(it.page == OWN, is_own, "{}", it.name);
            assert!(is_own || it.page.starts_with("https://"), "{}", it.name);
            assert!(it.text.ends_with('.'), "{}", it.name);
        }
    }
}
