//! What changed between two texts, as unified diffs that fit (`reminders.md` §5).
//!
//! Lines end at `\n` and nowhere else, as `patch` has it: a carriage return, a form feed or a Unicode
//! line separator is a character like others.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

use crate::engine::{Change, DiffLimits};

use super::text::{Decoded, decode};

/// Lines of context around what changed.
const CONTEXT_LINES: usize = 3;
/// The most of one line that is shown, in bytes; what is cut is marked in the line.
const LINE_BYTES_MAX: usize = 1 << 10;
/// The most lines of both sides of a change that is compared for itself.
const GAP_LINES_MAX: usize = 32;
/// How many lines behind such a change are the same, at least.
const RUN_LINES: usize = 8;
/// The least share of the lines of a WAIT that is worth telling, while there are any: a changed line
/// and its context.
const SHARE_LINES_MIN: usize = 8;
/// The least share of the bytes of a WAIT that is worth telling, while there are any.
const SHARE_BYTES_MIN: usize = 512;

/// The two states of a file's content. What is not there is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides<'a> {
    /// What was told.
    pub old: Side<'a>,
    /// What stands there now.
    pub new: Side<'a>,
}

/// One state of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side<'a> {
    /// The bytes on disk.
    pub bytes: &'a [u8],
    /// Whether they are known to be the text as they stand ([`super::text::is_plain`]): then most of
    /// them are only compared.
    pub is_plain: bool,
}

/// What is told of changes whose content may be shown, in the order of `files`.
///
/// Where all of it is too much, everybody gets an equal share, and what small diffs do not need goes
/// to larger ones. Of a diff without a share the text is empty and all its lines are omitted.
/// After the deadline no diff is begun, and one under way becomes coarser.
pub fn changes(files: &[Sides<'_>], limits: &DiffLimits, deadline: Instant) -> Vec<Change> {
    let file_lines = count(limits.file_lines);
    let (mut lines, mut bytes) = (count(limits.lines), count(limits.bytes));
    let diffs: Vec<_> = files.iter().map(|sides| diff(sides, limits, deadline)).collect();
    let mut order: Vec<_> = diffs
        .iter()
        .enumerate()
        .filter_map(|(index, diff)| {
            let all = diff.as_ref().ok()?.start.shown(file_lines, bytes);
            Some((all.lines, all.text.len(), index))
        })
        .collect();
    order.sort_unstable();
    let mut told = vec![Shown::default(); diffs.len()];
    let files = order.len();
    for (place, (_, _, index)) in order.into_iter().enumerate() {
        let Ok(diff) = &diffs[index] else { continue };
        let waiting = files - place;
        let lines_share = (lines / waiting).max(SHARE_LINES_MIN).min(lines);
        let bytes_share = (bytes / waiting).max(SHARE_BYTES_MIN).min(bytes);
        let shown = diff.start.shown(lines_share, bytes_share);
        lines -= shown.lines;
        bytes -= shown.text.len();
        told[index] = shown;
    }
    let both = diffs.into_iter().zip(told);
    both.map(|(diff, shown)| match diff {
        Ok(diff) => {
            let omitted = (diff.lines - shown.lines) as u64;
            Change::Diff { text: shown.text, omitted }
        }
        Err(reason) => Change::Withheld(reason.to_owned()),
    })
    .collect()
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A diff of which only the lines are kept that one file may have: many files may have changed.
struct Diff {
    start: Hunks<'static>,
    /// How many lines it had.
    lines: usize,
}

fn diff(sides: &Sides<'_>, limits: &DiffLimits, deadline: Instant) -> Result<Diff, &'static str> {
    let (old, new) = texts(sides, limits)?;
    let most_lines = count(limits.file_lines);
    let hunks = start(&old, &new, most_lines, deadline).ok_or("there was no time to compare it")?;
    if hunks.is_empty() {
        return Err("its text is the same");
    }
    Ok(Diff { lines: hunks.line_count(), start: hunks.shortened() })
}

/// What stood in a file and what stands in it, as it is compared.
type Texts<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

fn texts<'a>(sides: &Sides<'a>, limits: &DiffLimits) -> Result<Texts<'a>, &'static str> {
    if sides.old.bytes.len().max(sides.new.bytes.len()) > count(limits.file_bytes) {
        return Err("it is too large for a diff");
    }
    text(sides.old).zip(text(sides.new)).ok_or("it is binary")
}

fn text(side: Side<'_>) -> Option<Cow<'_, [u8]>> {
    if side.is_plain {
        return Some(side.bytes.into());
    }
    match decode(side.bytes) {
        Decoded::Text(Cow::Borrowed(text)) => Some(text.as_bytes().into()),
        Decoded::Text(Cow::Owned(text)) => Some(text.into_bytes().into()),
        Decoded::Binary => None,
    }
}

/// A unified diff that borrows its two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunks<'a> {
    /// All of them, or the first.
    hunks: Vec<Hunk<'a>>,
    /// How many lines all of them have.
    lines: usize,
}

/// Changes that stand close together, with the lines around them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk<'a> {
    /// How many lines of the old text stand before it.
    old_before: usize,
    /// How many lines of the new text stand before it.
    new_before: usize,
    lines: Vec<Line<'a>>,
}

/// A line, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line<'a> {
    /// A space, a plus or a minus.
    sign: char,
    /// Without its `\n`.
    text: Cow<'a, str>,
    /// Whether it has a `\n`.
    ends: bool,
    /// How many bytes the whole line has, without its `\n`.
    bytes: usize,
}

