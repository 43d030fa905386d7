//! The first words between `reminderd connect` and the daemon, before the client's own bytes, and the
//! last ones behind the daemon's. The client sees neither.
//!
//! One line of JSON each way: `{"reminderd": VERSION}`, and `{"reminderd": VERSION, "answer": …}`.
//! They never change their meaning, since builds of any age meet here; what is not known is ignored.
//! Where the system does not say who is at the other end, both prove that they know the secret, which
//! itself is never sent.
//!
//! The last words are a zero byte, which no message holds, the exit status in one digit, and the
//! reason, up to the end of the stream. A client that does not read what was answered before it keeps
//! them from coming; then the bridge asks for them on a connection of its own.

use std::io;
use std::time::Duration;

use semver::Version;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::End;
use super::endpoint::Stream;

/// How long the other end may take for its line.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a line may be.
const LINE_BYTES_MAX: usize = 4096;

/// Stands before the last words.
pub const END: u8 = 0;

/// What both ends of a connection over the loopback know.
#[derive(Clone, Serialize, Deserialize)]
pub struct Secret(String);

impl Secret {
    /// A new one that nobody can guess.
    pub fn random() -> io::Result<Self> {
        nonce().map(Self)
    }

    /// Proves that an end knows the secret, for this once.
    fn proof(&self, end: &str, nonce: &str) -> String {
        let key = blake3::hash(self.0.as_bytes());
        blake3::keyed_hash(key.as_bytes(), format!("{end} {nonce}").as_bytes()).to_hex().to_string()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret")
    }
}

fn nonce() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(blake3::hash(&bytes).to_hex().to_string())
}

/// What the client's end says first.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    /// The version of its build.
    reminderd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
    /// The connection whose last words are asked for; nothing else is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<u64>,
}

/// What the daemon makes of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// It is served: its bytes may come.
    Welcome,
    /// Nobody is served here any more: a newer daemon has to be started, or is there already.
    Moved,
    /// As many are served as can be.
    Full,
    /// The last words that it asks for are these, if there are any.
    Ended,
    /// It did not prove what it should.
    #[serde(other)]
    Refused,
}

#[derive(Debug, Serialize, Deserialize)]
struct Reply {
    /// The version of the daemon's build.
    reminderd: String,
    answer: Answer,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
    #[serde(flatten)]
    more: More,
}

/// What belongs to an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct More {
    /// The number of a connection that is welcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// The last words of one that has ended, without their zero byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// The client's end: says hello, and returns what the daemon makes of it. An end of the stream is an
/// error of the kind [`io::ErrorKind::UnexpectedEof`].
pub async fn greet(
    stream: &mut Stream,
    version: &Version,
    ended: Option<u64>,
) -> io::Result<(Answer, More)> {
    let nonce = stream.secret.as_ref().map(|_| nonce()).transpose()?;
    let proof = |end| Some(stream.secret.as_ref()?.proof(end, nonce.as_deref()?));
    let (ours, theirs) = (proof("connect"), proof("serve"));
    let hello = Hello { reminderd: version.to_string(), nonce, proof: ours, ended };
    write_line(stream, &hello).await?;
    let reply: Reply = read_line(stream).await?;
    // One that listens on the port of a daemon that is gone knows nothing.
    let answer = if reply.proof == theirs { reply.answer } else { Answer::Refused };
    Ok((answer, reply.more))
}

/// A client that said hello and waits for the answer.
#[derive(Debug)]
pub struct Greeted {
    /// Its end.
    pub stream: Stream,
    /// The version of its build, if it is one.
    pub version: Option<Version>,
    /// Whether it knows what it should.
    pub is_known: bool,
    /// The connection whose last words it asks for.
    pub ended: Option<u64>,
    proof: Option<String>,
}

impl Greeted {
    /// Reads the client's hello.
    pub async fn read(mut stream: Stream) -> io::Result<Self> {
        let Hello { reminderd, nonce, proof, ended } = read_line(&mut stream).await?;
        let nonce = nonce.as_deref().unwrap_or_default();
        let prove = |end| stream.secret.as_ref().map(|secret| secret.proof(end, nonce));
        let is_known = stream.secret.is_none() || proof == prove("connect");
        let proof = prove("serve").filter(|_| is_known);
        Ok(Self { version: Version::parse(&reminderd).ok(), is_known, ended, proof, stream })
    }

