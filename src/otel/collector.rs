//! Sends batches to a collector: OTLP over HTTP, in protobuf.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url};

use crate::tls_trust;

/// The end of the path where a collector takes traces.
const PATH: &str = "/v1/traces";
/// The end of the path where a collector takes metrics.
const METRICS_PATH: &str = "/v1/metrics";
/// How long a request may take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A collector of OpenTelemetry, which takes spans and metrics.
pub struct Collector {
    client: Client,
    url: Url,
}

/// The error for an endpoint or a header of a collector that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoCollector {
    /// The setting that is wrong: `endpoint` or `headers`.
    pub setting: &'static str,
    /// What is wrong with it.
    pub text: String,
}

impl fmt::Display for NoCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for NoCollector {}

/// Why the collector didn't take a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsent {
    /// The collector is away, busy, or wrongly set up. It may take the same batch later.
    Away(String),
    /// The batch is too large.
    TooLarge,
    /// The collector refuses the batch, and will refuse it again.
    Refused(String),
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsent::Away(text) | Unsent::Refused(text) => f.write_str(text),
            Unsent::TooLarge => f.write_str("the collector takes no batch of this size"),
        }
    }
}

impl std::error::Error for Unsent {}

impl Collector {
    /// Makes a collector at an endpoint such as `http://127.0.0.1:4318`. `/v1/traces` is appended
    /// unless the path ends with it. Each request gets the given headers.
    ///
    /// # Errors
    /// The endpoint is no URL of `http` or `https`, or holds a password; or a header isn't valid.
    pub fn new<'a>(
        endpoint: &str,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Collector, NoCollector> {
        let wrong = |text: &str| NoCollector { setting: "endpoint", text: text.to_owned() };
        let text = "this is no URL of a collector, as in http://127.0.0.1:4318";
        let mut url: Url = endpoint.parse().map_err(|_| wrong(text))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("the URL of a collector begins with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("a URL is no place for a password; give it in a header"));
        }
        let path = url.path().trim_end_matches('/');
        let base = path.strip_suffix(PATH).unwrap_or(path);
        let path = format!("{base}{PATH}");
        url.set_path(&path);
        let trusted = match url.scheme() {
            "https" => tls_trust::config(None),
            _ => tls_trust::nobody(),
        };
        let trusted = trusted.map_err(|it| wrong(&it.to_string()))?;
        let client = Client::builder()
            .tls_backend_preconfigured(trusted)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .timeout(REQUEST_TIME_MAX)
            .default_headers(header_map(headers)?);
        let client = client.build().map_err(|it| wrong(&it.to_string()))?;
        Ok(Collector { client, url })
    }

    /// Returns the URL that spans are sent to, without its query, which may hold a secret.
    #[must_use]
    pub fn url(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.into()
    }

    /// Sends a batch of spans, as [`encode`](crate::otel::encode()) writes it. Returns how many of
    /// the batch's spans the collector rejected.
    ///
    /// # Errors
    /// The collector didn't take the batch, or didn't answer within 10 s.
    pub async fn send(&self, batch: Vec<u8>) -> Result<u64, Unsent> {
        self.post(self.url.clone(), batch).await
    }

    /// Sends metrics, as [`Metrics::encode`](crate::otel::Metrics::encode) writes them. Returns how
    /// many of their points the collector rejected.
    ///
    /// # Errors
    /// The collector didn't take the metrics, or didn't answer within 10 s.
    pub async fn send_metrics(&self, metrics: Vec<u8>) -> Result<u64, Unsent> {
        let mut url = self.url.clone();
        let path = url.path().strip_suffix(PATH).unwrap_or_default();
        let path = format!("{path}{METRICS_PATH}");
        url.set_path(&path);
        self.post(url, metrics).await
    }

    async fn post(&self, url: Url, batch: Vec<u8>) -> Result<u64, Unsent> {
        let request = self.client.post(url);
        let request = request.header(CONTENT_TYPE, "application/x-protobuf").body(batch);
        let away = |it: &reqwest::Error| {
            Unsent::Away(format!("{} doesn't answer: {}", self.url(), root(it)))
        };
        let mut answer = request.send().await.map_err(|it| away(&it))?;
        let status = answer.status();
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|it| away(&it))? {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                break;
            }
            body.extend_from_slice(&piece);
        }
        let text = format!("{} answers {status}", self.url());
        match status {
            _ if status.is_success() => Ok(rejected(&body)),
            StatusCode::PAYLOAD_TOO_LARGE => Err(Unsent::TooLarge),
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                Err(Unsent::Refused(text))
            }
            _ => Err(Unsent::Away(text)),
        }
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collector").field(&self.url()).finish()
    }
}

/// Reads from an answer how many spans or points the collector rejected. Both kinds of answers have
/// the same fields.
fn rejected(body: &[u8]) -> u64 {
    let answer = ExportTraceServiceResponse::decode(body).ok();
    let partial = answer.and_then(|it| it.partial_success);
    partial.map_or(0, |it| u64::try_from(it.rejected_spans).unwrap_or(0))
}

fn header_map<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<HeaderMap, NoCollector> {
    let wrong = |text: String| NoCollector { setting: "headers", text };
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let header = name.parse::<HeaderName>();
        let header = header.map_err(|_| wrong(format!("{name:?} is no name of a header")))?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| {
            wrong(format!("the value of {name} holds a control character, which no header may"))
        });
        let mut value = value?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

/// Returns the innermost cause of an error, because the outer causes may show the URL with its
/// query.
fn root(error: &reqwest::Error) -> String {
    let first: &(dyn StdError + 'static) = error;
    let causes = std::iter::successors(Some(first), |it| (*it).source());
    causes.skip(1).last().map_or_else(|| "no answer in time".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_given_the_path_of_traces_once() {
        for (endpoint, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/v1/traces", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/otlp/v1/traces/", "http://127.0.0.1:4318/otlp/v1/traces"),
            ("http://127.0.0.1:4318/otlp?key=secret", "http://127.0.0.1:4318/otlp/v1/traces"),
        ] {
            assert_eq!(Collector::new(endpoint, []).unwrap().url(), url);
        }
    }

    #[test]
    fn what_is_no_endpoint_or_no_header_is_refused() {
        for (endpoint, header, setting) in [
            ("collector:4318", ("a", "b"), "endpoint"),
            ("127.0.0.1:4318", ("a", "b"), "endpoint"),
            ("http://me:secret@127.0.0.1:4318", ("a", "b"), "endpoint"),
            ("http://127.0.0.1:4318", ("a b", "c"), "headers"),
            ("http://127.0.0.1:4318", ("a", "b\nc"), "headers"),
        ] {
            let error = Collector::new(endpoint, [header]).unwrap_err();
            assert_eq!(error.setting, setting, "{endpoint} {header:?}");
            assert!(!error.text.contains("secret"), "{error}");
        }
    }
}