/// As much of a diff as fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shown {
    text: String,
    /// How many of its lines begin with a space, a plus or a minus.
    lines: usize,
}

/// The unified diff from one text to another, with three lines of context; empty where they are the
/// same. `None` when the deadline has passed already; when it passes under way, the diff is right but
/// not the shortest.
pub fn unified<'a>(old: &'a str, new: &'a str, deadline: Instant) -> Option<Hunks<'a>> {
    start(old.as_bytes(), new.as_bytes(), usize::MAX, deadline)
}

/// As [`unified`], of texts that are UTF-8, with the first lines only; the others are counted.
fn start<'a>(
    old: &'a [u8],
    new: &'a [u8],
    most_lines: usize,
    deadline: Instant,
) -> Option<Hunks<'a>> {
    if Instant::now() >= deadline {
        return None;
    }
    let mut start = Hunks { hunks: Vec::new(), lines: 0 };
    let Some(Common { start: above, end: below }) = common(old, new) else { return Some(start) };
    let before = last_lines(&old[..above]);
    let after = first_lines(&old[old.len() - below..]);
    let lines = |text: &'a [u8]| -> Vec<&'a str> {
        let differing = lines_in(&text[above..text.len() - below]);
        before.iter().copied().chain(differing).chain(after.iter().copied()).collect()
    };
    let (old_lines, new_lines) = (lines(old), lines(new));
    let operations = operations(&old_lines, &new_lines, before.len(), after.len(), deadline);
    let above = memchr::memchr_iter(b'\n', &old[..above]).count() - before.len();
    let mut left = most_lines;
    for operations in group_diff_ops(operations, CONTEXT_LINES) {
        let first = operations
            .first()
            .map_or((0, 0), |operation| (operation.old_range().start, operation.new_range().start));
        start.lines += operations.iter().map(line_count_of).sum::<usize>();
        let lines = operations.iter().flat_map(|it| lines_of(it, &old_lines, &new_lines));
        let lines: Vec<_> = lines.take(left).collect();
        left -= lines.len();
        if !lines.is_empty() {
            let (old_before, new_before) = (above + first.0, above + first.1);
            start.hunks.push(Hunk { old_before, new_before, lines });
        }
    }
    Some(start)
}

/// The lines of a part of a text that is UTF-8, cut between lines; each with its `\n`.
fn lines_in(text: &[u8]) -> impl Iterator<Item = &str> {
    // Their ends are the ends of characters.
    let text = std::str::from_utf8(text).unwrap_or_default();
    let last = (!text.is_empty() && !text.ends_with('\n')).then_some(text.len());
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
    let mut start = 0;
    ends.chain(last).map(move |end| &text[std::mem::replace(&mut start, end)..end])
}

