//! The command in an agent's settings: put in, taken out, everything else left as it is.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use jsonc_parser::json;
use similar::TextDiff;

use super::super::paint::{self, Failure};
use super::super::serve::SharingArguments;
use crate::engine::one_line;

/// Where a host keeps its settings, and what a command of an event looks like there.
#[derive(Debug)]
pub struct Settings {
    /// The host's name for people.
    pub title: &'static str,
    /// What its program is called.
    pub program: &'static str,
    /// The user's file, below the home directory.
    pub user: &'static str,
    /// The variable that names another directory than the user's file stands in.
    pub home_variable: Option<&'static str>,
    /// The project's file, below its root.
    pub project: &'static str,
    /// What else the person has to do, or to know.
    pub remark: Option<&'static str>,
    /// The events, each with a matcher of the tools that it is about.
    pub events: &'static [(&'static str, Option<&'static str>)],
    /// What stands in the list of an event, for a command and a matcher.
    pub entry: fn(&str, Option<&str>) -> CstInputValue,
}

/// A command among those of an event, as most hosts have it: a group with a matcher. How long the host
/// may wait for it is in the host's own unit; some take more members.
pub fn group<const N: usize>(
    command: &str,
    matcher: Option<&str>,
    timeout: u32,
    more: [(String, CstInputValue); N],
) -> CstInputValue {
    let hook =
        [("type", json!("command")), ("command", json!(command)), ("timeout", json!(timeout))];
    let hook = hook.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(more).collect();
    let hooks = CstInputValue::Array(vec![CstInputValue::Object(hook)]);
    let mut members = Vec::new();
    if let Some(matcher) = matcher {
        members.push(("matcher".to_owned(), json!(matcher)));
    }
    members.push(("hooks".to_owned(), hooks));
    CstInputValue::Object(members)
}

/// The command that the settings hold: this program, as the shell that runs it finds it.
pub fn command(agent: &str, sharing: &SharingArguments) -> Result<String, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| format!("where this program is cannot be told: {error}"))?;
    let on_path = std::env::var_os("PATH").and_then(|path| {
        let found = std::env::split_paths(&path).map(|at| at.join("reminderd"));
        found.into_iter().find(|at| at.is_file())
    });
    let is_own = on_path
        .and_then(|it| it.canonicalize().ok())
        .is_some_and(|it| Some(it) == own.canonicalize().ok());
    let program = if is_own { "reminderd".to_owned() } else { own.display().to_string() };
    let mut words = vec![program, "hook".to_owned(), agent.to_owned()];
    if sharing.keeping.state.is_some() {
        let given = sharing.keeping.as_arguments();
        words.extend(given.iter().map(|word| word.to_string_lossy().into_owned()));
    }
    shlex::try_join(words.iter().map(String::as_str))
        .map_err(|_| Failure::Said("the path of this program has a zero byte".to_owned()))
}

impl Settings {
    /// The file.
    pub fn path(&self, project: bool) -> Result<PathBuf, Failure> {
        if project {
            return Ok(PathBuf::from(self.project));
        }
        let named = self.home_variable.and_then(std::env::var_os).filter(|it| !it.is_empty());
        if let (Some(directory), Some(file)) = (named, Path::new(self.user).file_name()) {
            return Ok(PathBuf::from(directory).join(file));
        }
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let home = home.ok_or_else(|| {
            "there is no home directory (HOME): use --project, in the project's directory"
                .to_owned()
        })?;
        Ok(home.join(self.user))
    }

