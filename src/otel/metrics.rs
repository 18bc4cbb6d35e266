//! Histograms of requests to models: tokens and durations, from the spans of these requests.
//!
//! The histograms are cumulative: each export has the sums since the beginning, so an export that
//! is lost or sent twice changes no sum.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Histogram, HistogramDataPoint, Metric, ResourceMetrics, ScopeMetrics,
};
use prost::Message as _;

use crate::otel::encode::{NANOS, Resource, attributes};
use crate::otel::names::{self, Named};
use crate::otel::span::{Attribute, Span, Value};

/// The most sets of attributes that have a series of their own in a histogram. A set is, for
/// example, a model and its server. All further sets share one series.
const SERIES_MAX: usize = 1_000;

/// A histogram of OpenTelemetry's convention for generative AI.
struct Kind {
    named: Named,
    unit: &'static str,
    /// The upper bounds of the histogram's buckets, as the convention recommends them.
    bounds: [f64; 14],
}

/// The bounds of the buckets of tokens.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// The bounds of the buckets of durations.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The histograms of the convention's page on client inference.
const KINDS: [Kind; 3] = [
    Kind { named: names::INPUT_TOKENS_OF_REQUESTS, unit: "{token}", bounds: TOKENS },
    Kind { named: names::OUTPUT_TOKENS_OF_REQUESTS, unit: "{token}", bounds: TOKENS },
    Kind { named: names::INFERENCE_DURATION, unit: "s", bounds: SECONDS },
];
const INPUT: usize = 0;
const OUTPUT: usize = 1;
const DURATION: usize = 2;

/// The attributes that each point takes over from the span of its request.
const SAID: [Named; 6] = [
    names::OPERATION_NAME,
    names::PROVIDER_NAME,
    names::REQUEST_MODEL,
    names::RESPONSE_MODEL,
    names::SERVER_ADDRESS,
    names::SERVER_PORT,
];

/// Histograms of tokens and durations since a time.
///
/// ```
/// # extern crate pumphouse_otel as pumphouse;
/// use pumphouse::otel::Metrics;
///
/// let metrics = Metrics::since(1_700_000_000_000_000);
/// assert!(metrics.is_empty());
/// ```
#[derive(Debug)]
pub struct Metrics {
    since_us: u64,
    /// Maps attributes, as text, to their series: one map for each of [`KINDS`].
    series: [BTreeMap<String, Series>; 3],
}

#[derive(Debug, Default)]
struct Series {
    attributes: Vec<Attribute>,
    count: u64,
    sum: f64,
    /// The smallest and the largest value.
    range: Option<(f64, f64)>,
    buckets: [u64; 15],
}

impl Metrics {
    /// Makes empty histograms that begin at this time, in microseconds since the epoch.
    #[must_use]
    pub fn since(since_us: u64) -> Metrics {
        Metrics { since_us, series: [BTreeMap::new(), BTreeMap::new(), BTreeMap::new()] }
    }

