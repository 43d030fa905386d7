//! What of a file may be shown: the one place that decides (`reminders.md` §5).
//!
//! The path that the session spells and the real one both count, and so do all directories on the
//! way. Letter case never opens a secret.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::git::{Git, Round};
use super::identity;

/// Files that hold secrets: their names or the ends of their paths, in lower case; with a slash at the
/// end, directories of them. What is meant as an example may hold real values, and is named only like
/// the rest; `!.env.example` among the configured patterns shows it.
const SECRETS: &[&str] = &[
    // Environments.
    ".env*",
    "*.env",
    ".env.d/",
    ".envs/",
    // Private keys and certificates with them.
    "*.pem",
    "*.key",
    "*.ppk",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.pkcs12",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "ssh_host_*_key",
    "*_rsa",
    "*_ed25519",
    ".ssh/",
    ".gnupg/",
    "secring.*",
    // Key stores and vaults of passwords.
    "*.jks",
    "*.keystore",
    "*.bks",
    "*.kdb",
    "*.kdbx",
    "*.keychain",
    "*.keychain-db",
    "*.agilekeychain/",
    "*.opvault/",
    "*.ovpn",
    "*.wallet",
    "wallet.dat",
    ".password-store/",
    ".vault-token",
    ".vault_pass*",
    ".vault-pass*",
    "keyrings/",
    "logins.json",
    "key[34].db",
    // What programs sign in with.
    ".netrc",
    "_netrc",
    ".authinfo*",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials*",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".git-credentials",
    ".git/config",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".config/glab-cli/config.yml",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".s3cfg",
    ".boto",
    ".htpasswd",
    ".dockercfg",
    ".docker/config.json",
    ".dockerconfigjson",
    ".config/containers/auth.json",
    ".kube/",
    "kubeconfig*",
    "*.kubeconfig",
    ".aws/",
    ".azure/",
    ".config/gcloud/",
    ".config/doctl/",
    ".config/op/",
    ".config/sops/",
    ".terraformrc",
    ".terraform.d/credentials.tfrc.json",
    ".databrickscfg",
    ".snowsql/config",
    ".claude/.credentials.json",
    ".codex/auth.json",
    // Files that say so.
    "credentials",
    "credentials.{csv,ini,json,properties,toml,txt,xml,y{,a}ml}",
    "credentials.y{,a}ml.enc",
    ".credentials*",
    "*credentials.json",
    "client_secret*.json",
    "*service[-_]account*.json",
    "*serviceaccount*.json",
    "*-firebase-adminsdk-*.json",
    "application_default_credentials.json",
    "secret.{ini,json,properties,toml,txt,xml,y{,a}ml}",
    "secrets/",
    "secrets.*",
    "*.secret",
    "*.secrets",
    "*_secrets.*",
    ".secrets*",
    "*.token",
    "master.key",
    // States that hold what was made with them.
    "*.tfstate",
    "*.tfstate.*",
    "*.tfvars",
    "*.tfvars.json",
    ".bash_history",
    ".zsh_history",
    ".psql_history",
    ".mysql_history",
];

/// Files that programs write, in the form of [`SECRETS`].
const GENERATED: &[&str] = &[
    // Locks.
    "*.lock",
    "*.lockb",
    "*.lock.json",
    "*-lock.json",
    "*-lock.yaml",
    "*.lock.hcl",
    "npm-shrinkwrap.json",
    "package.resolved",
    "go.sum",
    "go.work.sum",
    "cargo.lock",
    "gopkg.lock",
    "mix.lock",
    "gradle.lockfile",
    "packages.lock.json",
    // Directories of what was built or fetched.
    "node_modules/",
    "bower_components/",
    "vendor/bundle/",
    "dist/",
    "build/",
    "target/",
    ".next/",
    ".nuxt/",
    ".svelte-kit/",
    ".turbo/",
    ".gradle/",
    ".venv/",
    "__pycache__/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    "coverage/",
    "__generated__/",
    // What compilers and their like write.
    "*.min.js",
    "*.min.css",
    "*.bundle.js",
    "*.chunk.js",
    "*.map",
    "*.tsbuildinfo",
    "*.pb.go",
    "*.pb.gw.go",
    "*.pb.cc",
    "*.pb.h",
    "*_pb2.py",
    "*_pb2.pyi",
    "*_pb2_grpc.py",
    "*_pb.js",
    "*_pb.ts",
    "*_pb.d.ts",
    "*.generated.*",
    "*_generated.*",
    "*.gen.go",
    "*.g.dart",
    "*.freezed.dart",
    "*.designer.cs",
    "zz_generated.*",
    "*.snap",
];

