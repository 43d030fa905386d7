//! Which files git ignores, as `git check-ignore` says, whether git is installed or not
//! (`reminders.md` §5).
//!
//! Patterns are matched by `gix-ignore` rather than by the `ignore` crate: that one takes braces for
//! alternatives, which git does not, and knows no `[[:alpha:]]`; either may show what git hides.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gix_config::file::{Metadata, includes, init};
use gix_config::{Source, path};
use gix_ignore::glob::pattern::Case;
use gix_ignore::glob::search::pattern::List;
use gix_ignore::search::{Ignore, pattern_matching_relative_path};
use gix_index::hash::Kind;
use parking_lot::{Mutex, MutexGuard};

/// The most directories that are remembered; beyond that all are looked at again.
const DIRECTORIES_MAX: usize = 10_000;
/// The largest file of patterns that is read, in bytes. What lies beyond is not seen, as in git.
const PATTERNS_BYTES_MAX: u64 = 100 << 20;
/// How old a file must be for its time to tell that it did not change since.
const SETTLED: Duration = Duration::from_secs(2);

/// What was read of repositories, and is read again where it changed.
#[derive(Debug, Default)]
pub struct Git(Mutex<Cache>);

#[derive(Debug, Default)]
struct Cache {
    round: u64,
    directories: HashMap<PathBuf, Directory>,
    repositories: HashMap<PathBuf, Repository>,
}

/// One look at the disk: what was seen in it once stands for all paths that are asked about.
#[derive(Debug)]
pub struct Round<'a>(MutexGuard<'a, Cache>);

/// What a directory says about what lies below it.
#[derive(Debug, Default)]
struct Directory {
    seen_in: u64,
    stamp: Option<Stamp>,
    patterns: Option<Arc<List<Ignore>>>,
    /// The directory of git's own, where a repository begins here.
    git: Option<PathBuf>,
}

#[derive(Debug)]
struct Repository {
    seen_in: u64,
    /// What all of this was read from.
    sources: Vec<(PathBuf, Option<Stamp>)>,
    /// Patterns for the whole repository, the stronger ones first.
    patterns: Vec<List<Ignore>>,
    case: Case,
    hash: Kind,
    index: Option<Index>,
}

#[derive(Debug)]
struct Index {
    stamp: Option<Stamp>,
    /// None where it cannot be read: then nothing is known to be tracked.
    file: Option<gix_index::File>,
}

/// What tells that a file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    changed: (i64, i64),
    bytes: u64,
    inode: u64,
    /// Whether a later change could not bear the same times.
    settled: bool,
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let before = now.saturating_sub(SETTLED).as_secs();
        let changed = metadata.ctime().max(metadata.mtime());
        Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            bytes: metadata.size(),
            inode: metadata.ino(),
            settled: u64::try_from(changed).is_ok_and(|changed| changed < before),
        }
    }

    fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().as_ref().map(Self::of)
    }

    /// Whether what was read then is what would be read now.
    fn holds(then: Option<&Self>, now: Option<&Self>) -> bool {
        match (then, now) {
            (None, None) => true,
            (Some(then), Some(now)) => then.settled && then == now,
            _ => false,
        }
    }
}

impl Git {
    /// A look at the disk. Nobody else has one until it is over.
    pub fn round(&self) -> Round<'_> {
        let mut cache = self.0.lock();
        cache.round += 1;
        if cache.directories.len() > DIRECTORIES_MAX {
            cache.directories.clear();
            cache.repositories.clear();
        }
        Round(cache)
    }
}

impl Round<'_> {
    /// Whether git ignores a file, which need not be there: an absolute path without `.` and `..`.
    /// What git tracks is not ignored, and neither is what lies in no repository.
    pub fn ignores(&mut self, path: &Path) -> bool {
        let cache = &mut *self.0;
        let round = cache.round;
        // The innermost repository decides.
        let mut lists = Vec::new();
        let mut found = None;
        for directory in path.ancestors().skip(1) {
            let seen = cache.directory(directory);
            lists.push((directory, seen.patterns.clone()));
            if let Some(git) = &seen.git {
                found = Some((directory, git.clone()));
                break;
            }
        }
        let Some((root, git)) = found else { return false };
        let repository = cache
            .repositories
            .entry(root.to_owned())
            .and_modify(|known| known.refresh(round, root, &git))
            .or_insert_with(|| Repository::read(round, root, &git));
        lists.reverse();
        repository.ignores(root, path, &lists) && !repository.tracks(root, &git, path)
    }
}

