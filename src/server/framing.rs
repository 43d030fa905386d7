//! Bytes to messages and back, in both framings; pure, so that any cut of a stream can be tested.
//!
//! The first byte of a stream decides its framing. `{`, after white space or a byte order mark,
//! means one JSON message a line; anything else means `Content-Length` headers. Replies use the
//! framing of the requests.
//!
//! The decoder holds at most one message of the limit and one read's worth of what follows it. An
//! announced size is never reserved up front, since nothing says that its bytes will ever come.

use std::io::BufRead as _;
use std::ops::Range;

/// How much room a read is offered.
const READ_BYTES: usize = 64 * 1024;
/// An empty buffer above this is given back, so that one big message does not cost memory for ever.
const KEPT_BYTES: usize = 1024 * 1024;
/// How long the headers of one message may be.
const HEADER_BYTES_MAX: usize = 8 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// How messages are told apart on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One JSON message a line.
    Lines,
    /// `Content-Length` headers, as in the Language Server Protocol.
    Headers,
}

/// What the next bytes of a stream are.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The framing of the stream, before anything else.
    Begins(Framing),
    /// A whole message, not yet looked at.
    Message(&'a [u8]),
    /// A message over the limit, reported as soon as that is known; its bytes are skipped.
    TooLarge,
    /// The stream cannot be followed any further.
    Unreadable(FramingError),
}

/// Why a stream cannot be followed. No variant carries its bytes: they may be part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The header block passes its limit.
    #[error("the headers of a message are longer than {HEADER_BYTES_MAX} bytes")]
    HeadersTooLong,
    /// A header line has no colon.
    #[error("a header line has no colon (is the Content-Length of the message before it right?)")]
    NotAHeader,
    /// A header block ends without a length.
    #[error("a message has no Content-Length header")]
    LengthMissing,
    /// A header block has two lengths.
    #[error("a message has two Content-Length headers")]
    LengthRepeated,
    /// A length is not a plain decimal number.
    #[error("a Content-Length is not a plain decimal number of bytes")]
    LengthUnusable,
}

/// What is left when the input ends.
#[derive(Debug, PartialEq, Eq)]
pub enum Rest<'a> {
    /// Nothing: the input ended between two messages.
    Nothing,
    /// A last line without its line break: a whole message if it is JSON, since no proper
    /// beginning of a JSON object is one.
    Line(&'a [u8]),
    /// Part of a message.
    Part,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing but white space so far.
    Undecided,
    Line,
    SkippedLine,
    Headers {
        length: Option<u64>,
        seen_bytes: usize,
    },
    Body {
        bytes: usize,
    },
    SkippedBody {
        bytes: u64,
    },
    /// Nothing more can be made of the stream.
    Lost,
}

impl State {
    const BETWEEN_HEADERS: Self = Self::Headers { length: None, seen_bytes: 0 };
}

enum Step {
    Begins(Framing),
    Message(Range<usize>),
    TooLarge,
    Unreadable(FramingError),
    /// The state moved on; look again.
    Again,
    /// More bytes are needed.
    Starved,
}

/// Turns bytes into messages, however the bytes are cut.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Everything before this is used up.
    start: usize,
    /// No line break stands between `start` and this.
    scanned: usize,
    state: State,
    message_bytes_max: usize,
}

