//! Reads provider files, which describe how a provider of models is asked. Each mistake has a
//! place, as in a manifest.

use std::path::Path;

use crate::manifest::check::check;
use crate::manifest::document::{Document, bytes_of};
use crate::manifest::expand_variables::Environment;
use crate::manifest::key_table;
use crate::manifest::mistake::{Mistake, Mistakes, Place};
use crate::manifest::sinks::SinksOf;
use crate::model::{Provider, ProviderEvents, ProviderFile};
use crate::sink::{Return, Sink};

/// The keys of a provider file that lead to its sinks.
const SINKS: &str = "stream.sinks";

/// A provider file that was read and has no mistakes.
#[derive(Debug)]
pub struct Described {
    /// The provider.
    pub provider: Provider,
    /// The sinks that get the events of the provider's streams.
    pub(crate) sinks: Vec<Sink>,
    /// The sinks of the type `return`, which the program that embeds the pump reads.
    pub(crate) returns: Vec<Return>,
    /// Queues the events of the provider's streams for these sinks.
    pub events: ProviderEvents,
    /// A warning for each JSONPath of the file that matches nothing in a sample stream. The sample
    /// is the built-in one of the file's wire, the protocol of requests and replies. None without
    /// warnings.
    pub(crate) warnings: Option<Mistakes>,
}

/// Whether a text names a provider file, not a kind of model.
pub fn is_file(text: &str) -> bool {
    text.ends_with(".yaml") || text.ends_with(".yml")
}

/// Reads a provider file from the disk.
///
/// # Errors
/// If the file can't be read, is over `manifest_bytes_max`, or has mistakes.
pub fn read(file: &Path, environment: Environment<'_>) -> Result<Described, Mistakes> {
    let bytes = bytes_of(file).map_err(|error| {
        let text = format!("the provider file can't be read: {error}");
        let place = Place::new(1, 1);
        Mistakes::new(&file.display().to_string(), vec![Mistake::new(place, text)])
    })?;
    parse(file, &bytes, environment)
}

fn parse(file: &Path, bytes: &[u8], environment: Environment<'_>) -> Result<Described, Mistakes> {
    let (written, document) = Document::read::<ProviderFile>(file, bytes, environment)?;
    let (events, mut wrong) = (ProviderEvents::default(), Vec::new());
    let sinks = document.node(SINKS).map(|node| {
        check(node, SINKS, &key_table::sinks(), key_table::SINKS_EXAMPLE, &mut wrong);
        match wrong.is_empty() {
            true => {
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                let of = SinksOf { file, key: SINKS, events: &events, provider: Some(&stem) };
                of.read(node, &mut |it| wrong.push(it))
            }
            false => Default::default(),
        }
    });
    let provider = written.provider().map_err(|all| {
        wrong.extend(all.iter().map(|(key, text)| document.mistake(key, text)));
    });
    match provider {
        Ok(provider) if wrong.is_empty() => {
            let warnings = unmatched(&provider, &document);
            let (sinks, returns) = sinks.unwrap_or_default();
            Ok(Described { provider, sinks, returns, events, warnings })
        }
        _ => Err(document.mistakes(wrong)),
    }
}

/// Returns a warning for each JSONPath that matches nothing in the sample stream of the provider's
/// wire.
fn unmatched(provider: &Provider, document: &Document) -> Option<Mistakes> {
    let wire = provider.wire()?;
    let all = provider.unmatched().into_iter().map(|it| {
        let text = format!("{}: the path {} finds nothing in what {wire} sends", it.key, it.path);
        let way = "leave it out: what the wire itself reads comes in any case";
        document.mistake(&it.key, &text).advice(way)
    });
    let all: Vec<Mistake> = all.collect();
    (!all.is_empty()).then(|| document.mistakes(all))
}
