//! Which spellings mean the same file.
//!
//! Paths are text here. A byte of a path that is not UTF-8 is the character `RAW` behind its number,
//! and so is each byte of such a character that a path really holds, so that nothing is lost either
//! way: [`on_disk`] is the path again, and [`shown`] what people see.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// Before the first of the characters that stand for bytes: those are U+EF80 to U+EFFF, of the area
/// for private use.
const RAW: u32 = 0xef00;

/// What is written with percent signs in the path of a URI.
const IN_PATHS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path that a client means: a plain absolute path, or a `file:` URI in any percent-spelling;
/// `.` and `..` are worked out without looking at the disk. An address of another scheme
/// (`untitled:`, a remote one) comes back as it is, and is never a path.
pub fn path_of(uri: &str) -> String {
    let Some(rest) = strip_scheme(uri, "file:") else {
        return if has_scheme(uri) { uri.to_owned() } else { plain(&text_of(uri.as_bytes())) };
    };
    let path = match rest.strip_prefix("//") {
        // A host may stand before the path; `localhost` and none are this machine.
        Some(rest) => rest.find('/').map_or("", |start| &rest[start..]),
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    plain(&text_of(&Cow::from(percent_decode_str(path))))
}

/// The `file:` URI of a path; an address of another scheme as it is.
pub fn uri_of(path: &str) -> String {
    if !is_path(path) {
        return path.to_owned();
    }
    let path = on_disk(path);
    format!("file://{}", percent_encode(path.as_os_str().as_bytes(), IN_PATHS))
}

/// The path that a text of [`path_of`] stands for.
pub fn on_disk(path: &str) -> Cow<'_, Path> {
    if !holds_raw(path) {
        return Cow::Borrowed(Path::new(path));
    }
    let mut bytes = Vec::with_capacity(path.len());
    for c in path.chars() {
        match raw(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

/// The text of a path, as [`path_of`] gives it.
pub fn spelled(path: &OsStr) -> Cow<'_, str> {
    text_of(path.as_bytes())
}

fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    let as_it_is = std::str::from_utf8(bytes).ok().filter(|text| !holds_raw(text));
    if let Some(text) = as_it_is {
        return Cow::Borrowed(text);
    }
    let stand_in = |byte: &u8| char::from_u32(RAW + u32::from(*byte)).unwrap_or_default();
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_raw(c) {
                text.extend(c.encode_utf8(&mut [0; 4]).as_bytes().iter().map(stand_in));
            } else {
                text.push(c);
            }
        }
        text.extend(chunk.invalid().iter().map(stand_in));
    }
    Cow::Owned(text)
}

/// The byte that a character stands for.
fn raw(c: char) -> Option<u8> {
    u32::from(c).checked_sub(RAW).and_then(|byte| u8::try_from(byte).ok()).filter(|it| *it >= 0x80)
}

fn is_raw(c: char) -> bool {
    raw(c).is_some()
}

fn holds_raw(text: &str) -> bool {
    // All of these characters begin with one byte, which hardly any path has.
    memchr::memchr(0xee, text.as_bytes()).is_some() && text.contains(is_raw)
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

/// A path as the session's people see it: relative to the root where it lies below it, bytes that are
/// not UTF-8 escaped.
pub fn shown<'a>(path: &'a str, root: Option<&str>) -> Cow<'a, str> {
    let below = root.and_then(|root| path.strip_prefix(root.trim_end_matches('/')));
    let path = match below.and_then(|below| below.strip_prefix('/')) {
        Some(below) if !below.is_empty() => below,
        _ => path,
    };
    if !holds_raw(path) {
        return Cow::Borrowed(path);
    }
    let escaped = path.chars().map(|c| match raw(c) {
        Some(byte) => format!("\\x{byte:02x}"),
        None => c.to_string(),
    });
    Cow::Owned(escaped.collect::<Vec<_>>().concat())
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
    fn bytes_that_are_not_utf_8_are_kept_and_shown_escaped() {
        for (uri, bytes, seen) in [
            ("file:///w/caf%E9", &b"/w/caf\xe9"[..], "caf\\xe9"),
            ("file:///w/%ff%C3%A9%80", b"/w/\xff\xc3\xa9\x80", "\\xffé\\x80"),
            // The character that stands for a byte, itself.
            ("/w/\u{efe9}", "/w/\u{efe9}".as_bytes(), "\\xee\\xbf\\xa9"),
            ("/w/\u{ef7f}\u{f000}", "/w/\u{ef7f}\u{f000}".as_bytes(), "\u{ef7f}\u{f000}"),
        ] {
            let path = path_of(uri);
            assert_eq!(on_disk(&path).as_os_str().as_bytes(), bytes, "{uri}");
            assert_eq!(spelled(OsStr::from_bytes(bytes)), path, "{uri}");
            assert_eq!(path_of(&uri_of(&path)), path, "{uri}");
            assert_eq!(shown(&path, Some("/w")), seen, "{uri}");
        }
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
