//! What needs the listeners and the doors: the lists of all kinds of listeners, and the metrics of
//! models.

mod kinds;
mod model_metrics;

pub use kinds::{
    accepting_factories, asking_factories, factories, live_factories, standard, usual,
};
pub use model_metrics::model_metrics;