impl Decoder {
    /// A decoder at the beginning of a stream, for messages of at most this size.
    pub fn new(message_bytes_max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            state: State::Undecided,
            message_bytes_max,
        }
    }

    /// The buffer with room for a read, to append to.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            if self.buffer.capacity() > KEPT_BYTES {
                self.buffer = Vec::new();
            }
            self.scanned = 0;
            self.start = 0;
        } else if self.start > 0 && self.buffer.capacity() - self.buffer.len() < READ_BYTES {
            self.buffer.drain(..self.start);
            self.scanned = self.scanned.saturating_sub(self.start);
            self.start = 0;
        }
        let held = self.buffer.len();
        if self.buffer.capacity() - held < READ_BYTES {
            // Doubling, but never past what one message of the limit can need.
            let largest = self.message_bytes_max.saturating_add(2 * READ_BYTES);
            let wanted = (held * 2).min(largest).max(held + READ_BYTES);
            self.buffer.reserve_exact(wanted - held);
        }
        &mut self.buffer
    }

    /// The next message, if it is all there.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        loop {
            return match self.step() {
                Step::Begins(framing) => Some(Frame::Begins(framing)),
                Step::Message(range) => Some(Frame::Message(&self.buffer[range])),
                Step::TooLarge => Some(Frame::TooLarge),
                Step::Unreadable(error) => {
                    self.state = State::Lost;
                    Some(Frame::Unreadable(error))
                }
                Step::Again => continue,
                Step::Starved => None,
            };
        }
    }

    /// What is left over at the end of the input, after the last whole message.
    pub fn rest(&self) -> Rest<'_> {
        let held = &self.buffer[self.start..];
        match self.state {
            State::Undecided => Rest::Nothing,
            State::Line if held.iter().all(u8::is_ascii_whitespace) => Rest::Nothing,
            State::Line => Rest::Line(held),
            State::Headers { seen_bytes: 0, .. } if held.is_empty() || held == b"\r" => {
                Rest::Nothing
            }
            _ => Rest::Part,
        }
    }

    fn step(&mut self) -> Step {
        match self.state {
            State::Undecided => self.decide(),
            State::Line => self.line(),
            State::SkippedLine => {
                if self.take_line().is_some() {
                    return self.enter(State::Line);
                }
                self.discard_all();
                Step::Starved
            }
            State::Headers { length, seen_bytes } => self.header(length, seen_bytes),
            State::Body { bytes } => {
                if self.buffer.len() - self.start < bytes {
                    return Step::Starved;
                }
                let range = self.start..self.start + bytes;
                self.consume(bytes);
                self.state = State::BETWEEN_HEADERS;
                Step::Message(range)
            }
            State::SkippedBody { bytes } => {
                let held = self.buffer.len() - self.start;
                match usize::try_from(bytes) {
                    Ok(bytes) if bytes <= held => {
                        self.consume(bytes);
                        self.enter(State::BETWEEN_HEADERS)
                    }
                    _ => {
                        self.discard_all();
                        self.state = State::SkippedBody { bytes: bytes - held as u64 };
                        Step::Starved
                    }
                }
            }
            State::Lost => {
                self.discard_all();
                Step::Starved
            }
        }
    }

    fn decide(&mut self) -> Step {
        loop {
            let held = &self.buffer[self.start..];
            match held.first() {
                None => return Step::Starved,
                Some(b'{') => {
                    self.state = State::Line;
                    return Step::Begins(Framing::Lines);
                }
                Some(byte) if byte.is_ascii_whitespace() => self.consume(1),
                Some(_) if held.starts_with(BYTE_ORDER_MARK) => self.consume(3),
                Some(_) if BYTE_ORDER_MARK.starts_with(held) => return Step::Starved,
                Some(_) => {
                    self.state = State::BETWEEN_HEADERS;
                    return Step::Begins(Framing::Headers);
                }
            }
        }
    }

    fn line(&mut self) -> Step {
        match self.take_line() {
            None if self.buffer.len() - self.start > self.message_bytes_max => {
                self.discard_all();
                self.state = State::SkippedLine;
                Step::TooLarge
            }
            None => Step::Starved,
            Some(range) if range.len() > self.message_bytes_max => Step::TooLarge,
            Some(range) if self.buffer[range.clone()].iter().all(u8::is_ascii_whitespace) => {
                Step::Again
            }
            Some(range) => Step::Message(range),
        }
    }

    fn header(&mut self, length: Option<u64>, seen_bytes: usize) -> Step {
        let Some(range) = self.take_line() else {
            let too_long = self.buffer.len() - self.start + seen_bytes > HEADER_BYTES_MAX;
            return if too_long {
                Step::Unreadable(FramingError::HeadersTooLong)
            } else {
                Step::Starved
            };
        };
        if range.len() + seen_bytes > HEADER_BYTES_MAX {
            return Step::Unreadable(FramingError::HeadersTooLong);
        }
        let is_first = seen_bytes == 0;
        let seen_bytes = seen_bytes + range.len() + 1;
        let line = &self.buffer[range];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return match length {
                _ if is_first => Step::Again,
                None => Step::Unreadable(FramingError::LengthMissing),
                Some(bytes) => self.body(bytes),
            };
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return Step::Unreadable(FramingError::NotAHeader);
        };
        let name = line[..colon].trim_ascii();
        let length = if name.eq_ignore_ascii_case(b"content-length") {
            if length.is_some() {
                return Step::Unreadable(FramingError::LengthRepeated);
            }
            match decimal(line[colon + 1..].trim_ascii()) {
                None => return Step::Unreadable(FramingError::LengthUnusable),
                number => number,
            }
        } else {
            length
        };
        self.enter(State::Headers { length, seen_bytes })
    }

    fn body(&mut self, bytes: u64) -> Step {
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= self.message_bytes_max => self.enter(State::Body { bytes }),
            _ => {
                self.state = State::SkippedBody { bytes };
                Step::TooLarge
            }
        }
    }

    fn enter(&mut self, state: State) -> Step {
        self.state = state;
        Step::Again
    }

    /// Takes a line off the buffer, if it has its end, and returns where it stands without it.
    fn take_line(&mut self) -> Option<Range<usize>> {
        let from = self.scanned.max(self.start);
        // `skip_until` is the standard library's way to a vectorised search for one byte.
        let mut unscanned = &self.buffer[from..];
        let passed = unscanned.skip_until(b'\n').unwrap_or(0);
        let end = from + passed;
        if passed == 0 || self.buffer[end - 1] != b'\n' {
            self.scanned = self.buffer.len();
            return None;
        }
        let range = self.start..end - 1;
        self.start = end;
        self.scanned = end;
        Some(range)
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.scanned = self.start;
    }

    fn discard_all(&mut self) {
        self.buffer.clear();
        if self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        self.start = 0;
        self.scanned = 0;
    }
}