    /// Whether nothing has been measured yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(BTreeMap::is_empty)
    }

    /// Adds a span if it is that of a request to a model. Returns whether the span was added. A
    /// turn without an end in the log isn't added, because its duration is unknown.
    pub fn add(&mut self, span: &Span) -> bool {
        let is_chat = span.attribute(names::OPERATION_NAME) == Some(&Value::from("chat"));
        let error = span.failure.as_ref().map(|it| it.kind.as_str());
        if !is_chat || error == Some(names::UNFINISHED) {
            return false;
        }
        let said = SAID.iter().filter_map(|it| Some((*it, span.attribute(*it)?.clone())));
        let said: Vec<Attribute> = said.collect();
        for (name, kind) in [(names::INPUT_TOKENS, INPUT), (names::OUTPUT_TOKENS, OUTPUT)] {
            if let Some(Value::Whole(tokens)) = span.attribute(name) {
                self.measure(kind, said.clone(), *tokens as f64);
            }
        }
        let error = error.map(|it| (names::ERROR_TYPE, it.into()));
        let seconds = span.end_us.saturating_sub(span.start_us) as f64 / 1e6;
        self.measure(DURATION, said.into_iter().chain(error).collect(), seconds);
        true
    }

    fn measure(&mut self, kind: usize, attributes: Vec<Attribute>, value: f64) {
        let (series, bounds) = (&mut self.series[kind], &KINDS[kind].bounds);
        let mut key = format!("{attributes:?}");
        let mut attributes = attributes;
        if series.len() >= SERIES_MAX && !series.contains_key(&key) {
            (key, attributes) = (String::new(), vec![(names::OVERFLOW, Value::Flag(true))]);
        }
        let it = series.entry(key).or_default();
        it.attributes = attributes;
        it.count += 1;
        it.sum += value;
        let (least, most) = it.range.unwrap_or((value, value));
        it.range = Some((least.min(value), most.max(value)));
        it.buckets[bounds.partition_point(|bound| *bound < value)] += 1;
    }

    /// Encodes the sums so far as an `ExportMetricsServiceRequest`, in protobuf. `now_us` is in
    /// microseconds since the epoch.
    #[must_use]
    pub fn encode(&self, resource: &Resource, now_us: u64) -> Vec<u8> {
        let metrics = KINDS.iter().zip(&self.series).filter(|(_, series)| !series.is_empty());
        let metric = |(kind, series): (&Kind, &BTreeMap<String, Series>)| Metric {
            name: kind.named.name.to_owned(),
            description: kind.named.text.to_owned(),
            unit: kind.unit.to_owned(),
            data: Some(Data::Histogram(Histogram {
                data_points: series.values().map(|it| self.point(kind, it, now_us)).collect(),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
            })),
            ..Metric::default()
        };
        let scope = ScopeMetrics {
            scope: Some(crate::otel::encode::scope()),
            metrics: metrics.map(metric).collect(),
            schema_url: names::SCHEMA_URL.to_owned(),
        };
        let of_resource = ResourceMetrics {
            resource: Some(resource.described()),
            scope_metrics: vec![scope],
            schema_url: names::SCHEMA_URL.to_owned(),
        };
        ExportMetricsServiceRequest { resource_metrics: vec![of_resource] }.encode_to_vec()
    }

    fn point(&self, kind: &Kind, it: &Series, now_us: u64) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes: attributes(&it.attributes),
            start_time_unix_nano: self.since_us.saturating_mul(NANOS),
            time_unix_nano: now_us.max(self.since_us).saturating_mul(NANOS),
            count: it.count,
            sum: Some(it.sum),
            bucket_counts: it.buckets.to_vec(),
            explicit_bounds: kind.bounds.to_vec(),
            min: it.range.map(|it| it.0),
            max: it.range.map(|it| it.1),
            ..HistogramDataPoint::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::any_value;
    use uuid::Uuid;

    use super::*;
    use crate::id::{EntryId, ThreadId};
    use crate::otel::span::{Failure, Kind, SpanId, TraceId};

    fn chat(seq: u64, tokens: Option<(u64, u64)>, error: Option<&str>) -> Span {
        let thread = ThreadId::new("sess-a");
        let mut attributes: Vec<Attribute> = vec![
            (names::OPERATION_NAME, "chat".into()),
            (names::REQUEST_MODEL, "small".into()),
            (names::SERVER_PORT, 443.into()),
            (names::THREAD_ID, "sess-a".into()),
        ];
        if let Some((input, output)) = tokens {
            attributes.push((names::INPUT_TOKENS, input.into()));
            attributes.push((names::OUTPUT_TOKENS, output.into()));
        }
        Span {
            trace: TraceId::of(&thread),
            id: SpanId::of(&EntryId::new(&thread, seq)),
            parent: None,
            name: "chat small".to_owned(),
            kind: Kind::Client,
            start_us: 1_000_000,
            end_us: 1_030_000,
            attributes,
            failure: error.map(|it| Failure { kind: it.to_owned(), message: None }),
            link: None,
        }
    }

    /// Decodes the metrics as a collector would.
    fn read(it: &Metrics) -> Vec<Metric> {
        let resource = Resource::new(None, Uuid::nil());
        let request = ExportMetricsServiceRequest::decode(&*it.encode(&resource, 9_000_000));
        let mut request = request.unwrap();
        request.resource_metrics.remove(0).scope_metrics.remove(0).metrics
    }

    fn points(it: &Metric) -> &[HistogramDataPoint] {
        match it.data.as_ref().unwrap() {
            Data::Histogram(it) => &it.data_points,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_are_counted_by_their_tokens_and_their_time() {
        let mut metrics = Metrics::since(5_000_000);
        assert!(metrics.add(&chat(1, Some((100, 4)), None)));
        assert!(metrics.add(&chat(2, Some((5_000, 5)), None)));
        assert!(metrics.add(&chat(3, None, Some("timed-out"))));
        let all = read(&metrics);
        let names: Vec<_> = all.iter().map(|it| (&*it.name, &*it.unit)).collect();
        let of = "gen_ai.client.inference";
        let tokens = |kind: &str| format!("{of}.operation.{kind}_tokens");
        let (input, output, time) = (tokens("input"), tokens("output"), format!("{of}.duration"));
        assert_eq!(names, [(&*input, "{token}"), (&*output, "{token}"), (&*time, "s")]);
        let ([input], [output]) = (points(&all[0]), points(&all[1])) else { panic!("{all:#?}") };
        assert_eq!(
            (input.count, input.sum, input.min, input.max),
            (2, Some(5_100.0), Some(100.0), Some(5_000.0))
        );
        assert_eq!((input.bucket_counts[4], input.bucket_counts[7]), (1, 1));
        // A value that equals a bucket's upper bound counts in that bucket.
        assert_eq!((output.bucket_counts[1], output.bucket_counts[2]), (1, 1));
        assert_eq!(
            (input.start_time_unix_nano, input.time_unix_nano),
            (5_000_000_000, 9_000_000_000)
        );
        let keys: Vec<&str> = input.attributes.iter().map(|it| &*it.key).collect();
        let said = ["gen_ai.operation.name", "gen_ai.request.model", "server.port"];
        assert_eq!(keys, said);
        let counts: Vec<u64> = points(&all[2]).iter().map(|it| it.count).collect();
        assert_eq!(counts, [1, 2], "what failed is a series of its own");
        assert_eq!(points(&all[2])[1].bucket_counts[2], 2, "30 ms are within 40");
    }

    #[test]
    fn only_requests_that_have_an_end_are_counted() {
        let mut metrics = Metrics::since(0);
        assert!(!metrics.add(&chat(1, None, Some(names::UNFINISHED))));
        let mut tool = chat(2, None, None);
        tool.attributes[0].1 = "execute_tool".into();
        assert!(!metrics.add(&tool));
        assert!(metrics.is_empty());
    }

    #[test]
    fn there_are_so_many_series_at_the_most() {
        let mut metrics = Metrics::since(0);
        for at in 0..SERIES_MAX + 50 {
            let mut span = chat(1, None, None);
            span.attributes[1].1 = format!("model {at}").into();
            metrics.add(&span);
        }
        let all = read(&metrics);
        assert_eq!(points(&all[0]).len(), SERIES_MAX + 1);
        assert_eq!(points(&all[0]).iter().map(|it| it.count).sum::<u64>(), 1_050);
        let is_beyond = |it: &&HistogramDataPoint| it.attributes[0].key == "otel.metric.overflow";
        let beyond = points(&all[0]).iter().find(is_beyond).unwrap();
        let value = beyond.attributes[0].value.as_ref().and_then(|it| it.value.clone());
        assert_eq!((beyond.count, value), (50, Some(any_value::Value::BoolValue(true))));
    }
}
