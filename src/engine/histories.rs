//! What becomes of a scope's history: compacted, cut back, cleared, or reported anew.

use std::collections::BTreeSet;

use super::Session;
use super::event::{Event, Retained};
use super::ledger::Loss;
use super::path::ScopePath;
use super::record::Millis;
use super::refusal::{Refusal, RefusalKind};
use super::token::Expiry;

impl Session {
    pub(super) fn change_history(
        &mut self,
        at: Millis,
        path: &ScopePath,
        event: &Event,
    ) -> Result<(), Refusal> {
        let history = &self.scope(path)?.history;
        let known = |id: &String| {
            if history.record(id).is_some() {
                return Ok(());
            }
            Err(Refusal::new(
                RefusalKind::BadRecord,
                format!(
                    "{path} was never told record {id:?}: name ids of reminder/history, or hand \
                     the records themselves to session/open"
                ),
            ))
        };
        match event {
            Event::Compacted { retained, native } => {
                if let Retained::Records(ids) = retained {
                    ids.iter().try_for_each(known)?;
                }
                self.expire(path, Expiry::HistoryChanged, |_| true);
                if *retained != Retained::All {
                    self.drop_contents(at, path, *native)?;
                }
                let scope = self.scope_mut(path)?;
                // What was used is unknown until it is reported anew.
                scope.facts.usage = None;
                scope.native_compaction |= *native;
                let history = &mut scope.history;
                match retained {
                    Retained::All => {}
                    Retained::None => {
                        history.reconcile(|_, _, lost| lost.or(Some(Loss::Compacted)));
                    }
                    Retained::Records(ids) => {
                        let ids: BTreeSet<_> = ids.iter().map(String::as_str).collect();
                        history.reconcile(|_, id, lost| {
                            if ids.contains(id) { None } else { lost.or(Some(Loss::Compacted)) }
                        });
                    }
                }
            }
            Event::Rewound { through } => {
                through.iter().try_for_each(known)?;
                let last = through.as_ref().and_then(|id| history.position(id));
                self.expire(path, Expiry::HistoryChanged, |_| true);
                self.scope_mut(path)?.history.reconcile(|index, _, lost| {
                    if last.is_some_and(|last| index <= last) { lost } else { Some(Loss::Removed) }
                });
            }
            Event::Cleared => {
                self.expire(path, Expiry::HistoryChanged, |_| true);
                self.scope_mut(path)?.history.reconcile(|_, _, _| Some(Loss::Removed));
            }
            Event::HistoryReported { records } => {
                records.iter().try_for_each(known)?;
                self.history_holds(path, records)?;
            }
            _ => unreachable!("only events of history come here"),
        }
        let scope = self.scope_mut(path)?;
        scope.facts.watched.judge(&scope.history);
        Ok(())
    }

    /// Exactly these records are held. What a compaction had lost stays so.
    pub(super) fn history_holds(
        &mut self,
        path: &ScopePath,
        ids: &[String],
    ) -> Result<(), Refusal> {
        let ids: BTreeSet<_> = ids.iter().map(String::as_str).collect();
        self.scope_mut(path)?.history.reconcile(|_, id, lost| {
            if ids.contains(id) { None } else { lost.or(Some(Loss::Removed)) }
        });
        let scope = self.scope_mut(path)?;
        scope.facts.watched.judge(&scope.history);
        Ok(())
    }

    /// A compaction drops the contents of files from history. With a turn open it is told on the
    /// running request, otherwise, and where the host did it, through the FIFO.
    pub(super) fn drop_contents(
        &mut self,
        at: Millis,
        path: &ScopePath,
        native: bool,
    ) -> Result<(), Refusal> {
        let scope = self.scope_mut(path)?;
        // What was read whole is in the conversation no more.
        scope.facts.whole_reads.clear();
        let dropped = std::mem::take(&mut scope.facts.contents);
        if dropped.is_empty() {
            return Ok(());
        }
        scope.facts.dropped.extend(dropped);
        if path.is_root()
            && (native || scope.turn.is_none())
            && self.speak_through_fifo(at, "compacted-files")?
        {
            self.scope_mut(path)?.facts.dropped.clear();
        }
        Ok(())
    }
}
