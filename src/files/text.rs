//! How bytes become comparable and showable (`reminders.md` §5).
//!
//! Text is what its characters say: byte-order marks, `\r\n` for `\n`, and UTF-16 for UTF-8 are ways
//! to write it down. A file that an editor stores anew in one of these ways reads as before, so that
//! its fingerprint stays, and what was told of it still holds. Of what is no text every byte counts:
//! of what holds a NUL, and of UTF-16 that is none by its own rules.

use std::borrow::Cow;

use encoding_rs::{CoderResult, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::engine::Fingerprint;

const UTF_8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// Text, without byte-order mark, its lines ended by `\n` where they were by `\r\n`.
    Text(Cow<'a, str>),
    /// Bytes that nobody reads.
    Binary,
}

/// What bytes say: by their byte-order mark (UTF-8, UTF-16), else as UTF-8, else as Windows-1252 (and
/// with it Latin-1), which has a character for every byte. So it is believed only where it makes no
/// control characters but tab, line feed, carriage return and form feed.
///
/// What holds a NUL is binary, and so is what breaks the encoding that its mark names.
pub fn decode(bytes: &[u8]) -> Decoded<'_> {
    decode_part(bytes, true)
}

/// Whether bytes are the text that they say, as they stand: UTF-8 without byte-order mark, NUL and
/// carriage return.
pub fn is_plain(bytes: &[u8]) -> bool {
    Encoding::for_bom(bytes).is_none()
        && memchr::memchr2(0, b'\r', bytes).is_none()
        && std::str::from_utf8(bytes).is_ok()
}

/// As [`decode`], for the beginning of something longer: a character that the end of `bytes` cuts in
/// two is left out.
pub fn decode_start(bytes: &[u8]) -> Decoded<'_> {
    decode_part(bytes, false)
}

fn decode_part(bytes: &[u8], is_whole: bool) -> Decoded<'_> {
    let text = match Encoding::for_bom(bytes) {
        Some((encoding, mark)) if encoding == UTF_8 => as_utf_8(&bytes[mark..], is_whole),
        Some((encoding, mark)) => as_utf_16(encoding, &bytes[mark..], is_whole),
        None => as_utf_8(bytes, is_whole).or_else(|| as_windows_1252(bytes)),
    };
    let Some(text) = text else { return Decoded::Binary };
    // Most texts hold neither, which one pass says.
    if memchr::memchr2(0, b'\r', text.as_bytes()).is_none() {
        Decoded::Text(text)
    } else if memchr::memchr(0, text.as_bytes()).is_none() {
        Decoded::Text(text.replace("\r\n", "\n").into())
    } else {
        Decoded::Binary
    }
}

fn as_utf_8(bytes: &[u8], is_whole: bool) -> Option<Cow<'_, str>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // Only the end of a character is missing.
        Err(error) if !is_whole && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    Some(text.into())
}

fn as_utf_16<'a>(
    encoding: &'static Encoding,
    bytes: &'a [u8],
    is_whole: bool,
) -> Option<Cow<'a, str>> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len())?;
    let mut text = String::with_capacity(room);
    let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, is_whole);
    (result == DecoderResult::InputEmpty).then_some(text.into())
}

fn as_windows_1252(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
    let is_odd = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c');
    (!text.contains(is_odd)).then_some(text)
}

/// Whether bytes begin with the byte-order mark of UTF-16.
pub fn is_utf_16(bytes: &[u8]) -> bool {
    matches!(Encoding::for_bom(bytes), Some((encoding, _)) if encoding != UTF_8)
}

/// The fingerprint of a file's content as it is compared.
pub fn fingerprint(bytes: &[u8]) -> Fingerprint {
    // Text or not, it is hashed as it is, and faster in one piece.
    if Encoding::for_bom(bytes).is_none() && memchr::memchr(b'\r', bytes).is_none() {
        return Fingerprint(blake3::hash(bytes).into());
    }
    let mut fingerprinter = Fingerprinter::new();
    fingerprinter.update(bytes);
    fingerprinter.finish()
}

