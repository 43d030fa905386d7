//! Text that reaches a model: blocks, rows, names, sizes. Nothing here decides what is said.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

const OPEN: &str = "<system-reminder>\n";
const CLOSE: &str = "\n</system-reminder>";

/// The letters that make a tag a reminder tag once everything between them is left out.
const TAG_LETTERS: &[u8] = b"systemreminder";

/// How the bodies of one message are put together (SPEC.md, "Blocks").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A tagged block for each entry, joined by one newline.
    #[default]
    Blocks,
    /// One tagged block, bodies joined by a blank line (profile `prompt`).
    Block,
    /// No tags, bodies joined by a blank line, for hosts that wrap text themselves.
    Plain,
}

impl Form {
    /// The name in a record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Block => "block",
            Self::Plain => "plain",
        }
    }
}

/// The message's content for these bodies: the only place where tags are written.
pub fn content<'a>(form: Form, bodies: impl IntoIterator<Item = &'a str>) -> String {
    match form {
        Form::Blocks => {
            let mut text = String::new();
            for body in bodies {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(OPEN);
                text.push_str(&neutralise(body));
                text.push_str(CLOSE);
            }
            text
        }
        Form::Block => format!("{OPEN}{}{CLOSE}", join(bodies)),
        Form::Plain => join(bodies),
    }
}

/// Bodies joined by a blank line, made harmless as a whole: two harmless bodies can spell a tag
/// across the joint.
fn join<'a>(bodies: impl IntoIterator<Item = &'a str>) -> String {
    let bodies: Vec<&str> = bodies.into_iter().collect();
    neutralise(&bodies.join("\n\n")).into_owned()
}

/// How large a message's content is, in each unit that a limit may be given in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// UTF-8 bytes.
    pub bytes: u64,
    /// Unicode scalar values.
    pub chars: u64,
    /// UTF-16 code units.
    pub utf16: u64,
    /// Estimated thousandths of tokens, so that parts add up to the whole.
    thousandths: u64,
}

impl Size {
    /// Estimated tokens.
    pub fn tokens(self) -> u64 {
        self.thousandths.div_ceil(1000)
    }

    /// Measures a text.
    pub fn of(text: &str) -> Self {
        Self {
            bytes: text.len() as u64,
            chars: text.chars().count() as u64,
            // One unit a character, and a second for those of four bytes.
            utf16: (text.chars().count() + text.bytes().filter(|byte| *byte >= 0xf0).count())
                as u64,
            thousandths: thousandths(text),
        }
    }

    /// What a further body adds to a message of this form. Neutralising never makes a text
    /// longer in any unit, so the sum is an upper bound and exact for harmless text.
    pub fn of_body(form: Form, body: &str, first: bool) -> Self {
        let around = match (form, first) {
            (Form::Blocks | Form::Block, true) => "<system-reminder>\n\n</system-reminder>",
            (Form::Blocks, false) => "<system-reminder>\n\n</system-reminder>\n",
            (Form::Block | Form::Plain, false) => "\n\n",
            (Form::Plain, true) => "",
        };
        Self::of(body).plus(Self::of(around))
    }

    /// The sum, unit by unit.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            chars: self.chars + other.chars,
            utf16: self.utf16 + other.utf16,
            thousandths: self.thousandths + other.thousandths,
        }
    }
}

/// Estimated tokens of a text: bytes / 4 for plain words, with weights by character class.
/// An estimate for budgets, not a tokenizer's count: within a fifth of two real ones for English and
/// code, between a half and twice for most other scripts (`tests/tokens.rs`).
pub fn estimate_tokens(text: &str) -> u64 {
    thousandths(text).div_ceil(1000)
}

/// A character's weight is that of its first byte; the bytes behind that weigh nothing.
fn thousandths(text: &str) -> u64 {
    text.bytes().map(|byte| u64::from(WEIGHTS[usize::from(byte)])).sum()
}