impl Cache {
    fn directory(&mut self, path: &Path) -> &Directory {
        let round = self.round;
        let directory = self.directories.entry(path.to_owned()).or_default();
        if directory.seen_in != round {
            directory.seen_in = round;
            directory.git = git_directory(path);
            let file = path.join(".gitignore");
            // Git follows no link here.
            let metadata = fs::symlink_metadata(&file).ok().filter(fs::Metadata::is_file);
            let stamp = metadata.as_ref().map(Stamp::of);
            if !Stamp::holds(directory.stamp.as_ref(), stamp.as_ref()) {
                directory.patterns = stamp.as_ref().and_then(|_| patterns(&file)).map(Arc::new);
                directory.stamp = stamp;
            }
        }
        directory
    }
}

/// The patterns of a file, if it has any.
fn patterns(path: &Path) -> Option<List<Ignore>> {
    let mut bytes = read(path, PATTERNS_BYTES_MAX).ok()?;
    // As git does: so a carriage return at the very end is one of a line's end.
    bytes.push(b'\n');
    let list = List::from_bytes(&bytes, path.to_owned(), None, Ignore::default()).ok()?;
    (!list.patterns.is_empty()).then_some(list)
}

/// The beginning of a regular file; whatever else stands there is not waited for.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = File::options().read(true).custom_flags(nonblocking).open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The directory of git's own of a repository whose files lie in `root`: `.git`, or where the file
/// `.git` points, as in worktrees and submodules.
fn git_directory(root: &Path) -> Option<PathBuf> {
    let entry = root.join(".git");
    let metadata = fs::metadata(&entry).ok()?;
    let directory = if metadata.is_dir() { entry } else { pointed(&entry, b"gitdir: ", root)? };
    directory.join("HEAD").symlink_metadata().is_ok().then_some(directory)
}

/// The path that a small file holds, from `base` where it is relative.
fn pointed(file: &Path, prefix: &[u8], base: &Path) -> Option<PathBuf> {
    let bytes = read(file, 64 << 10).ok()?;
    let path = bytes.strip_prefix(prefix)?.trim_ascii_end();
    (!path.is_empty()).then(|| base.join(Path::new(std::ffi::OsStr::from_bytes(path))))
}

impl Repository {
    fn refresh(&mut self, round: u64, root: &Path, git: &Path) {
        if self.seen_in == round {
            return;
        }
        self.seen_in = round;
        let same = |(path, then): &(PathBuf, Option<Stamp>)| {
            Stamp::holds(then.as_ref(), Stamp::at(path).as_ref())
        };
        if !self.sources.iter().all(same) {
            let index = self.index.take();
            *self = Self { index, ..Self::read(round, root, git) };
        }
    }

    fn read(round: u64, root: &Path, git: &Path) -> Self {
        let common = pointed(&git.join("commondir"), b"", git).unwrap_or_else(|| git.to_owned());
        let variable = |name: &str| std::env::var_os(name);
        let home = std::env::home_dir();
        let mut sources = vec![git.join("HEAD")];
        let mut config = gix_config::File::default();
        for source in [Source::System, Source::Git, Source::User, Source::Local, Source::Worktree] {
            let Some(place) = source.storage_location(&mut |name| variable(name)) else { continue };
            let place = match source {
                Source::Worktree => git.join(place),
                Source::Local => common.join(place),
                _ => place,
            };
            let worktree = matches!(config.boolean("extensions.worktreeConfig"), Ok(Some(true)));
            if source != Source::Worktree || worktree {
                // One that git could not read either says nothing.
                if let Ok(Some(more)) = read_config(&place, source, git, home.as_deref()) {
                    sources.extend(more.sections().filter_map(|it| it.meta().path.clone()));
                    drop(config.append(more));
                }
            }
            sources.push(place);
        }

        let context = path::interpolate::Context {
            home_dir: home.as_deref(),
            home_for_user: Some(path::interpolate::home_for_user),
            ..path::interpolate::Context::default()
        };
        let excludes = match config.path("core.excludesFile") {
            Some(path) => path.interpolate(context).ok().map(|path| root.join(path)),
            None => variable("XDG_CONFIG_HOME")
                .filter(|directory| !directory.is_empty())
                .map(PathBuf::from)
                .or_else(|| home.as_ref().map(|home| home.join(".config")))
                .map(|directory| directory.join("git/ignore")),
        };
        let files = [Some(common.join("info/exclude")), excludes];
        let files: Vec<_> = files.into_iter().flatten().collect();
        let folds = matches!(config.boolean("core.ignoreCase"), Ok(Some(true)));
        let sha256 = config
            .string("extensions.objectFormat")
            .is_some_and(|format| format.eq_ignore_ascii_case(b"sha256"));
        sources.extend(files.iter().cloned());
        sources.sort_unstable();
        sources.dedup();
        Self {
            seen_in: round,
            // Before they are read: a change in between is seen by the next round.
            sources: sources
                .into_iter()
                .map(|path| {
                    let stamp = Stamp::at(&path);
                    (path, stamp)
                })
                .collect(),
            patterns: files.iter().filter_map(|path| patterns(path)).collect(),
            case: if folds { Case::Fold } else { Case::Sensitive },
            hash: if sha256 { Kind::Sha256 } else { Kind::Sha1 },
            index: None,
        }
    }

