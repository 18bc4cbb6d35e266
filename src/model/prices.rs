//! Tables of prices of providers' models. One table ships with the crate, and a file may replace
//! it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::bounded_yaml;
use crate::model::price::Price;
use crate::regular_file;

/// The most bytes of a table of prices: seven times the size of the table that ships.
const PRICES_BYTES_MAX: u64 = 256 << 10;

/// A table of the prices and windows of providers' models.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::{Price, Prices};
///
/// let prices: Prices = "
///     as_of: 2026-11-26
///     from: our contract
///     providers:
///       example:
///         hosts: [llm.example.org]
///         models:
///           large: {window: 8192, input: 3, output: 15, match: [large, large-*]}
/// ".parse()?;
/// let entry = prices.of_host("llm.example.org", "large-2").expect("the table has it");
/// assert_eq!((entry.price, entry.window), (Price::new(3.0, 15.0), Some(8_192)));
/// assert!(Prices::shipped().providers().any(|it| it == "anthropic"));
/// # Ok::<(), pumphouse::model::NoPrices>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The day on which these prices held.
    as_of: String,
    /// The source of the prices.
    from: String,
    providers: BTreeMap<String, Provider>,
}

/// A table's entry for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PriceEntry {
    /// The price of the model's tokens.
    pub price: Price,
    /// The most tokens that prompt and reply may have together, if the table says it.
    pub window: Option<u32>,
    /// The table's description: its source, and the day of its prices.
    pub table: Arc<str>,
}

/// The table that ships with the crate.
static SHIPPED: LazyLock<Prices> = LazyLock::new(|| {
    let table = include_str!("prices.yaml").parse();
    #[expect(clippy::expect_used, reason = "a test reads the table, which is part of the crate")]
    table.expect("the table that ships is one")
});

impl Prices {
    /// The table that ships with the crate. It has the prices of the providers whose APIs the
    /// [wires](super::Wire) speak, in US dollars.
    #[must_use]
    pub fn shipped() -> &'static Prices {
        &SHIPPED
    }

    /// Reads a table from a file.
    ///
    /// # Errors
    /// If the file can't be read, has more than 256 KiB, or holds no table.
    pub fn read(file: impl AsRef<Path>) -> Result<Prices, NoPrices> {
        let file = file.as_ref();
        let wrong = |text: &dyn fmt::Display| NoPrices(format!("{}: {text}", file.display()));
        let most = PRICES_BYTES_MAX;
        let text = regular_file::text(file, most).map_err(|it| wrong(&it))?;
        text.parse().map_err(|it| wrong(&it))
    }

    /// The entry of a model at a host, from the provider that lists this host or a domain above it.
    /// A listed host with a port matches that port alone.
    #[must_use]
    pub fn of_host(&self, host: &str, model: &str) -> Option<PriceEntry> {
        let host = host.to_ascii_lowercase();
        let bare = host.rsplit_once(':').map_or(&*host, |(bare, _)| bare);
        let is_at = |of: &str| {
            let host = if of.contains(':') { &host } else { bare };
            host.strip_suffix(of).is_some_and(|it| it.is_empty() || it.ends_with('.'))
        };
        let mut all = self.providers.values();
        let provider = all.find(|it| it.hosts.iter().any(|it| is_at(it)))?;
        Some(self.entry(provider.row(model)?))
    }

    /// The entry of a provider's model.
    #[must_use]
    pub fn of_provider(&self, provider: &str, model: &str) -> Option<PriceEntry> {
        Some(self.entry(self.providers.get(provider)?.row(model)?))
    }

    fn entry(&self, row: &Row) -> PriceEntry {
        let table = self.to_string().into();
        PriceEntry { price: row.price(), window: row.window, table }
    }

    /// The names of the table's providers.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(String::as_str)
    }

    /// The day on which these prices held, as the table writes it.
    #[must_use]
    pub fn as_of(&self) -> &str {
        &self.as_of
    }
}

impl std::str::FromStr for Prices {
    type Err = NoPrices;

