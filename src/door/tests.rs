//! Sessions without sockets.
