//! Records in the thread `organism` what governs a pump: its manifest, the names of its tokens, the
//! prices of its models, and its limits. Each record has only what differs from the ones before,
//! and never a secret.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cli::base::VERSION;
use crate::door::Tokens;
use crate::engine::{ORGANISM, Pump};
use crate::id::ThreadId;
use crate::limits::{Amount, Limits};
use crate::listener::Entry;
use crate::log::{Error, Log, Pages};
use crate::manifest;
use crate::model::{Models, Usage};
use crate::regular_file;
use crate::wire::core::{RuleGone, RuleInForce, RulesInForce};

/// The most bytes of a value that are recorded. Of a longer one, the digest is.
const VALUE_BYTES_MAX: usize = 200;
/// The most bytes of a file whose digest is recorded. Of a larger one, the path is.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// A million tokens, for which prices are told.
const MILLION: u64 = 1_000_000;

/// The beginnings of the names of the manifest's values, and of the digests of its files.
const MANIFEST: &str = "manifest/";
const FILES: &str = "files/";

/// Rules by their names.
type Rules = BTreeMap<String, String>;

/// Where the rules of a pump come from.
pub(crate) struct RuleSources {
    pub(crate) manifest: Option<PathBuf>,
    /// The further files of the manifest: its pod files and its included files.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) models: Models,
    pub(crate) tokens: Tokens,
}

impl RuleSources {
    /// Records the rules that differ from those that the thread `organism` has, if any do. `since`
    /// is `start` or `reload`.
    pub(crate) async fn record(&self, pump: &Pump, since: &str) {
        let (known, known_digest) = match known(&**pump.log()).await {
            Ok(known) => known,
            Err(error) => {
                return tracing::warn!(%error, "the rules in force can't be compared");
            }
        };
        // The running pump has the manifest that it was started with.
        let manifest = match since {
            "start" => self.manifest().into_iter().chain(self.files()).collect(),
            _ => known.iter().filter(|it| is_of_manifest(it.0)).map(copied).collect(),
        };
        let now: Rules = [manifest, self.tokens(), self.prices(), limits(pump.limits())]
            .into_iter()
            .flatten()
            .collect();
        let is_new = |(name, value): &(&String, &String)| known.get(*name) != Some(*value);
        let rule = now.iter().filter(is_new).map(copied);
        let rule: Vec<RuleInForce> =
            rule.map(|(name, value)| RuleInForce { name, value }).collect();
        let gone = known.keys().filter(|it| !now.contains_key(*it));
        let gone: Vec<RuleGone> = gone.map(|name| RuleGone { name: name.clone() }).collect();
        let text = self.manifest.as_deref().and_then(contents);
        let digest = text.map(|it| blake3::hash(&it).to_hex().to_string());
        let digest = digest.filter(|_| since == "start");
        let is_same_text = digest.is_none() || digest == known_digest;
        if rule.is_empty() && gone.is_empty() && is_same_text {
            return;
        }
        let (since, version) = (since.to_owned(), VERSION.to_owned());
        pump.record_in_organism(&RulesInForce { since, version, digest, rule, gone });
    }

    /// The values of the manifest, with the names of variables in place of their values.
    fn manifest(&self) -> Rules {
        let Some(file) = &self.manifest else { return Rules::new() };
        let outline = contents(file).and_then(|it| manifest::outline(&it)).unwrap_or_default();
        let folder = file.parent().unwrap_or(Path::new(""));
        let rules = outline.into_iter().map(|(path, value)| rule(folder, &path, value));
        rules.map(|(path, value)| (format!("{MANIFEST}{path}"), value)).collect()
    }

    /// The digests of the manifest's further files, and of the files that these name.
    fn files(&self) -> Rules {
        let mut rules = Rules::new();
        for path in &self.files {
            let Some(bytes) = contents(path) else { continue };
            let name = path.display();
            rules.insert(format!("{FILES}{name}"), format!("blake3 {}", short_digest(&bytes)));
            let folder = path.parent().unwrap_or(Path::new(""));
            let outline = manifest::outline(&bytes).unwrap_or_default();
            let named = outline.into_iter().filter(|(path, _)| path.ends_with(".file"));
            rules.extend(named.map(|(path, value)| {
                let (path, value) = rule(folder, &path, value);
                (format!("{FILES}{name}/{path}"), value)
            }));
        }
        rules
    }