    /// Puts a command in, instead of one that is there, or takes it out.
    pub fn change(
        &self,
        path: &Path,
        agent: &str,
        command: Option<&str>,
        dry_run: bool,
    ) -> Result<(), Failure> {
        let shown = one_line(&path.display().to_string()).into_owned();
        let there = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            there => there.map_err(|error| format!("{shown} cannot be read: {error}"))?,
        };
        let changed = self.changed(&there, agent, command).map_err(|reason| {
            format!("{shown} is left as it is: {reason} (mend it, then say this again)")
        })?;
        if changed == there {
            let state = if command.is_some() { "has it already" } else { "does not have it" };
            return Ok(paint::print(&format!("{}: {shown} {state}\n", self.title))?);
        }
        if dry_run {
            let diff = TextDiff::from_lines(&there, &changed);
            let diff = diff.unified_diff().header(&shown, &shown).to_string();
            return Ok(paint::print(&diff)?);
        }
        write(path, &changed).map_err(|error| format!("{shown} cannot be written: {error}"))?;
        let done = match command {
            Some(command) => format!("{}: {shown} runs `{command}` now\n", self.title),
            None => format!("{}: {shown} does not run reminderd any more\n", self.title),
        };
        paint::print(&done)?;
        if let (Some(remark), Some(_)) = (self.remark, command) {
            paint::remark(remark);
        }
        Ok(())
    }

    /// The text of the file with this command in it, or with none.
    fn changed(&self, text: &str, agent: &str, command: Option<&str>) -> Result<String, String> {
        let root = CstRootNode::parse(text, &ParseOptions::default())
            .map_err(|error| format!("it is no JSON: {error}"))?;
        let settings = match root.value() {
            None if command.is_none() => return Ok(text.to_owned()),
            None => root.object_value_or_set(),
            Some(value) => value.as_object().ok_or("it holds no JSON object")?,
        };
        if command.is_none() && settings.get("hooks").is_none() {
            return Ok(text.to_owned());
        }
        let hooks = member(&settings, "hooks", CstNode::as_object)?
            .unwrap_or_else(|| settings.object_value_or_set("hooks"));
        let wanted: Vec<_> = command.iter().flat_map(|_| self.events).collect();
        for property in hooks.properties() {
            let Some(name) = property.decoded_name() else { continue };
            let Some(list) = member(&hooks, &name, CstNode::as_array)? else { continue };
            let entry = wanted.iter().find(|(event, _)| *event == name);
            let entry = entry.zip(command).map(|((_, matcher), it)| (self.entry)(it, *matcher));
            if put(&list, agent, entry) && list.elements().is_empty() {
                property.remove();
            }
        }
        for (event, matcher) in wanted {
            if hooks.get(event).is_none()
                && let Some(command) = command
            {
                let list = hooks.array_value_or_set(event);
                list.ensure_multiline();
                list.append((self.entry)(command, *matcher));
            }
        }
        if command.is_none()
            && hooks.properties().is_empty()
            && let Some(property) = settings.get("hooks")
        {
            property.remove();
        }
        let mut changed = root.to_string();
        if text.is_empty() {
            changed.push('\n');
        }
        Ok(changed)
    }
}

/// A member of the sort that it has to be.
fn member<T>(
    of: &CstObject,
    name: &str,
    sort: fn(&CstNode) -> Option<T>,
) -> Result<Option<T>, String> {
    let Some(value) = of.get(name).and_then(|property| property.value()) else { return Ok(None) };
    sort(&value).map(Some).ok_or_else(|| format!("its {name:?} is not what {name:?} has to be"))
}

/// Puts an entry into the list of an event, in the place of ours if it is there, or takes ours out.
/// Whether ours was there.
fn put(list: &CstArray, agent: &str, mut entry: Option<CstInputValue>) -> bool {
    let mut was_there = false;
    for element in list.elements() {
        let ours = |node: &CstNode| {
            node.to_string().contains(&format!(" hook {agent}"))
                && node.to_string().contains("reminderd")
        };
        if !ours(&element) {
            continue;
        }
        was_there = true;
        let beside = element.as_object().and_then(|group| group.array_value("hooks"));
        let beside = beside.filter(|hooks| hooks.elements().iter().any(|hook| !ours(hook)));
        match (beside, entry.take()) {
            // Somebody has put others beside it: those stay.
            (Some(hooks), entry) => {
                hooks.elements().into_iter().filter(ours).for_each(CstNode::remove);
                if let Some(entry) = entry {
                    list.append(entry);
                }
            }
            (None, None) => element.remove(),
            (None, Some(entry)) => {
                if !is_equal(&element, &entry) {
                    list.insert(element.element_index().unwrap_or_default(), entry);
                    element.remove();
                }
            }
        }
    }
    if let Some(entry) = entry {
        list.append(entry);
    }
    was_there
}

/// Whether an element says the same already.
fn is_equal(element: &CstNode, entry: &CstInputValue) -> bool {
    let list = CstRootNode::parse("", &ParseOptions::default())
        .map(|root| root.array_value_or_set().append(entry.clone()));
    list.is_ok_and(|wanted| wanted.to_serde_value() == element.to_serde_value())
}

/// Writes a file whole or not at all. What is a link stays one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    let permissions = match path.metadata() {
        Ok(metadata) => metadata.permissions(),
        Err(_) => std::os::unix::fs::PermissionsExt::from_mode(0o644),
    };
    file.as_file().set_permissions(permissions)?;
    file.persist(&path)?;
    Ok(())
}
