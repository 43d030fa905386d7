//! Proof that a text reached the host: it stands, whole, where the host keeps the conversation.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value as Json;

/// How much of a transcript is looked through at most, in bytes. What a host writes between a WAIT
/// and the next event is far less.
const LOOKED_THROUGH_MAX: u64 = 256 * 1024 * 1024;
/// Members under which hosts note what a command printed, whatever became of it.
const PRINTED: &[&str] = &["stdout", "stderr", "output", "command"];

/// How long a transcript is: what is given from now on stands behind that.
pub fn length(transcript: &Path) -> u64 {
    transcript.metadata().map_or(0, |metadata| metadata.len())
}

/// Which of the texts stand in a transcript behind this offset. One that is shorter now was written
/// anew, and is looked through whole.
pub fn found(transcript: &Path, offset: u64, texts: &[&str]) -> io::Result<Vec<bool>> {
    let mut found = vec![false; texts.len()];
    let mut file = match File::open(transcript) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        file => file?,
    };
    if file.metadata()?.len() >= offset {
        file.seek(SeekFrom::Start(offset))?;
    }
    let mut lines = BufReader::new(file.take(LOOKED_THROUGH_MAX));
    let mut line = Vec::new();
    while found.contains(&false) {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // A line that is being written, and the rest of one that began before the offset.
        let Ok(message) = serde_json::from_slice(&line) else { continue };
        for (text, found) in texts.iter().zip(&mut found) {
            *found = *found || holds(&message, text);
        }
    }
    Ok(found)
}

/// Whether a text stands in a message, whole.
fn holds(message: &Json, text: &str) -> bool {
    match message {
        Json::String(string) => string.contains(text),
        Json::Array(items) => items.iter().any(|item| holds(item, text)),
        Json::Object(members) => {
            members.iter().any(|(name, value)| !PRINTED.contains(&&**name) && holds(value, text))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_stands_whole_behind_the_offset_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("transcript.jsonl");
        assert_eq!(found(&path, 0, &["a"]).unwrap(), [false], "there is none yet");
        let old = format!("{}\n", json!({ "content": ["a told text"] }));
        std::fs::write(&path, &old).unwrap();
        let offset = length(&path);
        assert_eq!(found(&path, offset, &["a told text"]).unwrap(), [false]);
        let printed = json!({ "stdout": "a told text", "content": "" });
        let cut = "{\"content\": \"a told text";
        std::fs::write(&path, format!("{old}{printed}\n{cut}")).unwrap();
        assert_eq!(found(&path, offset, &["a told text"]).unwrap(), [false]);
        std::fs::write(&path, format!("{old}{printed}\n{cut}\"}}\n")).unwrap();
        let texts = ["a told text", "a told text, and more"];
        assert_eq!(found(&path, offset, &texts).unwrap(), [true, false]);
        assert_eq!(found(&path, 1 << 20, &["a told text"]).unwrap(), [true], "written anew");
    }
}
