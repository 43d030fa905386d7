//! SPEC.md knows every method and every error.

use reminderd_protocol::methods::METHODS;

const SPEC: &str = include_str!("../SPEC.md");

fn has_row(name: &str) -> bool {
    SPEC.lines().any(|line| line.starts_with(&format!("| `{name}` |")))
}

#[test]
fn every_method_has_a_row() {
    let missing: Vec<&str> =
        METHODS.iter().map(|method| method.name).filter(|name| !has_row(name)).collect();
    assert!(missing.is_empty(), "SPEC.md has no table row for {missing:?}");
}

#[test]
fn every_error_code_of_the_specification_is_its_kinds() {
    use reminderd_protocol::error::ErrorKind;
    let kinds = [
        ErrorKind::Parse,
        ErrorKind::InvalidRequest,
        ErrorKind::MethodNotFound,
        ErrorKind::InvalidParams,
        ErrorKind::Internal,
        ErrorKind::NotInitialized,
        ErrorKind::RequestCancelled,
        ErrorKind::UnknownSession,
        ErrorKind::SessionHeld,
        ErrorKind::UnknownAgent,
        ErrorKind::NoTurn,
        ErrorKind::NotReady,
        ErrorKind::UnknownToken,
        ErrorKind::TokenReleased,
        ErrorKind::TokenExpired,
        ErrorKind::LimitExceeded,
        ErrorKind::StoreFailed,
        ErrorKind::Overloaded,
        ErrorKind::BadRecord,
        ErrorKind::NotYet,
    ];
    for kind in kinds {
        let row = format!("| {} | `{}` |", kind.code(), kind.name());
        assert!(SPEC.lines().any(|line| line.starts_with(&row)), "SPEC.md has no row {row:?}");
    }
}