    /// Answers it.
    pub async fn answer(
        mut self,
        version: &Version,
        answer: Answer,
        more: More,
    ) -> io::Result<Stream> {
        let proof = self.proof.take();
        let reply = Reply { reminderd: version.to_string(), answer, proof, more };
        write_line(&mut self.stream, &reply).await?;
        Ok(self.stream)
    }
}

async fn write_line(stream: &mut Stream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.output.write_all(&line).await?;
    stream.output.flush().await
}

/// Reads a line. Neither end says more before it was answered.
async fn read_line<T: DeserializeOwned>(stream: &mut Stream) -> io::Result<T> {
    let mut line = Vec::with_capacity(256);
    let read = async {
        while !line.ends_with(b"\n") && line.len() < LINE_BYTES_MAX {
            if stream.input.read_buf(&mut line).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, read).await??;
    serde_json::from_slice(&line).map_err(io::Error::from)
}

/// The last words to a client.
pub fn last_words(end: &End) -> String {
    format!("{}{end}", end.status())
}

/// The exit status and the reason that last words give, without their zero byte; `None` when they are
/// none.
pub fn read_last_words(words: &str) -> Option<(u8, String)> {
    let (status, reason) = words.split_at_checked(1)?;
    Some((status.parse().ok()?, reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use tokio::io::{duplex, split};

    use super::*;

    fn pair(ours: Option<&str>, theirs: Option<&str>) -> (Stream, Stream) {
        let (one, two) = duplex(4096);
        let stream = |end, secret: Option<&str>| {
            let (input, output) = split(end);
            let secret = secret.map(|text| Secret(text.to_owned()));
            Stream { input: Box::new(input), output: Box::new(output), secret }
        };
        (stream(one, ours), stream(two, theirs))
    }

    /// What a client with one secret hears from a daemon with another, and whether the daemon takes
    /// it for one of its own.
    async fn met(ours: Option<&str>, theirs: Option<&str>) -> (Answer, bool) {
        let (mut client, daemon) = pair(ours, theirs);
        let version = Version::new(1, 2, 3);
        let answered = async {
            let greeted = Greeted::read(daemon).await.unwrap();
            assert_eq!(greeted.version, Some(Version::new(1, 2, 3)));
            let is_known = greeted.is_known;
            let version = Version::new(1, 0, 0);
            greeted.answer(&version, Answer::Welcome, More::default()).await.unwrap();
            is_known
        };
        let (heard, is_known) = tokio::join!(greet(&mut client, &version, None), answered);
        (heard.unwrap().0, is_known)
    }

    #[tokio::test]
    async fn both_ends_prove_what_they_know() {
        assert_eq!(met(None, None).await, (Answer::Welcome, true));
        assert_eq!(met(Some("a"), Some("a")).await, (Answer::Welcome, true));
        assert_eq!(met(Some("a"), Some("b")).await, (Answer::Refused, false));
        assert_eq!(met(None, Some("b")).await, (Answer::Welcome, false), "the daemon refuses");
        assert_eq!(met(Some("a"), None).await, (Answer::Refused, true), "the client refuses");
    }

    #[tokio::test]
    async fn what_a_later_build_says_beside_it_is_ignored() {
        let (mut client, daemon) = pair(None, None);
        client.output.write_all(b"{\"reminderd\":\"9.0.0-a\",\"more\":[1]}\n").await.unwrap();
        let greeted = Greeted::read(daemon).await.unwrap();
        assert_eq!(greeted.version, Version::parse("9.0.0-a").ok());
        let reply: Reply =
            serde_json::from_str(r#"{"reminderd":"9","answer":"later","more":1}"#).unwrap();
        assert_eq!(reply.answer, Answer::Refused);
    }

    #[tokio::test]
    async fn a_line_that_is_none_is_an_error() {
        for text in [&b"hello\n"[..], b"{}\n", &[b'x'; LINE_BYTES_MAX]] {
            let (mut client, daemon) = pair(None, None);
            client.output.write_all(text).await.unwrap();
            assert!(Greeted::read(daemon).await.is_err());
        }
        let (client, daemon) = pair(None, None);
        drop(client);
        let error = Greeted::read(daemon).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn last_words_come_back() {
        for end in [End::Exit { after_shutdown: true }, End::InputCut] {
            let words = last_words(&end);
            assert_eq!(read_last_words(&words), Some((end.status(), end.to_string())));
        }
        assert_eq!(read_last_words(""), None);
        assert_eq!(read_last_words("\u{e4}"), None);
    }
}
