//! The listener `fetch`: gets the page or file at a URL from a web server, and answers with its
//! text.
//!
//! ```yaml
//! listeners:
//!   - {use: fetch}
//!   - {use: fetch, name: docs, settings: {hosts: ["docs.example.org", "127.0.0.1:9000"]}}
//! ```
//!
//! Without the setting `hosts`, the listener reaches only public addresses, on the ports 80 and
//! 443. Private addresses, such as 127.0.0.1 or 192.168.0.1, are refused. With `hosts`, the
//! listener reaches only the hosts of that list. The URL of each redirect is checked like the first
//! URL. [`WebLimits`] limits the time and the bytes of a request.

use std::sync::Arc;
use std::time::Duration;

use pumphouse::listener::Effects;
use pumphouse::prelude::*;
use serde::Deserialize;

use super::pdf::{self, NoText, PDF_SECONDS_MAX};
use super::text::known;
use super::web::limits::WebLimits;
use super::web::{Answer, Read, Reason, Refusal, Web, is_pdf, kind_named, piece};

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "fetch";

/// Gets a page or a file from the web, as text. HTML keeps its headings, lists and links. Plain
/// text, JSON and XML stay as they are. Of a PDF, the text is shown.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/fetch/v1")]
pub struct Fetch {
    /// The URL.
    #[payload(example = "https://example.org/page")]
    pub url: String,
    /// The first character to show, counted from 0. To go on, give the `next` of an earlier answer.
    #[payload(example = "0")]
    pub from: Option<u64>,
}

/// The text of a page or file.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/fetch/v1")]
pub struct Page {
    /// Its URL, after all redirects.
    #[payload(attribute, example = "https://example.org/page")]
    pub url: String,
    /// Its media type, as the server says.
    #[payload(attribute, example = "text/html")]
    pub kind: String,
    /// The character to go on from, if there is more.
    #[payload(attribute, note)]
    pub next: Option<u64>,
    /// A page's title.
    #[payload(example = "A page")]
    pub title: Option<String>,
    /// Its text.
    #[payload(value, example = "# A page\n\nIt says this.")]
    pub text: String,
}

/// There is no text to show.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/fetch/v1")]
pub struct Refused {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// The server's HTTP status, if the status is the reason.
    #[payload(attribute)]
    pub status: Option<u16>,
    /// The limit that was exceeded, if any.
    #[payload(attribute, no_example)]
    pub limit: Option<String>,
    /// Why, and how to correct it.
    #[payload(value, example = "example.org answers 404 Not Found")]
    pub text: String,
}

impl From<Refusal> for Refused {
    fn from(Refusal { reason, status, limit, text, .. }: Refusal) -> Refused {
        Refused { reason, status, limit: limit.map(str::to_owned), text }
    }
}

/// The `settings` of `use: fetch` in a manifest.
#[derive(Clone, Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The hosts that the listener may reach, even if they are private. If there is no list, the
    /// listener may reach all public addresses.
    pub hosts: Option<Vec<String>>,
    /// The limits of one request.
    #[serde(default)]
    pub limits: WebLimits,
}

/// Makes the listener `fetch`.
///
/// # Errors
/// If an entry of `hosts` is no valid host, if `hosts` is empty, or if the HTTP client can't be
/// made.
pub fn fetch(settings: &Settings) -> Result<Listener, String> {
    let web = Web::new(settings.hosts.as_deref(), settings.limits)?;
    let text = match &settings.hosts {
        None => "Gets pages and files from public web servers, as text.".to_owned(),
        Some(hosts) => format!("Gets pages and files from {}, as text.", hosts.join(", ")),
    };
    Ok(Listener::with_state(NAME, Arc::new(web))
        .own_namespace()
        .on(get)
        .timeout(settings.limits.listener_time() + Duration::from_secs(PDF_SECONDS_MAX + 20))
        .describe(text)
        .effects(Effects::Outside)
        .idempotent()
        .stateless())
}

/// Extracts the text of an answer that is a PDF.
async fn read_pdf(answer: &Answer) -> Result<Read, Refused> {
    let text = pdf::text(&answer.body).await.map_err(|it| match it {
        NoText::TooMuch(limit, text) => {
            let limit = Some(limit);
            Refusal { limit, ..Refusal::new(Reason::TooLarge, format!("the PDF: {text}")) }
        }
        NoText::Unread(text) => {
            Refusal::new(Reason::WrongKind, format!("the PDF can't be read: {text}"))
        }
    })?;
    let text = text.chars().map(known).collect();
    Ok(Read { kind: kind_named(answer), title: None, text })
}

async fn get(State(web): State<Arc<Web>>, fetch: Fetch) -> Result<Page, Refused> {
    let answer = web.get(&fetch.url).await?;
    let Read { kind, title, text } = match is_pdf(&answer) {
        true => read_pdf(&answer).await?,
        false => Read::of(&answer, false)?,
    };
    let from = usize::try_from(fetch.from.unwrap_or(0)).unwrap_or(usize::MAX);
    let (text, next) = piece(&text, from, web.limits.text_bytes_max);
    let (text, next) = (text.to_owned(), next.map(|it| it as u64));
    Ok(Page { url: answer.url.into(), kind, next, title, text })
}