    /// Whether patterns exclude a path, or a directory on the way to it. `lists` are the directories
    /// from `root` to the path's own, with their patterns.
    fn ignores(
        &self,
        root: &Path,
        path: &Path,
        lists: &[(&Path, Option<Arc<List<Ignore>>>)],
    ) -> bool {
        let excludes = |list: &List<Ignore>, base: &Path, path: &Path, is_directory: bool| {
            let relative = path.strip_prefix(base).ok()?.as_os_str().as_bytes();
            let name = relative.iter().rposition(|byte| *byte == b'/').map(|at| at + 1);
            let directory = Some(is_directory);
            let found =
                pattern_matching_relative_path(list, relative.into(), name, directory, self.case)?;
            Some(!found.pattern.is_negative())
        };
        let below = lists.iter().skip(1).map(|(directory, _)| (*directory, true));
        let steps = below.chain([(path, false)]).enumerate();
        for (depth, (step, is_directory)) in steps {
            let mut nearest = lists[..=depth].iter().rev();
            let decided = nearest
                .find_map(|(base, list)| excludes(list.as_deref()?, base, step, is_directory))
                .or_else(|| {
                    self.patterns.iter().find_map(|list| excludes(list, root, step, is_directory))
                });
            if decided == Some(true) {
                return true;
            }
        }
        false
    }

    fn tracks(&mut self, root: &Path, git: &Path, path: &Path) -> bool {
        let place = git.join("index");
        let stamp = Stamp::at(&place);
        let known = self
            .index
            .as_ref()
            .is_some_and(|index| Stamp::holds(index.stamp.as_ref(), stamp.as_ref()));
        if !known {
            let file =
                gix_index::File::at(&place, self.hash, true, gix_index::decode::Options::default());
            self.index = Some(Index { stamp, file: file.ok() });
        }
        let index = self.index.as_ref().and_then(|index| index.file.as_ref());
        let Some((index, path)) = index.zip(path.strip_prefix(root).ok()) else { return false };
        // A sparse index names whole directories.
        let sparse = || {
            path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty()).any(|directory| {
                let name = [directory.as_os_str().as_bytes(), b"/"].concat();
                index.entry_index_by_path(name.as_slice().into()).is_ok()
            })
        };
        index.entry_index_by_path(path.as_os_str().as_bytes().into()).is_ok()
            || (index.is_sparse() && sparse())
    }
}