/// A plain decimal number: no sign, no space inside, no overflow.
fn decimal(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Messages on their way out, framed and not yet written.
#[derive(Debug)]
pub struct Encoder {
    framing: Framing,
    buffer: Vec<u8>,
    written: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new(Framing::Headers)
    }
}

impl Encoder {
    /// An encoder with nothing to write yet.
    pub fn new(framing: Framing) -> Self {
        Self { framing, buffer: Vec::new(), written: 0 }
    }

    /// Changes the framing of the messages to come.
    pub fn set_framing(&mut self, framing: Framing) {
        self.framing = framing;
    }

    /// Appends one message, given in parts so that nothing is put together twice.
    pub fn push(&mut self, parts: &[&str]) {
        match self.framing {
            Framing::Headers => {
                let bytes: usize = parts.iter().map(|part| part.len()).sum();
                self.buffer.extend_from_slice(b"Content-Length: ");
                self.buffer.extend_from_slice(bytes.to_string().as_bytes());
                self.buffer.extend_from_slice(b"\r\n\r\n");
                for part in parts {
                    self.buffer.extend_from_slice(part.as_bytes());
                }
            }
            Framing::Lines => {
                let from = self.buffer.len();
                for part in parts {
                    self.buffer.extend_from_slice(part.as_bytes());
                }
                // A line break in JSON text can only be white space between two tokens. Every byte
                // is written, changed or not, for only such a loop is vectorised.
                for byte in &mut self.buffer[from..] {
                    *byte = if *byte == b'\n' { b' ' } else { *byte };
                }
                self.buffer.push(b'\n');
            }
        }
    }

    /// What is still to be written.
    pub fn pending(&self) -> &[u8] {
        &self.buffer[self.written..]
    }

