//! The contents that differences are shown from: the same bytes are held once for the whole
//! daemon, packed when nothing has used them for a while.
//!
//! Packing is LZ4: text shrinks to less than half, and unpacking a file costs about as much as
//! reading it. zstd would save another third and take five times as long in the middle of a WAIT.
//! What was used last stays plain, so that a file that changes again and again is never unpacked.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::engine::Fingerprint;

use super::text;

/// The most bytes of contents that are held plain, over all of the daemon.
const PLAIN_BYTES_MAX: usize = 8 << 20;
/// Contents below this many bytes are never packed: their bookkeeping costs as much.
const PACKED_BYTES_MIN: usize = 512;

/// The content of a file, shared by all who keep it.
pub struct Content {
    fingerprint: Fingerprint,
    /// Its place in the order of arrival.
    number: u64,
    bytes: u64,
    is_plain: bool,
    body: Mutex<Body>,
    home: Weak<Contents>,
}

enum Body {
    Plain(Arc<Vec<u8>>),
    /// Only what became smaller by at least an eighth.
    Packed(Box<[u8]>),
}

impl Content {
    /// What it is known by: two contents with one fingerprint differ in line endings and byte-order
    /// mark at most.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Its size as it was read, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the bytes are its text as they stand ([`text::is_plain`]).
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The bytes as they were read.
    pub fn read(&self) -> Arc<Vec<u8>> {
        match &*self.body.lock() {
            Body::Plain(bytes) => bytes.clone(),
            // What was packed here unpacks, so nothing can be wrong with it.
            Body::Packed(packed) => {
                let size = usize::try_from(self.bytes).unwrap_or(usize::MAX);
                Arc::new(lz4_flex::block::decompress(packed, size).unwrap_or_default())
            }
        }
    }

    fn pack(&self) {
        let bytes = match &*self.body.lock() {
            Body::Plain(bytes) => bytes.clone(),
            Body::Packed(_) => return,
        };
        if bytes.len() < PACKED_BYTES_MIN {
            return;
        }
        let packed = lz4_flex::block::compress(&bytes);
        if packed.len() + bytes.len() / 8 < bytes.len() {
            *self.body.lock() = Body::Packed(packed.into());
        }
    }
}

/// Never the content itself.
impl fmt::Debug for Content {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Content({}, {} bytes)", self.fingerprint, self.bytes)
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.forget(self);
        }
    }
}

/// The contents that are held, each as long as somebody keeps it.
#[derive(Default)]
pub struct Contents {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    by_fingerprint: HashMap<Fingerprint, Weak<Content>>,
    /// Plain contents in the order of arrival, with their sizes.
    plain: BTreeMap<u64, (Weak<Content>, usize)>,
    plain_bytes: usize,
    arrivals: u64,
}

/// How much is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Contents.
    pub contents: u64,
    /// Bytes that they would take plain.
    pub bytes: u64,
    /// Bytes that they take.
    pub held: u64,
}

impl Contents {
    /// Keeps a content, or finds the one that is kept already. Packs nothing: that is left to
    /// [`Contents::cool`], which is called where nobody waits.
    pub fn keep(self: &Arc<Self>, fingerprint: Fingerprint, bytes: Vec<u8>) -> Arc<Content> {
        let mut held = self.held.lock();
        if let Some(content) = held.by_fingerprint.get(&fingerprint).and_then(Weak::upgrade) {
            return content;
        }
        held.arrivals += 1;
        let (number, size) = (held.arrivals, bytes.len());
        let content = Arc::new(Content {
            fingerprint,
            number,
            bytes: size as u64,
            is_plain: text::is_plain(&bytes),
            body: Mutex::new(Body::Plain(Arc::new(bytes))),
            home: Arc::downgrade(self),
        });
        let weak = Arc::downgrade(&content);
        held.by_fingerprint.insert(fingerprint, weak.clone());
        held.plain.insert(number, (weak, size));
        held.plain_bytes += size;
        content
    }

    /// Packs what came first, until no more than the bound is plain.
    pub fn cool(&self) {
        loop {
            let coldest = {
                let mut held = self.held.lock();
                if held.plain_bytes <= PLAIN_BYTES_MAX {
                    return;
                }
                let Some((_, (content, bytes))) = held.plain.pop_first() else { return };
                held.plain_bytes -= bytes;
                content
            };
            // Not under the lock: it takes a while.
            if let Some(content) = coldest.upgrade() {
                content.pack();
            }
        }
    }

    /// How much is held.
    pub fn weight(&self) -> Weight {
        let contents: Vec<_> = {
            let held = self.held.lock();
            held.by_fingerprint.values().filter_map(Weak::upgrade).collect()
        };
        let mut weight = Weight::default();
        for content in contents {
            weight.contents += 1;
            weight.bytes += content.bytes;
            weight.held += match &*content.body.lock() {
                Body::Plain(bytes) => bytes.len(),
                Body::Packed(packed) => packed.len(),
            } as u64;
        }
        weight
    }

    fn forget(&self, content: &Content) {
        let mut held = self.held.lock();
        if let Some((_, bytes)) = held.plain.remove(&content.number) {
            held.plain_bytes -= bytes;
        }
        // The same content may have been kept anew between the last use and this.
        let known = held.by_fingerprint.get(&content.fingerprint);
        if known.is_some_and(|known| known.strong_count() == 0) {
            held.by_fingerprint.remove(&content.fingerprint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(bytes: &[u8]) -> Fingerprint {
        Fingerprint(blake3::hash(bytes).into())
    }

    #[test]
    fn the_same_content_is_held_once_and_as_long_as_it_is_kept() {
        let contents = Arc::new(Contents::default());
        let one = contents.keep(fingerprint(b"a"), b"a".to_vec());
        let two = contents.keep(fingerprint(b"a"), b"a".to_vec());
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(contents.weight(), Weight { contents: 1, bytes: 1, held: 1 });
        drop(one);
        assert_eq!(contents.weight().contents, 1);
        drop(two);
        assert_eq!(contents.weight(), Weight::default());
    }

    #[test]
    fn what_came_first_is_packed_where_that_pays() {
        let contents = Arc::new(Contents::default());
        let text = |number: u32| format!("let line = {number};\n").repeat(40_000).into_bytes();
        let texts: Vec<_> = (0..20).map(text).collect();
        let mut kept: Vec<_> =
            texts.iter().map(|text| contents.keep(fingerprint(text), text.clone())).collect();
        contents.cool();
        let weight = contents.weight();
        let plain = u64::try_from(PLAIN_BYTES_MAX).expect("it fits");
        assert!(weight.bytes > plain && weight.held < plain + plain / 8, "{weight:?}");
        for (content, text) in kept.iter().zip(&texts) {
            assert_eq!(*content.read(), *text);
        }
        // Noise stays as it is.
        let mut noise = vec![0; 4 << 20];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        for tail in 0..3 {
            noise.push(tail);
            kept.push(contents.keep(fingerprint(&noise), noise.clone()));
            contents.cool();
            assert_eq!(*kept.last().expect("it was pushed").read(), *noise);
        }
    }

    #[test]
    fn what_nobody_keeps_leaves_nothing_behind() {
        let contents = Arc::new(Contents::default());
        for number in 0..100_u32 {
            let bytes = number.to_le_bytes();
            drop(contents.keep(fingerprint(&bytes), bytes.to_vec()));
        }
        let held = contents.held.lock();
        assert_eq!((held.plain.len(), held.plain_bytes, held.by_fingerprint.len()), (0, 0, 0));
    }
}
