//! Law 4.