    fn tokens(&self) -> Rules {
        self.tokens
            .ranks()
            .map(|(name, rank)| (format!("tokens/{name}"), rank.to_owned()))
            .collect()
    }

    fn prices(&self) -> Rules {
        let price = |(name, model): (&str, &std::sync::Arc<dyn crate::model::Model>)| {
            let price = model.price()?;
            let of = |usage: Usage| {
                let micros = price.cost_of(&usage);
                format!("{}.{:06}", micros / MILLION, micros % MILLION)
            };
            let (input, output) = (of(Usage::new(MILLION, 0)), of(Usage::new(0, MILLION)));
            let text = format!("{input} and {output} for a million tokens in and out");
            Some((format!("prices/{name}"), text))
        };
        self.models.iter().filter_map(price).collect()
    }
}

/// One value of a manifest, with its path.
fn rule(folder: &Path, path: &str, value: String) -> (String, String) {
    // Under `settings`, files are mostly databases.
    let is_text = path.ends_with(".file") && !path.ends_with("settings.file");
    let text = is_text.then(|| contents(&folder.join(&value))).flatten();
    // A file of tokens or keys has secrets, so not even its digest is told.
    let text = text.filter(|_| !path.starts_with("tokens") && !path.contains("key"));
    let value = match (text, value.len()) {
        (Some(text), _) => format!("{value}, blake3 {}", short_digest(&text)),
        (None, ..=VALUE_BYTES_MAX) => value,
        (None, bytes) => format!("{bytes} bytes, blake3 {}", short_digest(value.as_bytes())),
    };
    (path.to_owned(), value)
}

/// The bytes of a regular file that isn't too large.
fn contents(path: &Path) -> Option<Vec<u8>> {
    regular_file::bytes(path, FILE_BYTES_MAX).ok()
}

/// The first digits of a digest.
fn short_digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}

fn limits(limits: &Limits) -> Rules {
    let mut limits = limits.clone();
    let value = |amount: Amount<'_>| match amount {
        Amount::Allowance(it) => Some(crate::limits::Allowance(*it).to_string()),
        Amount::Count(it) => Some(it.to_string()),
        Amount::Time(it) => Some(format!("{} s", it.as_secs_f64())),
        Amount::Xml(_) => None,
    };
    let all = limits.bounds().into_iter();
    all.filter_map(|it| Some((format!("limits/{}", it.name), value(it.amount)?))).collect()
}

fn is_of_manifest(name: &str) -> bool {
    name.starts_with(MANIFEST) || name.starts_with(FILES)
}

fn copied((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

/// The rules that the thread `organism` has, and the digest of the manifest's text.
async fn known(log: &dyn Log) -> Result<(Rules, Option<String>), Error> {
    let (organism, mut known, mut digest) = (ThreadId::new(ORGANISM), Rules::new(), None);
    if log.thread(&organism).await?.is_none() {
        return Ok((known, digest));
    }
    let mut pages = Pages::of(log, &organism);
    while let Some(page) = pages.next().await? {
        for said in page.iter().filter_map(|it| Entry::kept(it).decode_if::<RulesInForce>()) {
            said.gone.iter().for_each(|it| drop(known.remove(&it.name)));
            known.extend(said.rule.into_iter().map(|it| (it.name, it.value)));
            digest = said.digest.or(digest);
        }
    }
    Ok((known, digest))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn of_a_database_and_of_what_has_no_end_the_path_is_told_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "x").unwrap();
        let told = |path: &str, file: &str| rule(folder.path(), path, file.to_owned()).1;
        assert!(told("listeners/0/prompt.file", "a").starts_with("a, blake3 "));
        assert_eq!(told("listeners/0/settings.file", "a"), "a");
        assert_eq!(told("listeners/0/params.file", "/dev/zero"), "/dev/zero");
        assert_eq!(told("tokens.file", "a"), "a");
    }
}