/// The weights of characters by their first byte, in thousandths of a token.
const WEIGHTS: [u16; 256] = {
    let mut weights = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[allow(clippy::cast_possible_truncation, reason = "the loop ends at 256")]
        let first = byte as u8;
        weights[byte] = match first {
            b' ' => 100,
            b'a'..=b'z' | b'A'..=b'Z' => 250,
            // Tokens hold three digits at most, among letters often one.
            b'0'..=b'9' => 500,
            b'\n' | b'\t' | b'\r' => 400,
            0..=0x7f => 500,
            0x80..=0xbf => 0,
            // Characters of two, three and four bytes.
            0xc0..=0xdf => 500,
            0xe0..=0xef => 1000,
            0xf0..=0xff => 2000,
        };
        byte += 1;
    }
    weights
};

/// What a view shows, collapsed, for the labels of a message's entries; `None` when it is empty.
pub fn row<'a>(form: Form, labels: impl ExactSizeIterator<Item = &'a str>) -> Option<String> {
    let count = labels.len();
    if count == 0 {
        return None;
    }
    let plural = if count == 1 { "" } else { "s" };
    if form == Form::Block {
        return Some(format!("✦ reminder: {count} block{plural}"));
    }
    let labels: Vec<_> = labels.map(one_line).collect();
    Some(format!("◇ {count} system reminder{plural} ({})", labels.join(", ")))
}

/// A name (path, subject, tool, hook…) on one line: control characters, and those that change
/// direction or hide text, are visibly escaped.
pub fn one_line(name: &str) -> Cow<'_, str> {
    if !name.chars().any(is_treacherous) {
        return Cow::Borrowed(name);
    }
    let mut line = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if is_treacherous(c) => {
                line.extend(c.escape_unicode());
            }
            c => line.push(c),
        }
    }
    Cow::Owned(line)
}

/// At most `limit` characters of a one-line name; a cut says how much was left out.
pub fn short_name(name: &str, limit: usize) -> String {
    let line = one_line(name);
    match line.char_indices().nth(limit) {
        None => line.into_owned(),
        Some((end, _)) => {
            format!("{}… (+{} characters)", &line[..end], line[end..].chars().count())
        }
    }
}

/// Characters that do not belong into a name on one line: controls, separators of lines and
/// paragraphs, marks and overrides of direction, tags that are never drawn.
fn is_treacherous(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// The same text with everything made harmless that a model could take for an opening or closing
/// reminder tag, however spelled or spaced: its brackets become `[` and `]`.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    let mut safe: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some((start, length)) = next_opening(text, at) {
        let inside = start + length;
        let Some(word_end) = tag_letters_end(&text[inside..]) else {
            at = inside;
            continue;
        };
        let word_end = inside + word_end;
        let safe = safe.get_or_insert_with(|| String::with_capacity(text.len()));
        safe.push_str(&text[copied..start]);
        safe.push('[');
        safe.push_str(&text[inside..word_end]);
        copied = word_end;
        if let Some((offset, closing)) = closing_bracket(&text[word_end..]) {
            safe.push_str(&text[word_end..word_end + offset]);
            safe.push(']');
            copied = word_end + offset + closing;
        }
        at = copied;
    }
    match safe {
        None => Cow::Borrowed(text),
        Some(mut safe) => {
            safe.push_str(&text[copied..]);
            Cow::Owned(safe)
        }
    }
}

/// What stands for `<`: the sign, its look-alikes, and the ways to escape it; entities, which have
/// more spellings, are [`entity`]'s.
const OPENINGS: &[&str] = &[
    "<", "＜", "﹤", "‹", "〈", "⟨", "〈", "❮", "\\u003c", "\\u003C", "\\u{3c}", "\\u{3C}",
    "\\x3c", "\\x3C", "%3c", "%3C", "%253c", "%253C",
];
/// The same for `>`.
const CLOSINGS: &[&str] = &[
    ">", "＞", "﹥", "›", "〉", "⟩", "〉", "❯", "\\u003e", "\\u003E", "\\u{3e}", "\\u{3E}",
    "\\x3e", "\\x3E", "%3e", "%3E", "%253e", "%253E",
];

