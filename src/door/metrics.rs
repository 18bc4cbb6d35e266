//! A door that shows a pump's metrics in Prometheus's text format over HTTP. It accepts no pushes,
//! and shows no payloads, tokens or identities.

use std::fmt::{self, Write as _};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs, lookup_host};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::door::error::Error;
use crate::door::peer;
use crate::door::peer::Peer;
use crate::door::tcp::is_local;
use crate::engine::{self, Builder, Door, Plugin, Port, Pump, Stage, Tokio};
use crate::listener::Boxed;
use crate::wire::{Code, Fault};

/// The most connections at once: enough for a few scrapers with a connection or two each.
const CONNECTIONS_MAX: usize = 16;

/// How long one connection may last. A client may connect again.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(60);

/// How long to wait if the system has no descriptor left for another connection.
const PAUSE_US: u64 = 50_000;

/// The content type of Prometheus's text format.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A door that shows metrics over HTTP at the path `/metrics`.
///
/// ```
/// # extern crate pumphouse_door as pumphouse;
/// use pumphouse::door::Metrics;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let door = Metrics::bind("127.0.0.1:0").await?;
/// println!("metrics at http://{}/metrics", door.local_addr());
/// let pump = pumphouse::builder().with(door).build()?.start();
/// # pump.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Metrics {
    listener: TcpListener,
    address: SocketAddr,
    sources: Vec<Source>,
    gauges: Vec<Gauge>,
}

/// Reads metrics of another part of the program, each time that the page is shown.
#[derive(Clone)]
struct Source(Arc<dyn Fn() -> Vec<Family> + Send + Sync>);

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

/// Metrics of one name, which differ by their labels.
///
/// ```
/// # extern crate pumphouse_door as pumphouse;
/// use pumphouse::door::Family;
///
/// let family = Family::gauge("rooms", "Rooms of the house.");
/// let family = family.value(&[("floor", "1")], 4).value(&[("floor", "2")], 3);
/// # let _ = family;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    values: Vec<(Vec<(&'static str, String)>, u64)>,
}

impl Family {
    /// Values that go up and down. Their name is `pumphouse_` followed by `name`.
    #[must_use]
    pub fn gauge(name: &'static str, help: &'static str) -> Family {
        Family { name, kind: "gauge", help, values: Vec::new() }
    }

    /// Values that only go up. Their name is `pumphouse_` followed by `name`.
    #[must_use]
    pub fn counter(name: &'static str, help: &'static str) -> Family {
        Family { kind: "counter", ..Family::gauge(name, help) }
    }

