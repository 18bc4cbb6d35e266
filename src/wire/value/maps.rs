//! Maps: an element with one `<entry key="…">` for each key.

use std::collections::BTreeMap;

use super::{Item, Names, Part};
use crate::schema::walk::{At, entries};
use crate::schema::{ENTRY, Error, Field, KEY, Kind, Occurs};
use crate::xml::Writer;

impl<T: Part> Item for BTreeMap<String, T> {
    const HAS_TWO_KEYS: bool = T::HAS_KEY;
    const NAMES: Names = Names::Field;

    fn kind() -> Kind {
        Kind::Map(Box::new(Field::new(ENTRY, T::DOC, T::kind(), Occurs::Many)))
    }

    fn write(&self, namespace: &str, local: &str, to: &mut Writer) {
        to.start(namespace, local);
        for (key, value) in self {
            to.start(namespace, ENTRY);
            to.attribute(KEY, key);
            value.write(namespace, to);
            to.end();
        }
        to.end();
    }

    fn read(at: At<'_>) -> Result<BTreeMap<String, T>, Error> {
        let mut map = BTreeMap::new();
        entries(at, &mut |key, at| {
            map.insert(key.to_owned(), T::read(at)?);
            Ok(())
        })?;
        Ok(map)
    }
}
