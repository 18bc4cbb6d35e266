//! Bounds, each with its name, its default and its reason. A refusal names the exceeded bound.

mod allowance;

use std::time::Duration;

pub use self::allowance::{Allowance, NoAllowance};

/// One kibibyte.
const KIB: usize = 1024;
/// One mebibyte.
const MIB: usize = 1024 * KIB;

/// No bound. People write it as the word `unlimited`.
pub const UNLIMITED: u64 = u64::MAX;

/// Declares a struct of bounds, and lists the bounds by name. A manifest has a key for each bound.
/// The struct isn't `#[non_exhaustive]`, so that one can write `Limits { chain_max: 4,
/// ..Limits::default() }`. A later version may have further bounds.
macro_rules! bounds {
    ($(#[$of:meta])* pub struct $Type:ident {
        $($(#[doc = $text:literal])+ $(#[least = $least:literal])? pub $name:ident: $kind:ty,)+
    }) => {
        $(#[$of])*
        pub struct $Type { $($(#[doc = $text])+ pub $name: $kind,)+ }

        impl $Type {
            /// Returns all bounds, each with its name, its purpose and a reference to its value.
            pub fn bounds(&mut self) -> Vec<Bound<'_>> {
                vec![$(Bound {
                    name: stringify!($name),
                    text: concat!($($text),+).trim_ascii(),
                    least: 0 $(+ $least)?,
                    amount: (&mut self.$name).into(),
                }),+]
            }
        }
    };
}

/// A bound by its name, to be read or changed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Bound<'a> {
    /// The name, here and in a manifest.
    pub name: &'static str,
    /// What the bound is for. A manifest's JSON Schema shows it.
    pub text: &'static str,
    /// The smallest value with which the pump can still work, in milliseconds if the bound is a
    /// time. 0 if every value is allowed.
    pub least: u64,
    /// The value, to be read or changed.
    pub amount: Amount<'a>,
}

/// The value of a bound, by its type.
#[derive(Debug)]
// Exhaustive: code that sets bounds must handle every type.
pub enum Amount<'a> {
    /// An amount that may be spent. [`UNLIMITED`] means no bound.
    Allowance(&'a mut u64),
    /// A number. If the bound's name contains `bytes`, it counts bytes.
    Count(&'a mut usize),
    /// A time.
    Time(&'a mut Duration),
    /// The bounds of an XML document, each with its own name.
    Xml(&'a mut XmlLimits),
}

impl<'a> From<&'a mut usize> for Amount<'a> {
    fn from(count: &'a mut usize) -> Amount<'a> {
        Amount::Count(count)
    }
}

impl<'a> From<&'a mut u64> for Amount<'a> {
    fn from(allowance: &'a mut u64) -> Amount<'a> {
        Amount::Allowance(allowance)
    }
}

impl<'a> From<&'a mut Duration> for Amount<'a> {
    fn from(time: &'a mut Duration) -> Amount<'a> {
        Amount::Time(time)
    }
}

impl<'a> From<&'a mut XmlLimits> for Amount<'a> {
    fn from(xml: &'a mut XmlLimits) -> Amount<'a> {
        Amount::Xml(xml)
    }
}

/// How long batches and commits are kept small after a use of the priority lane, in microseconds.
/// Therefore a client that pushes a few times per second doesn't wait for a large batch.
pub const HURRY_US: u64 = 500_000;

bounds! {
/// Bounds of one XML document. Exceeding a bound is `P0006`, which names the bound and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XmlLimits {
    /// Bytes of one message. Larger content belongs in a file, with a reference to it.
    #[least = 1]
    pub message_bytes_max: usize,
    /// Nesting depth of elements. No schema needs more: deeper nesting is a mistake or an attack.
    #[least = 1]
    pub depth_max: usize,
    /// Attributes of one element, namespace declarations not counted.
    pub attributes_max: usize,
    /// Elements, texts and attributes together. Their number decides how much memory they take.
    #[least = 1]
    pub nodes_max: usize,
    /// Bytes of one name, prefix included. Names are compared and echoed.
    #[least = 1]
    pub name_bytes_max: usize,
    /// Namespace declarations of one element.
    pub declarations_max: usize,
    /// Namespace declarations in scope at one place. Resolving a prefix searches all of them.
    pub bindings_max: usize,
}
}

impl XmlLimits {
    /// The default bounds of documents that come in at doors.
    pub const DOOR: XmlLimits = XmlLimits {
        message_bytes_max: MIB,
        depth_max: 128,
        attributes_max: 128,
        nodes_max: 100_000,
        name_bytes_max: 4_096,
        declarations_max: 64,
        bindings_max: 256,
    };
    /// The default bounds of documents that listeners emit. Results may be larger than requests.
    pub const INSIDE: XmlLimits =
        XmlLimits { message_bytes_max: 16 * MIB, nodes_max: 1_600_000, ..XmlLimits::DOOR };
    /// The bounds of documents from trusted files. The module `xml` takes 1 GiB at the most.
    pub const FILE: XmlLimits = XmlLimits {
        message_bytes_max: u32::MAX as usize,
        depth_max: 4_096,
        attributes_max: 4_096,
        nodes_max: u32::MAX as usize,
        name_bytes_max: 64 * KIB,
        declarations_max: 4_096,
        bindings_max: 16 * KIB,
    };
}

bounds! {
/// Bounds of one reply of a model. If a bound is exceeded, the reply parser names it and reads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Bytes of one element that the reply parser buffers until it closes, such as an action.
    #[least = 1]
    pub action_bytes_max: usize,
    /// Bytes of one text: of a thought, of a response, or between elements.
    #[least = 1]
    pub text_bytes_max: usize,
    /// Bytes of one tag. The reply parser holds a tag back until its end.
    #[least = 1]
    pub tag_bytes_max: usize,
    /// Nesting depth of thoughts: deeper than any model nests them, and small enough for memory.
    #[least = 1]
    pub depth_max: usize,
}
}

impl Default for ReplyLimits {
    fn default() -> ReplyLimits {
        ReplyLimits {
            action_bytes_max: MIB,
            text_bytes_max: 10 * MIB,
            tag_bytes_max: 64 * KIB,
            depth_max: 16 * KIB,
        }
    }
}

bounds! {
/// Bounds of an agent's actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionLimits {
    /// Actions of one turn. Any further action fails. No reply should need that many.
    #[least = 1]
    pub in_turn_max: usize,
    /// Actions of the agent that run at once in a thread; the others wait.
    #[least = 1]
    pub at_once: usize,
    /// Actions that begin together, if the agent batches its actions.
    #[least = 1]
    pub batch: usize,
    /// How long an action waits until others join its batch, if the agent batches its actions.
    pub batch_delay: Duration,
    /// How long one attempt may take, unless its action says otherwise.
    #[least = 1]
    pub timeout: Duration,
    /// The longest timeout of an attempt, whatever its action says. To wait for days, set a timer.
    #[least = 1]
    pub timeout_max: Duration,
    /// How often an action may be retried.
    pub retry_max: usize,
    /// The pause before an action's first retry. By default, each further one is twice as long.
    #[least = 1]
    pub retry_delay: Duration,
}
}

impl Default for ActionLimits {
    fn default() -> ActionLimits {
        ActionLimits {
            in_turn_max: 256,
            at_once: 5,
            batch: 5,
            batch_delay: Duration::from_millis(100),
            timeout: Duration::from_secs(300),
            timeout_max: Duration::from_secs(24 * 60 * 60),
            retry_max: 5,
            retry_delay: Duration::from_secs(1),
        }
    }
}

/// Bounds of agents' metadata and feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedLimits {
    /// Fields of an agent's metadata. Every prompt shows all of them.
    pub fields_max: usize,
    /// Bytes of one field's value.
    pub field_bytes_max: usize,
    /// Feeds of an agent in a thread, including those that the agent adds by itself.
    pub feeds_max: usize,
    /// Bytes of one feed. A longer feed is cut.
    pub feed_bytes_max: usize,
    /// Bytes of all feeds of a prompt. Feeds that don't fit are left out of the prompt.
    pub feeds_bytes_max: usize,
    /// How long a turn waits for a feed.
    pub timeout: Duration,
    /// The longest timeout that a feed may declare.
    pub timeout_max: Duration,
    /// The pause after a feed's failure. Without it, a failing feed would delay every turn.
    pub pause: Duration,
    /// The shortest interval of a periodic feed. A shorter one would fill the log.
    pub interval_min: Duration,
}

impl Default for FeedLimits {
    fn default() -> FeedLimits {
        FeedLimits {
            fields_max: 64,
            field_bytes_max: 16 * KIB,
            feeds_max: 32,
            feed_bytes_max: 32 * KIB,
            feeds_bytes_max: 64 * KIB,
            timeout: Duration::from_secs(10),
            timeout_max: Duration::from_secs(600),
            pause: Duration::from_secs(60),
            interval_min: Duration::from_secs(1),
        }
    }
}

bounds! {
/// Bounds of the time and the memory that requests to a model's server may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelLimits {
    /// How long a connection to the server may take.
    pub connect_time_max: Duration,
    /// How long the first byte of a reply may take. Before it, the server reads the prompt.
    pub first_byte_time_max: Duration,
    /// How long the server may say nothing in the middle of a reply.
    pub silence_time_max: Duration,
    /// How long a reply may take from the request to its end.
    pub reply_time_max: Duration,
    /// How long token counts may take after a reply's end. Also how long a refusal's body may take.
    pub usage_time_max: Duration,
    /// Bytes of one event of the stream.
    pub event_bytes_max: usize,
    /// Bytes of a reply: its text, reasoning and calls together.
    pub reply_bytes_max: usize,
    /// Bytes of all replies under way in the process, over all models. A reply may have as many
    /// bytes as are still free, and always 64 KiB.
    pub replies_bytes_max: usize,
    /// Bytes that are read of a refusal's body.
    pub refusal_bytes_max: usize,
    /// How often a request is retried, if its failure may pass and none of its reply has come.
    pub retries_max: usize,
    /// The first pause before a retry, varied by up to 25 %. Each further pause is twice as long.
    pub retry_time_min: Duration,
    /// The longest pause before a retry. If a server asks for a longer pause, the request fails.
    pub retry_time_max: Duration,
}
}

impl Default for ModelLimits {
    fn default() -> ModelLimits {
        ModelLimits {
            connect_time_max: Duration::from_secs(10),
            first_byte_time_max: Duration::from_secs(120),
            silence_time_max: Duration::from_secs(120),
            reply_time_max: Duration::from_secs(1_800),
            usage_time_max: Duration::from_secs(5),
            event_bytes_max: MIB,
            reply_bytes_max: 4 * MIB,
            replies_bytes_max: 8 * MIB,
            refusal_bytes_max: 64 * KIB,
            retries_max: 3,
            retry_time_min: Duration::from_secs(1),
            retry_time_max: Duration::from_secs(60),
        }
    }
}

bounds! {
/// Bounds of how often a router asks its models again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterLimits {
    /// How often a turn retries the models whose failure may pass.
    pub retries_max: usize,
    /// The first pause before models are asked again. Each further pause is twice as long.
    pub retry_time_min: Duration,
    /// The longest pause before models are asked again.
    pub retry_time_max: Duration,
}
}

impl Default for RouterLimits {
    fn default() -> RouterLimits {
        let (retry_time_min, retry_time_max) = (Duration::from_secs(1), Duration::from_secs(60));
        RouterLimits { retries_max: 3, retry_time_min, retry_time_max }
    }
}

bounds! {
/// The bounds of one organism. Start from the default and change what you must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bounds of documents that clients send.
    pub door: XmlLimits,
    /// The bounds of documents that listeners emit.
    pub inside: XmlLimits,
    /// Open connections at one door. Beyond them, a new one replaces a silent one or gets `P0025`.
    #[least = 1]
    pub connections_max: usize,
    /// Connections that a door refuses or replaces at one time. Further new ones end unanswered.
    pub farewells_max: usize,
    /// How long a message may take after its first byte. Also how long `<authenticate>` may take.
    #[least = 1]
    pub frame_time_max: Duration,
    /// Unanswered pushes of one connection. At this number, its socket is not read.
    #[least = 1]
    pub pushes_in_flight_max: usize,
    /// Bytes of the unanswered pushes of one connection. At this number, its socket is not read.
    #[least = 1]
    pub push_bytes_in_flight_max: usize,
    /// Unanswered pushes of all connections of a door. Each connection may have at most as many as
    /// are still free, so that a new connection always finds room.
    #[least = 1]
    pub door_pushes_in_flight_max: usize,
    /// Bytes of the unanswered pushes of all connections of a door. Each connection may have at
    /// most as many as are still free.
    #[least = 1]
    pub door_push_bytes_in_flight_max: usize,
    /// Bytes of a TCP connection's receive buffer, which Linux doubles. No other bound counts them.
    #[least = 1]
    pub receive_buffer_bytes: usize,
    /// Bytes of a TCP connection's send buffer, which Linux doubles. No other bound counts them.
    #[least = 1]
    pub send_buffer_bytes: usize,
    /// Bytes that wait for one client to read. At this number, the client's socket is not read.
    #[least = 1]
    pub outbound_bytes_high: usize,
    /// Bytes that wait for one client to read. Beyond them, its connection is cut with `P0024`.
    #[least = 1]
    pub outbound_bytes_max: usize,
    /// Bytes that wait for all clients of the pump to read. Beyond half of this, `P0024` cuts
    /// clients that read nothing for 250 ms. Beyond nine sixteenths, it cuts any client. The
    /// slowest go first.
    #[least = 1]
    pub owed_bytes_max: usize,
    /// How long a connection may read nothing while something waits for it.
    #[least = 1]
    pub write_time_max: Duration,
    /// Threads that one connection follows at once.
    pub follows_max: usize,
    /// How long a door keeps reading, and drops the bytes, after a fault that ends a connection.
    pub linger_time_max: Duration,
    /// The most bytes that a door drops after such a fault.
    pub linger_bytes_max: usize,
    /// Unconsumed deliveries in one thread. At this number, further pushes wait.
    #[least = 1]
    pub unconsumed_max: usize,
    /// Handlers of one listener at once; agents have a bound of their own.
    #[least = 1]
    pub handlers_max: usize,
    /// Handlers of one listener that ran out of time and still block their thread. At this number,
    /// the listener refuses messages until one of them ends: each of them keeps a thread.
    #[least = 1]
    pub stuck_handlers_max: usize,
    /// Turns of one agent at once, over all threads: each waits for a model most of its time.
    #[least = 1]
    pub agents_at_once: usize,
    /// How long a handler may run, unless its listener says otherwise.
    #[least = 1]
    pub handler_time_max: Duration,
    /// Payloads that a handler may emit for one message.
    #[least = 1]
    pub emissions_max: usize,
    /// Levels of child threads below a session. Deeper nesting mostly comes from a mistake.
    pub thread_depth_max: usize,
    /// Runs in one session that go back to the same first trigger. The entries of a run may fire
    /// further triggers, which begin further runs.
    pub trigger_runs_max: usize,
    /// Turns of one listener in one thread, over all messages to it.
    pub thread_turns_max: u64,
    /// Timers that are set in one thread. More of them mostly come from a loop.
    pub thread_timers_max: usize,
    /// The shortest time between two ticks of one timer. A shorter one would fill the log.
    pub timer_every_min: Duration,
    /// Checklists that are open in one thread. Each is tested against every message of its tree.
    pub thread_todos_max: usize,
    /// Messages that listeners of one tree of threads get, without those of the pump itself.
    pub tree_messages_max: u64,
    /// Threads of one tree that are open at once, without the session.
    pub tree_children_max: u64,
    /// Tokens of models in one tree, as its listeners charge them.
    pub tree_tokens_max: u64,
    /// Seconds from the opening of a tree's session. After that time, the tree may begin no work.
    pub tree_seconds_max: u64,
    /// Money for one tree, in millionths of the operator's currency, as its listeners charge it.
    pub tree_cost_micros_max: u64,
    /// How often in a row a listener may send the same payload in a thread, without a push or a
    /// timer in between. The last allowed time causes a warning, and the next one is `P0043`.
    #[least = 1]
    pub repeats_max: usize,
    /// How many messages a chain from listener to listener may have in a thread, without a push or
    /// a timer in between. The last allowed one causes a warning, and the next one is `P0043`.
    #[least = 1]
    pub chain_max: usize,
    /// How many messages in a row a listener may send itself in a thread, without a push, a timer
    /// or another listener in between. The last allowed one causes a warning, and the next one is
    /// `P0043`. Without a bound, such a listener would fill the disk.
    #[least = 1]
    pub again_max: usize,
    /// Steps that one tree runs in its turn, before other trees have theirs.
    #[least = 1]
    pub steps_in_turn_max: usize,
    /// Steps that go to the log as one batch.
    #[least = 1]
    pub steps_in_batch_max: usize,
    /// Batches of one worker on their way to the log at once.
    #[least = 1]
    pub batches_in_flight_max: usize,
    /// How long the log should take for a batch. If it takes longer, fewer steps are on their way
    /// at once, so that no tree waits long behind bulk writers. A target far below a few
    /// milliseconds costs throughput, because fewer steps share each commit.
    pub log_time_target: Duration,
    /// Trees that one worker keeps in memory. Beyond this number, it unloads quiet ones.
    #[least = 1]
    pub trees_awake_max: usize,
    /// Entries that a thread keeps in memory for its folds. Older ones are read from the log.
    #[least = 1]
    pub entries_at_hand_max: usize,
    /// Live payloads that one follower may lag behind before it misses some.
    #[least = 1]
    pub live_lag_max: usize,
    /// How long a shutdown waits for running handlers.
    pub drain_time_max: Duration,
    /// Bytes of a client's own message id.
    pub client_id_bytes_max: usize,
}
}

