//! Measures the floors.

use crate::floors::{APPEND, PASS, SYNC, append, unwritten};
use crate::output::Failure;
use crate::row::{Figure, Row};
use crate::sitting::Sitting;

pub(crate) fn rows(sitting: &mut Sitting) -> Result<(), Failure> {
    if sitting.wants(PASS, None) {
        let per_second = 1e6 / sitting.pass_us();
        sitting.show(&Row::new(PASS, None).figure(Figure::PerSecond(per_second)))?;
    }
    if sitting.wants(SYNC, None) {
        let row = Row::new(SYNC, None).waits(sitting.sync()?);
        sitting.show(&row)?;
    }
    if sitting.wants(APPEND, None) {
        let per_second =
            append(sitting.folder(), sitting.times(500_000.0)).map_err(|it| unwritten(&it))?;
        sitting.show(&Row::new(APPEND, None).figure(Figure::PerSecond(per_second)))?;
    }
    Ok(())
}