fn read_config(
    file: &Path,
    source: Source,
    git: &Path,
    home: Option<&Path>,
) -> Result<Option<gix_config::File>, Box<dyn std::error::Error + Send + Sync>> {
    if !file.is_file() {
        return Ok(None);
    }
    let interpolate =
        path::interpolate::Context { home_dir: home, ..path::interpolate::Context::default() };
    let conditional = includes::conditional::Context { git_dir: Some(git), branch_name: None };
    let options = init::Options {
        includes: includes::Options::follow(interpolate, conditional),
        lossy: true,
        ignore_io_errors: true,
    };
    let metadata = Metadata { path: Some(file.to_owned()), ..Metadata::from(source) };
    Ok(gix_config::File::from_paths_metadata([metadata], options)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;
    use proptest::test_runner::Config;

    use super::*;

    /// A repository that is gone when the test ends.
    struct Tree {
        directory: tempfile::TempDir,
        git: Git,
    }

    impl Tree {
        fn new() -> Self {
            let tree = Self::bare();
            git(tree.root(), &["init", "--quiet"]);
            tree
        }

        /// Without a repository.
        fn bare() -> Self {
            let directory = tempfile::tempdir().expect("a temporary directory");
            Self { directory, git: Git::default() }
        }

        fn root(&self) -> &Path {
            self.directory.path()
        }

        fn write(&self, name: &str, content: impl AsRef<[u8]>) {
            let path = self.root().join(name);
            fs::create_dir_all(path.parent().expect("below a directory")).expect("directories");
            fs::write(path, content).expect("a file can be written");
        }

        fn ignores(&self, name: &str) -> bool {
            self.git.round().ignores(&self.root().join(name))
        }

        #[track_caller]
        fn assert_ignored(&self, ignored: &[&str], others: &[&str]) {
            for name in ignored {
                assert!(self.ignores(name), "{name} is not ignored");
            }
            for name in others {
                assert!(!self.ignores(name), "{name} is ignored");
            }
            let names = [ignored, others].concat();
            assert_eq!(checked(self.root(), &names), ignored.iter().copied().collect());
        }
    }

    fn git(root: &Path, arguments: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.org"])
            .args(arguments)
            .current_dir(root)
            .output()
            .expect("git is installed");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// What `git check-ignore` says of these names.
    fn checked<'a>(root: &Path, names: &[&'a str]) -> BTreeSet<&'a str> {
        let mut child = Command::new("git")
            .args(["check-ignore", "--stdin", "-z"])
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git is installed");
        let input: Vec<u8> =
            names.iter().flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect();
        let mut stdin = child.stdin.take().expect("a pipe");
        io::Write::write_all(&mut stdin, &input).expect("git reads");
        drop(stdin);
        let output = child.wait_with_output().expect("git ends");
        // 1: none of them.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        let said: BTreeSet<_> = output.stdout.split(|byte| *byte == 0).collect();
        names.iter().copied().filter(|name| said.contains(name.as_bytes())).collect()
    }

    #[test]
    fn patterns_of_all_places_count_and_the_nearest_wins() {
        let tree = Tree::new();
        tree.write(".gitignore", "*.log\nbuild/\n/top\n!keep.log\n");
        tree.write("a/.gitignore", "!a.log\nonly-here\n");
        tree.write(".git/info/exclude", "excluded\n*.tmp\n");
        tree.write("excludes", "\u{feff}personal\n!x.tmp\n");
        git(tree.root(), &["config", "core.excludesFile", "excludes"]);
        tree.assert_ignored(
            &[
                "x.log",
                "b/x.log",
                "build/x",
                "b/build/x",
                "top",
                "a/only-here",
                "excluded",
                "x.tmp",
                "a/personal",
                "build/keep.log",
            ],
            &["keep.log", "a/a.log", "b/top", "only-here", "build", "README.md"],
        );
    }

    #[test]
    fn what_is_tracked_is_not_ignored() {
        let tree = Tree::new();
        tree.write(".gitignore", "*.log\nout/\n");
        for name in ["tracked.log", "out/tracked"] {
            tree.write(name, "");
            git(tree.root(), &["add", "--force", name]);
        }
        tree.assert_ignored(&["x.log", "out/other"], &["tracked.log", "out/tracked"]);
        git(tree.root(), &["rm", "--cached", "--quiet", "tracked.log"]);
        tree.assert_ignored(&["tracked.log"], &["out/tracked"]);
    }

    #[test]
    fn a_change_of_patterns_counts_at_once() {
        let tree = Tree::new();
        tree.assert_ignored(&[], &["a", "d/a"]);
        tree.write(".gitignore", "a\n");
        tree.assert_ignored(&["a", "d/a"], &["b"]);
        tree.write(".gitignore", "b\n");
        tree.assert_ignored(&["b"], &["a", "d/a"]);
        tree.write("d/.gitignore", "a\n");
        tree.assert_ignored(&["d/a"], &["a"]);
        tree.write(".git/info/exclude", "a\n");
        tree.assert_ignored(&["a"], &["c"]);
        git(tree.root(), &["config", "core.ignoreCase", "true"]);
        tree.assert_ignored(&["A"], &["c"]);
        tree.write("d/.gitignore", "");
        fs::remove_file(tree.root().join(".gitignore")).expect("it is there");
        tree.assert_ignored(&["a"], &["b"]);
    }

    #[test]
    fn worktrees_and_nested_repositories_have_their_own() {
        let tree = Tree::bare();
        let main = tree.root().join("main");
        fs::create_dir(&main).expect("a directory");
        git(&main, &["init", "--quiet"]);
        tree.write("main/.gitignore", "*.log\n");
        tree.write("main/kept.log", "");
        git(&main, &["add", "--force", ".gitignore", "kept.log"]);
        git(&main, &["commit", "--quiet", "--message", "x"]);
        git(&main, &["worktree", "add", "--quiet", "../tree"]);
        tree.write("main/.git/info/exclude", "excluded\n");
        let linked = Tree { directory: tree.directory, git: tree.git };
        for (name, ignored) in [
            ("tree/x.log", true),
            ("tree/kept.log", false),
            ("tree/excluded", true),
            ("main/excluded", true),
            ("x.log", false),
        ] {
            assert_eq!(linked.ignores(name), ignored, "{name}");
        }
        let asked = checked(&linked.root().join("tree"), &["x.log", "kept.log", "excluded"]);
        assert_eq!(asked, BTreeSet::from(["x.log", "excluded"]));
        // What the outer one ignores is nothing to the inner one.
        let inner = main.join("inner.log");
        fs::create_dir(&inner).expect("a directory");
        git(&inner, &["init", "--quiet"]);
        assert!(!linked.ignores("main/inner.log/x"));
        linked.write("main/inner.log/.gitignore", "x\n");
        assert!(linked.ignores("main/inner.log/x"));
    }

    #[test]
    fn nothing_is_ignored_outside_of_repositories() {
        let tree = Tree::bare();
        tree.write(".gitignore", "a\n");
        assert!(!tree.ignores("a"));
        tree.write("sub/.git", "no repository");
        tree.write("sub/.gitignore", "a\n");
        assert!(!tree.ignores("sub/a"));
        git(tree.root(), &["init", "--quiet"]);
        assert!(tree.ignores("a"));
    }

    const DIRECTORIES: [&str; 5] = ["", "a/", "a/b/", "a/b/a/", "b/"];
    const NAMES: [&str; 10] = ["f", "g.x", "a.x.x", ".h", "{a,f}", "!f", "#f", "f g", "f ", "]f"];

    fn pattern() -> impl Strategy<Value = String> {
        let known = prop::sample::select(vec![
            "f",
            "a/",
            "b/",
            "/a",
            "/a/b",
            "*.x",
            "!*.x",
            "!f",
            "a/**",
            "**/b",
            "a/**/f",
            "!a/b/",
            "*",
            "!*/",
            "{a,f}",
            "[[:alpha:]]",
            "[[:lower:]].x",
            "[!f]",
            "[^a-e]",
            "\\!f",
            "\\#f",
            "#f",
            "f\\ ",
            "f ",
            "f  ",
            "f\r",
            "\\f",
            "[f]",
            "\\[f\\]",
            "a/*/f",
            "*/f",
            "**",
            "/**/f",
            "f/**",
            "?",
            ".*",
            "!.h",
            "",
            "/",
            "!",
            "\\",
            "a//b",
            "./f",
            "**f",
            "a**",
            "a/b/**",
            "!a/b/a/f",
        ]);
        prop_oneof![
            4 => known.prop_map(str::to_owned),
            1 => "[abfx.*?!/\\[\\]{},#\\\\-]{1,6}",
        ]
    }

    proptest! {
        #![proptest_config(Config { cases: 64, max_shrink_iters: 300, ..Config::default() })]

        #[test]
        fn git_says_the_same(
            files in prop::collection::btree_map(
                prop::sample::select(DIRECTORIES.to_vec()),
                prop::collection::vec(pattern(), 0..5),
                0..4,
            ),
            excluded in prop::collection::vec(pattern(), 0..3),
            tracked in prop::collection::btree_set((0..DIRECTORIES.len(), 0..NAMES.len()), 0..4),
            folds in any::<bool>(),
        ) {
            let tree = Tree::new();
            let all: Vec<_> = DIRECTORIES
                .iter()
                .flat_map(|directory| NAMES.iter().map(move |name| format!("{directory}{name}")))
                .collect();
            for name in &all {
                tree.write(name, "");
            }
            for (directory, lines) in &files {
                tree.write(&format!("{directory}.gitignore"), lines.join("\n"));
            }
            tree.write(".git/info/exclude", excluded.join("\n"));
            git(tree.root(), &["config", "core.ignoreCase", if folds { "true" } else { "false" }]);
            if !tracked.is_empty() {
                let names: Vec<_> = tracked
                    .iter()
                    .map(|(directory, name)| format!("{}{}", DIRECTORIES[*directory], NAMES[*name]))
                    .collect();
                let add = ["--literal-pathspecs", "add", "--force", "--"].into_iter();
                git(tree.root(), &add.chain(names.iter().map(String::as_str)).collect::<Vec<_>>());
            }
            let mut names: Vec<_> = all.iter().map(String::as_str).collect();
            names.extend(["nowhere", "a/nowhere.x", "a/b/F"]);
            let mut round = tree.git.round();
            let ours: BTreeSet<_> = names
                .iter()
                .copied()
                .filter(|name| round.ignores(&tree.root().join(name)))
                .collect();
            prop_assert_eq!(ours, checked(tree.root(), &names));
        }
    }
}
