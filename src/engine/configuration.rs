//! The configuration: what the person's files, and the file that a client may give, say of a session
//! before its client says anything over the wire. Rosters are derived from it (`configuration.md`,
//! "Files"): the profile's defaults, then its reminders and kinds, then what the client set, later
//! wins by id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Session;
use super::event::{Definition, Profile, Switch, Switches};
use super::path::ScopePath;
use super::record::Serial;
use super::refusal::Refusal;
use super::reminder::Reminder;
use super::rosters::{ROSTER_MAX, enlist, place};
use super::scope::{Member, Source};
use super::value::Value;

/// What is configured of a session, all files together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Configuration {
    /// Kinds, and reminders by their ids, to switch or retune.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: Switches,
    /// Reminders of the person's own, each id once, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reminders: Vec<Definition>,
    /// What telling may cost.
    #[serde(skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// What was written and is not used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

impl Configuration {
    /// Whether nothing is configured.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What telling may cost, in estimated tokens of the entries' bodies. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// All entries of one WAIT together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_wait: Option<u64>,
    /// All entries that one conversation of the session is ever told: the root's, or an agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_session: Option<u64>,
}

impl Budget {
    /// Whether there is no limit at all.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// Something that was configured and is not used, for `explain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The reminder's id, the kind's name, or the key.
    pub id: String,
    /// Why, in one sentence.
    pub reason: String,
    /// What it takes to have it used.
    pub next: String,
}

impl LeftOut {
    fn refused(id: &str, refusal: &Refusal) -> Self {
        Self {
            id: id.to_owned(),
            reason: format!("is left out: {refusal}"),
            next: "when the configuration is mended".to_owned(),
        }
    }
}

/// What a client switched and retuned over the wire, added up, so that it holds whatever is
/// configured below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Tuned {
    enabled: bool,
    settings: Value,
}

/// The same, by kind or id.
pub(super) type Tunings = BTreeMap<String, Tuned>;

impl From<&Switch> for Tuned {
    fn from(switch: &Switch) -> Self {
        match switch {
            Switch::Off => Self { enabled: false, settings: Value::empty_map() },
            Switch::On(settings) => Self { enabled: true, settings: settings.clone() },
        }
    }
}

/// Adds a switch to those before it.
pub(super) fn note(tunings: &mut Tunings, name: &str, switch: &Switch) {
    let Tuned { enabled, settings } = switch.into();
    let known = tunings.entry(name.to_owned());
    let tuned = known.or_insert_with(|| Tuned { enabled, settings: Value::empty_map() });
    tuned.enabled = enabled;
    tuned.settings.merge(&settings);
}

/// The rosters of a session, as its layers yield them.
#[derive(Debug, Default)]
pub(super) struct Derived {
    pub root: Vec<Member>,
    pub agents: Vec<Member>,
    pub capped: Vec<Member>,
    pub left_out: Vec<LeftOut>,
}

impl Derived {
    fn members(&mut self) -> impl Iterator<Item = &mut Member> {
        self.root.iter_mut().chain(&mut self.agents).chain(&mut self.capped)
    }

    fn has(&self, id: &str) -> bool {
        self.root.iter().chain(&self.agents).any(|member| member.id() == id)
    }
}

impl Session {
    /// What is configured.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// What is configured and not used, and why.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Whether a reminder of this id, or the kind of this name, is in rosters because it is
    /// configured.
    pub(super) fn is_configured(&self, id: &str) -> bool {
        let Configuration { kinds, reminders, .. } = &self.configuration;
        reminders.iter().any(|definition| definition.id == id)
            || (kinds.contains_key(id) && self.kit.registry.kind(id).is_ok())
    }

    /// The configuration file that a client gave with an opening, as data. It is kept with the
    /// session, and nothing here reads it.
    pub fn configuration_file(&self) -> Option<&Value> {
        self.configuration_file.as_ref()
    }

    /// The configuration was read. One that is the same changes nothing; of another, ids that stay
    /// keep what they told, and those that are gone are forgotten. Says whether it is another.
    pub(super) fn read_configuration(
        &mut self,
        configuration: &Configuration,
    ) -> Result<bool, Refusal> {
        if *configuration == self.configuration {
            return Ok(false);
        }
        self.configuration.clone_from(configuration);
        if !self.opened {
            return Ok(true);
        }
        let since = self.next_serial();
        let derived = self.derive(self.profile, since)?;
        let root = &self.scope(&ScopePath::ROOT)?.roster;
        let gone = root.iter().chain(&self.for_agents).map(Member::id);
        let gone = gone.filter(|id| !derived.has(id)).map(str::to_owned);
        for id in gone.collect::<BTreeSet<_>>() {
            self.forget_reminder(&ScopePath::ROOT, &id)?;
        }
        self.take_rosters(derived)?;
        Ok(true)
    }

