//! The HTTP client that the tools share. The client checks the URL of a request, limits the time
//! and the size of an answer, and converts the answer to text.
//!
//! The client uses no proxy and keeps no cookies. It accepts no compressed answers, so that the
//! limits count the bytes of the real content. If a host isn't listed, the client checks the
//! addresses to which its name resolves, and connects only to the checked addresses.

mod address;
#[doc(hidden)]
pub mod cache;
mod html;
pub mod limits;
mod reach;
mod refusal;
mod text;

use std::sync::Arc;
use std::time::Duration;

use pumphouse::prelude::*;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode, Url};
use rustls::{ClientConfig, RootCertStore};

use limits::WebLimits;
pub(super) use reach::host_of;
use reach::{Reach, Resolver};
pub(super) use refusal::Refusal;
pub(super) use text::{Read, is_json, is_pdf, kind_named, piece};

/// Converts the HTML of a file to text of at most `most` bytes, in the same way as a page of the
/// web.
pub(super) fn html_text(html: &str, name: &str, most: usize) -> String {
    let base = Url::parse("file:///").and_then(|it| it.join(name));
    base.map(|base| html::read(html, &base, most).text).unwrap_or_default()
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// The URL is invalid, or not of HTTP.
    BadUrl,
    /// The host may not be reached.
    OutOfReach,
    /// The request has something that isn't allowed.
    BadRequest,
    /// There is no connection to the host.
    Unreachable,
    /// It took too long.
    Timeout,
    /// The server answered with an error status.
    Status,
    /// There are too many redirects, or an invalid one.
    Redirect,
    /// A limit is exceeded, such as the size of the answer.
    TooLarge,
    /// The answer can't be read as text.
    WrongKind,
    /// The answer broke off, or isn't HTTP.
    Broken,
    /// The request was sent, and no whole answer came: whether anything was done is unknown.
    Unknown,
}

/// An HTTP client that sends requests only to the hosts of its `reach`.
pub(super) struct Web {
    client: Client,
    reach: Reach,
    pub(super) limits: WebLimits,
}

