//! Who may speak: registering, removing, switching and retuning the members of rosters.

use std::sync::Arc;

use super::Session;
use super::configuration;
use super::event::{Audience, Definition, Switch, Switches};
use super::facts::too_many;
use super::path::ScopePath;
use super::refusal::Refusal;
use super::reminder::member;
use super::scope::{Member, Source};

/// Reminders that a roster holds at most.
pub(super) const ROSTER_MAX: usize = 1_000;

impl Session {
    pub(super) fn register(
        &mut self,
        path: &ScopePath,
        definition: &Definition,
    ) -> Result<(), Refusal> {
        let rosters = self.scope(path)?.roster.iter().chain(&self.for_agents);
        refuse_built_in(definition, rosters)?;
        let mut member = member(self.kit.registry, definition.clone(), Source::Client)?;
        member.since = self.next_serial();
        if !path.is_root() {
            // Registered on an agent, it is that agent's, whatever scopes it names.
            Arc::make_mut(&mut member.definition).audience = Audience::AGENTS;
            return place(&mut self.scope_mut(path)?.roster, &member);
        }
        let mut root = self.scope(path)?.roster.clone();
        let mut agents = self.for_agents.clone();
        enlist(&mut root, &mut agents, &member)?;
        self.for_agents = agents;
        self.scope_mut(path)?.roster = root;
        self.note_registered(definition);
        self.settle_rosters()
    }

    /// What the client registers is not removed any more, unless it is for nobody.
    pub(super) fn note_registered(&mut self, definition: &Definition) {
        let Definition { id, audience: Audience { root, agents }, .. } = definition;
        if *root || *agents {
            self.removed.remove(id);
        } else if self.is_configured(id) {
            self.removed.insert(id.clone());
        }
    }

    /// Takes a reminder that the client registered, or that is configured, out of the rosters. One
    /// that is configured stays away from this session.
    pub(super) fn remove(&mut self, path: &ScopePath, id: &str) -> Result<bool, Refusal> {
        let is_it = |member: &Member| {
            member.id() == id && matches!(member.source, Source::Client | Source::Config)
        };
        let scope = self.scope_mut(path)?;
        let mut before = scope.roster.len();
        scope.roster.retain(|member| !is_it(member));
        let mut after = scope.roster.len();
        if path.is_root() {
            before += self.for_agents.len();
            self.for_agents.retain(|member| !is_it(member));
            after += self.for_agents.len();
        }
        if after == before {
            return Ok(false);
        }
        if path.is_root() {
            self.tunings.remove(id);
            if self.is_configured(id) {
                self.removed.insert(id.to_owned());
            }
            self.settle_rosters()?;
        }
        // Also what it told before it moved to the agents' roster.
        self.forget_reminder(path, id)?;
        Ok(true)
    }

    pub(super) fn configure(&mut self, path: &ScopePath, kinds: &Switches) -> Result<(), Refusal> {
        let mut roster = self.scope(path)?.roster.clone();
        if !path.is_root() {
            self.switch(&mut roster, kinds, path, [])?;
            self.scope_mut(path)?.roster = roster;
            return Ok(());
        }
        let mut agents = self.for_agents.clone();
        let mut capped = self.for_capped_agents.clone();
        self.switch(&mut roster, kinds, path, [&mut agents, &mut capped])?;
        self.for_agents = agents;
        self.for_capped_agents = capped;
        self.scope_mut(path)?.roster = roster;
        self.note_switches(kinds);
        self.settle_rosters()
    }

    /// Keeps what the client switched, to be put above whatever is configured later.
    pub(super) fn note_switches(&mut self, kinds: &Switches) {
        for (name, switch) in kinds {
            configuration::note(&mut self.tunings, name, switch);
            if let Switch::On(_) = switch {
                self.removed.remove(name);
            }
        }
    }

    /// Switches and retunes the members of a roster. A kind that is switched on and not there
    /// joins at the end; one that nobody knows is refused.
    pub(super) fn switch<const OTHERS: usize>(
        &self,
        roster: &mut Vec<Member>,
        kinds: &Switches,
        path: &ScopePath,
        mut others: [&mut Vec<Member>; OTHERS],
    ) -> Result<(), Refusal> {
        let registry = self.kit.registry;
        for (name, switch) in kinds {
            let mut known = false;
            let others = others.iter_mut().flat_map(|others| others.iter_mut());
            for meant in roster.iter_mut().chain(others).filter(|one| one.answers_to(name)) {
                known = true;
                match switch {
                    Switch::Off => meant.enabled = false,
                    Switch::On(settings) => {
                        let mut definition = Definition::clone(&meant.definition);
                        definition.settings.merge(settings);
                        meant.reminder = registry.build(&definition)?;
                        meant.definition = Arc::new(definition);
                        meant.enabled = true;
                    }
                }
            }
            if known {
                continue;
            }
            let mut definition = registry.kind(name)?;
            if let Switch::On(settings) = switch {
                definition.settings.merge(settings);
                let joining = member(registry, definition, Source::Client)?;
                if joining.is_for(path) {
                    place(roster, &joining)?;
                }
            }
        }
        Ok(())
    }
}

/// A built-in kind is retuned, not replaced: it may stand for what the daemon itself must say.
pub(super) fn refuse_built_in<'a>(
    definition: &Definition,
    mut rosters: impl Iterator<Item = &'a Member>,
) -> Result<(), Refusal> {
    let id = &definition.id;
    let is_built_in = |member: &Member| match member.source {
        Source::Default | Source::Standing => true,
        // A kind that was switched on; anything else that is configured gives way.
        Source::Config => member.definition.kind == *id,
        Source::Client => false,
    };
    if rosters.any(|member| member.id() == id && is_built_in(member)) {
        return Err(Refusal::invalid(format!(
            "{id:?} is a built-in kind: retune it with kinds or roster/configure, or register \
             another id"
        )));
    }
    Ok(())
}

/// Puts a member into the rosters that it is for; one that is there keeps its place.
pub(super) fn enlist(
    root: &mut Vec<Member>,
    agents: &mut Vec<Member>,
    member: &Member,
) -> Result<(), Refusal> {
    let audience = member.definition.audience;
    for (wanted, roster) in [(audience.root, root), (audience.agents, agents)] {
        if wanted {
            place(roster, member)?;
        } else {
            roster.retain(|known| known.id() != member.id());
        }
    }
    Ok(())
}

/// Replaces the member with this id in its place, or adds it at the end.
pub(super) fn place(roster: &mut Vec<Member>, member: &Member) -> Result<(), Refusal> {
    if let Some(known) = roster.iter_mut().find(|known| known.id() == member.id()) {
        *known = member.clone();
        return Ok(());
    }
    if roster.len() >= ROSTER_MAX {
        return Err(too_many("a roster's reminders", ROSTER_MAX, "remove some first"));
    }
    roster.push(member.clone());
    Ok(())
}
