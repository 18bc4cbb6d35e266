//! Implements `Plugin` for listeners, logs, factories, functions that take a builder, and
//! collections of plugins.

use std::sync::Arc;

use crate::engine::build::builder::{Builder, Plugin};
use crate::engine::build::factory::Factory;
use crate::listener::Listener;
use crate::log::MemoryLog;
#[cfg(feature = "sqlite")]
use crate::log::SqliteLog;

#[diagnostic::do_not_recommend]
impl<F: FnOnce(&mut Builder)> Plugin for F {
    fn install(self, builder: &mut Builder) {
        self(builder);
    }
}

impl<S> Plugin for Listener<S> {
    fn install(self, builder: &mut Builder) {
        builder.listener(self);
    }
}

impl<P: Plugin> Plugin for Vec<P> {
    fn install(self, builder: &mut Builder) {
        self.into_iter().for_each(|it| it.install(builder));
    }
}

impl<P: Plugin> Plugin for Option<P> {
    fn install(self, builder: &mut Builder) {
        self.into_iter().for_each(|it| it.install(builder));
    }
}

impl Plugin for MemoryLog {
    fn install(self, builder: &mut Builder) {
        builder.log(Arc::new(self));
    }
}

#[cfg(feature = "sqlite")]
impl Plugin for SqliteLog {
    fn install(self, builder: &mut Builder) {
        builder.log(Arc::new(self));
    }
}

macro_rules! tuples {
    ($([$($P:ident)+])*) => { $(
        #[diagnostic::do_not_recommend]
        impl<$($P: Plugin),+> Plugin for ($($P,)+) {
            #[allow(non_snake_case, reason = "a plugin's variable has its type's name")]
            fn install(self, builder: &mut Builder) {
                let ($($P,)+) = self;
                $($P.install(builder);)+
            }
        }
    )* };
}

tuples!([A] [A B] [A B C] [A B C D] [A B C D E] [A B C D E G] [A B C D E G H] [A B C D E G H I]);

impl Plugin for Factory {
    fn install(self, builder: &mut Builder) {
        builder.factory(self);
    }
}
