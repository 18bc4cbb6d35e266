//! Payloads to JSON and back.