    /// Adds a value with its labels.
    #[must_use]
    pub fn value(mut self, labels: &[(&'static str, &str)], value: u64) -> Family {
        let labels = labels.iter().map(|(label, text)| (*label, (*text).to_owned()));
        self.values.push((labels.collect(), value));
        self
    }
}

/// A gauge whose value another part of the program sets.
#[derive(Clone, Debug)]
struct Gauge {
    name: &'static str,
    help: &'static str,
    /// The name and the value of the label that distinguishes gauges of one name.
    label: Option<(&'static str, String)>,
    value: Arc<AtomicU64>,
}

impl Metrics {
    /// Listens at an address that only this machine can reach.
    ///
    /// # Errors
    /// If the system doesn't let the door listen at the address, or if other machines can reach it:
    /// the door asks for no tokens.
    pub async fn bind(address: impl ToSocketAddrs) -> Result<Metrics, Error> {
        Metrics::listen(address, is_local).await
    }

    /// Listens at an address that other machines may reach. This is for networks that keep
    /// strangers away, such as a container's.
    ///
    /// # Errors
    /// If the system doesn't let the door listen at the address.
    pub async fn bind_to_anyone(address: impl ToSocketAddrs) -> Result<Metrics, Error> {
        Metrics::listen(address, |_| true).await
    }

    async fn listen(
        address: impl ToSocketAddrs,
        is_fit: fn(IpAddr) -> bool,
    ) -> Result<Metrics, Error> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no such address");
        for address in lookup_host(address).await.map_err(Error::Address)? {
            if !is_fit(address.ip()) {
                return Err(Error::Shown(address));
            }
            match TcpListener::bind(address).await {
                Ok(listener) => {
                    let address = listener.local_addr().map_err(Error::Address)?;
                    return Ok(Metrics {
                        listener,
                        address,
                        sources: Vec::new(),
                        gauges: Vec::new(),
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(Error::Address(last))
    }

    /// Also shows metrics of another part of the program. The function is called each time that the
    /// page is shown.
    #[must_use]
    pub fn source(mut self, read: impl Fn() -> Vec<Family> + Send + Sync + 'static) -> Metrics {
        self.sources.push(Source(Arc::new(read)));
        self
    }

    /// Also shows a gauge whose name is `pumphouse_` followed by `name`.
    #[must_use]
    pub fn gauge(
        mut self,
        name: &'static str,
        help: &'static str,
        value: Arc<AtomicU64>,
    ) -> Metrics {
        self.gauges.push(Gauge { name, help, label: None, value });
        self
    }

    /// Also shows one of several gauges that have the same name and differ by a label. Gauges of
    /// one name must be added one after another.
    #[must_use]
    pub fn labelled_gauge(
        mut self,
        name: &'static str,
        help: &'static str,
        label: (&'static str, &str),
        value: Arc<AtomicU64>,
    ) -> Metrics {
        let label = Some((label.0, label.1.to_owned()));
        self.gauges.push(Gauge { name, help, label, value });
        self
    }

    /// The address that the door listens at.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

/// What the page shows.
#[derive(Clone)]
struct Shown {
    pump: Pump,
    sources: Arc<[Source]>,
    gauges: Arc<[Gauge]>,
}

impl Plugin for Metrics {
    fn install(self, builder: &mut Builder) {
        builder.door(self);
    }
}

impl Door for Metrics {
    fn serve(self: Box<Self>, pump: Pump) -> Boxed<'static, ()> {
        Box::pin(serve(*self, pump))
    }
}

/// Shows the metrics until the pump has finished its work, so that scrapers can watch it stop.
async fn serve(
    Metrics { listener, address, sources, gauges }: Metrics,
    pump: Pump,
) -> Result<(), Fault> {
    let port = Tokio::current();
    let (mut stage, limits) = (pump.stage(), pump.limits().clone());
    let mut drained = stage.clone();
    let watchers = Watchers {
        listener,
        port: port.clone(),
        places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
    };
    let shown = Shown { pump, sources: sources.into(), gauges: gauges.into() };
    let routes = Router::new().route("/metrics", get(show)).with_state(shown);
    let serving = axum::serve(watchers, routes).with_graceful_shutdown(async move {
        // An error means that the pump is gone.
        drop(drained.wait_for(|it| *it == Stage::Drained).await);
    });
    tracing::info!(%address, "a door for metrics is open");
    let over = async {
        drop(stage.wait_for(|it| *it == Stage::Drained).await);
        let linger = u64::try_from(limits.linger_time_max.as_micros()).unwrap_or(u64::MAX);
        port.sleep_until(port.now_us().saturating_add(linger)).await;
    };
    tokio::select! {
        served = serving => {
            served.map_err(|error| Fault::new(Code::Broken, error.to_string()))?;
        }
        // The stop doesn't wait for a client that doesn't read its answer.
        () = over => {}
    }
    tracing::info!(%address, "a door for metrics is closed");
    Ok(())
}

async fn show(State(Shown { pump, sources, gauges }): State<Shown>) -> impl IntoResponse {
    let tasks = Handle::current().metrics().num_alive_tasks();
    let mut page = text(&pump.metrics(), tasks);
    sources.iter().flat_map(|it| it.0()).for_each(|it| page.family(&it));
    let mut last = "";
    for gauge in &*gauges {
        if gauge.name != last {
            page.head(gauge.name, "gauge", gauge.help);
        }
        last = gauge.name;
        let label = gauge.label.as_ref().map(|(label, text)| (*label, text.as_str()));
        page.line(gauge.name, label.as_slice(), gauge.value.load(Ordering::Relaxed));
    }
    ([(CONTENT_TYPE, FORMAT)], page.0)
}

/// Returns the pump's metrics as text.
fn text(metrics: &engine::Metrics, tasks: usize) -> MetricsText {
    let mut page = MetricsText(String::with_capacity(4_096));
    page.one("uptime_seconds", "gauge", "Seconds since the pump started.", {
        metrics.uptime.as_secs_f64()
    });
    page.one("entries_total", "counter", "Entries appended to the log.", metrics.entries);
    page.one("pushes_accepted_total", "counter", "Pushes that were accepted.", metrics.accepted);
    page.head("refusals_total", "counter", "Pushes that were refused, by fault.");
    for code in Code::ALL {
        let count = metrics.refused.get(code).copied().unwrap_or(0);
        page.line("refusals_total", &[("fault", &code.to_string())], count);
    }
    page.head("handlers_total", "counter", "Handlers that came to an end, by listener and how.");
    for handled in &metrics.handled {
        let outcomes = [
            ("returned", handled.returned),
            ("failed", handled.failed),
            ("panicked", handled.panicked),
            ("stopped", handled.stopped),
        ];
        for (outcome, count) in outcomes {
            let labels = [("listener", &*handled.listener), ("outcome", outcome)];
            page.line("handlers_total", &labels, count);
        }
    }
    let held_up = "Messages that waited, since as many handlers of their listener ran as may.";
    page.head("held_up_total", "counter", held_up);
    for handled in &metrics.handled {
        page.line("held_up_total", &[("listener", &*handled.listener)], handled.held_up);
    }
    page.one("connections", "gauge", "Connections that are open.", metrics.connections);
    let owed = "Bytes that wait for clients to read them.";
    page.one("owed_bytes", "gauge", owed, metrics.owed_bytes);
    page.one("inbox_depth", "gauge", "What waits in the workers' inboxes.", metrics.inbox);
    let awake = "Trees of threads that are in memory.";
    page.one("trees_awake", "gauge", awake, metrics.trees_awake);
    page.one("tasks", "gauge", "Tasks of the runtime that are alive.", tasks);
    page.one("log_commit", "gauge", "The number of the log's last commit.", metrics.commit);
    page.head("log_health", "gauge", "How the log is: 1 at the state that it has.");
    for (state, is_so) in metrics.health.states() {
        page.line("log_health", &[("state", state)], u8::from(is_so));
    }
    page
}

/// A page in Prometheus's text format 0.0.4.
struct MetricsText(String);

impl MetricsText {
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl fmt::Display) {
        self.head(name, kind, help);
        self.line(name, &[], value);
    }

    fn family(&mut self, Family { name, kind, help, values }: &Family) {
        self.head(name, kind, help);
        for (labels, value) in values {
            let labels: Vec<_> = labels.iter().map(|(label, it)| (*label, it.as_str())).collect();
            self.line(name, &labels, value);
        }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string can't fail.
        let _ = writeln!(self.0, "# HELP pumphouse_{name} {help}");
        let _ = writeln!(self.0, "# TYPE pumphouse_{name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.0.push_str("pumphouse_");
        self.0.push_str(name);
        for (number, (label, text)) in labels.iter().enumerate() {
            self.0.push(if number == 0 { '{' } else { ',' });
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{label}=\"{text}\"");
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }
}

/// Accepts a bounded number of connections, each for a bounded time.
struct Watchers {
    listener: TcpListener,
    port: Tokio,
    places: Arc<Semaphore>,
}

impl axum::serve::Listener for Watchers {
    type Io = Watcher;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Watcher, SocketAddr) {
        let place = self.places.clone().acquire_owned().await.ok();
        loop {
            let now_us = self.port.now_us();
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let Ok(own) = stream.local_addr() else { continue };
                    if peer::of_tcp(peer, own).await == Peer::Descendant {
                        tracing::debug!("a program of the pump's isn't shown its metrics");
                        continue;
                    }
                    let wait = CONNECTION_TIME_MAX.as_micros();
                    let wait = u64::try_from(wait).unwrap_or(u64::MAX);
                    let until = self.port.now_us().saturating_add(wait);
                    let over: Boxed<'static, ()> = {
                        let port = self.port.clone();
                        Box::pin(async move {
                            port.sleep_until(until).await;
                            Ok(())
                        })
                    };
                    return (Watcher { stream, over, _place: place }, peer);
                }
                Err(error) => {
                    tracing::debug!(%error, "no connection can be accepted now; trying on");
                    self.port.sleep_until(now_us.saturating_add(PAUSE_US)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when its time is up.
struct Watcher {
    stream: TcpStream,
    over: Boxed<'static, ()>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Watcher {
    fn in_time(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let over = self.over.as_mut().poll(context);
        if over.is_ready() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

impl AsyncRead for Watcher {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.in_time(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watcher {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.in_time(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_escaped() {
        for (text, expected) in [
            ("echo", "pumphouse_x{a=\"echo\",b=\"1\"} 7\n"),
            ("a\"b\\c\nd", "pumphouse_x{a=\"a\\\"b\\\\c\\nd\",b=\"1\"} 7\n"),
        ] {
            let mut page = MetricsText(String::new());
            page.line("x", &[("a", text), ("b", "1")], 7);
            assert_eq!(page.0, expected);
        }
    }
}