/// Why a file is named only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// It matches a secret pattern.
    Secret,
    /// The client denied it (`session/open` `deny`).
    Denied,
    /// It is spelled below the root, and really lies elsewhere.
    LeavesRoot,
    /// Git ignores it.
    Ignored,
}

impl fmt::Display for Reason {
    /// As a clause.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Secret => "it matches a secret pattern",
            Self::Denied => "the client denied its content",
            Self::LeavesRoot => "it is a link that leaves the root",
            Self::Ignored => "git ignores it",
        })
    }
}

/// What of a file may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its content.
    Show,
    /// That it is there, and that it changed.
    NameOnly {
        /// The gravest reason: those of [`Reason`] in their order.
        reason: Reason,
    },
}

impl Verdict {
    fn of(reason: Option<Reason>) -> Self {
        reason.map_or(Self::Show, |reason| Self::NameOnly { reason })
    }

    /// Why the content may not be told, where it may not.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Show => None,
            Self::NameOnly { reason } => Some(reason),
        }
    }

    /// The verdict on files that git-ignore does not concern: instructions under their configured
    /// names.
    #[must_use]
    pub fn though_ignored(self) -> Self {
        Self::of(self.reason().filter(|reason| *reason != Reason::Ignored))
    }

    /// The verdict on content that the client itself gives: it knows what git ignores, and where its
    /// links lead.
    #[must_use]
    pub fn on_given(self) -> Self {
        Self::of(self.reason().filter(|it| matches!(it, Reason::Secret | Reason::Denied)))
    }
}

/// What a session or its configuration adds. Globs are those of `.gitignore`, from the session's root;
/// one that begins with a slash also counts from the root of the file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Globs of further secrets, in any letter case; one that begins with `!` shows what would be one.
    pub secret: Vec<String>,
    /// Globs of further generated files.
    pub generated: Vec<String>,
    /// Globs of files whose content the client denied.
    pub deny: Vec<String>,
    /// Directories that are never watched: `file:` URIs, absolute paths or paths from the root.
    pub own: Vec<String>,
    /// Where the daemon keeps its own state, which is never watched.
    pub state: Vec<PathBuf>,
}

/// What of files may be shown to a session.
#[derive(Debug)]
pub struct Secrecy {
    root: Option<PathBuf>,
    secret: Globs,
    generated: Globs,
    deny: Globs,
    never_watched: Vec<PathBuf>,
    git: Git,
    problems: Vec<String>,
}

impl Default for Secrecy {
    /// Of no session: the built-in secrets.
    fn default() -> Self {
        Self::new(None, &Options::default())
    }
}

impl Secrecy {
    /// For a session with this root, as it spells it. Reads nothing: the disk is asked at each verdict.
    pub fn new(root: Option<&Path>, options: &Options) -> Self {
        let mut problems = Vec::new();
        let mut globs = |patterns: &[String], fold| Globs::new(patterns, fold, &mut problems);
        let (secret, generated) = (globs(&options.secret, true), globs(&options.generated, false));
        let deny = globs(&options.deny, false);
        let own =
            options.own.iter().map(|own| identity::on_disk(&identity::path_of(own)).into_owned());
        let root = root.map(|root| lexical(root).into_owned());
        let from_root = |path: PathBuf| match &root {
            Some(root) => root.join(path),
            None => path,
        };
        let never_watched = own.chain(options.state.iter().cloned()).map(from_root);
        let never_watched = never_watched
            .filter(|path| path.is_absolute())
            .map(|path| lexical(&path).into_owned())
            .collect();
        Self { root, secret, generated, deny, never_watched, git: Git::default(), problems }
    }