/// The way from the old lines to the new ones, of which the first and the last are known to be equal.
fn operations(
    old: &[&str],
    new: &[&str],
    before: usize,
    after: usize,
    deadline: Instant,
) -> Vec<DiffOp> {
    let (old_end, new_end) = (old.len() - after, new.len() - after);
    let mut operations = vec![DiffOp::Equal { old_index: 0, new_index: 0, len: before }];
    let mut push = |operation| match (operations.last_mut(), operation) {
        (Some(DiffOp::Equal { len, .. }), DiffOp::Equal { len: more, .. }) => *len += more,
        _ => operations.push(operation),
    };
    let (mut old_index, mut new_index) = (before, before);
    // Changes that stand apart are compared one by one, the rest as a whole.
    while old_index < old_end || new_index < new_end {
        let (old_rest, new_rest) = (&old[old_index..old_end], &new[new_index..new_end]);
        let gap = gap(old_rest, new_rest);
        let (old_count, new_count) = gap.unwrap_or((old_rest.len(), new_rest.len()));
        let (old_gap, new_gap) = (&old_rest[..old_count], &new_rest[..new_count]);
        for operation in differing(old_gap, new_gap, deadline) {
            push(moved(operation, old_index, new_index));
        }
        (old_index, new_index) = (old_index + old_count, new_index + new_count);
        let len = same_lines(&old[old_index..old_end], &new[new_index..new_end]);
        push(DiffOp::Equal { old_index, new_index, len });
        (old_index, new_index) = (old_index + len, new_index + len);
    }
    push(DiffOp::Equal { old_index, new_index, len: after });
    operations
}

/// By Myers: where every second line changed, the histogram algorithm takes a hundred times longer than
/// forking `diff`, and nothing was found where Myers takes longer than that.
fn differing(old: &[&str], new: &[&str], deadline: Instant) -> Vec<DiffOp> {
    capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline))
}

/// How many lines are the same at the start.
fn same_lines(old: &[&str], new: &[&str]) -> usize {
    old.iter().zip(new).take_while(|(old, new)| old == new).count()
}

/// How many lines of either side a change has, where few have and many behind it are the same.
fn gap(old: &[&str], new: &[&str]) -> Option<(usize, usize)> {
    let mut counts = (1..=GAP_LINES_MAX).flat_map(|sum| (0..=sum).map(move |old| (old, sum - old)));
    counts.find(|(old_count, new_count)| {
        let old = old.get(*old_count..*old_count + RUN_LINES);
        let new = new.get(*new_count..*new_count + RUN_LINES);
        old.is_some() && old == new
    })
}

/// The same step, so many lines further down.
fn moved(mut operation: DiffOp, old_by: usize, new_by: usize) -> DiffOp {
    match &mut operation {
        DiffOp::Equal { old_index, new_index, .. }
        | DiffOp::Delete { old_index, new_index, .. }
        | DiffOp::Insert { old_index, new_index, .. }
        | DiffOp::Replace { old_index, new_index, .. } => {
            *old_index += old_by;
            *new_index += new_by;
        }
    }
    operation
}

/// What two texts have in common at their ends: bytes of whole lines.
struct Common {
    start: usize,
    end: usize,
}

/// `None` where all is the same.
fn common(old: &[u8], new: &[u8]) -> Option<Common> {
    let same = same_start(old, new);
    if same == old.len() && same == new.len() {
        return None;
    }
    let start = memchr::memrchr(b'\n', &old[..same]).map_or(0, |at| at + 1);
    let (old, new) = (&old[start..], &new[start..]);
    let same = same_end(old, new);
    // A line that begins within what is the same may begin elsewhere on the other side.
    let end = memchr::memchr(b'\n', &old[old.len() - same..]);
    Some(Common { start, end: end.map_or(0, |at| same - at - 1) })
}

/// Bytes that are compared at once: most of what two versions of a file hold is the same.
const BLOCK_BYTES: usize = 1 << 10;

/// How many bytes are the same at the start.
fn same_start(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.chunks_exact(BLOCK_BYTES).zip(other.chunks_exact(BLOCK_BYTES));
    let same = blocks.take_while(|(a, b)| a == b).count() * BLOCK_BYTES;
    same + one[same..].iter().zip(&other[same..]).take_while(|(a, b)| a == b).count()
}