/// The first bytes of [`OPENINGS`], as a table: most text is looked at byte by byte.
const STARTS: [bool; 256] = {
    let mut starts = [false; 256];
    let mut index = 0;
    while index < OPENINGS.len() {
        starts[OPENINGS[index].as_bytes()[0] as usize] = true;
        index += 1;
    }
    starts[b'&' as usize] = true;
    starts
};

/// How long the opening bracket is that the text begins with.
fn opening(text: &[u8]) -> Option<usize> {
    let sign = OPENINGS.iter().find(|sign| text.starts_with(sign.as_bytes()));
    sign.map(|sign| sign.len()).or_else(|| entity(text, *b"lt", *b"60", *b"3c"))
}

/// The same for a closing one.
fn closing(text: &[u8]) -> Option<usize> {
    let sign = CLOSINGS.iter().find(|sign| text.starts_with(sign.as_bytes()));
    sign.map(|sign| sign.len()).or_else(|| entity(text, *b"gt", *b"62", *b"3e"))
}

/// How long the character entity is that the text begins with, if it is the one of this name or
/// code: in any case, with leading zeros, escaped again, with or without its semicolon.
fn entity(text: &[u8], name: [u8; 2], decimal: [u8; 2], hexadecimal: [u8; 2]) -> Option<usize> {
    let mut rest = text.strip_prefix(b"&")?;
    while let Some(escaped) = rest.strip_prefix(b"amp;") {
        rest = escaped;
    }
    let code = match rest.strip_prefix(b"#") {
        None => name,
        Some(number) => {
            let digits = number.strip_prefix(b"x").or_else(|| number.strip_prefix(b"X"));
            rest = digits.unwrap_or(number);
            while let Some(shorter) = rest.strip_prefix(b"0") {
                rest = shorter;
            }
            if digits.is_some() { hexadecimal } else { decimal }
        }
    };
    let (found, rest) = rest.split_at_checked(2)?;
    let rest = rest.strip_prefix(b";").unwrap_or(rest);
    found.eq_ignore_ascii_case(&code).then(|| text.len() - rest.len())
}

/// Where the next opening bracket at or behind `from` stands, and how long it is.
fn next_opening(text: &str, from: usize) -> Option<(usize, usize)> {
    // Every opening begins with one of these bytes; most text has none of them.
    let starts = |byte: &u8| STARTS[usize::from(*byte)];
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(offset) = bytes[at..].iter().position(starts) {
        at += offset;
        if let Some(length) = opening(&bytes[at..]) {
            return Some((at, length));
        }
        at += 1;
    }
    None
}

/// The end of the tag's letters if they, and nothing else that is a letter or digit, come next.
/// A further bracket ends the search, so that the whole text is looked at once; so does `[`, which
/// stands where a tag was made harmless, so that doing it twice is doing it once.
fn tag_letters_end(text: &str) -> Option<usize> {
    let mut wanted = TAG_LETTERS.iter();
    let mut next = wanted.next();
    let mut begun = false;
    for (at, c) in text.char_indices() {
        // Of several brackets in a row the last one opens the tag, whatever they look like.
        let opens = !begun && opening(&text.as_bytes()[at..]).is_some();
        if opens || matches!(c, '<' | '>' | '[') {
            return None;
        }
        let Some(letter) = letter(c) else { continue };
        begun = true;
        if Some(&letter) != next {
            return None;
        }
        next = wanted.next();
        if next.is_none() {
            return Some(at + c.len_utf8());
        }
    }
    None
}

/// The closing bracket of the tag whose letters just ended, if it stands in the same line.
fn closing_bracket(text: &str) -> Option<(usize, usize)> {
    for (at, c) in text.char_indices() {
        if let Some(length) = closing(&text.as_bytes()[at..]) {
            return Some((at, length));
        }
        if opening(&text.as_bytes()[at..]).is_some() || c == '\n' || at > 200 {
            return None;
        }
    }
    None
}

