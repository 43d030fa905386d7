//! The user's file: what is wrong with one and how that is told, its schema and reference, what trust
//! leaves out, and the commands that look at it.

mod command;
mod keys;
mod layers;
mod mistakes;
mod properties;
mod reference;

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Names the variable that writes what was generated anew.
const BLESS: &str = "REMINDERD_BLESS";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Holds a file of the tree to what it is made of, or writes it.
fn hold(path: &str, wanted: &str) {
    let path: PathBuf = root().join(path);
    if env::var_os(BLESS).is_some_and(|value| value == "1") {
        fs::write(&path, wanted).expect("it is written");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let (mut old, mut new) = (found.lines(), wanted.lines());
    for number in 1.. {
        let (old, new) = (old.next(), new.next());
        assert!(
            old == new,
            "{} differs at line {number}\n- {}\n+ {}\nIf that is meant, run this test once with \
             {BLESS}=1 and commit what it writes.",
            path.display(),
            old.unwrap_or("(the end)"),
            new.unwrap_or("(the end)"),
        );
        if old.is_none() {
            break;
        }
    }
}

/// The TOML examples of a document.
fn examples(markdown: &str) -> Vec<String> {
    let blocks = markdown.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().expect("a block").to_owned()).collect()
}
