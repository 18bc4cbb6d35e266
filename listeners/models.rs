//! Models that listeners of a manifest may name, as a builder keeps them.

use std::sync::{Arc, LazyLock};

use pumphouse::model::{Model, Models};
use pumphouse::prelude::Builder;

/// Adds models to a builder.
///
/// ```
/// # extern crate pumphouse_listeners as pumphouse;
/// use std::sync::Arc;
/// use pumphouse::model::Scripted;
/// use pumphouse::prelude::*;
///
/// let mut builder = pumphouse::builder();
/// builder.model("fixed", Arc::new(Scripted::replies(["<response>42</response>"])));
/// assert!(builder.models().get("fixed").is_ok());
/// ```
///
/// A factory is given the models by [`Factory::with`](pumphouse::engine::Factory::with):
///
/// ```
/// # extern crate pumphouse_listeners as pumphouse;
/// use pumphouse::model::{Models, UnknownModel};
/// use pumphouse::prelude::*;
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Settings { model: String }
///
/// let poet = Factory::with("poet", |it: Settings, models: &Models| {
///     let model = models.get(&it.model)?;
///     Ok::<_, UnknownModel>(Listener::with_state("poet", model))
/// });
/// # let _ = poet;
/// ```
pub trait WithModels {
    /// Lets listeners of a manifest name this model. If two models have the same name, `build`
    /// complains.
    fn model(&mut self, name: impl Into<String>, model: Arc<dyn Model>);

    /// Returns the models that listeners of a manifest may name.
    fn models(&self) -> &Models;
}

impl WithModels for Builder {
    fn model(&mut self, name: impl Into<String>, model: Arc<dyn Model>) {
        let (name, mut models) = (name.into(), self.models().clone());
        let secrets = model.secrets().into_iter().map(|it| (format!("the model {name}"), it));
        let secrets = secrets.collect();
        if models.get(&name).is_ok() {
            let text = format!("more than one model is called {name}; give each a name of its own");
            return self.complain(text);
        }
        models.insert(name, model);
        self.put(models);
        self.secrets(secrets);
    }

    fn models(&self) -> &Models {
        static NONE: LazyLock<Models> = LazyLock::new(Models::default);

        self.values().get().unwrap_or(&NONE)
    }
}
