#[global_allocator]
static A: mimalloc::MiMalloc = mimalloc::MiMalloc;
use pumphouse::prelude::*;
/// Counts down.
#[derive(Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
struct Down {
    n: u64,
    text: String,
}
async fn down(Down { n, text }: Down) -> Option<Again<Down>> {
    (n > 0).then(|| Again(Down { n: n - 1, text }))
}
fn main() {
    let workers = std::env::args().nth(1).map_or(2, |it| it.parse().unwrap());
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .unwrap();
    rt.block_on(async {
        let pump = pumphouse::builder()
            .with(Listener::new("down").on(down).inline().pure())
            .workers(workers)
            .build()
            .unwrap()
            .start();
        let n = 100;
        let k = std::env::args().nth(2).map_or(2000, |it| it.parse().unwrap());
        let t = std::time::Instant::now();
        let asks: Vec<_> = (0..n)
            .map(|_| {
                let p = pump.clone();
                tokio::spawn(
                    async move { p.ask::<Done>(Down { n: k, text: "x".repeat(60) }).await },
                )
            })
            .collect();
        for a in asks {
            let _ = a.await.unwrap();
        }
        let s = t.elapsed().as_secs_f64();
        println!("{:.0} hops/s", (n * k) as f64 / s);
    });
}