    /// Globs that could not be read, and why. Of those of `deny` and `secret`, everything between
    /// their slashes that is no pattern is taken by the letter.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Whether the content of a regular file may be shown. `shown` is the session's spelling, `real`
    /// the real path: absolute both. Neither need exist any more.
    pub fn judge(&self, shown: &Path, real: &Path) -> Verdict {
        self.looking().judge(shown, real)
    }

    /// A look at the disk for many verdicts: what is seen once in it stands for all of them. Other
    /// looks of the same session wait until it is over.
    pub fn looking(&self) -> Looking<'_> {
        let real_root = self.root.as_deref().and_then(|root| root.canonicalize().ok());
        Looking { secrecy: self, real_root, git: self.git.round() }
    }

    /// Whether the content of a file is a secret, or denied, by its name alone. Looks at no disk.
    pub fn is_withheld_by_name(&self, shown: &Path) -> bool {
        let shown = lexical(shown);
        let relative = below(&shown, [self.root.as_deref(), None]);
        self.secret.decide(&shown, relative).unwrap_or_else(|| is_secret(&shown))
            || self.deny.decide(&shown, relative) == Some(true)
    }

    /// Whether changes of a file are nobody's business: it lies in the daemon's own state or in a
    /// directory of the session's bookkeeping.
    pub fn never_watched(&self, shown: &Path, real: &Path) -> bool {
        let (shown, real) = (lexical(shown), lexical(real));
        self.never_watched.iter().any(|directory| {
            shown.starts_with(directory)
                || real.starts_with(directory)
                || directory.canonicalize().is_ok_and(|directory| real.starts_with(directory))
        })
    }

    /// Whether a program wrote the file (a lock, an output), so that no diff of it is worth telling.
    pub fn is_generated(&self, shown: &Path) -> bool {
        static BUILT_IN: LazyLock<GlobSet> = LazyLock::new(|| built_in(GENERATED));
        let shown = lexical(shown);
        let relative = below(&shown, [self.root.as_deref(), None]);
        self.generated
            .decide(&shown, relative)
            .unwrap_or_else(|| is_match(&BUILT_IN, relative.unwrap_or(name_of(&shown))))
    }
}

/// A look at the disk for the verdicts of a session.
#[derive(Debug)]
pub struct Looking<'a> {
    secrecy: &'a Secrecy,
    real_root: Option<PathBuf>,
    git: Round<'a>,
}

impl Looking<'_> {
    /// As [`Secrecy::judge`].
    pub fn judge(&mut self, shown: &Path, real: &Path) -> Verdict {
        let spellings = [lexical(shown), lexical(real)];
        let Secrecy { root, secret, deny, .. } = self.secrecy;
        let roots = [root.as_deref(), self.real_root.as_deref()];
        let any = |judges: &dyn Fn(&Path, Option<&Path>) -> bool| {
            spellings.iter().any(|path| judges(path, below(path, roots)))
        };
        let is_secret = |path: &Path, relative: Option<&Path>| {
            secret.decide(path, relative).unwrap_or_else(|| is_secret(path))
        };
        let leaves_root = || {
            let [shown, real] = &spellings;
            let real_root = self.real_root.as_deref().or(root.as_deref());
            below(shown, roots).is_some() && below(real, [real_root, None]).is_none()
        };
        let reason = if any(&is_secret) {
            Some(Reason::Secret)
        } else if any(&|path, relative| deny.decide(path, relative) == Some(true)) {
            Some(Reason::Denied)
        } else if leaves_root() {
            Some(Reason::LeavesRoot)
        } else if self.git.ignores(&spellings[0])
            || (spellings[0] != spellings[1] && self.git.ignores(&spellings[1]))
        {
            Some(Reason::Ignored)
        } else {
            None
        };
        Verdict::of(reason)
    }
}