/// How many bytes are the same at the end.
fn same_end(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.rchunks_exact(BLOCK_BYTES).zip(other.rchunks_exact(BLOCK_BYTES));
    let same = blocks.take_while(|(a, b)| a == b).count() * BLOCK_BYTES;
    let one = one[..one.len() - same].iter().rev();
    let other = other[..other.len() - same].iter().rev();
    same + one.zip(other).take_while(|(a, b)| a == b).count()
}

/// The last lines of such a part, as many as context needs.
fn last_lines(text: &[u8]) -> Vec<&str> {
    // The end of the line before them.
    let end = memchr::memrchr_iter(b'\n', text).nth(CONTEXT_LINES);
    lines_in(&text[end.map_or(0, |at| at + 1)..]).collect()
}

/// The first lines, as many as context needs.
fn first_lines(text: &[u8]) -> Vec<&str> {
    let end = memchr::memchr_iter(b'\n', text).nth(CONTEXT_LINES - 1);
    lines_in(&text[..end.map_or(text.len(), |at| at + 1)]).collect()
}

/// The lines of one step of the way from the old text to the new one.
fn lines_of<'a>(
    operation: &DiffOp,
    old: &[&'a str],
    new: &[&'a str],
) -> impl Iterator<Item = Line<'a>> {
    let (sign, old_range, new_range) = sides_of(operation);
    let old_lines = old[old_range].iter().map(move |line| Line::new(sign, line));
    old_lines.chain(new[new_range].iter().map(|line| Line::new('+', line)))
}

fn line_count_of(operation: &DiffOp) -> usize {
    let (_, old_range, new_range) = sides_of(operation);
    old_range.len() + new_range.len()
}

/// The lines of either side that are told of one step, and the sign of the old ones.
fn sides_of(operation: &DiffOp) -> (char, Range<usize>, Range<usize>) {
    match operation.as_tag_tuple() {
        (DiffTag::Equal, old_range, _) => (' ', old_range, 0..0),
        (_, old_range, new_range) => ('-', old_range, new_range),
    }
}

impl Hunks<'_> {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// How many lines begin with a space, a plus or a minus.
    pub fn line_count(&self) -> usize {
        self.lines
    }

    /// The same lines, over-long ones shortened.
    fn shortened(&self) -> Hunks<'static> {
        let hunks = self.hunks.iter().map(|hunk| {
            let lines = hunk.lines.iter().map(Line::start).collect();
            Hunk { lines, ..*hunk }
        });
        Hunks { hunks: hunks.collect(), lines: self.lines }
    }

    /// As many lines as fit. A hunk that is cut tells its own lines.
    fn shown(&self, most_lines: usize, most_bytes: usize) -> Shown {
        let mut shown = Shown::default();
        for hunk in &self.hunks {
            let room = most_bytes - shown.text.len();
            let mut lines = hunk.lines.len().min(most_lines - shown.lines);
            // A header is the longer the more lines it counts: the lines are told first.
            let mut ends = Vec::with_capacity(lines);
            let mut body = String::new();
            for line in &hunk.lines[..lines] {
                line.show(&mut body);
                if body.len() > room {
                    break;
                }
                ends.push(body.len());
            }
            lines = ends.len();
            while lines > 0 && hunk.header(lines).len() + ends[lines - 1] > room {
                lines -= 1;
            }
            if lines > 0 {
                shown.text.push_str(&hunk.header(lines));
                shown.text.push_str(&body[..ends[lines - 1]]);
                shown.lines += lines;
            }
            if lines < hunk.lines.len() {
                break;
            }
        }
        shown
    }
}

impl std::fmt::Display for Hunks<'_> {
    /// All of it, as `patch` takes it.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut body = String::new();
        for hunk in &self.hunks {
            body.clear();
            hunk.lines.iter().for_each(|line| line.show(&mut body));
            write!(out, "{}{body}", hunk.header(hunk.lines.len()))?;
        }
        Ok(())
    }
}

