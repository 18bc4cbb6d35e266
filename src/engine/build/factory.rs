//! Factories make listeners by name, from settings that are known only at run time.
//!
//! A factory knows no YAML: it reads settings from any serde deserializer.

use std::any::Any;
use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::engine::build::values::Values;
use crate::listener::Listener;

/// Makes listeners. A manifest names the factory with `use:`.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::prelude::*;
/// use serde::Deserialize;
///
/// /// Wants to be greeted.
/// #[derive(Payload)]
/// #[payload(ns = "https://example.org/ns/greeter/v1")]
/// struct Greet { name: String }
///
/// /// A greeting.
/// #[derive(Payload)]
/// #[payload(ns = "https://example.org/ns/greeter/v1")]
/// struct Greeting { text: String }
///
/// #[derive(Clone, Deserialize)]
/// struct Settings { word: String }
///
/// async fn greet(State(it): State<Settings>, Greet { name }: Greet) -> Greeting {
///     Greeting { text: format!("{}, {name}!", it.word) }
/// }
///
/// let greeter = Factory::new("greeter", |it: Settings| {
///     Listener::with_state("greeter", it).on(greet)
/// });
/// let builder = pumphouse::builder().with(greeter);
/// # let _ = builder;
/// ```
///
/// With `- {use: greeter, settings: {word: Hello}}` among the `listeners` of a manifest, the pump
/// has a greeter that says "Hello".
pub struct Factory {
    name: String,
    make: Box<Make>,
    beforehand: Option<Box<Beforehand>>,
}

type Make =
    dyn Fn(&mut dyn erased_serde::Deserializer<'_>, &Values) -> Result<Listener, Unmade> + Send;

type Beforehand = dyn Fn(&mut dyn erased_serde::Deserializer<'_>) + Send;

impl Factory {
    /// Creates a factory that makes listeners from settings of the type `T`.
    pub fn new<T: DeserializeOwned, M: Makes>(
        name: impl Into<String>,
        make: impl Fn(T) -> M + Send + 'static,
    ) -> Factory {
        Factory::with(name, move |settings, (): &()| make(settings))
    }

    /// Creates a factory that makes listeners from settings of the type `T`, and from the value of
    /// the type `V` that the builder keeps, or else the type's default.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    /// use serde::Deserialize;
    ///
    /// /// Words by the languages that settings name.
    /// #[derive(Default)]
    /// struct Words(Vec<(String, String)>);
    ///
    /// #[derive(Deserialize)]
    /// struct Settings { language: String }
    ///
    /// let poet = Factory::with("poet", |it: Settings, words: &Words| {
    ///     let word = words.0.iter().find(|(language, _)| *language == it.language);
    ///     let (_, word) = word.ok_or("nobody knows this language")?;
    ///     Ok::<_, &str>(Listener::with_state("poet", word.clone()))
    /// });
    /// let mut builder = pumphouse::builder().with(poet);
    /// builder.put(Words(vec![("English".to_owned(), "rose".to_owned())]));
    /// ```
    ///
    /// Models are such a value, so a setting can name one. By convention the key of this setting is
    /// `model`, so that an unknown model is reported at this setting.
    pub fn with<T: DeserializeOwned, V: Any + Default + Send + Sync, M: Makes>(
        name: impl Into<String>,
        make: impl Fn(T, &V) -> M + Send + 'static,
    ) -> Factory {
        let make = move |settings: &mut dyn erased_serde::Deserializer<'_>, values: &Values| {
            let settings = T::deserialize(settings).map_err(Unmade::Settings)?;
            let made = match values.get() {
                Some(value) => make(settings, value),
                None => make(settings, &V::default()),
            };
            made.made().map_err(Unmade::Refused)
        };
        Factory { name: name.into(), make: Box::new(make), beforehand: None }
    }

    /// Has a function called with the settings of every listener that this factory is to make, in
    /// order, before the first of them is made. So work that takes long can be done side by side.
    /// Settings that can't be read are left out.
    #[must_use]
    pub fn beforehand<T: DeserializeOwned>(self, prepare: impl Fn(T) + Send + 'static) -> Factory {
        let prepare = move |settings: &mut dyn erased_serde::Deserializer<'_>| {
            if let Ok(settings) = T::deserialize(settings) {
                prepare(settings);
            }
        };
        Factory { beforehand: Some(Box::new(prepare)), ..self }
    }

    /// Creates a factory that makes listeners without settings.
    pub fn plain<M: Makes>(
        name: impl Into<String>,
        make: impl Fn() -> M + Send + 'static,
    ) -> Factory {
        Factory::new(name, move |_: Nothing| make())
    }

    /// Returns the factory's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the factory has something to do before its first listener is made.
    #[must_use]
    pub fn prepares(&self) -> bool {
        self.beforehand.is_some()
    }

    /// Does what is to be done for these settings before the first listener is made.
    pub fn prepare(&self, settings: &mut dyn erased_serde::Deserializer<'_>) {
        if let Some(prepare) = &self.beforehand {
            prepare(settings);
        }
    }

    /// Makes a listener from settings, and from one of these values if the factory needs one.
    ///
    /// # Errors
    /// If the settings can't be read, or the factory refuses them.
    pub fn make(
        &self,
        settings: &mut dyn erased_serde::Deserializer<'_>,
        values: &Values,
    ) -> Result<Listener, Unmade> {
        (self.make)(settings, values)
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Factory").field(&self.name).finish()
    }
}

/// Empty settings, for listeners without settings.
#[derive(Deserialize)]
struct Nothing {}

/// The return value of a [`Factory`]'s function: a listener, or an error that says what is wrong
/// with the settings.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no listener",
    note = "a factory returns a `Listener`, or a `Result` of one and of why the settings won't do"
)]
pub trait Makes {
    /// Returns the listener without the type of its state.
    ///
    /// # Errors
    /// If the settings are unsuitable. The error says why, in a sentence.
    fn made(self) -> Result<Listener, String>;
}

impl<S> Makes for Listener<S> {
    fn made(self) -> Result<Listener, String> {
        Ok(self.stateless())
    }
}

impl<S, E: fmt::Display> Makes for Result<Listener<S>, E> {
    fn made(self) -> Result<Listener, String> {
        self.map(Listener::stateless).map_err(|it| it.to_string())
    }
}

/// The reason why a factory made no listener.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unmade {
    /// The settings can't be read.
    Settings(erased_serde::Error),
    /// The settings were read and refused.
    Refused(String),
}

impl fmt::Display for Unmade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmade::Settings(error) => write!(f, "{error}"),
            Unmade::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Unmade {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Rose(&'static str);

    #[test]
    fn a_factory_is_given_the_value_of_its_type_or_else_the_default() {
        let factory = Factory::with("poet", |Nothing {}, rose: &Rose| match rose.0 {
            "" => Err("there is no rose"),
            name => Ok(Listener::new(name)),
        });
        let make = |values: &Values| {
            let nothing = serde_json::json!({});
            let made =
                factory.make(&mut <dyn erased_serde::Deserializer<'_>>::erase(&nothing), values);
            made.map(|it| it.name().to_owned()).map_err(|it| it.to_string())
        };
        let mut values = Values::default();
        values.put("another type");
        assert_eq!(make(&values), Err("there is no rose".to_owned()));
        values.put(Rose("red"));
        assert_eq!(make(&values), Ok("red".to_owned()));
    }
}