    fn from_str(text: &str) -> Result<Prices, NoPrices> {
        let mut prices: Prices = bounded_yaml::from_str(text).map_err(NoPrices)?;
        for (name, provider) in &mut prices.providers {
            provider.hosts.iter_mut().for_each(|it| it.make_ascii_lowercase());
            for (model, row) in &mut provider.models.0 {
                model.make_ascii_lowercase();
                row.patterns.iter_mut().flatten().for_each(|it| it.make_ascii_lowercase());
                if row.prices().any(|it| !it.is_finite() || it < 0.0) {
                    let text = format!("{name}: {model}: a price is 0 or more");
                    return Err(NoPrices(text));
                }
            }
        }
        Ok(prices)
    }
}

impl fmt::Display for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, as of {}", self.from, self.as_of)
    }
}

/// A provider's hosts, and the prices of its models.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Provider {
    hosts: Vec<String>,
    models: Rows,
}

impl Provider {
    /// Returns the first row that a model's name fits. Case is ignored.
    fn row(&self, model: &str) -> Option<&Row> {
        let name = model.to_ascii_lowercase();
        let name = name.strip_prefix("models/").unwrap_or(&name);
        let fits = |(key, row): &&(String, Row)| match &row.patterns {
            None => fits(key, name),
            Some(all) => {
                let excluded = all.iter().filter_map(|it| it.strip_prefix('!'));
                let mut wanted = all.iter().filter(|it| !it.starts_with('!'));
                wanted.any(|it| fits(it, name)) && !{ excluded }.any(|it| fits(it, name))
            }
        };
        self.models.0.iter().find(fits).map(|(_, row)| row)
    }
}

/// Rows in their order: if a name fits several rows, the first counts.
#[derive(Clone, Debug)]
struct Rows(Vec<(String, Row)>);

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Rows, D::Error> {
        struct Ordered;

        impl<'de> Visitor<'de> for Ordered {
            type Value = Rows;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("models with their prices")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Rows, M::Error> {
                let mut rows = Vec::new();
                while let Some(row) = map.next_entry()? {
                    rows.push(row);
                }
                Ok(Rows(rows))
            }
        }

        from.deserialize_map(Ordered)
    }
}

/// A model's prices for a million tokens, and the patterns of its names. Without patterns, the
/// row's key is the pattern. A name that fits a pattern with a leading `!` doesn't fit the row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    input: f64,
    output: f64,
    cached: Option<f64>,
    cache_write: Option<f64>,
    window: Option<u32>,
    #[serde(rename = "match")]
    patterns: Option<Vec<String>>,
}

impl Row {
    fn prices(&self) -> impl Iterator<Item = f64> {
        [Some(self.input), Some(self.output), self.cached, self.cache_write].into_iter().flatten()
    }

    fn price(&self) -> Price {
        let price = Price::new(self.input, self.output);
        let price = self.cached.into_iter().fold(price, Price::with_cached);
        self.cache_write.into_iter().fold(price, Price::with_cache_write)
    }
}

/// Whether a name fits a pattern, in which `*` matches any text and `#` a digit. If a byte doesn't
/// fit, the loop goes back, and lets the last `*` match one byte more.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut in_name) = (0, 0);
    // For the last `*` that the loop reached: the index after it in `pattern`, and the index in
    // `name` at which its match ends.
    let mut star = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, in_name));
                at += 1;
            }
            Some(b'#') if name[in_name].is_ascii_digit() => (at, in_name) = (at + 1, in_name + 1),
            Some(it) if *it == name[in_name] => (at, in_name) = (at + 1, in_name + 1),
            _ => {
                let Some((behind, taken)) = star else { return false };
                star = Some((behind, taken + 1));
                (at, in_name) = (behind, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|it| *it == b'*')
}

/// The error of a text or a file that can't be read as a table of prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPrices(String);

impl fmt::Display for NoPrices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoPrices {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of one provider, `p` at `llm.example.org`, with these models.
    fn table(models: &str) -> Result<Prices, NoPrices> {
        let head = "as_of: today\nfrom: us\nproviders:";
        format!("{head}\n  p: {{hosts: [llm.example.org], models: {{{models}}}}}").parse()
    }

