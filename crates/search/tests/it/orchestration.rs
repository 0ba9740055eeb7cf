//! How the phases are tied together.