    /// What a reminder told is forgotten, and what it was about to tell.
    pub(super) fn forget_reminder(&mut self, path: &ScopePath, id: &str) -> Result<(), Refusal> {
        let scope = self.scope_mut(path)?;
        scope.history.forget(Some(id));
        drop(scope.queue.forget_answer(id));
        Ok(())
    }

    /// The client said something over the wire: what is configured finds its place below it.
    pub(super) fn settle_rosters(&mut self) -> Result<(), Refusal> {
        if self.configuration.is_empty() {
            return Ok(());
        }
        let derived = self.derive(self.profile, self.serial)?;
        self.take_rosters(derived)
    }

    pub(super) fn take_rosters(&mut self, derived: Derived) -> Result<(), Refusal> {
        let Derived { root, agents, capped, left_out } = derived;
        self.scope_mut(&ScopePath::ROOT)?.roster = root;
        self.for_agents = agents;
        self.for_capped_agents = capped;
        self.left_out = left_out;
        Ok(())
    }

    /// The rosters that defaults, configuration and client yield. What the client registered is
    /// taken from the present rosters as it stands there. Nothing that is configured can make this
    /// fail: what does not fit is left out and named.
    pub(super) fn derive(&self, profile: Profile, since: Serial) -> Result<Derived, Refusal> {
        let registry = self.kit.registry;
        let mut derived = Derived::default();
        for member in registry.defaults(profile) {
            enlist(&mut derived.root, &mut derived.agents, &member)?;
        }
        derived.capped.extend(registry.for_capped_agents());
        derived.left_out.clone_from(&self.configuration.left_out);
        let known = Known::of(self)?;
        self.add_reminders(&mut derived, &known, since);
        for (name, switch) in &self.configuration.kinds {
            let tuned = switch.into();
            if let Err(refusal) = self.tune(&mut derived, &known, name, &tuned, Source::Config) {
                derived.left_out.push(LeftOut::refused(name, &refusal));
            }
        }
        self.add_clients_layer(&mut derived, &known)?;
        Ok(derived)
    }

    fn add_reminders(&self, derived: &mut Derived, known: &Known<'_>, since: Serial) {
        // What the client registered finds its place whatever is configured.
        let most = ROSTER_MAX.saturating_sub(known.registered.len());
        for definition in &self.configuration.reminders {
            let id = &definition.id;
            if self.removed.contains(id) {
                continue;
            }
            let added = self.configured_member(definition, known, since).and_then(|member| {
                if derived.root.len().max(derived.agents.len()) >= most && !derived.has(id) {
                    return Err(super::facts::too_many(
                        "a roster's reminders",
                        ROSTER_MAX,
                        "configure fewer",
                    ));
                }
                enlist(&mut derived.root, &mut derived.agents, &member)
            });
            if let Err(refusal) = added {
                derived.left_out.push(LeftOut::refused(id, &refusal));
            }
        }
    }

    fn configured_member(
        &self,
        definition: &Definition,
        known: &Known<'_>,
        since: Serial,
    ) -> Result<Member, Refusal> {
        let id = &definition.id;
        if self.kit.registry.kind(id).is_ok() {
            return Err(Refusal::invalid(format!(
                "{id:?} is a built-in kind: retune it in [kinds], or give the reminder another id"
            )));
        }
        let stays = known.members.get(id.as_str());
        let stays = stays.filter(|member| member.source == Source::Config);
        let since = stays.map_or(since, |member| member.since);
        let reminder = self.build(definition, known)?;
        let definition = Arc::new(definition.clone());
        Ok(Member { definition, enabled: true, source: Source::Config, since, reminder })
    }

    /// The reminder of a definition: the one that is there, where it is the same.
    fn build(
        &self,
        definition: &Definition,
        known: &Known<'_>,
    ) -> Result<Arc<dyn Reminder>, Refusal> {
        match known.members.get(definition.id.as_str()) {
            Some(member) if *member.definition == *definition => Ok(Arc::clone(&member.reminder)),
            _ => self.kit.registry.build(definition),
        }
    }