    /// Notes that so many bytes of `pending` were written.
    pub fn advance(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written == self.buffer.len() {
            self.buffer.clear();
            self.written = 0;
            if self.buffer.capacity() > KEPT_BYTES {
                self.buffer = Vec::new();
            }
        } else if self.written > KEPT_BYTES {
            self.buffer.drain(..self.written);
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame that owns its bytes, to compare.
    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Seen {
        Message(String),
        TooLarge,
        Unreadable(FramingError),
        EndsInside,
        EndsAfterLine(String),
    }

    fn message(text: &str) -> Seen {
        Seen::Message(text.to_owned())
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn decode(pieces: &[&[u8]], limit: usize) -> Vec<Seen> {
        let mut decoder = Decoder::new(limit);
        let mut seen = Vec::new();
        for piece in pieces {
            decoder.room().extend_from_slice(piece);
            while let Some(frame) = decoder.next_frame() {
                seen.push(match frame {
                    Frame::Begins(_) => continue,
                    Frame::Message(bytes) => Seen::Message(text(bytes)),
                    Frame::TooLarge => Seen::TooLarge,
                    Frame::Unreadable(error) => Seen::Unreadable(error),
                });
            }
        }
        match decoder.rest() {
            Rest::Nothing => {}
            Rest::Line(line) => seen.push(Seen::EndsAfterLine(text(line))),
            Rest::Part => seen.push(Seen::EndsInside),
        }
        seen
    }

    fn decode_whole(bytes: &[u8]) -> Vec<Seen> {
        decode(&[bytes], 1000)
    }

    #[test]
    fn the_first_byte_decides_the_framing() {
        for lines in ["{}\n", " \r\n\t{}\n", "\u{feff}{}\n", "\u{feff} {}\r\n"] {
            let seen = decode_whole(lines.as_bytes());
            assert!(matches!(&seen[..], [Seen::Message(text)] if text.trim() == "{}"), "{seen:?}");
        }
        assert_eq!(decode_whole(b"Content-Length: 2\r\n\r\n{}"), [message("{}")]);
        assert_eq!(
            decode_whole(b"[1]\n"),
            [Seen::Unreadable(FramingError::NotAHeader), Seen::EndsInside]
        );
    }

    #[test]
    fn blank_lines_between_messages_are_skipped() {
        assert_eq!(decode_whole(b"{}\n\n \r\n{}\n\n"), [message("{}"), message("{}")]);
        assert_eq!(
            decode_whole(b"Content-Length: 1\r\n\r\n1\r\n\nContent-Length: 1\n\n2\r\n"),
            [message("1"), message("2")]
        );
    }

    #[test]
    fn header_names_are_read_in_any_case_and_others_are_ignored() {
        let bytes = b"content-type: application/vscode-jsonrpc; charset=utf8\r\nCONTENT-length :2 \r\nX:\xff\r\n\r\n{}";
        assert_eq!(decode_whole(bytes), [message("{}")]);
    }

    #[test]
    fn a_length_that_cannot_be_relied_on_ends_the_stream() {
        for length in ["abc", "+5", "-1", "", "5 5", "0x5", "99999999999999999999999"] {
            let seen = decode_whole(format!("Content-Length: {length}\r\n\r\n{{}}").as_bytes());
            assert_eq!(seen[0], Seen::Unreadable(FramingError::LengthUnusable), "{length}");
        }
        let twice = b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(decode_whole(twice)[0], Seen::Unreadable(FramingError::LengthRepeated));
        assert_eq!(
            decode_whole(b"X: y\r\n\r\n{}")[0],
            Seen::Unreadable(FramingError::LengthMissing)
        );
    }

    #[test]
    fn headers_are_capped() {
        let endless = vec![b'a'; HEADER_BYTES_MAX + 1];
        assert_eq!(decode_whole(&endless)[0], Seen::Unreadable(FramingError::HeadersTooLong));
        let many = "X: y\r\n".repeat(HEADER_BYTES_MAX / 5);
        assert_eq!(
            decode_whole(many.as_bytes())[0],
            Seen::Unreadable(FramingError::HeadersTooLong)
        );
    }

    #[test]
    fn a_message_over_the_limit_is_skipped_and_the_stream_goes_on() {
        assert_eq!(
            decode(&[b"{   }\n{12345}\n{}\n"], 5),
            [message("{   }"), Seen::TooLarge, message("{}")]
        );
        assert_eq!(
            decode(&[b"Content-Length: 6\r\n\r\n{1234}Content-Length: 2\r\n\r\n{}"], 5),
            [Seen::TooLarge, message("{}")]
        );
    }

    #[test]
    fn a_message_over_the_limit_is_reported_before_it_has_ended() {
        assert_eq!(decode(&[b"{123456"], 5), [Seen::TooLarge, Seen::EndsInside]);
        assert_eq!(decode(&[b"Content-Length: 6\r\n\r\n"], 5), [Seen::TooLarge, Seen::EndsInside]);
    }

    #[test]
    fn an_announced_size_is_not_reserved() {
        let mut decoder = Decoder::new(usize::MAX);
        decoder.room().extend_from_slice(b"Content-Length: 9999999999\r\n\r\n{");
        while decoder.next_frame().is_some() {}
        assert!(decoder.room().capacity() <= 4 * READ_BYTES);
    }

    #[test]
    fn a_big_message_gives_its_memory_back() {
        let mut decoder = Decoder::new(64 * KEPT_BYTES);
        let line = format!("{{{}}}\n", " ".repeat(4 * KEPT_BYTES));
        decoder.room().extend_from_slice(line.as_bytes());
        assert_eq!(decoder.next_frame(), Some(Frame::Begins(Framing::Lines)));
        assert!(matches!(decoder.next_frame(), Some(Frame::Message(_))));
        assert_eq!(decoder.next_frame(), None);
        assert!(decoder.room().capacity() <= 2 * READ_BYTES);
    }

    #[test]
    fn a_last_line_needs_no_line_break() {
        assert_eq!(decode_whole(b"{}\n{}"), [message("{}"), Seen::EndsAfterLine("{}".to_owned())]);
    }

    #[test]
    fn each_framing_writes_what_it_reads() {
        for framing in [Framing::Lines, Framing::Headers] {
            let mut encoder = Encoder::new(framing);
            encoder.push(&["{\"a\":", "1\n", "}"]);
            encoder.push(&["{}"]);
            let seen = decode_whole(encoder.pending());
            let first = if framing == Framing::Lines { "{\"a\":1 }" } else { "{\"a\":1\n}" };
            assert_eq!(seen, [message(first), message("{}")]);
            encoder.advance(encoder.pending().len());
            assert!(encoder.pending().is_empty());
        }
    }

    fn piece_of_stream() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            8 => Just(b"Content-Length: 2\r\n\r\n{}".to_vec()),
            4 => Just(b"{}\n".to_vec()),
            2 => Just(b"{\"a\":1}\r\n".to_vec()),
            2 => Just(b"content-length:11\nX: y\n\n{1234567890Content-Length: 1\r\n\r\n1".to_vec()),
            2 => Just(b"{12345678901}\n".to_vec()),
            1 => Just(b"\r\n".to_vec()),
            1 => Just(b"\xEF\xBB\xBF ".to_vec()),
            1 => Just(b"Content-Length: abc\r\n\r\n".to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..20),
        ]
    }

    proptest! {
        #[test]
        fn any_cut_of_a_stream_gives_the_same_frames(
            pieces in proptest::collection::vec(piece_of_stream(), 0..8),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        ) {
            let stream = pieces.concat();
            let mut positions: Vec<usize> =
                cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            positions.sort_unstable();
            let mut cut_stream = Vec::new();
            let mut from = 0;
            for position in positions.into_iter().chain([stream.len()]) {
                cut_stream.push(&stream[from..position]);
                from = position;
            }
            let whole = decode(&[&stream], 10);
            prop_assert_eq!(&decode(&cut_stream, 10), &whole);
            let single: Vec<&[u8]> = stream.chunks(1).collect();
            prop_assert_eq!(&decode(&single, 10), &whole);
        }
    }
}
