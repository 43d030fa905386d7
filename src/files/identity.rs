//! Which spellings mean the same file.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What is written with percent signs in the path of a URI.
const IN_PATHS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path that a client means: a plain absolute path, or a `file:` URI in any percent-spelling;
/// `.` and `..` are worked out without looking at the disk. An address of another scheme
/// (`untitled:`, a remote one) comes back as it is, and is never a path.
pub fn path_of(uri: &str) -> String {
    let Some(rest) = strip_scheme(uri, "file:") else {
        return if has_scheme(uri) { uri.to_owned() } else { plain(uri) };
    };
    let path = match rest.strip_prefix("//") {
        // A host may stand before the path; `localhost` and none are this machine.
        Some(rest) => rest.find('/').map_or("", |start| &rest[start..]),
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    plain(&percent_decode_str(path).decode_utf8_lossy())
}

/// The `file:` URI of a path; an address of another scheme as it is.
pub fn uri_of(path: &str) -> String {
    if !is_path(path) {
        return path.to_owned();
    }
    format!("file://{}", utf8_percent_encode(path, IN_PATHS))
}

/// Whether a path can be looked at on this machine's disk.
pub fn is_path(path: &str) -> bool {
    path.starts_with('/')
}

fn strip_scheme<'a>(uri: &'a str, scheme: &str) -> Option<&'a str> {
    let (head, rest) = uri.split_at_checked(scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Whether an address begins with a scheme of two letters or more (one is a drive).
fn has_scheme(uri: &str) -> bool {
    let Some((scheme, _)) = uri.split_once(':') else { return false };
    scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// An absolute path without `.`, `..` and doubled slashes; anything else as it is.
fn plain(path: &str) -> String {
    if !is_path(path) {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// A path as the session's people see it: relative to the root where it lies below it.
pub fn shown<'a>(path: &'a str, root: Option<&str>) -> Cow<'a, str> {
    let below = root.and_then(|root| path.strip_prefix(root.trim_end_matches('/')));
    match below.and_then(|below| below.strip_prefix('/')) {
        Some(below) if !below.is_empty() => Cow::Borrowed(below),
        _ => Cow::Borrowed(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_file_are_one_path() {
        for (uri, path) in [
            ("/w/a (1).rs", "/w/a (1).rs"),
            ("file:///w/a%20%281%29.rs", "/w/a (1).rs"),
            ("FILE:///w/a%20(1).rs", "/w/a (1).rs"),
            ("file://localhost/w/./b/../a%20(1).rs", "/w/a (1).rs"),
            ("file:/w/%C3%A9", "/w/é"),
            ("file:///w/%c3%a9", "/w/é"),
            ("/w//x", "/w/x"),
            // Literal percent signs, plus signs and hashes of plain paths stand for themselves.
            ("/w/x%20y+c#.rs", "/w/x%20y+c#.rs"),
            ("file:///w/a+b%23%3F.rs", "/w/a+b#?.rs"),
        ] {
            assert_eq!(path_of(uri), path, "{uri}");
        }
    }

    #[test]
    fn a_path_survives_its_uri() {
        for path in ["/w/a (1).rs", "/w/é%20+#?.rs", "/w/a-b_c~.rs"] {
            assert_eq!(path_of(&uri_of(path)), path);
        }
        assert_eq!(uri_of("/w/a-1.rs"), "file:///w/a-1.rs");
        assert_eq!(uri_of("untitled:1"), "untitled:1");
    }

    #[test]
    fn other_schemes_are_no_paths() {
        for uri in ["untitled:Untitled-1", "vscode-remote://host/w/a", "work://notes/a"] {
            assert_eq!(path_of(uri), uri);
            assert!(!is_path(uri));
        }
    }

    #[test]
    fn paths_below_the_root_are_shown_from_it() {
        assert_eq!(shown("/w/src/a.rs", Some("/w")), "src/a.rs");
        assert_eq!(shown("/w/src/a.rs", Some("/w/")), "src/a.rs");
        assert_eq!(shown("/wide/a.rs", Some("/w")), "/wide/a.rs");
        assert_eq!(shown("/w/a", None), "/w/a");
    }
}