/// Letters with marks, and raised, lowered and script ones, by what they are compatible with.
const COMPATIBLE: &[(u8, &str)] = &[
    (b's', "ŚśŜŝŞşŠšȘșˢṠṡṢṣṤṥṦṧṨṩẛₛ"),
    (b'y', "ÝýÿŶŷŸȲȳʸẎẏẙỲỳỴỵỶỷỸỹ"),
    (b't', "ŢţŤťȚțᵀᵗṪṫṬṭṮṯṰṱẗₜ"),
    (b'e', "ÈÉÊËĒēĔĕĖėĘęĚěȄȅȆȇȨȩᴱᵉḔḕḖḗḘḙḚḛḜḝẸẹẺẻẼẽẾếỀềỂểỄễỆệₑℯℰⅇ"),
    (b'm', "ᴹᵐḾḿṀṁṂṃₘℳⅯⅿ"),
    (b'r', "ŔŕŖŗŘřȐȑȒȓʳᴿᵣṘṙṚṛṜṝṞṟℛℜℝ🄬"),
    (b'i', "ÌÍÎÏìîĨĩĪīĬĭĮįİǏǐȈȉȊȋᴵᵢḬḭḮḯỈỉỊịⁱℐℑℹⅈⅠⅰ"),
    (b'n', "ÑŃńŅņŇňǸǹᴺṄṅṆṇṈṉṊṋⁿₙℕ"),
    (b'd', "ĎďᴰᵈḊḋḌḍḎḏḐḑḒḓⅅⅆⅮⅾ"),
];