impl Hunk<'_> {
    /// The line that says where the first `shown` lines stand.
    fn header(&self, shown: usize) -> String {
        let range = |before: usize, sign: char| {
            let count =
                self.lines[..shown].iter().filter(|it| it.sign == ' ' || it.sign == sign).count();
            // Nothing stands behind the line before it.
            let start = if count == 0 { before } else { before + 1 };
            if count == 1 { start.to_string() } else { format!("{start},{count}") }
        };
        format!("@@ -{} +{} @@\n", range(self.old_before, '-'), range(self.new_before, '+'))
    }
}

impl<'a> Line<'a> {
    fn new(sign: char, line: &'a str) -> Self {
        let text = line.strip_suffix('\n').unwrap_or(line);
        Self { sign, text: text.into(), ends: text.len() < line.len(), bytes: text.len() }
    }

    /// The line, or as much of it as is shown of one.
    fn start(&self) -> Line<'static> {
        let mut end = self.text.len().min(LINE_BYTES_MAX);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        Line { text: self.text[..end].to_owned().into(), ..*self }
    }

    /// Writes the line; a cut says how much.
    fn show(&self, out: &mut String) {
        let Self { sign, text, ends, bytes } = self;
        out.push(*sign);
        out.push_str(text);
        if text.len() < *bytes {
            let shown = text.len();
            out.push_str(&format!("… (cut: {shown} of {bytes} bytes of the line)"));
        }
        out.push('\n');
        if !ends {
            out.push_str("\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::text::is_plain;
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// A line for each number.
    fn numbers(first: u32, last: u32) -> String {
        let lines: Vec<_> = (first..=last).map(|number| number.to_string()).collect();
        lines.join("\n") + "\n"
    }

    fn sides<'a>(old: &'a [u8], new: &'a [u8]) -> Sides<'a> {
        let side = |bytes| Side { bytes, is_plain: is_plain(bytes) };
        Sides { old: side(old), new: side(new) }
    }

    fn whole(old: &str, new: &str) -> String {
        unified(old, new, soon()).expect("there is time").to_string()
    }

    fn told(files: &[(&str, &str)], limits: &DiffLimits) -> Vec<(String, u64)> {
        let pairs = files
            .iter()
            .map(|(old, new)| sides(old.as_bytes(), new.as_bytes()))
            .collect::<Vec<_>>();
        let changes = changes(&pairs, limits, soon()).into_iter();
        changes
            .map(|change| match change {
                Change::Diff { text, omitted } => (text, omitted),
                Change::Withheld(reason) => panic!("withheld: {reason}"),
            })
            .collect()
    }

    /// What `patch` makes of the old text, without searching for a place.
    fn patched(old: &str, diff: &str) -> String {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name);
        fs::write(path("old"), old).expect("a file can be written");
        fs::write(path("diff"), format!("--- old\n+++ old\n{diff}"))
            .expect("a file can be written");
        let output = Command::new("patch")
            .args(["--binary", "--force", "--fuzz=0", "--output=new", "old", "diff"])
            .current_dir(directory.path())
            .output()
            .expect("`patch` is installed");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{diff}");
        assert!(!said.contains("offset"), "{said}\n{diff}");
        // Nothing is left of a file that became empty.
        fs::read_to_string(path("new")).unwrap_or_default()
    }

    /// Every line stands where its header says, on the sides that its sign says.
    #[track_caller]
    fn assert_true(diff: &str, old: &str, new: &str) {
        let numbered =
            |text: &str| -> Vec<String> { text.split_inclusive('\n').map(str::to_owned).collect() };
        let sides = [numbered(old), numbered(new)];
        let mut next = [0, 0];
        let mut left = [0, 0];
        let lines: Vec<_> = diff.split_inclusive('\n').collect();
        for (index, line) in lines.iter().enumerate() {
            if let Some(header) = line.strip_prefix("@@ -") {
                assert_eq!(left, [0, 0], "a hunk is shorter than its header says: {diff}");
                let header = header.strip_suffix(" @@\n").expect("the end of a header");
                for (side, range) in header.split(" +").enumerate() {
                    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
                    let number = |text: &str| text.parse::<usize>().expect("a number");
                    left[side] = number(count);
                    next[side] = number(start) - usize::from(left[side] > 0);
                }
                continue;
            }
            if line.starts_with('\\') {
                continue;
            }
            let (sign, text) = line.split_at(1);
            let bare = lines.get(index + 1).is_some_and(|line| line.starts_with('\\'));
            let text = if bare { text.strip_suffix('\n').expect("a line") } else { text };
            for side in [0, 1] {
                if sign != ["+", "-"][side] {
                    assert_eq!(sides[side][next[side]], text, "{diff}");
                    next[side] += 1;
                    left[side] -= 1;
                }
            }
        }
        assert_eq!(left, [0, 0], "a hunk is shorter than its header says: {diff}");
    }

    #[test]
    fn a_change_is_told_with_its_lines_around() {
        let old = numbers(1, 20);
        let new = old.replace("10\n", "ten\n").replace("\n20\n", "\n20");
        let diff = "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n\
                    @@ -17,4 +17,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n";
        assert_eq!(whole(&old, &new), diff);
        assert_eq!(whole(&old, &old), "");
        assert_eq!(whole("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(whole("a\nb\n", ""), "@@ -1,2 +0,0 @@\n-a\n-b\n");
    }

    #[test]
    fn patch_makes_the_new_text_of_every_nasty_one() {
        let long = "x".repeat(100_000);
        let texts = [
            "",
            "\n",
            "\n\n\n",
            "a",
            "a\n",
            "a\nb",
            "a\nb\n",
            "\na\nb\n",
            "a\n\nb",
            "a\r\nb\r\n",
            "a\rb\rc",
            "a\rb\rc\r",
            "a\na\na\na\na\na\na\na\na\n",
            "a\na\na\na\nb\na\na\na\na\na",
            "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\n",
            "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\ng",
            "-- a\n++ b\n@@ -1 +1 @@\n\\ No newline at end of file\n",
            "--- a\n+++ b\n diff --git\n-\n+\n \n",
            &format!("{long}\n{long}y\nz"),
            &format!("{long}y\nz\n"),
            "é\n€\n😀",
            "é\n\u{20ad}\n😀\n",
            &"line\n".repeat(1_000),
            &("line\n".repeat(500) + "other\n" + &"line\n".repeat(700)),
        ];
        for old in texts {
            for new in texts {
                if old != new {
                    assert_eq!(patched(old, &whole(old, new)), new, "{old:?} {new:?}");
                }
            }
        }
    }

    #[test]
    fn sides_that_cannot_be_compared_say_why() {
        let limits = DiffLimits::default();
        let large = "x\n".repeat(128 << 10);
        let larger = format!("{large}x");
        let of = |old: &[u8], new: &[u8]| {
            changes(&[sides(old, new)], &limits, soon()).pop().expect("one for one")
        };
        let withheld = |reason: &str| Change::Withheld(reason.to_owned());
        assert_eq!(of(b"a\0", b"a"), withheld("it is binary"));
        assert_eq!(of(b"a", larger.as_bytes()), withheld("it is too large for a diff"));
        assert_eq!(of(larger.as_bytes(), b""), withheld("it is too large for a diff"));
        assert!(matches!(of(b"a", large.as_bytes()), Change::Diff { .. }));
        assert_eq!(of(b"a\r\n", b"a\n"), withheld("its text is the same"));
        let past = changes(&[sides(b"a", b"b")], &limits, Instant::now());
        assert_eq!(past, [withheld("there was no time to compare it")]);
        // Not UTF-8, and told all the same.
        let latin = of(b"caf\xe9\n", b"th\xe9\r\n");
        let diff = Change::Diff { text: "@@ -1 +1 @@\n-café\n+thé\n".to_owned(), omitted: 0 };
        assert_eq!(latin, diff);
    }

    #[test]
    fn a_cut_says_how_many_lines_it_left_out() {
        let old = numbers(0, 99);
        let limits = DiffLimits::default();
        let [(text, omitted)] = &told(&[("", &old)], &limits)[..] else { panic!("one for one") };
        assert!(text.starts_with("@@ -0,0 +1,40 @@\n+0\n"), "{text}");
        assert!(text.ends_with("\n+39\n"), "{text}");
        assert_eq!(*omitted, 60);
    }

    /// Forty files that change wholly and one with one line: everybody is told something.
    #[test]
    fn small_diffs_are_whole_and_large_ones_share_what_is_left() {
        let large = numbers(0, 99);
        let mut files = vec![("", large.as_str()); 40];
        files.push(("a\n", "b\n"));
        let told = told(&files, &DiffLimits::default());
        assert_eq!(told[40], ("@@ -1 +1 @@\n-a\n+b\n".to_owned(), 0));
        assert!(told.iter().all(|(text, _)| !text.is_empty()));
        let lines = told.iter().map(|(text, _)| signed_lines(text)).sum::<usize>();
        assert_eq!(lines, 400);
    }

    /// A minified file is one line.
    #[test]
    fn an_over_long_line_is_cut_and_marked() {
        let line = "é".repeat(60_000);
        let told = told(&[("", &line), (&line, "a\n")], &DiffLimits::default());
        for (text, omitted) in told {
            assert!(text.len() < 1500, "{} bytes", text.len());
            assert!(text.contains("é… (cut: 1024 of 120000 bytes of the line)\n"), "{text}");
            assert_eq!(omitted, 0);
        }
    }

    fn signed_lines(text: &str) -> usize {
        text.split('\n').filter(|line| line.starts_with([' ', '+', '-'])).count()
    }

    /// A text of few different lines, so that they repeat.
    fn text() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            4 => "[ab]?",
            1 => "[-+ @\\\\]{1,3}a?",
            1 => Just("\r".to_owned()),
            1 => "[\u{2028}\u{85}\u{c}é😀\r]{1,3}",
            1 => "[0-9]{1,2}",
        ];
        (prop::collection::vec(line, 0..40), any::<bool>()).prop_map(|(lines, ends)| {
            let text = lines.join("\n");
            if ends && !lines.is_empty() { text + "\n" } else { text }
        })
    }

    /// Two texts, the second often the first with something in it replaced.
    fn pair() -> impl Strategy<Value = (String, String)> {
        let edited = (text(), text(), any::<prop::sample::Index>(), 0_usize..20).prop_map(
            |(old, piece, at, length)| {
                let lines: Vec<_> = old.split_inclusive('\n').collect();
                let at = at.index(lines.len() + 1);
                let end = (at + length).min(lines.len());
                let new = lines[..at].concat() + &piece + &lines[end..].concat();
                (old, new)
            },
        );
        prop_oneof![(text(), text()), edited]
    }

    proptest! {
        #[test]
        fn patch_makes_the_new_text((old, new) in pair()) {
            let diff = whole(&old, &new);
            prop_assert_eq!(diff.is_empty(), old == new);
            if old != new {
                prop_assert_eq!(patched(&old, &diff), new);
            }
        }

        #[test]
        fn what_is_shown_is_true_and_fits(
            files in prop::collection::vec(pair(), 0..12),
            file_lines in 0_u64..30,
            all_lines in 0_u64..90,
            all_bytes in 0_u64..900,
        ) {
            let limits = DiffLimits {
                file_lines,
                lines: all_lines,
                bytes: all_bytes,
                ..DiffLimits::default()
            };
            let pairs: Vec<_> = files
                .iter()
                .map(|(old, new)| sides(old.as_bytes(), new.as_bytes()))
                .collect();
            let changes = changes(&pairs, &limits, soon());
            prop_assert_eq!(changes.len(), files.len());
            let (mut lines, mut bytes) = (0, 0);
            for (change, (old, new)) in changes.iter().zip(&files) {
                let texts = (decode(old.as_bytes()), decode(new.as_bytes()));
                let (Decoded::Text(old), Decoded::Text(new)) = texts else { panic!("it is text") };
                let Change::Diff { text, omitted } = change else {
                    prop_assert_eq!(old, new);
                    continue;
                };
                assert_true(text, &old, &new);
                let shown = signed_lines(text);
                let all = unified(&old, &new, soon()).expect("there is time").line_count();
                prop_assert_eq!(shown as u64 + omitted, all as u64);
                prop_assert!(shown as u64 <= file_lines);
                lines += shown as u64;
                bytes += text.len() as u64;
            }
            prop_assert!(lines <= all_lines && bytes <= all_bytes);
        }
    }
}
