//! Listeners whose payloads go by the listener's name, so that two of a kind stand side by side:
//! which names they own, and how a payload gets from one namespace into another.

use crate::limits::XmlLimits;
use crate::listener::{Emit, Need, Spec, Way};
use crate::name::{Name, namespace_of};
use crate::wire::Fault;
use crate::xml::{Child, Element, View, Writer};

/// From one namespace into another.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Move {
    /// From the namespace of one listener into that of another; none where they are one.
    pub(crate) fn between(from: &str, to: &str) -> Option<Move> {
        (from != to).then(|| Move { from: namespace_of(from), to: namespace_of(to) })
    }

    /// The way back.
    pub(crate) fn reversed(&self) -> Move {
        Move { from: self.to.clone(), to: self.from.clone() }
    }

    fn name(&self, it: &Name) -> Name {
        match it.namespace() == self.from {
            true => Name::new(self.to.clone(), it.local().to_owned()),
            false => it.clone(),
        }
    }

    /// The payload with its elements of the one namespace in the other.
    pub(crate) fn element(&self, it: &Element) -> Result<Element, Fault> {
        let mut writer = Writer::new(XmlLimits::INSIDE);
        self.write(it.view(), &mut writer);
        Ok(writer.finish()?)
    }

    fn write(&self, view: View<'_>, writer: &mut Writer) {
        if view.namespace() != self.from {
            return writer.element(view);
        }
        writer.start(&self.to, view.local());
        for it in view.attributes().filter(|it| it.namespace.is_empty()) {
            writer.attribute(it.local, it.value);
        }
        for child in view.children() {
            match child {
                Child::Text(text) => writer.text(text),
                Child::Element(it) => self.write(it, writer),
            }
        }
        writer.end();
    }

    /// What a handler emits; what can't be moved is a fault to the sender.
    pub(crate) fn emit(&self, mut emit: Emit) -> Emit {
        for emission in &mut emit {
            let Ok(what) = &mut emission.what else { continue };
            match self.element(&what.element) {
                Ok(element) => {
                    what.element = element;
                    what.typed = what.typed.as_ref().map(|it| self.name(it));
                }
                Err(fault) => emission.what = Err(fault),
            }
        }
        emit
    }

    /// All that a listener owns and emits.
    pub(crate) fn spec(&self, spec: &mut Spec) {
        for need in &mut spec.needs {
            if let Need::Accept(it) | Need::Emit(it) = need
                && it.name.namespace() == self.from
            {
                let schema = it.to_mut();
                schema.name = self.name(&schema.name);
            }
        }
        let names = |all: &mut Vec<Name>| all.iter_mut().for_each(|it| *it = self.name(it));
        names(&mut spec.no_replies);
        spec.emits_then = spec.emits_then.iter().map(|it| self.name(it)).collect();
        let emits = std::mem::take(&mut spec.emits).into_iter();
        spec.emits = emits
            .map(|(name, mut all)| {
                names(&mut all);
                (self.name(&name), all)
            })
            .collect();
        for (way, _) in &mut spec.handlers {
            if let Way::Route(name) | Way::Reply(name) = way {
                *name = self.name(name);
            }
        }
    }
}