    #[test]
    fn hosts_and_names_fit_in_upper_and_lower_case() {
        let row = "{input: 1, output: 2, match: ['Qwen3-*']}, Big: {input: 1, output: 2}";
        let table: Prices = format!(
            "as_of: today\nfrom: us\nproviders:\n  \
             p: {{hosts: [LLM.Example.org], models: {{q: {row}}}}}"
        )
        .parse()
        .unwrap();
        for model in ["qwen3-8b", "QWEN3-8B", "big", "BIG"] {
            assert!(table.of_host("llm.EXAMPLE.org", model).is_some(), "{model}");
        }
    }

    #[test]
    fn a_name_fits_a_pattern() {
        for (pattern, name, expected) in [
            ("gpt", "gpt", true),
            ("gpt", "gpt-4", false),
            ("gpt*", "gpt-4", true),
            ("*v2*", "claude-v2.1", true),
            ("*-5", "claude-5-5", true),
            ("*-5", "claude-5-6", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a-##", "a-12", true),
            ("a-##", "a-1x", false),
            ("a-##", "a-123", false),
            ("*", "", true),
            ("#", "", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_first_row_that_a_name_fits_counts() {
        let models = r#"b*: {input: 1, output: 1}, a: {input: 2, output: 2, match: ["!*-x", "*"]},
                        x: {input: 3, output: 3, match: ["*"]}"#;
        let prices = table(models).unwrap();
        for (model, input) in [("bx", 1.0), ("models/B", 1.0), ("c", 2.0), ("c-x", 3.0)] {
            let found = prices.of_provider("p", model).map(|it| it.price);
            assert_eq!(found, Some(Price::new(input, input)), "{model}");
        }
        assert_eq!(prices.of_provider("q", "a"), None);
    }

    #[test]
    fn a_provider_is_found_by_its_host() {
        let prices = table("m: {input: 1, output: 2, cached: 0.5, cache_write: 3}").unwrap();
        let price = Price::new(1.0, 2.0).with_cached(0.5).with_cache_write(3.0);
        for (host, is_its) in [
            ("llm.example.org", true),
            ("LLM.example.org:443", true),
            ("eu.llm.example.org", true),
            ("xllm.example.org", false),
            ("example.org", false),
            ("llm.example.org.evil.net", false),
        ] {
            let found = prices.of_host(host, "m").map(|it| it.price);
            assert_eq!(found, is_its.then_some(price), "{host}");
        }
        let text = "as_of: a\nfrom: b\nproviders: {p: {hosts: [\"127.0.0.1:80\"], models: {m: \
                    {input: 1, output: 1}}}}";
        let prices: Prices = text.parse().unwrap();
        assert!(prices.of_host("127.0.0.1:80", "m").is_some());
        assert!(prices.of_host("127.0.0.1:81", "m").is_none(), "a port that is named counts");
    }

    #[test]
    fn the_table_that_ships_has_the_providers_of_the_wires() {
        use crate::model::wire_name::Wire;
        let host = |wire: Wire| wire.home().split('/').nth(2).unwrap();
        for (wire, model, has_cached) in [
            (Wire::AnthropicMessages, "claude-sonnet-4-5", true),
            (Wire::OpenAiChat, "gpt-4o-mini", true),
            (Wire::OpenAiResponses, "gpt-5-mini", true),
            (Wire::Gemini, "models/gemini-2.5-flash", true),
        ] {
            let found = Prices::shipped().of_host(host(wire), model).unwrap();
            assert_eq!(found.price.cached_micros.is_some(), has_cached, "{model}");
            assert!(found.price.output_micros > 0, "{model}");
        }
        assert_eq!(Prices::shipped().of_host("api.openai.com", "gpt-none"), None);
        assert!(Prices::shipped().to_string().starts_with("genai-prices "));
        assert_eq!(Prices::shipped().as_of().len(), "2026-11-26".len());
    }

    #[test]
    fn what_is_no_table_says_why() {
        let check = |models: &str, expected: &str| {
            let wrong = table(models).unwrap_err().to_string();
            assert!(wrong.contains(expected), "{wrong}");
        };
        check("m: {input: 1}", "missing field `output`");
        check("m: {input: 1, output: -1}", "p: m: a price is 0 or more");
        check("m: {input: 1, output: 1, inptu: 1}", "unknown field `inptu`");
        check("m: 3", "3");
        let wrong = Prices::read("no/such.yaml").unwrap_err().to_string();
        assert!(wrong.starts_with("no/such.yaml: "), "{wrong}");
    }
}
