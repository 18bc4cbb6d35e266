//! Writes the program's traces to the error output. Characters that would steer a terminal are
//! escaped, and long fields are cut.

use std::fmt;
use std::io::{self, Write};

use serde_json::Value;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::audit::{ascii, line};
use crate::wire::quoted;

/// Returns the format of fields for people.
pub(crate) fn fields() -> impl for<'a> FormatFields<'a> + 'static {
    let field = |to: &mut Writer<'_>, field: &tracing::field::Field, value: &dyn fmt::Debug| {
        let value = format!("{value:?}");
        match field.name() {
            "message" => write!(to, "{}", line(&value)),
            name => write!(to, "{name}={}", line(&quoted(&value))),
        }
    };
    debug_fn(field).delimited(" ")
}

/// A writer for traces in JSON, with one trace in each line.
pub(crate) struct Json;

impl<'a> MakeWriter<'a> for Json {
    type Writer = Json;

    fn make_writer(&'a self) -> Json {
        Json
    }
}

impl Write for Json {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = match serde_json::from_slice::<Value>(line) {
            Ok(mut it) => {
                cut(&mut it);
                it.to_string()
            }
            Err(_) => String::from_utf8_lossy(line).trim_end().to_owned(),
        };
        io::stderr().write_all(format!("{}\n", ascii(&text)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Cuts each long text in a trace, except its message.
fn cut(it: &mut Value) {
    match it {
        Value::String(text) => *text = quoted(text).into_owned(),
        Value::Array(all) => all.iter_mut().for_each(cut),
        Value::Object(all) => {
            all.iter_mut().filter(|(name, _)| *name != "message").for_each(|(_, it)| cut(it));
        }
        _ => {}
    }
}