/// Takes a fingerprint piece by piece, for files of any size. Where the pieces are cut makes no
/// difference.
#[derive(Debug)]
pub struct Fingerprinter {
    /// The first bytes, until there are enough of them for a byte-order mark.
    first: Vec<u8>,
    way: Way,
}

/// How the content is read.
#[derive(Debug)]
enum Way {
    /// The byte-order mark is not complete.
    Unknown,
    Bytes(Box<ByBytes>),
    Utf16(Box<ByUnits>),
}

impl Default for Fingerprinter {
    fn default() -> Self {
        Self::new()
    }
}

impl Fingerprinter {
    /// Of nothing yet.
    pub fn new() -> Self {
        Self { first: Vec::new(), way: Way::Unknown }
    }

    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.way {
            Way::Bytes(way) => way.update(bytes),
            Way::Utf16(way) => way.update(bytes),
            Way::Unknown => {
                let missing = UTF_8_MARK.len() - self.first.len();
                let (first, rest) = bytes.split_at(missing.min(bytes.len()));
                self.first.extend_from_slice(first);
                if self.first.len() == UTF_8_MARK.len() {
                    self.begin();
                    self.update(rest);
                }
            }
        }
    }

    /// The fingerprint of all that was taken.
    pub fn finish(mut self) -> Fingerprint {
        if matches!(self.way, Way::Unknown) {
            self.begin();
        }
        let hash = match self.way {
            Way::Bytes(way) => way.finish(),
            Way::Utf16(way) => way.finish(),
            Way::Unknown => blake3::hash(&[]),
        };
        Fingerprint(hash.into())
    }

    fn begin(&mut self) {
        let first = std::mem::take(&mut self.first);
        let utf_16 = |encoding| Way::Utf16(Box::new(ByUnits::new(encoding)));
        self.way = match Encoding::for_bom(&first) {
            Some((encoding, _)) if encoding != UTF_8 => utf_16(encoding),
            _ => Way::Bytes(Box::default()),
        };
        match &mut self.way {
            Way::Bytes(way) if first == UTF_8_MARK => way.skip(&first),
            Way::Bytes(way) => way.update(&first),
            Way::Utf16(way) => way.update(&first[2..]),
            Way::Unknown => {}
        }
    }
}

/// Content without a mark, or with that of UTF-8. It is hashed as text until a NUL shows that it is
/// none: of a binary every byte counts.
#[derive(Debug, Default)]
struct ByBytes {
    raw: blake3::Hasher,
    /// The text, where it is no longer the same as the bytes.
    text: Option<blake3::Hasher>,
    /// A carriage return is not in `text` yet: a line feed may follow.
    holds_return: bool,
    is_binary: bool,
}

impl ByBytes {
    /// Bytes that are none of the text.
    fn skip(&mut self, mark: &[u8]) {
        self.text = Some(self.raw.clone());
        self.raw.update(mark);
    }

    fn update(&mut self, bytes: &[u8]) {
        if !self.is_binary && memchr::memchr(0, bytes).is_some() {
            self.is_binary = true;
        }
        if !self.is_binary {
            self.update_text(bytes);
        }
        self.raw.update(bytes);
    }

    fn update_text(&mut self, bytes: &[u8]) {
        if !self.holds_return && memchr::memchr(b'\r', bytes).is_none() {
            if let Some(text) = &mut self.text {
                text.update(bytes);
            }
            return;
        }
        // `raw` has not seen these bytes, nor the text the carriage return before them.
        let raw = &self.raw;
        let text = self.text.get_or_insert_with(|| raw.clone());
        let mut rest = bytes;
        if self.holds_return && !rest.is_empty() {
            self.holds_return = false;
            if rest[0] != b'\n' {
                text.update(b"\r");
            }
        }
        while let Some(at) = memchr::memchr(b'\r', rest) {
            text.update(&rest[..at]);
            rest = &rest[at + 1..];
            match rest.first() {
                Some(b'\n') => {}
                Some(_) => drop(text.update(b"\r")),
                None => self.holds_return = true,
            }
        }
        text.update(rest);
    }