    /// Switches or retunes the members that answer to a name; where there is none, the kind of that
    /// name joins the root's roster.
    fn tune(
        &self,
        derived: &mut Derived,
        known: &Known<'_>,
        name: &str,
        tuned: &Tuned,
        source: Source,
    ) -> Result<(), Refusal> {
        let Tuned { enabled, settings } = tuned;
        let retuned = |member: &Member| {
            let mut definition = Definition::clone(&member.definition);
            definition.settings.merge(settings);
            let reminder = self.build(&definition, known)?;
            // What the client set above it is to go with it.
            if let Some(Tuned { settings, .. }) = self.tunings.get(name)
                && source == Source::Config
            {
                let mut above = definition.clone();
                above.settings.merge(settings);
                self.build(&above, known)?;
            }
            Ok((Arc::new(definition), reminder))
        };
        let meant = derived.members().filter(|member| member.answers_to(name));
        let retuned = meant.map(|member| retuned(member)).collect::<Result<Vec<_>, Refusal>>()?;
        let meant = derived.members().filter(|member| member.answers_to(name));
        for (member, (definition, reminder)) in meant.zip(&retuned) {
            member.definition = Arc::clone(definition);
            member.reminder = Arc::clone(reminder);
            member.enabled = *enabled;
        }
        // An id that the client registered, or removed, is the client's.
        let is_clients = known.registered.contains(name) || self.removed.contains(name);
        if !retuned.is_empty() || is_clients {
            return Ok(());
        }
        let mut definition = self.kit.registry.kind(name)?;
        if *enabled {
            definition.settings.merge(settings);
            let reminder = self.build(&definition, known)?;
            let definition = Arc::new(definition);
            let joining = Member { definition, enabled: true, source, since: 0, reminder };
            if joining.is_for(&ScopePath::ROOT) {
                place(&mut derived.root, &joining)?;
            }
        }
        Ok(())
    }

    /// Puts what the client said over the wire above what is configured.
    fn add_clients_layer(&self, derived: &mut Derived, known: &Known<'_>) -> Result<(), Refusal> {
        for (name, tuned) in &self.tunings {
            // A name that was known when the client switched it may mean nothing now.
            let means = derived.members().any(|member| member.answers_to(name))
                || self.kit.registry.kind(name).is_ok();
            if !means {
                continue;
            }
            if let Err(refusal) = self.tune(derived, known, name, tuned, Source::Client) {
                derived.left_out.push(LeftOut {
                    id: name.clone(),
                    reason: format!(
                        "what the client set does not go with the configuration: {refusal}"
                    ),
                    next: "when either is changed".to_owned(),
                });
            }
        }
        let old_root = &self.scope(&ScopePath::ROOT)?.roster;
        for (old, roster) in
            [(old_root, &mut derived.root), (&self.for_agents, &mut derived.agents)]
        {
            let theirs = || old.iter().filter(|member| member.source == Source::Client);
            let here: BTreeSet<&str> = theirs().map(Member::id).collect();
            roster.retain(|member| {
                !known.registered.contains(member.id()) || here.contains(member.id())
            });
            for member in theirs() {
                if known.registered.contains(member.id()) {
                    place(roster, member)?;
                    continue;
                }
                // A kind that the client switched on stays behind what it registered before.
                match roster.iter().position(|one| one.id() == member.id()) {
                    Some(place) if roster[place].source == Source::Client => {
                        let joined = roster.remove(place);
                        roster.push(joined);
                    }
                    Some(_) => {}
                    None => roster.push(member.clone()),
                }
            }
        }
        Ok(())
    }
}

/// What is in the present rosters, to be kept where it stays the same.
struct Known<'a> {
    members: BTreeMap<&'a str, &'a Member>,
    /// Ids of what the client registered; kinds that it switched on are not among them.
    registered: BTreeSet<&'a str>,
}

impl<'a> Known<'a> {
    fn of(session: &'a Session) -> Result<Self, Refusal> {
        let root = &session.scope(&ScopePath::ROOT)?.roster;
        let all = root.iter().chain(&session.for_agents).chain(&session.for_capped_agents);
        let members: BTreeMap<_, _> = all.map(|member| (member.id(), member)).collect();
        let clients = root.iter().chain(&session.for_agents);
        let clients = clients.filter(|member| {
            member.source == Source::Client && member.definition.kind != member.definition.id
        });
        Ok(Self { members, registered: clients.map(Member::id).collect() })
    }
}
