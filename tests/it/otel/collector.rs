//! A collector for tests: it keeps what is sent to it, and answers as the test says.

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

pub(super) struct Collector {
    port: u16,
    status: Arc<AtomicU16>,
    bytes_max: Arc<AtomicUsize>,
    taken: Receiver<Vec<u8>>,
    metrics: Receiver<Vec<u8>>,
}

impl Collector {
    pub(super) fn start() -> Collector {
        Collector::at(0)
    }

    /// At this port.
    pub(super) fn at(port: u16) -> Collector {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (status, bytes_max) =
            (Arc::new(AtomicU16::new(200)), Arc::new(AtomicUsize::new(usize::MAX)));
        let (take, taken) = sync_channel(1_000);
        let (take_metrics, metrics) = sync_channel(1_000);
        let answers = Answers {
            status: status.clone(),
            bytes_max: bytes_max.clone(),
            taken: take,
            metrics: take_metrics,
        };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client may open a second connection before it closes the first.
                let (stream, answers) = (stream.unwrap(), answers.clone());
                std::thread::spawn(move || answers.serve(stream));
            }
        });
        Collector { port, status, bytes_max, taken, metrics }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Answers this from here on; what it doesn't answer with 200 it doesn't keep.
    pub(super) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    pub(super) fn take_at_most(&self, bytes: usize) {
        self.bytes_max.store(bytes, Ordering::SeqCst);
    }

    /// The next batch.
    #[track_caller]
    pub(super) fn next(&self) -> Vec<u8> {
        self.taken.recv_timeout(Duration::from_secs(60)).expect("a batch comes")
    }

    /// The next metrics.
    #[track_caller]
    pub(super) fn next_metrics(&self) -> ExportMetricsServiceRequest {
        let body = self.metrics.recv_timeout(Duration::from_secs(60)).expect("metrics come");
        ExportMetricsServiceRequest::decode(&*body).unwrap()
    }

    /// The next batch, if one comes within the time.
    pub(super) fn within(&self, time: Duration) -> Option<Vec<u8>> {
        self.taken.recv_timeout(time).ok()
    }
}

/// What each connection is answered, and where what it sends goes.
#[derive(Clone)]
struct Answers {
    status: Arc<AtomicU16>,
    bytes_max: Arc<AtomicUsize>,
    taken: SyncSender<Vec<u8>>,
    metrics: SyncSender<Vec<u8>>,
}

impl Answers {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some((head, body)) = request(&mut reader) {
            let is_metrics = head.starts_with("POST /v1/metrics HTTP/1.1\r\n");
            let is_traces = head.starts_with("POST /v1/traces HTTP/1.1\r\n");
            assert!(is_metrics || is_traces, "{head}");
            assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
            let status = match self.bytes_max.load(Ordering::SeqCst) < body.len() {
                true => 413,
                false => self.status.load(Ordering::SeqCst),
            };
            let take = if is_metrics { &self.metrics } else { &self.taken };
            // The test may be over.
            if status == 200 && take.send(body).is_err() {
                return;
            }
            let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
            if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// A request's head and body.
fn request(from: &mut impl std::io::BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|it| it.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    from.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// The spans of a batch.
pub(super) fn decoded(batch: &[u8]) -> Vec<Span> {
    let request = ExportTraceServiceRequest::decode(batch).unwrap();
    let scopes = request.resource_spans.into_iter().flat_map(|it| it.scope_spans);
    scopes.flat_map(|it| it.spans).collect()
}

/// An attribute of a span, as text.
pub(super) fn text(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|it| it.key == name);
    match found.and_then(|it| it.value.clone()?.value) {
        Some(Value::StringValue(it)) => it,
        Some(Value::IntValue(it)) => it.to_string(),
        other => panic!("{name} of {}: {other:?}", span.name),
    }
}