    fn finish(mut self) -> blake3::Hash {
        match &mut self.text {
            Some(text) if !self.is_binary => {
                if self.holds_return {
                    text.update(b"\r");
                }
                text.finalize()
            }
            _ => self.raw.finalize(),
        }
    }
}

/// UTF-16, hashed as the text that it says. What is none by its own rules is hashed as bytes, as
/// every binary is.
#[derive(Debug)]
struct ByUnits {
    raw: blake3::Hasher,
    decoder: encoding_rs::Decoder,
    text: ByBytes,
    is_broken: bool,
}

impl ByUnits {
    fn new(encoding: &'static Encoding) -> Self {
        let mut raw = blake3::Hasher::new();
        raw.update(if encoding == UTF_16LE { &[0xff, 0xfe] } else { &[0xfe, 0xff] });
        debug_assert!(encoding == UTF_16LE || encoding == UTF_16BE);
        let decoder = encoding.new_decoder_without_bom_handling();
        Self { raw, decoder, text: ByBytes::default(), is_broken: false }
    }

    fn update(&mut self, bytes: &[u8]) {
        self.raw.update(bytes);
        self.decode(bytes, false);
    }

    fn decode(&mut self, mut bytes: &[u8], is_last: bool) {
        let mut buffer = [0; 4096];
        loop {
            if self.is_broken {
                return;
            }
            let (result, read, written, replaced) =
                self.decoder.decode_to_utf8(bytes, &mut buffer, is_last);
            self.text.update(&buffer[..written]);
            self.is_broken = replaced || self.text.is_binary;
            bytes = &bytes[read..];
            if result == CoderResult::InputEmpty {
                return;
            }
        }
    }

    fn finish(mut self) -> blake3::Hash {
        self.decode(&[], true);
        if self.is_broken { self.raw.finalize() } else { self.text.finish() }
    }
}