impl Limits {
    /// Returns a sentence for each bound whose value is less than its [`least`](Bound::least).
    pub fn too_small(&self) -> Vec<String> {
        let mut limits = self.clone();
        limits.bounds().into_iter().flat_map(|it| too_small("", it)).collect()
    }
}

fn too_small(of: &str, bound: Bound<'_>) -> Vec<String> {
    let name = format!("{of}{}", bound.name);
    let least = bound.least;
    let (is_small, shown) = match bound.amount {
        Amount::Xml(it) => {
            let of = format!("{name}.");
            return it.bounds().into_iter().flat_map(|it| too_small(&of, it)).collect();
        }
        Amount::Allowance(it) => (*it < least, least.to_string()),
        Amount::Count(it) => (u64::try_from(*it).is_ok_and(|it| it < least), least.to_string()),
        Amount::Time(it) => (*it < Duration::from_millis(least), format!("{least}ms")),
    };
    let text = format!("limits.{name} must be at least {shown}: with less, nothing could be done");
    is_small.then_some(text).into_iter().collect()
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            door: XmlLimits::DOOR,
            inside: XmlLimits::INSIDE,
            connections_max: 16_384,
            farewells_max: 256,
            frame_time_max: Duration::from_secs(30),
            pushes_in_flight_max: 16_384,
            push_bytes_in_flight_max: 8 * MIB,
            door_pushes_in_flight_max: 16_384,
            door_push_bytes_in_flight_max: 32 * MIB,
            receive_buffer_bytes: 256 * KIB,
            send_buffer_bytes: 256 * KIB,
            outbound_bytes_high: 256 * KIB,
            outbound_bytes_max: 32 * MIB,
            owed_bytes_max: 256 * MIB,
            write_time_max: Duration::from_secs(30),
            follows_max: 64,
            linger_time_max: Duration::from_secs(1),
            linger_bytes_max: MIB,
            unconsumed_max: 1_024,
            handlers_max: 20,
            stuck_handlers_max: 8,
            agents_at_once: 256,
            handler_time_max: Duration::from_secs(30),
            emissions_max: 10_000,
            thread_depth_max: 10,
            trigger_runs_max: 1_000,
            thread_turns_max: UNLIMITED,
            thread_timers_max: 1_024,
            timer_every_min: Duration::from_secs(1),
            thread_todos_max: 64,
            tree_messages_max: UNLIMITED,
            tree_children_max: UNLIMITED,
            tree_tokens_max: UNLIMITED,
            tree_seconds_max: UNLIMITED,
            tree_cost_micros_max: UNLIMITED,
            repeats_max: 3,
            chain_max: 10_000,
            again_max: 100_000,
            steps_in_turn_max: 64,
            steps_in_batch_max: 1_024,
            batches_in_flight_max: 4,
            log_time_target: Duration::from_millis(8),
            trees_awake_max: 4_096,
            entries_at_hand_max: 1_024,
            live_lag_max: 256,
            drain_time_max: Duration::from_secs(30),
            client_id_bytes_max: 128,
        }
    }
}