fn is_secret(path: &Path) -> bool {
    static BUILT_IN: LazyLock<GlobSet> = LazyLock::new(|| built_in(SECRETS));
    is_match(&BUILT_IN, path)
}

fn is_match(globs: &GlobSet, path: &Path) -> bool {
    let lower = path.as_os_str().as_bytes().to_ascii_lowercase();
    globs.is_match_candidate(&Candidate::new(OsStr::from_bytes(&lower)))
}

/// The built-in patterns as globs over whole paths.
fn built_in(patterns: &[&str]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = match pattern.strip_suffix('/') {
            Some(directory) => format!("**/{directory}/**"),
            None => format!("**/{pattern}"),
        };
        let glob = GlobBuilder::new(&glob).literal_separator(true).empty_alternates(true).build();
        set.add(glob.expect("a built-in pattern is a glob"));
    }
    set.build().expect("built-in patterns fit together")
}

/// Globs as in `.gitignore`, from the session's root and from that of the file system.
#[derive(Debug)]
struct Globs {
    from_root: Gitignore,
    absolute: Gitignore,
}

impl Globs {
    fn new(patterns: &[String], fold: bool, problems: &mut Vec<String>) -> Self {
        let mut build = |patterns: &mut dyn Iterator<Item = &String>| {
            // The root is stripped before a path is matched.
            let mut builder = GitignoreBuilder::new("");
            if let Err(error) = builder.case_insensitive(fold) {
                problems.push(error.to_string());
            }
            for pattern in patterns {
                let Err(error) = builder.add_line(None, pattern) else { continue };
                problems.push(format!("{pattern:?}: {error}"));
                // Better too much withheld than too little.
                let literal: String = pattern
                    .chars()
                    .flat_map(|c| "*?[]{}\\".contains(c).then_some('\\').into_iter().chain([c]))
                    .collect();
                drop(builder.add_line(None, &literal));
            }
            builder.build().unwrap_or_else(|error| {
                problems.push(error.to_string());
                Gitignore::empty()
            })
        };
        let from_root = build(&mut patterns.iter());
        let is_absolute = |pattern: &&String| pattern.trim_start_matches('!').starts_with('/');
        let absolute = build(&mut patterns.iter().filter(is_absolute));
        Self { from_root, absolute }
    }

    /// Whether the globs match (`Some(true)`), or say with `!` that they do not (`Some(false)`).
    /// `relative` is the path from the root, if it lies below; elsewhere its name alone counts.
    fn decide(&self, path: &Path, relative: Option<&Path>) -> Option<bool> {
        let from_root = decide(&self.from_root, relative.unwrap_or(name_of(path)));
        let absolute = decide(&self.absolute, path.strip_prefix("/").unwrap_or(path));
        [from_root, absolute].into_iter().flatten().reduce(|one, other| one || other)
    }
}

/// What a directory on the way excludes is not let in again, as in git.
fn decide(globs: &Gitignore, path: &Path) -> Option<bool> {
    if globs.is_empty() {
        return None;
    }
    let mut directories: Vec<_> = path.ancestors().skip(1).collect();
    directories.reverse();
    let directories = directories.into_iter().filter(|it| !it.as_os_str().is_empty());
    if directories.map(|it| globs.matched(it, true)).any(|it| it.is_ignore()) {
        return Some(true);
    }
    match globs.matched(path, false) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// The path from the first of the roots that it lies below.
fn below<'a>(path: &'a Path, roots: [Option<&Path>; 2]) -> Option<&'a Path> {
    roots.into_iter().flatten().find_map(|root| path.strip_prefix(root).ok())
}

fn name_of(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}

