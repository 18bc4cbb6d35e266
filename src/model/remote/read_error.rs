//! Reads an answer that isn't a reply, within its limits.

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};

use crate::model::error::Error;
use crate::model::error_answer::{of_answer, said, title};
use crate::model::remote::settings::{Settings, shown};
use crate::model::retry_pause;

/// Reads an answer that isn't a success.
pub(super) async fn read(mut response: Response, settings: &Settings) -> Error {
    let (status, headers) = (response.status(), response.headers().clone());
    let text = text(&mut response, settings).await;
    let to = headers.get(LOCATION).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let to = response.url().join(to).map(|it| shown(&it)).unwrap_or_default();
    of_answer(status, &headers, &text, &to)
}

/// The title of an HTML page, or the beginning of the page if it has no title.
pub(super) async fn page(response: &mut Response, settings: &Settings) -> Option<Box<str>> {
    said(title(&text(response, settings).await))
}

/// The beginning of a body without secrets: at most `refusal_bytes_max` bytes that come within
/// `usage_time_max`.
async fn text(response: &mut Response, settings: &Settings) -> String {
    let limits = &settings.limits;
    let mut body = Vec::new();
    let all = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = limits.refusal_bytes_max - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() >= room {
                break;
            }
        }
    };
    // When the time is over, the bytes that have come are used.
    tokio::select! {
        () = all => {}
        () = retry_pause::sleep(limits.usage_time_max) => {}
    }
    // The body may have been cut within a secret.
    settings.hidden.hide_cut(&String::from_utf8_lossy(&body)).into_owned()
}

pub(super) fn is_html(headers: &HeaderMap) -> bool {
    media(headers) == "text/html"
}

/// The media type of a body, in lower case and without parameters.
pub(super) fn media(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
