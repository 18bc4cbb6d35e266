//! Encodes spans in OTLP, OpenTelemetry's protocol.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value,
};
use opentelemetry_proto::tonic::resource::v1::Resource as Described;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as Encoded, Status};
use prost::Message as _;
use uuid::Uuid;

use crate::otel::names;
use crate::otel::span::{Attribute, Kind, Span, Value};

/// Nanoseconds in a microsecond.
pub(super) const NANOS: u64 = 1_000;

/// The pump that spans and metrics come from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// The pump's name, or `pumphouse`.
    pub name: String,
    /// The UUID of the pump's log.
    pub log: Uuid,
}

impl Resource {
    /// Describes the pump with this name and this log. A pump without a name is called `pumphouse`.
    #[must_use]
    pub fn new(name: Option<&str>, log: Uuid) -> Resource {
        Resource { name: name.unwrap_or("pumphouse").to_owned(), log }
    }

    /// Returns the resource in OTLP's form.
    pub(super) fn described(&self) -> Described {
        Described {
            attributes: attributes(&[
                (names::SERVICE_NAME, self.name.as_str().into()),
                (names::SERVICE_INSTANCE_ID, self.log.to_string().into()),
            ]),
            ..Described::default()
        }
    }
}

/// Encodes these spans as an `ExportTraceServiceRequest`, in protobuf.
#[must_use]
pub fn encode(spans: &[Span], resource: &Resource) -> Vec<u8> {
    let spans = ScopeSpans {
        scope: Some(scope()),
        spans: spans.iter().map(span).collect(),
        schema_url: names::SCHEMA_URL.to_owned(),
    };
    let of_resource = ResourceSpans {
        resource: Some(resource.described()),
        scope_spans: vec![spans],
        schema_url: names::SCHEMA_URL.to_owned(),
    };
    ExportTraceServiceRequest { resource_spans: vec![of_resource] }.encode_to_vec()
}

/// Returns the scope of the spans and metrics: the program that made them, which is this version of
/// the pump.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "pumphouse".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

fn span(it: &Span) -> Encoded {
    let kind = match it.kind {
        Kind::Internal => SpanKind::Internal,
        Kind::Client => SpanKind::Client,
    };
    let exception = it.failure.iter().map(|failure| {
        let mut all = vec![(names::EXCEPTION_TYPE, failure.kind.as_str().into())];
        let message = failure.message.as_deref();
        all.extend(message.map(|it| (names::EXCEPTION_MESSAGE, it.into())));
        Event {
            time_unix_nano: it.end_us.saturating_mul(NANOS),
            name: names::EXCEPTION.to_owned(),
            attributes: attributes(&all),
            ..Event::default()
        }
    });
    let link = it.link.iter().map(|link| Link {
        trace_id: link.trace.bytes().to_vec(),
        span_id: link.span.bytes().to_vec(),
        ..Link::default()
    });
    let status = it.failure.as_ref().map(|failure| Status {
        code: StatusCode::Error.into(),
        message: failure.message.as_ref().unwrap_or(&failure.kind).clone(),
    });
    Encoded {
        trace_id: it.trace.bytes().to_vec(),
        span_id: it.id.bytes().to_vec(),
        parent_span_id: it.parent.map(|it| it.bytes().to_vec()).unwrap_or_default(),
        name: it.name.clone(),
        kind: kind.into(),
        start_time_unix_nano: it.start_us.saturating_mul(NANOS),
        end_time_unix_nano: it.end_us.saturating_mul(NANOS),
        attributes: attributes(&it.attributes),
        events: exception.collect(),
        links: link.collect(),
        status,
        ..Encoded::default()
    }
}

pub(super) fn attributes(all: &[Attribute]) -> Vec<KeyValue> {
    let one = |(named, value): &Attribute| KeyValue {
        key: named.name.to_owned(),
        value: Some(any(value)),
        ..KeyValue::default()
    };
    all.iter().map(one).collect()
}

fn any(value: &Value) -> AnyValue {
    let text = |it: &String| any_value::Value::StringValue(it.clone());
    let value = match value {
        Value::Text(it) => text(it),
        Value::Whole(it) => any_value::Value::IntValue(*it),
        Value::Number(it) => any_value::Value::DoubleValue(*it),
        Value::Flag(it) => any_value::Value::BoolValue(*it),
        Value::Texts(all) => {
            let values = all.iter().map(|it| AnyValue { value: Some(text(it)) }).collect();
            any_value::Value::ArrayValue(ArrayValue { values })
        }
    };
    AnyValue { value: Some(value) }
}
