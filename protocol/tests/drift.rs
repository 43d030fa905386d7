//! The checked-in schema is the one that the types give.

use std::path::Path;

const BLESS: &str = "REMINDERD_BLESS=1 cargo test -p reminderd-protocol --test drift";

#[test]
fn the_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/reminderd.schema.json");
    let mut wanted = serde_json::to_string_pretty(&reminderd_protocol::schema::document()).unwrap();
    wanted.push('\n');
    if std::env::var_os("REMINDERD_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    // A checkout may have rewritten line ends; the schema is the same.
    let (mut found, mut wanted) = (found.lines(), wanted.lines());
    for number in 1.. {
        let (found, wanted) = (found.next(), wanted.next());
        assert!(
            found == wanted,
            "schema/reminderd.schema.json differs from the types at line {number}\n  \
             in the file: {}\n  from types:  {}\nmend it with: {BLESS}",
            found.unwrap_or("(end of file)"),
            wanted.unwrap_or("(end of file)"),
        );
        if found.is_none() {
            break;
        }
    }
}