/// The ASCII letter that a character is read as; `Some(0)` for any other letter or digit, `None`
/// for what may stand between letters unnoticed (spaces, hyphens, invisible characters…).
fn letter(c: char) -> Option<u8> {
    #[allow(clippy::cast_possible_truncation, reason = "each arm is below 26")]
    let nth = |index: u32| Some(b'a' + (index % 26) as u8);
    match c {
        'a'..='z' => Some(c as u8),
        'A'..='Z' => Some(c.to_ascii_lowercase() as u8),
        // Full-width, circled and mathematical letters are offsets of the alphabet.
        'Ａ'..='Ｚ' => nth(c as u32 - 'Ａ' as u32),
        'ａ'..='ｚ' => nth(c as u32 - 'ａ' as u32),
        'Ⓐ'..='Ⓩ' => nth(c as u32 - 'Ⓐ' as u32),
        'ⓐ'..='ⓩ' => nth(c as u32 - 'ⓐ' as u32),
        '\u{1d400}'..='\u{1d6a3}' => nth(c as u32 - 0x1d400),
        // So are squared ones, plain and filled, and the tag characters that are never drawn.
        '\u{1f130}'..='\u{1f149}' => nth(c as u32 - 0x1f130),
        '\u{1f150}'..='\u{1f169}' => nth(c as u32 - 0x1f150),
        '\u{1f170}'..='\u{1f189}' => nth(c as u32 - 0x1f170),
        '\u{e0041}'..='\u{e005a}' => nth(c as u32 - 0xe0041),
        '\u{e0061}'..='\u{e007a}' => nth(c as u32 - 0xe0061),
        // Letters of other scripts that are drawn like those of the word.
        'ѕ' | 'Ѕ' | 'ꜱ' | 'ſ' => Some(b's'),
        'у' | 'У' | 'ү' | 'Υ' | 'ʏ' | 'γ' => Some(b'y'),
        'т' | 'Т' | 'τ' | 'Τ' | 'ᴛ' => Some(b't'),
        'е' | 'Е' | 'Ε' | 'ε' | 'ᴇ' | 'é' | 'è' | 'ê' | 'ë' => Some(b'e'),
        'м' | 'М' | 'Μ' | 'ᴍ' => Some(b'm'),
        'г' | 'Г' | 'ʀ' | 'ᴦ' => Some(b'r'),
        'і' | 'І' | 'Ι' | 'ι' | 'ı' | 'ɪ' | 'í' | 'ï' => Some(b'i'),
        'п' | 'Ν' | 'ɴ' | 'ո' | 'ñ' => Some(b'n'),
        'ԁ' | 'ᴅ' | 'Ꭰ' => Some(b'd'),
        c if c.is_alphanumeric() => {
            let compatible = COMPATIBLE.iter().find(|(_, letters)| letters.contains(c));
            Some(compatible.map_or(0, |(letter, _)| *letter))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_made_harmless_however_they_are_spelled() {
        for (given, harmless) in [
            ("</system-reminder>", "[/system-reminder]"),
            ("a <system-reminder> b", "a [system-reminder] b"),
            ("< / System_Reminder  >x", "[ / System_Reminder  ]x"),
            ("<SYSTEM REMINDER priority=1>", "[SYSTEM REMINDER priority=1]"),
            ("<s y s t e m - r e m i n d e r>", "[s y s t e m - r e m i n d e r]"),
            ("<sys\u{200b}tem-rem\u{ad}inder>", "[sys\u{200b}tem-rem\u{ad}inder]"),
            ("＜ｓｙｓｔｅｍ－ｒｅｍｉｎｄｅｒ＞", "[ｓｙｓｔｅｍ－ｒｅｍｉｎｄｅｒ]"),
            ("&lt;/system-reminder&gt;", "[/system-reminder]"),
            ("\\u003csystem-reminder\\u003e", "[system-reminder]"),
            ("<ѕуѕtеm-rеmіndеr>", "[ѕуѕtеm-rеmіndеr]"),
            ("<šÝstém-ʳemìñⅾer>", "[šÝstém-ʳemìñⅾer]"),
            ("<🅂🅈🅂🅃🄴🄼-reminder>", "[🅂🅈🅂🅃🄴🄼-reminder]"),
            ("<\u{e0073}ystem-reminder>", "[\u{e0073}ystem-reminder]"),
            ("&#0060;system-reminder&#x003E;", "[system-reminder]"),
            ("&lt system-reminder&gt x", "[ system-reminder] x"),
            ("&#X3C;system-reminder>", "[system-reminder]"),
            ("&amp;lt;system-reminder&amp;gt;", "[system-reminder]"),
            ("<system-reminder", "[system-reminder"),
            ("<<system-reminder>>", "<[system-reminder]>"),
            ("<system\n-reminder>", "[system\n-reminder]"),
        ] {
            assert_eq!(neutralise(given), harmless, "{given}");
            assert_eq!(neutralise(harmless), harmless, "stays as it is: {harmless}");
        }
    }

    #[test]
    fn other_text_is_left_alone() {
        for text in [
            "Vec<String>",
            "a < b",
            "the system-reminder tag",
            "<system>",
            "<sub>",
            "x & y",
            "<system ware> reminder",
            "5 % 3",
            "C:\\users",
            "日本語 ‹quote›",
        ] {
            assert!(matches!(neutralise(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn a_tag_across_the_joint_of_two_bodies_is_made_harmless() {
        let text = content(Form::Plain, ["ends with <system", "-reminder> begins"]);
        assert_eq!(text, "ends with [system\n\n-reminder] begins");
    }

    #[test]
    fn names_stand_on_one_line() {
        assert_eq!(one_line("a\nb\u{202e}c\u{7}"), "a\\nb\\u{202e}c\\u{7}");
        assert_eq!(short_name("ééééé", 3), "ééé… (+2 characters)");
        assert_eq!(short_name("ééé", 3), "ééé");
    }

    #[test]
    fn rows_count_and_name() {
        assert_eq!(row(Form::Blocks, [].into_iter()), None);
        assert_eq!(
            row(Form::Blocks, ["tasks"].into_iter()).unwrap(),
            "◇ 1 system reminder (tasks)"
        );
        assert_eq!(
            row(Form::Plain, ["tasks", "edited files"].into_iter()).unwrap(),
            "◇ 2 system reminders (tasks, edited files)"
        );
        assert_eq!(row(Form::Block, ["a", "b"].into_iter()).unwrap(), "✦ reminder: 2 blocks");
    }

    #[test]
    fn sizes_add_up() {
        for form in [Form::Blocks, Form::Block, Form::Plain] {
            let bodies = ["one", "zwei 😀", "drei"];
            let sum: Size = bodies
                .iter()
                .enumerate()
                .map(|(index, body)| Size::of_body(form, body, index == 0))
                .fold(Size::default(), Size::plus);
            let whole = Size::of(&content(form, bodies));
            assert_eq!(sum, whole);
        }
    }
}
