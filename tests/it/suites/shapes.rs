//! Documents in shapes that hurt parsers, at several sizes. Each gets the right verdict, and none
//! takes more memory than its size explains. `just shapes` measures the time.

pub(crate) mod make;

use allocation_counter::AllocationInfo;
use pumphouse::limits::XmlLimits;
use pumphouse::xml::{Kind, Profile, read};

use super::stream::assert_same_in_any_chunks;
use make::{SHAPES, Shape};

const SIZES: [usize; 3] = [64 << 10, 128 << 10, 256 << 10];
/// What may be needed whatever the size.
const SLACK: u64 = 16 << 10;
/// Beside the bytes themselves, what one byte of an accepted document may cost while it is read.
const TIMES_MAX: f64 = 3.0;

/// Nothing is too large, so that what keeps it linear is not a limit.
fn open(bytes: usize) -> XmlLimits {
    let mut limits = XmlLimits::FILE;
    limits.message_bytes_max = 8 * bytes;
    limits.depth_max = usize::MAX;
    limits.attributes_max = usize::MAX;
    limits.name_bytes_max = usize::MAX;
    limits.declarations_max = usize::MAX;
    limits.bindings_max = usize::MAX;
    limits
}

fn measure(shape: &Shape, bytes: &[u8], limits: &XmlLimits) -> (Option<Kind>, AllocationInfo) {
    let mut verdict = None;
    let cost = allocation_counter::measure(|| {
        verdict = read(bytes, Profile::Document, limits).err().map(|it| it.kind);
    });
    assert_eq!(cost.bytes_current, 0, "{}", shape.name);
    (verdict, cost)
}

#[test]
fn every_shape_gets_its_verdict_at_every_size() {
    for shape in SHAPES {
        for size in SIZES {
            let bytes = (shape.make)(size);
            let (verdict, _) = measure(shape, &bytes, &open(bytes.len()));
            assert_eq!(verdict, shape.refused, "{}, {size} bytes, no limits", shape.name);
            let (verdict, _) = measure(shape, &bytes, &XmlLimits::DOOR);
            assert_eq!(verdict, shape.at_a_door, "{}, {size} bytes, a door", shape.name);
        }
    }
}

#[test]
fn no_shape_needs_more_than_its_size_explains() {
    for shape in SHAPES {
        let costs = SIZES.map(|size| {
            let bytes = (shape.make)(size);
            let (_, cost) = measure(shape, &bytes, &open(bytes.len()));
            let times = cost.bytes_max as f64 / bytes.len() as f64;
            println!("{:42} {:8} peak x{times:.2} {}", shape.name, bytes.len(), cost.count_total);
            cost
        });
        for pair in costs.windows(2) {
            let (half, whole) = (pair[0], pair[1]);
            let most = half.bytes_total * 5 / 2 + SLACK;
            assert!(whole.bytes_total <= most, "{}: {half:?}, {whole:?}", shape.name);
            let most = half.count_total * 5 / 2 + 64;
            assert!(whole.count_total <= most, "{}: {half:?}, {whole:?}", shape.name);
        }
    }
}

#[test]
fn a_door_needs_little_more_memory_than_what_it_reads() {
    for shape in SHAPES {
        for size in SIZES {
            let bytes = (shape.make)(size);
            let (_, cost) = measure(shape, &bytes, &XmlLimits::DOOR);
            let times = cost.bytes_max.saturating_sub(SLACK) as f64 / bytes.len() as f64;
            println!("{:42} {:8} door x{times:.2}", shape.name, bytes.len());
            assert!(times <= TIMES_MAX, "{}, {size} bytes: {times}", shape.name);
        }
    }
}

#[test]
fn every_shape_is_the_same_in_any_chunks() {
    for shape in SHAPES {
        let bytes = (shape.make)(SIZES[0]);
        assert_same_in_any_chunks(shape.name, &bytes, XmlLimits::DOOR);
    }
}