/// A path without `.`, `..` and doubled slashes, worked out without looking at the disk.
fn lexical(path: &Path) -> Cow<'_, Path> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    if plain.as_os_str() == path.as_os_str() { Cow::Borrowed(path) } else { Cow::Owned(plain) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    const ROOT: &str = "/nowhere/w";

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn at_root(options: &Options) -> Secrecy {
        let secrecy = Secrecy::new(Some(Path::new(ROOT)), options);
        assert_eq!(secrecy.problems(), Vec::<String>::new());
        secrecy
    }

    fn reason(secrecy: &Secrecy, path: &str) -> Option<Reason> {
        let path = Path::new(ROOT).join(path);
        secrecy.judge(&path, &path).reason()
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        let secrecy = at_root(&Options::default());
        for path in [
            ".env",
            ".env.local",
            ".ENV",
            ".envrc",
            ".env.example",
            "prod.env",
            "a/b/.env",
            ".envs/.production",
            "server.pem",
            "TLS/Server.KEY",
            "id_rsa",
            "id_ed25519.pub",
            ".netrc",
            ".npmrc",
            ".pypirc",
            ".git-credentials",
            ".git/config",
            "x.p12",
            "x.pfx",
            "x.jks",
            "x.kdbx",
            "credentials",
            "credentials.json",
            "gcp-credentials.json",
            "credentials.yml.enc",
            "secrets.yaml",
            "secrets.py",
            "secret.yml",
            "secrets/db_password.txt",
            "my-service-account.json",
            "terraform.tfstate",
            "terraform.tfstate.backup",
            "prod.tfvars",
            "kubeconfig",
            "client_secret_1.json",
            "/home/u/.ssh/config",
            "/home/u/.SSH/known_hosts",
            "/home/u/.gnupg/trustdb.gpg",
            "/home/u/.aws/credentials",
            "/home/u/.kube/config",
            "/home/u/.docker/config.json",
            "/home/u/.config/gcloud/access_tokens.db",
            "/home/u/.cargo/credentials.toml",
        ] {
            assert_eq!(reason(&secrecy, path), Some(Reason::Secret), "{path}");
        }
        for path in [
            "env",
            "environment.rs",
            "src/env/mod.rs",
            "keys.rs",
            "key",
            "monkey",
            "keyboard.json",
            "src/credentials/mod.rs",
            "credentials.rs",
            "secret.rs",
            "secrecy.rs",
            "tokens.rs",
            "docker/config.json",
            "config",
            "README.md",
            "ssh/config",
            "x.pem.md",
            "id.rs",
            "public",
        ] {
            assert_eq!(reason(&secrecy, path), None, "{path}");
        }
    }

    #[test]
    fn configured_globs_are_read_as_in_gitignore() {
        let secrecy = at_root(&Options {
            secret: texts(&["*.Hidden", "/private/", "!.env.example"]),
            deny: texts(&["*.log", "!keep.log", "docs/**/draft", "/elsewhere/**", "/top", "dir/"]),
            ..Options::default()
        });
        for (path, expected) in [
            ("a/x.hidden", Some(Reason::Secret)),
            ("PRIVATE/x", Some(Reason::Secret)),
            ("a/private/x", None),
            (".env.example", None),
            (".env", Some(Reason::Secret)),
            ("a/x.log", Some(Reason::Denied)),
            ("a/keep.log", None),
            ("docs/draft", Some(Reason::Denied)),
            ("docs/a/b/draft", Some(Reason::Denied)),
            ("draft", None),
            ("top", Some(Reason::Denied)),
            ("top/below", Some(Reason::Denied)),
            ("a/top", None),
            ("dir/keep.log", Some(Reason::Denied)),
            ("dir", None),
            // From the root of the file system too, and elsewhere by name.
            ("/elsewhere/x", Some(Reason::Denied)),
            ("/top", Some(Reason::Denied)),
            ("/else/x.log", Some(Reason::Denied)),
            ("/else/dir/x", None),
            ("/nowhere/x", None),
        ] {
            assert_eq!(reason(&secrecy, path), expected, "{path}");
        }
    }

    #[test]
    fn a_glob_that_cannot_be_read_is_told_and_taken_by_the_letter() {
        let options = Options { deny: texts(&["a{b", "*.log"]), ..Options::default() };
        let secrecy = Secrecy::new(Some(Path::new(ROOT)), &options);
        assert!(!secrecy.problems().is_empty());
        assert!(secrecy.problems().iter().all(|problem| problem.contains("a{b")));
        assert_eq!(reason(&secrecy, "a{b"), Some(Reason::Denied));
        assert_eq!(reason(&secrecy, "x.log"), Some(Reason::Denied));
    }

    #[test]
    fn the_gravest_reason_counts() {
        let secrecy = at_root(&Options { deny: texts(&["*"]), ..Options::default() });
        let judge = |shown: &str, real: &str| secrecy.judge(Path::new(shown), Path::new(real));
        let denied = judge("/nowhere/w/a", "/other/a");
        assert_eq!(denied.reason(), Some(Reason::Denied));
        assert_eq!(denied.on_given(), denied);
        assert_eq!(denied.though_ignored(), denied);
        assert_eq!(judge("/nowhere/w/a", "/other/.env").reason(), Some(Reason::Secret));
        let secrecy = at_root(&Options::default());
        let leaves = secrecy.judge(Path::new("/nowhere/w/a"), Path::new("/other/a"));
        assert_eq!(leaves.reason(), Some(Reason::LeavesRoot));
        assert_eq!(leaves.on_given(), Verdict::Show);
        let ignored = Verdict::NameOnly { reason: Reason::Ignored };
        assert_eq!(ignored.though_ignored(), Verdict::Show);
        assert_eq!(ignored.on_given(), Verdict::Show);
    }

    #[test]
    fn the_shown_and_the_real_path_both_count() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let base = directory.path().canonicalize().expect("it is there");
        let (root, linked) = (base.join("root"), base.join("linked"));
        fs::create_dir(&root).expect("a directory");
        symlink(&root, &linked).expect("a link");
        for spelled in [&root, &linked] {
            let secrecy = Secrecy::new(Some(spelled), &Options::default());
            let judge = |shown: PathBuf, real: PathBuf| secrecy.judge(&shown, &real).reason();
            assert_eq!(judge(spelled.join("a"), root.join("a")), None);
            assert_eq!(judge(root.join("a"), root.join("a")), None);
            assert_eq!(judge(spelled.join("a"), root.join(".env")), Some(Reason::Secret));
            assert_eq!(judge(spelled.join(".env"), root.join("a")), Some(Reason::Secret));
            assert_eq!(judge(spelled.join("a"), base.join("a")), Some(Reason::LeavesRoot));
            assert_eq!(judge(root.join("a"), base.join("a")), Some(Reason::LeavesRoot));
            assert_eq!(judge(base.join("a"), base.join("b")), None);
        }
    }

    #[test]
    fn state_and_bookkeeping_are_never_watched() {
        let secrecy = at_root(&Options {
            own: texts(&["sessions", "file:///tmp/own%20logs/", "/var/own/../own"]),
            state: vec![PathBuf::from("/home/u/.local/state/reminderd")],
            ..Options::default()
        });
        let never = |path: &str| {
            let path = Path::new(ROOT).join(path);
            secrecy.never_watched(&path, &path)
        };
        for path in [
            "sessions/1.jsonl",
            "a/../sessions/1",
            "/tmp/own logs/x",
            "/var/own/x",
            "/home/u/.local/state/reminderd/db",
        ] {
            assert!(never(path), "{path}");
        }
        for path in ["sessions-2/x", "a/sessions/x", "/tmp/own", "/home/u/.local/state/other"] {
            assert!(!never(path), "{path}");
        }
        let other = secrecy.never_watched(Path::new("/w/link"), Path::new("/var/own/x"));
        assert!(other, "the real path counts");
    }

    #[test]
    fn what_programs_write_is_known() {
        let secrecy = at_root(&Options {
            generated: texts(&["gen/**", "!dist/kept.js"]),
            ..Options::default()
        });
        let is_generated = |path: &str| secrecy.is_generated(&Path::new(ROOT).join(path));
        for path in [
            "Cargo.lock",
            "package-lock.json",
            "yarn.lock",
            "pnpm-lock.yaml",
            "poetry.lock",
            "uv.lock",
            "go.sum",
            "Gemfile.lock",
            "composer.lock",
            "flake.lock",
            "bun.lockb",
            "a/Cargo.lock",
            "dist/a.js",
            "target/debug/x",
            "node_modules/a/index.js",
            "a.min.js",
            "a.js.map",
            "api/a.pb.go",
            "types_generated.ts",
            "__snapshots__/a.snap",
            "gen/a",
            "/else/yarn.lock",
        ] {
            assert!(is_generated(path), "{path}");
        }
        for path in ["src/a.rs", "build", "lock.rs", "map", "gen", "a/gen/b", "dist/kept.js"] {
            assert!(!is_generated(path), "{path}");
        }
        // Where the root itself lies says nothing.
        let below = Secrecy::new(Some(Path::new("/home/u/build/w")), &Options::default());
        assert!(!below.is_generated(Path::new("/home/u/build/w/a.rs")));
        assert!(!below.is_generated(Path::new("/home/u/build/other.rs")));
    }

    /// Another spelling of an absolute path, as a URI or as a path.
    fn respelled(path: &str, choices: &[u8]) -> String {
        let mut choices = choices.iter().copied().cycle();
        let mut choose = || choices.next().unwrap_or_default();
        let is_uri = choose() % 2 == 0;
        let mut spelled = String::new();
        for part in path.split('/').skip(1) {
            spelled.push_str(["/", "//", "/./", "/x/../"][usize::from(choose() % 4)]);
            for c in part.chars() {
                if is_uri && (choose() % 3 == 0 || "%?# ".contains(c)) {
                    let mut bytes = [0; 4];
                    for byte in c.encode_utf8(&mut bytes).bytes() {
                        let upper = choose() % 2 == 0;
                        let byte =
                            if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
                        spelled.push_str(&byte);
                    }
                } else {
                    spelled.push(c);
                }
            }
        }
        match choose() % 4 {
            _ if !is_uri => format!("/{}", spelled.trim_start_matches('/')),
            0 => format!("FILE://{spelled}"),
            1 => format!("file://localhost{spelled}"),
            _ => format!("file://{spelled}"),
        }
    }

    proptest! {
        /// Law 8: how a path is spelled does not matter, and the letter case of a secret does not.
        #[test]
        fn spellings_of_a_path_have_one_verdict(
            parts in prop::collection::vec(
                prop_oneof![
                    Just(".env"), Just("id_rsa"), Just(".ssh"), Just("src"), Just("a b%.rs"),
                    Just("secrets.yaml"), Just("denied"), Just("é#?"), Just("x.pem"), Just("node_modules"),
                ],
                1..4,
            ),
            below in any::<bool>(),
            upper in any::<bool>(),
            choices in prop::collection::vec(any::<u8>(), 1..40),
        ) {
            let options = Options { deny: texts(&["denied", "é*"]), ..Options::default() };
            let secrecy = at_root(&options);
            let base = if below { ROOT } else { "/other" };
            let path = format!("{base}/{}", parts.join("/"));
            let verdict = |path: &str| secrecy.judge(Path::new(path), Path::new(path));
            let spelled = respelled(&path, &choices);
            let read = identity::path_of(&spelled);
            prop_assert_eq!(&read, &path, "{}", spelled);
            prop_assert_eq!(verdict(&read), verdict(&path));
            if !spelled.contains(':') {
                prop_assert_eq!(verdict(&spelled), verdict(&path), "{}", spelled);
                let (spelled, path) = (Path::new(&spelled), Path::new(&path));
                prop_assert_eq!(secrecy.is_generated(spelled), secrecy.is_generated(path));
            }
            if upper && verdict(&path).reason() == Some(Reason::Secret) {
                let upper = format!("{base}/{}", parts.join("/").to_uppercase());
                prop_assert_eq!(verdict(&upper), verdict(&path));
            }
        }
    }
}
