//! How the binary is linked.

use std::env;

/// A position-independent executable has 26,000 addresses of its own to fill in at every start, in 120
/// pages that the system has to copy for it: longer than all that a hook has to say. So the released
/// one stands at a fixed place. Its heap, its stack and its libraries still do not, and but for SQLite
/// all of it is safe Rust.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|it| it == value);
    if is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("PROFILE", "release")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