/// A name or a line as text, whatever its bytes: those that are not UTF-8 are visibly escaped.
pub fn escaped(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(chunk.valid());
        shown.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utf_16(text: &str, little: bool) -> Vec<u8> {
        let bytes = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
    }

    fn text(text: &str) -> Decoded<'_> {
        Decoded::Text(text.into())
    }

    #[test]
    fn bytes_are_decoded_by_mark_then_as_utf_8_then_as_windows_1252() {
        for (bytes, decoded) in [
            (&b""[..], text("")),
            (b"plain\n", text("plain\n")),
            ("caf\u{e9} \u{1f600}\n".as_bytes(), text("café 😀\n")),
            (b"\xef\xbb\xbfmarked", text("marked")),
            (b"\xef\xbb\xbf", text("")),
            (b"\xff\xfe", text("")),
            (&utf_16("é😀\r\nb", true), text("é😀\nb")),
            (&utf_16("é😀\r\nb", false), text("é😀\nb")),
            (b"a\r\nb\rc\n", text("a\nb\rc\n")),
            (b"caf\xe9 \x80 \x93x\x94\t\x0c\r\n", text("café € “x”\t\x0c\n")),
            // Controls of UTF-8 text are text (a terminal's log); NULs never are.
            (b"\x1b[1mbold", text("\x1b[1mbold")),
            (b"a\0b", Decoded::Binary),
            (b"\xef\xbb\xbfa\0b", Decoded::Binary),
            (&utf_16("a\0b", true), Decoded::Binary),
            // UTF-32 begins like UTF-16.
            (b"\xff\xfe\0\0a\0\0\0", Decoded::Binary),
            (b"\x7fELF\x02\x01\x01\xff", Decoded::Binary),
            (b"caf\xe9 \x1b[1m", Decoded::Binary),
            (b"caf\xe9 \x81", Decoded::Binary),
            // Broken by the rules of what the mark names.
            (b"\xef\xbb\xbfcaf\xe9", Decoded::Binary),
            (b"\xff\xfea\0b", Decoded::Binary),
            (b"\xff\xfe\x00\xd8a\0", Decoded::Binary),
        ] {
            assert_eq!(decode(bytes), decoded, "{bytes:?}");
        }
    }

    #[test]
    fn a_cut_character_is_left_out_at_the_start_of_something_longer() {
        for whole in ["ab€", "ab😀"] {
            for missing in 1..whole.len() - 2 {
                let bytes = &whole.as_bytes()[..whole.len() - missing];
                assert_eq!(decode_start(bytes), text("ab"), "{bytes:?}");
            }
        }
        let units = utf_16("a😀", true);
        for missing in 1..4 {
            assert_eq!(decode_start(&units[..units.len() - missing]), text("a"));
        }
    }

    #[test]
    fn marks_line_endings_and_utf_16_are_no_content() {
        let plain = fingerprint("a\né\n".as_bytes());
        for bytes in [
            "a\r\né\r\n".as_bytes().to_vec(),
            "a\r\né\n".as_bytes().to_vec(),
            "\u{feff}a\r\né\n".as_bytes().to_vec(),
            utf_16("a\né\n", true),
            utf_16("a\r\né\r\n", false),
        ] {
            assert_eq!(fingerprint(&bytes), plain, "{bytes:?}");
        }
        for bytes in [&b"a\n\xe9\n"[..], "a\né".as_bytes(), "a\ré\n".as_bytes(), b"", b"\r"] {
            assert_ne!(fingerprint(bytes), plain, "{bytes:?}");
        }
    }

    #[test]
    fn of_binaries_every_byte_counts() {
        for (one, other) in [
            (&b"\0\r\n"[..], &b"\0\n"[..]),
            (b"\r\n\0", b"\n\0"),
            (b"\xef\xbb\xbf\0", b"\0"),
            (b"\xff\xfe\x00\xd8", b"\xff\xfe\x01\xd8"),
            (b"\xff\xfea", b"\xff\xfeb"),
            (b"\xff\xfea\0\0\0", b"a\0"),
        ] {
            assert_ne!(fingerprint(one), fingerprint(other), "{one:?} {other:?}");
        }
    }

    /// Bytes with plenty of what is treated apart.
    fn content() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just(b"\r\n".to_vec()),
            2 => Just(b"\r".to_vec()),
            2 => Just(b"\n".to_vec()),
            1 => Just(vec![0]),
            1 => Just(vec![0xff, 0xfe]),
            1 => Just(vec![0xfe, 0xff]),
            1 => Just(UTF_8_MARK.to_vec()),
            4 => "[a-z€😀]{0,6}".prop_map(String::into_bytes),
            1 => prop::collection::vec(any::<u8>(), 0..6),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn where_pieces_are_cut_makes_no_difference(
            bytes in content(),
            cuts in prop::collection::vec(1_usize..5, 0..40),
        ) {
            let mut fingerprinter = Fingerprinter::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                fingerprinter.update(piece);
                rest = after;
            }
            fingerprinter.update(rest);
            prop_assert_eq!(fingerprinter.finish(), fingerprint(&bytes));
        }

        /// What is shown differs exactly where what is compared does.
        #[test]
        fn the_same_fingerprint_is_the_same_text(one in content(), other in content()) {
            let same = fingerprint(&one) == fingerprint(&other);
            match (decode(&one), decode(&other)) {
                (Decoded::Text(a), Decoded::Text(b)) if same => prop_assert_eq!(a, b),
                (Decoded::Binary, Decoded::Binary) if same && one.contains(&0) => {
                    prop_assert_eq!(one, other);
                }
                (a, b) => prop_assert!(!same || a == b),
            }
        }

        #[test]
        fn text_has_the_fingerprint_of_its_characters(
            written in "(\r\n|\n|\r|[ -~]|[é€😀\u{2028}]){0,40}",
            little in any::<bool>(),
        ) {
            let Decoded::Text(decoded) = decode(written.as_bytes()) else { panic!("it is text") };
            let units = utf_16(&written, little);
            prop_assert_eq!(fingerprint(&units), fingerprint(written.as_bytes()));
            prop_assert_eq!(decode(&units), Decoded::Text(decoded));
        }
    }
}
