//! A test with a collector that is away for longer than the follower's pauses. Afterwards, the
//! collector gets every span.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use uuid::Uuid;

use super::*;
use written::Written;

#[path = "../../../otel/written.rs"]
#[allow(dead_code, reason = "the tests of the spans use all of it")]
mod written;

/// How many attempts find no collector.
const REFUSED: usize = 12;
/// How many requests the collector then answers as busy.
const BUSY: usize = 12;
const TURNS: u64 = 490;

/// A target that records how many spans wait and how often it tries to send them.
struct Watched {
    spans: Spans,
    most: Arc<AtomicUsize>,
    tries: usize,
    listen: Arc<Notify>,
}

impl Target for Watched {
    async fn take(&mut self, entry: Arc<Entry>) -> Result<(), Error> {
        self.spans.take(entry).await
    }

    fn has_waiting(&self) -> bool {
        self.spans.has_waiting()
    }

    async fn send(&mut self) -> Result<Sent, Unreachable> {
        self.most.fetch_max(self.spans.waiting.len(), Ordering::Relaxed);
        self.tries += 1;
        if self.tries == REFUSED {
            self.listen.notify_one();
        }
        self.spans.send().await
    }

    async fn settle(&mut self) -> Result<(), Unreachable> {
        self.spans.settle().await
    }

    async fn end(&mut self) {
        self.spans.end().await;
    }

    fn report_unreachable(&self, reason: &str) {
        self.spans.report_unreachable(reason);
    }

    fn report_reachable(&self) {
        self.spans.report_reachable();
    }
}

/// Reads a request, and returns its path and its body.
async fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        let mut some = [0; 8_192];
        let count = stream.read(&mut some).await.unwrap();
        assert!(count > 0, "a whole request comes");
        bytes.extend_from_slice(&some[..count]);
        let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
        let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).unwrap();
        if bytes.len() >= at + 4 + length.parse::<usize>().unwrap() {
            let path = head.split(' ').nth(1).unwrap().to_owned();
            return (path, bytes[at + 4..].to_vec());
        }
    }
}

/// Runs a collector that is busy at first. Returns the ids of `count` spans in the order in which
/// they came, and the last metrics.
async fn collect(port: u16, count: usize, stop: oneshot::Sender<()>) -> (Vec<Vec<u8>>, Vec<u8>) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let (mut stop, mut asked) = (Some(stop), 0);
    let (mut spans, mut metrics) = (Vec::new(), Vec::new());
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (path, body) = request(&mut stream).await;
        asked += 1;
        let is_busy = asked <= BUSY;
        let status = if is_busy { "503 Service Unavailable" } else { "200 OK" };
        let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        if is_busy {
            continue;
        }
        if path == "/v1/metrics" {
            metrics = body;
        } else {
            let request = ExportTraceServiceRequest::decode(&*body).unwrap();
            let scopes = request.resource_spans.into_iter().flat_map(|it| it.scope_spans);
            spans.extend(scopes.flat_map(|it| it.spans).map(|it| it.span_id));
        }
        if spans.len() >= count {
            stop.take().map_or(Ok(()), |it| it.send(())).unwrap();
        }
        // The metrics of all spans come at the end.
        if stop.is_none() && points(&metrics) == count as u64 {
            return (spans, metrics);
        }
    }
}

/// Returns how many requests the histogram of durations counts.
fn points(metrics: &[u8]) -> u64 {
    let request = ExportMetricsServiceRequest::decode(metrics).unwrap();
    let scopes = request.resource_metrics.into_iter().flat_map(|it| it.scope_metrics);
    let all = scopes.flat_map(|it| it.metrics);
    let durations = all.filter(|it| it.name == "gen_ai.client.inference.duration");
    let counts = durations.flat_map(|it| match it.data {
        Some(Data::Histogram(it)) => it.data_points,
        _ => Vec::new(),
    });
    counts.map(|it| it.count).sum()
}

#[tokio::test]
async fn a_collector_that_was_away_for_long_gets_every_span_once_and_in_order() {
    let mut written = Written::new().await;
    written.ask().await;
    for turn in 1..=TURNS {
        written.turn_begins(turn).await;
        written.turn_ends(turn, None).await;
    }
    let mut projection = Projection::new(written.log.clone());
    let mut all = Vec::new();
    for entry in written.log.tail(0, usize::MAX).await.unwrap() {
        all.extend(projection.take(&entry).await.unwrap());
    }
    let expected: Vec<Vec<u8>> = all.iter().map(|it| it.id.bytes().to_vec()).collect();
    assert_eq!(expected.len() as u64, TURNS);
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let (most, listen) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let log = written.log.clone();
    let spans = Spans {
        collector: Collector::new(&format!("http://127.0.0.1:{port}"), []).unwrap(),
        resource: Resource::new(None, Uuid::nil()),
        projection: Projection::new(log.clone()),
        waiting: Vec::new(),
        metrics: Some(SentMetrics::since(clock::now_us())),
    };
    let watched = Watched { spans, most: most.clone(), tries: 0, listen: listen.clone() };
    let position = KeptPosition::unkept(&*log, 0);
    let lag = Arc::new(AtomicU64::new(0));
    // The follower's pauses are 1 to 4 ms. All these failures take much longer.
    let follower = Follower::new(log, watched, position, lag.clone()).waiting((1_000, 4_000));
    let (stop, stopped) = oneshot::channel::<()>();
    let taken = Mutex::new((Vec::new(), Vec::new()));
    let collecting = async {
        listen.notified().await;
        let all = collect(port, expected.len(), stop).await;
        *taken.lock().unwrap() = all;
    };
    let following = follower.run(async move { drop(stopped.await) }, STOP_TIME_MAX_US);
    futures_util::future::join(following, collecting).await;
    let (spans, metrics) = taken.into_inner().unwrap();
    assert_eq!(spans, expected);
    assert_eq!(points(&metrics), TURNS);
    assert_eq!(lag.load(Ordering::Relaxed), 0);
    let most = most.load(Ordering::Relaxed);
    assert!((1..=256).contains(&most), "the log is the buffer, and {most} spans waited");
}