/// A server's answer.
pub(super) struct Answer {
    /// The URL that was reached, after all redirects.
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Web {
    /// Makes a client that may reach these hosts. Without a list of hosts, the client may reach
    /// public addresses.
    pub(super) fn new(hosts: Option<&[String]>, limits: WebLimits) -> Result<Web, String> {
        Web::reaching(hosts.map_or(Ok(Reach::Public), Reach::to)?, limits)
    }

    fn reaching(reach: Reach, limits: WebLimits) -> Result<Web, String> {
        let client = Client::builder()
            .user_agent(concat!("pumphouse/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(trusted()?)
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .dns_resolver(Resolver::of_system(reach.clone()))
            .connect_timeout(Duration::from_secs(limits.connect_seconds_max))
            .build()
            .map_err(|error| error.without_url().to_string())?;
        Ok(Web { client, reach, limits })
    }

    /// Makes a client that may reach these hosts and all public addresses.
    pub(super) fn with_public(hosts: &[String], limits: WebLimits) -> Result<Web, String> {
        Web::reaching(Reach::with_public(hosts)?, limits)
    }

    /// Gets the answer of a URL, and follows redirects. The URL of each redirect is checked like
    /// the first URL.
    pub(super) async fn get(&self, url: &str) -> Result<Answer, Refusal> {
        self.get_with(url, &HeaderMap::new(), &HeaderMap::new()).await
    }

    /// Gets the answer of a URL like [`get`](Web::get), but with further headers. The private
    /// headers are sent only to the origin of the first URL (scheme, host and port). An answer with
    /// the status 304 has an empty body.
    pub(super) async fn get_with(
        &self,
        url: &str,
        headers: &HeaderMap,
        private: &HeaderMap,
    ) -> Result<Answer, Refusal> {
        self.in_time(self.follow(url, headers, private)).await
    }

    async fn follow(
        &self,
        url: &str,
        headers: &HeaderMap,
        private: &HeaderMap,
    ) -> Result<Answer, Refusal> {
        let mut url = self.checked(url)?;
        let origin = url.origin();
        for _ in 0..=self.limits.redirects_max {
            let mut request = self.client.get(url.clone()).headers(headers.clone());
            if url.origin() == origin {
                request = request.headers(private.clone());
            }
            let response = request.send().await.map_err(|it| Refusal::unsent(&it, &url))?;
            if !is_redirect(response.status()) {
                return self.read(url, response).await;
            }
            let to = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
            let to = to.ok_or_else(|| {
                Refusal::new(Reason::Redirect, "the server redirects without saying where")
            })?;
            let next = url.join(to).map_err(|_| {
                Refusal::new(Reason::Redirect, "the server redirects to what is no URL")
            })?;
            url = self.checked(next.as_str()).map_err(|it| it.redirected())?;
        }
        let most = self.limits.redirects_max;
        let text = format!("there are too many redirects; the limit redirects_max is {most}");
        Err(Refusal { limit: Some("redirects_max"), ..Refusal::new(Reason::Redirect, text) })
    }

    /// Parses a URL, and checks that it may be reached.
    pub(super) fn checked(&self, text: &str) -> Result<Url, Refusal> {
        if text.len() > self.limits.url_bytes_max {
            return Err(Refusal::too_large("the URL", "url_bytes_max", self.limits.url_bytes_max));
        }
        let bad = |text: &str| Refusal::new(Reason::BadUrl, text);
        let mut url: Url = text
            .trim()
            .parse()
            .map_err(|_| bad("this is no URL, as in https://example.org/page"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("a URL begins with https:// or http:// here"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("a URL is no place for a name or a password"));
        }
        url.set_fragment(None);
        match self.reach.check(&url) {
            Ok(()) => Ok(url),
            Err(why) => Err(Refusal::new(Reason::OutOfReach, why)),
        }
    }

    /// Reads an answer that is to be shown as text. A failure status, or a media type that can't be
    /// shown, is refused.
    async fn read(&self, url: Url, from: Response) -> Result<Answer, Refusal> {
        if from.status() == StatusCode::NOT_MODIFIED {
            let (status, headers) = (from.status(), from.headers().clone());
            return Ok(Answer { url, status, headers, body: Vec::new() });
        }
        if !from.status().is_success() {
            return Err(Refusal::status(from.status(), &url));
        }
        text::check_kind(content_type(from.headers()))?;
        self.answer(url, from).await
    }

    /// Sends a request to a URL that was checked, and reads the answer, whatever its status is.
    /// Redirects are not followed.
    pub(super) async fn send(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: String,
    ) -> Result<Answer, Refusal> {
        self.in_time(async {
            let response = self.open(method, &url, headers, body).await?;
            self.answer(url, response).await
        })
        .await
    }

    /// Sends a request to a URL that was checked, and returns once the answer has begun. The caller
    /// reads the answer, and limits its time and size. Redirects are not followed.
    pub(super) async fn open(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: String,
    ) -> Result<Response, Refusal> {
        let mut request = self.client.request(method, url.clone()).headers(headers);
        if !body.is_empty() {
            request = request.body(body);
        }
        request.send().await.map_err(|it| Refusal::unsent(&it, url))
    }

    /// Returns whether a host is listed with this port, or with any port if `port` is `None`.
    pub(super) fn lists(&self, host: &str, port: Option<u16>) -> bool {
        let fits = |it: &(String, u16)| it.0 == host && port.is_none_or(|port| port == it.1);
        match &self.reach {
            Reach::Public => false,
            Reach::Hosts(all) | Reach::HostsAndPublic(all) => all.iter().any(fits),
        }
    }

    /// Reads an answer to its end. An answer that is compressed or too large is refused.
    async fn answer(&self, url: Url, mut from: Response) -> Result<Answer, Refusal> {
        let (status, headers) = (from.status(), from.headers().clone());
        let encoding = headers.get(CONTENT_ENCODING).map(|it| it.as_bytes().to_owned());
        if encoding.is_some_and(|it| !it.eq_ignore_ascii_case(b"identity") && !it.is_empty()) {
            let text = "the answer is compressed though nobody asked for that";
            return Err(Refusal::new(Reason::WrongKind, text).sent());
        }
        let most = self.limits.body_bytes_max;
        let too_large = || Refusal::too_large("the answer", "body_bytes_max", most).sent();
        if from.content_length().is_some_and(|it| it > most as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(piece) = from.chunk().await.map_err(|it| Refusal::cut(&it))? {
            if body.len() + piece.len() > most {
                return Err(too_large());
            }
            body.extend_from_slice(&piece);
        }
        Ok(Answer { url, status, headers, body })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a server and its time are beyond any simulation"
    )]
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let most = self.limits.seconds_max;
        tokio::time::timeout(Duration::from_secs(most), work).await.unwrap_or_else(|_| {
            let text =
                format!("there was no whole answer in time; the limit seconds_max is {most}");
            let refusal = Refusal::new(Reason::Timeout, text).sent();
            Err(Refusal { limit: Some("seconds_max"), ..refusal })
        })
    }
}

/// Returns the TLS settings, with the certificate authorities that the system trusts. If the system
/// trusts none, only `http://` works.
fn trusted() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(|it| it.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Returns the `Content-Type` of an answer. Empty if there is none.
pub(super) fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default()
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}
