// Generated from protocol/schema/reminderd.schema.json by `npm run generate`. Do not edit.

/** The version of the protocol that these types describe. */
export const PROTOCOL_VERSION = 1;

/**
 * How an agent ended.
 */
export type AgentOutcome = "succeeded" | "failed" | "interrupted" | (string & {});
/**
 * How bodies are joined into `message.content`.
 */
export type RecordForm = "blocks" | "block" | "plain";
/**
 * Where in a turn a WAIT stands.
 */
export type Phase = "turn-start" | "mid-turn";
/**
 * The word that tells an injection record from other things in a transcript.
 */
export type RecordType = "injected-reminders";
/**
 * Who compacted a history.
 */
export type CompactionEngine = "client" | "native" | (string & {});
/**
 * Who speaks in a message.
 */
export type Role = "user";
/**
 * Where a checker stands with a file.
 */
export type DiagnosticState = "running" | "done" | "failed" | "none" | (string & {});
/**
 * How waiting for a file's checkers ended.
 */
export type SettleOutcome = "ready" | "timeout" | "stale" | "none";
/**
 * Which records a compacted history still holds.
 */
export type Retained = "none" | "all" | string[] | (string & {});
/**
 * What a hook decided.
 */
export type HookDecision = "block" | "allow" | (string & {});
/**
 * Who owns the conversation.
 */
export type HostHistory = "client" | "native" | (string & {});
/**
 * Who keeps injected messages for later requests.
 */
export type HostPersists = "host" | "client" | "none" | (string & {});
/**
 * When the proof arrives that a message was taken.
 */
export type HostReceipts = "immediate" | "late" | (string & {});
/**
 * Who writes the reminder tags.
 */
export type HostRender = "tagged" | "plain" | (string & {});
/**
 * A place in the message, in this order.
 */
export type Lane =
  | "mention"
  | "skill"
  | "roster"
  | "compaction"
  | "steering"
  | "sections"
  | "events"
  | (string & {});
/**
 * What sort of thing was mentioned.
 */
export type MentionKind = "ref" | "file" | "mcp" | "agent" | (string & {});
/**
 * The params of a method that needs none.
 */
export type NoParams = {} | unknown[] | null;
/**
 * Where an opened session's state came from.
 */
export type OpenState = "new" | "live" | "restored";
/**
 * Where planning stands.
 */
export type PlanState = "active" | "accepted" | "none" | (string & {});
/**
 * How often a reminder speaks: a word, or a table with at most one of `once`, `onChange`, `always` and `every`.
 */
export type PolicyForm =
  | ("once" | "onChange" | "always")
  | {
      always?: true;
      /**
       * A number of one unit.
       */
      cooldown?: {
        prompts?: number | null;
        requests?: number | null;
        turns?: number | null;
      } | null;
      /**
       * A number of one unit.
       */
      every?: {
        prompts?: number | null;
        requests?: number | null;
        turns?: number | null;
      } | null;
      maxPerSession?: number | null;
      maxPerTurn?: number | null;
      onChange?: true;
      once?: true;
      /**
       * Whether it speaks again when history lost the telling.
       */
      rearm?: "dropped" | "never";
    };
/**
 * Which conversations have a reminder.
 */
export type ReminderScope = "root" | "agents" | (string & {});
/**
 * Who put a reminder on the roster.
 */
export type RosterSource = "default" | "config" | "client";
/**
 * Where in the conversation a message will stand.
 */
export type Seam = "prompt" | "tools" | "continuation" | (string & {});
/**
 * Whether a section is there.
 */
export type SectionState = "present" | "absent" | "unavailable" | (string & {});
/**
 * Whether a listed session is in memory.
 */
export type SessionLife = "live" | "stored";
/**
 * How far a task is.
 */
export type TaskStatus = "pending" | "in_progress" | "completed" | (string & {});
/**
 * How a turn ended.
 */
export type TurnOutcome = "completed" | "cancelled" | "failed" | (string & {});

/**
 * `reminder/acknowledge`: the prompt itself carries this already.
 */
export interface AcknowledgeParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The state that the prompt carries; absent for the present one.
   */
  fingerprint?: string | null;
  /**
   * The member that it is about; absent for all of the kind.
   */
  key?: string | null;
  /**
   * The kind, or the id of a registered reminder.
   */
  kind: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `agent/settle`: an agent is done.
 */
export interface AgentSettleParams {
  /**
   * The agent's path.
   */
  agent: string;
  /**
   * How it ended.
   */
  outcome: AgentOutcome;
  /**
   * The session's id.
   */
  session: string;
}
/**
 * `agent/spawn`: an agent begins.
 */
export interface AgentSpawnParams {
  /**
   * The agent's path; its parent is the path's parent and must exist.
   */
  agent: string;
  /**
   * Switches by kind, laid over the session's reminders for agents; an empty table switches
   * a kind on. The roster is frozen with them.
   */
  kinds?: KindSwitches | null;
  /**
   * The most requests that the agent may make; absent for no cap.
   */
  maxRequests?: number | null;
  /**
   * What the agent is for, as the client names it.
   */
  role?: string | null;
  /**
   * The session's id.
   */
  session: string;
}
/**
 * Switches and settings by kind: `false` is off, `true` or a table is on.
 */
export interface KindSwitches {
  [k: string]: boolean | {} | null;
}
/**
 * A skill with its text.
 */
export interface AttachedSkill {
  /**
   * What the model reads.
   */
  body: string;
  /**
   * Its name.
   */
  name: string;
  /**
   * The skills that it needs, which are told first.
   */
  requires?: AttachedSkill[] | null;
}
/**
 * What telling may cost a scope, in estimated tokens; a budget that is absent is no limit.
 */
export interface BudgetState {
  /**
   * What is left of `perSession`; at 0 nothing is told any more.
   */
  left?: number | null;
  /**
   * For all entries that the scope is ever told.
   */
  perSession?: number | null;
  /**
   * For all entries of one WAIT.
   */
  perWait?: number | null;
}
/**
 * `$/cancelRequest`, as in LSP.
 */
export interface CancelParams {
  /**
   * The id of the request, a string or an integer.
   */
  id: unknown;
}
/**
 * Who a client is.
 */
export interface ClientInfo {
  /**
   * Its name.
   */
  name: string;
  /**
   * Its version.
   */
  version?: string | null;
}
/**
 * `reminderd/clock`: move the clock of a deterministic daemon.
 */
export interface ClockParams {
  /**
   * By how much, in milliseconds; 0 only asks.
   */
  advanceMs: number;
}
/**
 * The answer to `reminderd/clock`.
 */
export interface ClockResult {
  /**
   * The time after the move, in milliseconds since the Unix epoch.
   */
  now: number;
}
/**
 * `reminder/commit`: the payload that will be sent contains the message.
 */
export interface CommitParams {
  /**
   * The ids of the entries that arrived; absent for all, empty for none.
   */
  entries?: string[] | null;
  /**
   * Where the host put the message: free text, noted.
   */
  placement?: string | null;
  /**
   * `false` when the client keeps no records: noted.
   */
  record?: boolean | null;
  /**
   * The token of the WAIT.
   */
  token: string;
}
/**
 * The answer to `reminder/commit`, given once it is durable.
 */
export interface CommitResult {
  /**
   * Whether the token had been committed before.
   */
  already: boolean;
  /**
   * The ids of the entries that are now told.
   */
  committed: string[];
  /**
   * The ids of the entries of the WAIT that stay eligible.
   */
  held: string[];
  /**
   * The whole record of what was told; `null` when nothing was.
   */
  record: InjectionRecord | null;
}
/**
 * One told message, whole: it suffices to rebuild `message.content` byte for byte.
 */
export interface InjectionRecord {
  /**
   * The agent that was told; absent for the root.
   */
  agent?: string | null;
  /**
   * `blake3:` and 64 lower-case hexadecimal digits, over everything above.
   */
  digest: string;
  /**
   * What was told, in the message's order.
   */
  entries: RecordEntry[];
  /**
   * How the entries' bodies become the message.
   */
  form: RecordForm;
  /**
   * The record's id; the one made by a partial commit ends in `p`.
   */
  id: string;
  /**
   * The scope's counters at the WAIT, the request being prepared included.
   */
  ordinals: Ordinals;
  /**
   * Where in the turn.
   */
  phase: Phase;
  /**
   * The session that was told.
   */
  session: string;
  /**
   * What was marked as told without text of its own.
   */
  silent?: SilentEntry[] | null;
  /**
   * The turn in which it was told.
   */
  turn: string;
  /**
   * Always `injected-reminders`.
   */
  type: RecordType;
  /**
   * The version of this form: 1.
   */
  version: number;
}
/**
 * A told entry.
 */
export interface RecordEntry {
  /**
   * What the model reads, without tags, already made harmless.
   */
  body: string;
  /**
   * What the kind compares to find a change.
   */
  fingerprint: string;
  /**
   * The entry's id, new at each WAIT.
   */
  id: string;
  /**
   * The member that it is about: a section, path, hook event…
   */
  key?: string | null;
  /**
   * The kind that made it.
   */
  kind: string;
  /**
   * The short name shown in a row.
   */
  label: string;
  /**
   * Named values that it told: thresholds, names that came (`+`) or went (`-`).
   */
  marks?: string[] | null;
  /**
   * Its kind's name; a registered reminder's is its id, a staged one's as given.
   */
  type: string;
}
/**
 * A scope's counters, each from 1.
 */
export interface Ordinals {
  /**
   * Which prompt of the scope.
   */
  prompt: number;
  /**
   * Which request of the scope.
   */
  request: number;
  /**
   * Which turn of the scope.
   */
  turn: number;
}
/**
 * Something marked as told without a body in the message.
 */
export interface SilentEntry {
  /**
   * As in [`RecordEntry`].
   */
  fingerprint: string;
  /**
   * As in [`RecordEntry`].
   */
  key?: string | null;
  /**
   * The kind that was silently told.
   */
  kind: string;
  /**
   * Named values that it told.
   */
  marks?: string[] | null;
  /**
   * As in [`RecordEntry`].
   */
  type: string;
}
/**
 * `reminder/compute`: the daemon asks for a client generator's body.
 */
export interface ComputeParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * Whether it is due, so that an unchanged body is wanted too.
   */
  force: boolean;
  /**
   * The id under which the generator was registered.
   */
  generator: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * The client's answer to `reminder/compute`.
 */
export interface ComputeResult {
  /**
   * What the model reads; `null` for silence.
   */
  body: string | null;
}
/**
 * A change of a document.
 */
export interface ContentChange {
  /**
   * What is replaced; absent for the whole document.
   */
  range?: Range | null;
  /**
   * What replaces it.
   */
  text: string;
}
/**
 * A stretch of a document; its end is not included.
 */
export interface Range {
  /**
   * Where it ends.
   */
  end: Position;
  /**
   * Where it starts.
   */
  start: Position;
}
/**
 * A place in a document.
 */
export interface Position {
  /**
   * The UTF-16 code unit in the line, from 0.
   */
  character: number;
  /**
   * The line, from 0.
   */
  line: number;
}
/**
 * What was counted since a scope began.
 */
export interface Counters {
  /**
   * Turns whose first WAIT was committed.
   */
  prompts: number;
  /**
   * Committed WAITs.
   */
  requests: number;
  /**
   * Ended turns.
   */
  turns: number;
}
/**
 * `date/set`: today's date, for hosts that want its changes told.
 */
export interface DateSetParams {
  /**
   * The date as it is to be told, such as `2026-03-21`.
   */
  date: string;
  /**
   * The session's id.
   */
  session: string;
}
/**
 * The answer to a WAIT.
 */
export interface Delivery {
  /**
   * `true` when the WAIT asked for `autoCommit`; otherwise absent.
   */
  committed?: boolean | null;
  /**
   * What speaks, in the message's order.
   */
  entries: Entry[];
  /**
   * What would have spoken but was kept for a later WAIT.
   */
  held: Held[];
  /**
   * The message to put into the payload; `null` when nothing speaks.
   */
  message: Message | null;
  /**
   * `true` when the size limit is smaller than the first entry alone; otherwise absent.
   */
  oversize?: boolean | null;
  /**
   * Where in the turn the WAIT stands.
   */
  phase: Phase;
  /**
   * The record to keep if all of it is told; `null` when nothing speaks.
   */
  record: InjectionRecord | null;
  /**
   * The committed records that the host has lost, for hosts that persist nothing.
   */
  replay?: Replay[] | null;
  /**
   * The line that a view shows for it; `null` when nothing speaks.
   */
  row: string | null;
  /**
   * What to commit or release; there is one also when nothing speaks.
   */
  token: string;
  /**
   * The estimated price of the message in tokens.
   */
  tokens: number;
}
/**
 * One thing that is told.
 */
export interface Entry {
  /**
   * What the model reads, without tags.
   */
  body: string;
  /**
   * The entry's id, new at each WAIT.
   */
  id: string;
  /**
   * The member that it is about: a section, path, hook event…
   */
  key?: string | null;
  /**
   * The short name shown in a row.
   */
  label: string;
  /**
   * Its estimated price in tokens.
   */
  tokens: number;
  /**
   * Its kind's name; a registered reminder's is its id, a staged one's as given.
   */
  type: string;
}
/**
 * Something that was kept for a later WAIT.
 */
export interface Held {
  /**
   * As in [`Entry`].
   */
  key?: string | null;
  /**
   * Why, in a word: `limit`, `budget`, `deadline`, `receipt`…
   */
  reason: string;
  /**
   * As in [`Entry`].
   */
  type: string;
}
/**
 * A message as a provider takes it.
 */
export interface Message {
  /**
   * The rendered text.
   */
  content: string;
  /**
   * Always `user`.
   */
  role: Role;
}
/**
 * A committed record that the host has lost.
 */
export interface Replay {
  /**
   * Where it stood: what its commit said as `placement`, else the id of its turn.
   */
  anchor: string;
  /**
   * The record; its message is rebuilt from it.
   */
  record: InjectionRecord;
}
/**
 * `diagnostic/publish`: a checker's results for a file.
 */
export interface DiagnosticPublishParams {
  /**
   * The checker's name; its results are replaced only by its own.
   */
  checker: string;
  /**
   * What it found, each as in LSP; absent is the same as empty.
   */
  diagnostics?: unknown[] | null;
  /**
   * Where the checker stands; `done` when absent.
   */
  state?: DiagnosticState | null;
  /**
   * The file, as a `file:` URI or an absolute path.
   */
  uri: string;
  /**
   * The version that was checked.
   */
  version?: number | null;
}
/**
 * `textDocument/didChange`, as in LSP.
 */
export interface DidChangeParams {
  /**
   * The changes, each applied to the outcome of the one before it.
   */
  contentChanges: ContentChange[];
  /**
   * The document and its version after the changes.
   */
  textDocument: VersionedUri;
}
/**
 * A file, with its version where that is known.
 */
export interface VersionedUri {
  /**
   * The file, as a `file:` URI or an absolute path.
   */
  uri: string;
  /**
   * Its version.
   */
  version?: number | null;
}
/**
 * `workspace/didChangeWatchedFiles`, as in LSP: hints that widen the next comparison.
 */
export interface DidChangeWatchedFilesParams {
  /**
   * The files that changed.
   */
  changes: FileEvent[];
}
/**
 * A file that changed on disk.
 */
export interface FileEvent {
  /**
   * 1 created, 2 changed, 3 deleted; the file itself decides, whatever is said here.
   */
  type: number;
  /**
   * The file.
   */
  uri: string;
}
/**
 * `textDocument/didClose`, as in LSP.
 */
export interface DidCloseParams {
  /**
   * The document.
   */
  textDocument: VersionedUri;
}
/**
 * `textDocument/didOpen`, as in LSP.
 */
export interface DidOpenParams {
  /**
   * The document.
   */
  textDocument: TextDocumentItem;
}
/**
 * A document with its text.
 */
export interface TextDocumentItem {
  /**
   * Its language, as the editor names it.
   */
  languageId?: string | null;
  /**
   * Its text.
   */
  text: string;
  /**
   * The file.
   */
  uri: string;
  /**
   * Its version, which starts over when it is reopened.
   */
  version?: number | null;
}
/**
 * `textDocument/didSave`, as in LSP.
 */
export interface DidSaveParams {
  /**
   * Its text as saved.
   */
  text?: string | null;
  /**
   * The document.
   */
  textDocument: VersionedUri;
}
/**
 * `edit/begin`: an edit of these files is about to be made.
 */
export interface EditBeginParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The files.
   */
  uris: string[];
}
/**
 * `edit/end`: the edit was made, or failed.
 */
export interface EditEndParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * Whether it was made.
   */
  ok: boolean;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The files, with the versions that the edit made.
   */
  uris: VersionedUri[];
}
/**
 * `edit/settle`: wait until checkers have reported on the edited versions.
 */
export interface EditSettleParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The most time to wait, in milliseconds, for all files together.
   */
  timeoutMs?: number | null;
  /**
   * The files to wait for; absent for all that the scope edited in this turn.
   */
  uris?: string[] | null;
}
/**
 * The answer to `edit/settle`.
 */
export interface EditSettleResult {
  /**
   * A row for each file.
   */
  files: SettledFile[];
}
/**
 * How waiting for one file's checkers ended.
 */
export interface SettledFile {
  /**
   * How it ended.
   */
  outcome: SettleOutcome;
  /**
   * The file, as the client spelled it.
   */
  uri: string;
}
/**
 * A file that a scope edited in its turn.
 */
export interface EditedFileState {
  /**
   * Problems that were there before.
   */
  before: number;
  /**
   * Problems that the edits brought and that were not told yet.
   */
  new: number;
  /**
   * Its path.
   */
  path: string;
  /**
   * Whether a checker has reported on the edit.
   */
  reported: boolean;
  /**
   * Problems that are gone.
   */
  resolved: number;
}
/**
 * `reminder/enqueue`: a body for the session's pending queue.
 */
export interface EnqueueParams {
  /**
   * What the model reads.
   */
  body: string;
  /**
   * The session's id.
   */
  session: string;
  /**
   * A name for it in `reminder/explain`.
   */
  type?: string | null;
}
/**
 * What is beyond LSP.
 */
export interface ExperimentalCapabilities {
  /**
   * This protocol.
   */
  reminderd: ReminderdCapabilities;
}
/**
 * What this build of the protocol has.
 */
export interface ReminderdCapabilities {
  /**
   * The names of the kinds.
   */
  kinds: string[];
  /**
   * The limits in force.
   */
  limits: Limits;
  /**
   * The names of the profiles.
   */
  profiles: string[];
  /**
   * The version in use.
   */
  protocolVersion: number;
}
/**
 * The limits in force. Names end in their unit.
 */
export interface Limits {
  /**
   * The largest message, in bytes.
   */
  messageBytes: number;
  [k: string]: number;
}
/**
 * The answer to `reminder/explain`.
 */
export interface ExplainResult {
  /**
   * A row for each roster entry and queue.
   */
  rows: ExplainRow[];
}
/**
 * Whether a reminder would speak at a WAIT now, and why.
 */
export interface ExplainRow {
  /**
   * The reminder's id, or the queue's name.
   */
  id: string;
  /**
   * Its kind.
   */
  kind: string;
  /**
   * When it can next speak, for people; `null` when nobody can say.
   */
  next: string | null;
  /**
   * Why or why not: one sentence, with the numbers.
   */
  reason: string;
  /**
   * Whether it would speak.
   */
  speaks: boolean;
  /**
   * What it has cost so far; absent when it was never told.
   */
  spent?: Spent | null;
  /**
   * What it would cost in tokens, estimated; 0 when it is silent.
   */
  tokens: number;
}
/**
 * What telling something has cost so far, whether history still holds it or not.
 */
export interface Spent {
  /**
   * Entries that were told.
   */
  entries: number;
  /**
   * What their bodies cost in tokens, estimated.
   */
  tokens: number;
}
/**
 * `fact/set`: a fact for the user's own rules.
 */
export interface FactSetParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * Its name: `facts.NAME` in conditions and bodies.
   */
  name: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * Its value: any JSON.
   */
  value: unknown;
}
/**
 * `file/changed`: an event named a file that a session of the client watches. A hint for status
 * lines; whether it truly changed is told at the next WAIT.
 */
export interface FileChangedParams {
  /**
   * The file, as a session spells it.
   */
  uri: string;
}
/**
 * `file/forget`: stop watching a file for the scope.
 */
export interface FileForgetParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The file, as a `file:` URI or an absolute path.
   */
  uri: string;
}
/**
 * `file/read`: a read that succeeded.
 */
export interface FileReadParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The pages of a paged document that were read, such as `1-5`.
   */
  pages?: string | null;
  /**
   * Whether only a part was read, which starts the watch but tells nothing.
   */
  partial?: boolean | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * What was read; absent lets the daemon look at the file.
   */
  text?: string | null;
  /**
   * The file, as a `file:` URI or an absolute path.
   */
  uri: string;
}
/**
 * `file/wrote`: the agent's own write that succeeded.
 */
export interface FileWroteParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * What was written; absent lets the daemon look at the file.
   */
  text?: string | null;
  /**
   * The file, as a `file:` URI or an absolute path.
   */
  uri: string;
}
/**
 * What making a fork's worktree could and could not restore.
 */
export interface ForkReport {
  /**
   * Names of state that was left behind.
   */
  dropped?: string[] | null;
  /**
   * Paths outside the worktree that both sessions share.
   */
  external?: string[] | null;
  /**
   * How many files were restored.
   */
  restored: number;
  /**
   * Paths of files that could not be restored.
   */
  unrestored?: string[] | null;
}
/**
 * The worktree of a fork.
 */
export interface ForkWorktree {
  /**
   * The commit that it starts from.
   */
  base: string;
  /**
   * The branch checked out in it.
   */
  branch: string;
  /**
   * Its directory, as a `file:` URI or an absolute path.
   */
  directory: string;
}
/**
 * A goal.
 */
export interface Goal {
  /**
   * The most tokens that it may use; absent for no limit.
   */
  budget?: number | null;
  /**
   * Its id: the client's own string.
   */
  id: string;
  /**
   * What is to be reached.
   */
  objective: string;
  /**
   * The address of the plan that it carries.
   */
  plan?: string | null;
}
/**
 * `goal/charge`: tokens were used for the goal. Exactly one of `used` and `delta` is there.
 */
export interface GoalChargeParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * What came on top of what was charged before.
   */
  delta?: number | null;
  /**
   * Whether it is an estimate of a turn that is still running.
   */
  inFlight?: boolean | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The goal's running total.
   */
  used?: number | null;
}
/**
 * `goal/set`: set, change or drop the session's goal.
 */
export interface GoalSetParams {
  /**
   * The goal; `null` drops it.
   */
  goal: Goal | null;
  /**
   * The session's id.
   */
  session: string;
}
/**
 * `history/compacted`: older messages gave way to a summary.
 */
export interface HistoryCompactedParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * Who compacted; `client` when absent.
   */
  engine?: CompactionEngine | null;
  /**
   * Which records it still holds.
   */
  retained: Retained;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `reminder/history`: what was told.
 */
export interface HistoryParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * Only records older than the one with this id.
   */
  before?: string | null;
  /**
   * The most records to answer with; absent for all.
   */
  limit?: number | null;
  /**
   * Whether to leave out what history no longer holds.
   */
  retained?: boolean | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `history/reported`: exactly these records are in the payload now.
 */
export interface HistoryReportedParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The ids of the records.
   */
  records: string[];
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * The answer to `reminder/history`.
 */
export interface HistoryResult {
  /**
   * The records, newest first.
   */
  records: HistoryRow[];
}
/**
 * A record and what is known about it.
 */
export interface HistoryRow {
  /**
   * The agent that was told; absent for the root.
   */
  agent?: string | null;
  /**
   * When it was committed, in milliseconds since the Unix epoch.
   */
  at: number;
  /**
   * `blake3:` and 64 lower-case hexadecimal digits, over everything above.
   */
  digest: string;
  /**
   * What was told, in the message's order.
   */
  entries: RecordEntry[];
  /**
   * How the entries' bodies become the message.
   */
  form: RecordForm;
  /**
   * The record's id; the one made by a partial commit ends in `p`.
   */
  id: string;
  /**
   * The scope's counters at the WAIT, the request being prepared included.
   */
  ordinals: Ordinals;
  /**
   * Where in the turn.
   */
  phase: Phase;
  /**
   * Where the host put it, as its commit said.
   */
  placement?: string | null;
  /**
   * Whether history still holds it.
   */
  retained: boolean;
  /**
   * The session that was told.
   */
  session: string;
  /**
   * What was marked as told without text of its own.
   */
  silent?: SilentEntry[] | null;
  /**
   * The turn in which it was told.
   */
  turn: string;
  /**
   * Always `injected-reminders`.
   */
  type: RecordType;
  /**
   * The version of this form: 1.
   */
  version: number;
}
/**
 * `history/rewound`: the conversation went back to an earlier point.
 */
export interface HistoryRewoundParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The last record that it still holds; `null` for none.
   */
  through: string | null;
}
/**
 * `hook/context`: a hook has something to add.
 */
export interface HookContextParams {
  /**
   * Whether the host has put it into the conversation already.
   */
  accepted?: boolean | null;
  /**
   * What the model reads.
   */
  body: string;
  /**
   * The hook event.
   */
  event: string;
  /**
   * The session's id.
   */
  session: string;
}
/**
 * `hook/outcome`: a hook decided.
 */
export interface HookOutcomeParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * What it decided.
   */
  decision: HookDecision;
  /**
   * The hook event.
   */
  event: string;
  /**
   * Why, as the hook says.
   */
  reason?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * What the client's host does. An absent member leaves what was said before, or the default.
 */
export interface HostForm {
  /**
   * Who owns the conversation; `client` unless said.
   */
  history?: HostHistory | null;
  /**
   * Most bytes of UTF-8 that `message.content` may have.
   */
  maxBytes?: number | null;
  /**
   * Most characters (Unicode scalar values) that `message.content` may have.
   */
  maxChars?: number | null;
  /**
   * Most UTF-16 code units that `message.content` may have.
   */
  maxUtf16?: number | null;
  /**
   * Who keeps injected messages; `host` unless said.
   */
  persists?: HostPersists | null;
  /**
   * When the proof of arrival comes; `immediate` unless said.
   */
  receipts?: HostReceipts | null;
  /**
   * Whether the daemon writes the tags; `tagged` unless said.
   */
  render?: HostRender | null;
  /**
   * The names of the tools that the model has.
   */
  tools?: string[] | null;
}
/**
 * What this protocol adds to `initialize`.
 */
export interface InitializationOptions {
  /**
   * Who the client is; decides before `clientInfo`.
   */
  client?: ClientInfo | null;
  /**
   * A whole configuration file in JSON, laid over the workspace's.
   */
  config?: unknown;
  /**
   * Whether the client wants `file/changed` while watched files change; no when absent.
   */
  fileChanged?: boolean | null;
  /**
   * Whether failed notifications are reported with `reminderd/problem`; yes when absent.
   */
  problems?: boolean | null;
  /**
   * The version that the client speaks; [`PROTOCOL_VERSION`] when absent.
   */
  protocolVersion?: number | null;
  /**
   * Whether workspaces' own configuration is trusted; no when absent.
   */
  trusted?: boolean | null;
}
/**
 * `initialize`. Members of LSP that mean nothing here are ignored.
 */
export interface InitializeParams {
  /**
   * What the client can do; nothing here depends on it.
   */
  capabilities?: unknown;
  /**
   * Who the client is, as in LSP.
   */
  clientInfo?: ClientInfo | null;
  /**
   * What this protocol adds.
   */
  initializationOptions?: InitializationOptions | null;
  /**
   * The client's process; when it dies, so does the daemon.
   */
  processId?: number | null;
  /**
   * The workspace directory of sessions that name none.
   */
  rootUri?: string | null;
}
/**
 * The answer to `initialize`.
 */
export interface InitializeResult {
  /**
   * What it can do.
   */
  capabilities: ServerCapabilities;
  /**
   * Who answers.
   */
  serverInfo: ServerInfo;
}
/**
 * What the server can do, in LSP's words.
 */
export interface ServerCapabilities {
  /**
   * What is beyond LSP.
   */
  experimental: ExperimentalCapabilities;
  /**
   * Which document notifications it wants.
   */
  textDocumentSync: TextDocumentSync;
}
/**
 * Which document notifications a server wants.
 */
export interface TextDocumentSync {
  /**
   * `didChange`: 2, incremental.
   */
  change: number;
  /**
   * `didOpen` and `didClose`.
   */
  openClose: boolean;
  /**
   * `didSave`: `true`, or an object with `includeText`.
   */
  save: unknown;
}
/**
 * Who a server is.
 */
export interface ServerInfo {
  /**
   * `reminderd`.
   */
  name: string;
  /**
   * The build's version.
   */
  version: string;
}
/**
 * `job/ended`: a background job of the scope ended.
 */
export interface JobEndedParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The job's id or name.
   */
  job: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * How it ended, as the client names it.
   */
  state: string;
  /**
   * What it says for itself.
   */
  summary?: string | null;
}
/**
 * The size that `message.content` may have, its tags included. Each member is a bound of its
 * own; all of them hold.
 */
export interface Limit {
  /**
   * In bytes of UTF-8.
   */
  bytes?: number | null;
  /**
   * In characters (Unicode scalar values).
   */
  chars?: number | null;
  /**
   * In estimated tokens.
   */
  tokens?: number | null;
  /**
   * In UTF-16 code units.
   */
  utf16?: number | null;
}
/**
 * Lines of a file, from 1, both ends included.
 */
export interface LineRange {
  /**
   * The last line.
   */
  end: number;
  /**
   * The first line.
   */
  start: number;
}
/**
 * `mention/add`: the person pointed at something.
 */
export interface MentionAddParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * Its content; absent lets the daemon read it.
   */
  content?: string | null;
  /**
   * What sort of thing.
   */
  kind: MentionKind;
  /**
   * The lines of a file that are meant; absent for all.
   */
  range?: LineRange | null;
  /**
   * Why it was rejected, if it was.
   */
  rejected?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * Which one: a path, URI or name.
   */
  target: string;
}
/**
 * `mode/set`: the permission mode.
 */
export interface ModeSetParams {
  /**
   * `ask`, `edits`, `full-auto`, `plan`, or a name of the client's own.
   */
  mode: string;
  /**
   * Whether it holds for one request only.
   */
  override?: boolean | null;
  /**
   * The session's id.
   */
  session: string;
}
/**
 * `reminder/observe`: an event of the open turn, coalesced by key.
 */
export interface ObserveParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * What the model reads.
   */
  body: string;
  /**
   * What coalesces: a later event under the same key replaces this one and goes last.
   */
  key: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The turn that the event belongs to; another one than the open one is refused.
   */
  turn?: string | null;
  /**
   * The entry's type, as the client names it.
   */
  type: string;
}
/**
 * A skill that lies dormant.
 */
export interface OfferedSkill {
  /**
   * Globs in gitignore style, relative to the root.
   */
  globs: string[];
  /**
   * Its name.
   */
  name: string;
  /**
   * Whether the model can see it already, so that it needs no telling.
   */
  visible?: boolean | null;
}
/**
 * `patch/revised`: the person edited a patch before it was applied.
 */
export interface PatchRevisedParams {
  /**
   * The session's id.
   */
  session: string;
  /**
   * What was changed.
   */
  summary: string;
}
/**
 * `plan/set`: where planning stands.
 */
export interface PlanSetParams {
  /**
   * Where the plan can be read.
   */
  address?: string | null;
  /**
   * The plan's text.
   */
  content?: string | null;
  /**
   * Whether this request may only plan.
   */
  directive?: boolean | null;
  /**
   * The episode's id; without one an episode lasts while the state stays `active`.
   */
  episode?: string | null;
  /**
   * The session's id.
   */
  session: string;
  /**
   * Where planning stands.
   */
  state: PlanState;
  /**
   * Whether the accepted plan still awaits verification.
   */
  verificationPending?: boolean | null;
}
/**
 * A name in a pool.
 */
export interface PoolName {
  /**
   * What it is, told when it is added.
   */
  description?: string | null;
  /**
   * The name, which alone decides whether something changed.
   */
  name: string;
}
/**
 * `pool/set`: the names that a pool holds now.
 */
export interface PoolSetParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * Whether these count as told.
   */
  baseline?: boolean | null;
  /**
   * All of its names, in any order; `null` when they are not known now.
   */
  names: PoolName[] | null;
  /**
   * The pool: `agents`, `tools`, `skills`, or a name of the client's own.
   */
  pool: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `reminderd/problem`: a notification could not be carried out and changed nothing.
 */
export interface ProblemParams {
  /**
   * The code that it would have been answered with, as a request.
   */
  code: number;
  /**
   * How many problems of this code came within the same second and were not sent.
   */
  leftOut?: number | null;
  /**
   * The message that it would have been answered with.
   */
  message: string;
  /**
   * The notification's method.
   */
  method: string;
}
/**
 * `textDocument/publishDiagnostics`, as an LSP server sends it.
 */
export interface PublishDiagnosticsParams {
  /**
   * The checker's name, beyond LSP; without it one checker per client name.
   */
  checker?: string | null;
  /**
   * What was found, each as in LSP.
   */
  diagnostics: unknown[];
  /**
   * The file.
   */
  uri: string;
  /**
   * The version that was checked.
   */
  version?: number | null;
}
/**
 * How much is waiting to be told.
 */
export interface QueueLengths {
  /**
   * In the session's pending queue.
   */
  pending: number;
  /**
   * Staged entries of the open turn.
   */
  staged: number;
  /**
   * Turn events of the open turn.
   */
  turnEvents: number;
}
/**
 * Which of a client's records were taken.
 */
export interface RecordsReport {
  /**
   * Ids of the records that history now holds.
   */
  accepted: string[];
  /**
   * The others.
   */
  rejected: RejectedRecord[];
}
/**
 * A record that was not taken.
 */
export interface RejectedRecord {
  /**
   * Its id, or its place in the list (`"#3"`) when it has none.
   */
  id: string;
  /**
   * Why, in one sentence.
   */
  reason: string;
}
/**
 * `reminder/release`: the message never came to be.
 */
export interface ReleaseParams {
  /**
   * Why, for logs.
   */
  reason?: string | null;
  /**
   * The token of the WAIT.
   */
  token: string;
}
/**
 * The answer to `reminder/release`.
 */
export interface ReleaseResult {
  /**
   * Whether this call released it; `false` when it was not open.
   */
  released: boolean;
}
/**
 * A reminder of the user's own. Which members belong together is told in `SPEC.md`, "Forms".
 */
export interface ReminderForm {
  /**
   * What it says of names that entered the pool: a template.
   */
  added?: string | null;
  /**
   * The names of the pool that count as told from the start; absent announces all of it.
   */
  baseline?: string[] | null;
  /**
   * What it says: a template.
   */
  body?: string | null;
  /**
   * Whether the client computes its body (`reminder/compute`).
   */
  client?: boolean | null;
  /**
   * It speaks when one of these matches a path touched in this turn, relative to the root.
   */
  globs?: string[] | null;
  /**
   * The reminder's id, its own on the roster.
   */
  id: string;
  /**
   * The short name shown in a row; the id when absent.
   */
  label?: string | null;
  /**
   * Its place in the message; the roster's when absent.
   */
  lane?: Lane | null;
  /**
   * How often it speaks in a session at most, from 1; absent means no limit.
   */
  maxPerSession?: number | null;
  /**
   * How often it speaks in a turn at most, from 1; absent means no limit.
   */
  maxPerTurn?: number | null;
  /**
   * How often it speaks; its sort decides when absent.
   */
  policy?: PolicyForm | null;
  /**
   * The pool whose changes it announces.
   */
  pool?: string | null;
  /**
   * What is kept first when a budget or limit bites: higher; 0 when absent.
   */
  priority?: number | null;
  /**
   * What it says of names that left the pool: a template.
   */
  removed?: string | null;
  /**
   * It is silent unless the scope has this tool.
   */
  requiresTool?: string | null;
  /**
   * Which conversations have it; the root alone when absent.
   */
  scopes?: ReminderScope[] | null;
  /**
   * It speaks when a finished call of this turn matches.
   */
  tool?: ToolPattern | null;
  /**
   * When it speaks: an expression over state.
   */
  when?: string | null;
}
/**
 * A pattern over finished tool calls; each member that is there must match.
 */
export interface ToolPattern {
  /**
   * A pattern over the call's input.
   */
  input?: string | null;
  /**
   * A pattern over the tool's name.
   */
  name?: string | null;
  /**
   * Whether the call succeeded.
   */
  ok?: boolean | null;
}
/**
 * `roster/configure`: switch and retune kinds, from the next WAIT on.
 */
export interface RosterConfigureParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * Switches and settings by kind, merged into those in force.
   */
  kinds: KindSwitches;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `roster/register`: add a reminder, or replace the one with its id.
 */
export interface RosterRegisterParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The reminder.
   */
  reminder: ReminderForm;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `roster/remove`: take a registered reminder away and forget what it told.
 */
export interface RosterRemoveParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The reminder's id.
   */
  id: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * The answer to `roster/remove`, when it is sent as a request.
 */
export interface RosterRemoveResult {
  /**
   * Whether there was one.
   */
  removed: boolean;
}
/**
 * A row of the answer to `roster/list`, of `session/open` and of `session/fork`.
 */
export interface RosterRow {
  /**
   * Whether it can speak at all.
   */
  enabled: boolean;
  /**
   * The reminder's id; a built-in one's is its kind's name.
   */
  id: string;
  /**
   * Its kind.
   */
  kind: string;
  /**
   * Its policy, for people.
   */
  policy: string;
  /**
   * Who put it there.
   */
  source: RosterSource;
}
/**
 * A conversation: a session's root, or one of its agents. Written flat into the params.
 */
export interface Scope {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `section/set`: what a named section says now.
 */
export interface SectionSetParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * Its complete contents; `null` when it has none.
   */
  content?: string | null;
  /**
   * The section's name.
   */
  section: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * Whether it is there; `present` with content and `absent` without, when not said.
   */
  state?: SectionState | null;
}
/**
 * `session/close`: this session is done.
 */
export interface SessionCloseParams {
  /**
   * Whether everything stored about it is erased.
   */
  forget?: boolean | null;
  /**
   * The session's id.
   */
  session: string;
}
/**
 * `session/fork`: begin a session from another one's history.
 */
export interface SessionForkParams {
  /**
   * The id of the new session.
   */
  into: string;
  /**
   * What making the worktree could and could not restore.
   */
  report?: ForkReport | null;
  /**
   * The session to copy from.
   */
  session: string;
  /**
   * The last record to copy; absent for all of history.
   */
  through?: string | null;
  /**
   * The worktree in which the fork works, if it has its own.
   */
  worktree?: ForkWorktree | null;
}
/**
 * `session/open`: create, restore or join a session.
 */
export interface SessionOpenParams {
  /**
   * Globs of files whose content is never shown.
   */
  deny?: string[] | null;
  /**
   * What the client's host does.
   */
  host?: HostForm | null;
  /**
   * Switches and settings by kind; on a live session merged, later wins.
   */
  kinds?: KindSwitches | null;
  /**
   * The session's bookkeeping directories, which are never watched.
   */
  own?: string[] | null;
  /**
   * The profile to start from: one of `profiles` in the reply to `initialize`.
   */
  profile?: string | null;
  /**
   * The injection records that the client kept, oldest first. Absent: what the daemon has
   * stored stands. Empty: history holds nothing.
   *
   * They are read one by one as [`InjectionRecord`](crate::record::InjectionRecord), so that
   * a bad one is rejected alone.
   */
  records?: unknown[] | null;
  /**
   * The client's own reminders; on a live session merged by id, later wins.
   */
  reminders?: ReminderForm[] | null;
  /**
   * The workspace directory, as a `file:` URI or an absolute path.
   */
  root?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * Whether the workspace's own configuration is trusted; decides before `initialize`.
   */
  trusted?: boolean | null;
}
/**
 * The answer to `session/open` and `session/fork`.
 */
export interface SessionOpenResult {
  /**
   * What became of the client's records.
   */
  records: RecordsReport;
  /**
   * The root's roster, in order.
   */
  roster: RosterRow[];
  /**
   * The session's id.
   */
  session: string;
  /**
   * Where its state came from.
   */
  state: OpenState;
  /**
   * Ids from the workspace's configuration that were left out because it is not trusted.
   */
  untrusted: string[];
}
/**
 * The answer to `session/state`: everything that the daemon believes about a scope.
 *
 * It is for people and for tests; the members that are plain JSON may grow.
 */
export interface SessionState {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The session's agents, each an object with at least its path as `agent`.
   */
  agents: unknown[];
  /**
   * What telling may cost the scope.
   */
  budget?: BudgetState;
  /**
   * What was counted since the scope began.
   */
  counters: Counters;
  /**
   * The files that the scope edited in its turn, with what checkers said of them since.
   */
  diagnostics: EditedFileState[];
  /**
   * The facts by name.
   */
  facts: {
    [k: string]: unknown;
  };
  /**
   * The files that the session watches.
   */
  files: WatchedFilesState;
  /**
   * The goal and what was charged to it; `null` when there is none.
   */
  goal: unknown;
  /**
   * The permission mode; `null` until the first `mode/set`.
   */
  mode: string | null;
  /**
   * What else a person should know, a sentence each.
   */
  notes: string[];
  /**
   * How many tokens of the scope are open.
   */
  openTokens: number;
  /**
   * The plan, as last set; `null` when there is none.
   */
  plan: unknown;
  /**
   * The pools by name.
   */
  pools: {
    [k: string]: unknown;
  };
  /**
   * The profile in force.
   */
  profile: string;
  /**
   * How much is waiting to be told.
   */
  queues: QueueLengths;
  /**
   * The workspace directory.
   */
  root: string | null;
  /**
   * The sections by name.
   */
  sections: {
    [k: string]: unknown;
  };
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * How many values were skipped because this build does not know them, by where they stood
   * (`"task.status"`).
   */
  skipped: {
    [k: string]: number;
  };
  /**
   * What telling each kind has cost the scope so far, by kind.
   */
  spent?: {
    [k: string]: Spent;
  } | null;
  /**
   * The session's tasks.
   */
  tasks: Task[];
  /**
   * Whether the workspace's own configuration is trusted.
   */
  trusted: boolean;
  /**
   * The open turn.
   */
  turn: TurnState | null;
  /**
   * The context's use, as last reported; `null` when unknown.
   */
  usage: unknown;
}
/**
 * The files that a session watches.
 */
export interface WatchedFilesState {
  /**
   * How many contents are kept to show differences from.
   */
  contents: number;
  /**
   * How many paths are watched no more because there were too many.
   */
  dropped: number;
  /**
   * How many paths are watched, counted once for each scope.
   */
  watched: number;
  /**
   * How well the daemon hears of changes; `null` when it does not listen.
   */
  watcher: WatcherState | null;
}
/**
 * How well a daemon hears of changes, over all of its sessions. What it does not hear of it finds by
 * comparing.
 */
export interface WatcherState {
  /**
   * Why files are compared without the help of events; `null` where events are heard of all.
   */
  degraded: string | null;
  /**
   * How many directories hold watched files.
   */
  directories: number;
  /**
   * In how many of them changes are heard.
   */
  heard: number;
  /**
   * How often events came too late to be waited for.
   */
  late: number;
  /**
   * How often events were lost, so that everything was compared.
   */
  rescans: number;
}
/**
 * A task.
 */
export interface Task {
  /**
   * The ids of tasks that must be completed first.
   */
  blockedBy?: string[] | null;
  /**
   * The ids of tasks that wait for this one.
   */
  blocks?: string[] | null;
  /**
   * More about it; never told.
   */
  description?: string | null;
  /**
   * Its id: the client's own string, one list a session.
   */
  id: string;
  /**
   * The path of the agent that owns it; the scope's own when absent.
   */
  owner?: string | null;
  /**
   * How far it is.
   */
  status: TaskStatus;
  /**
   * What it is about, in a line.
   */
  subject: string;
}
/**
 * An open turn.
 */
export interface TurnState {
  /**
   * The turn's id.
   */
  id: string;
  /**
   * Which turn of the scope it is, from 1.
   */
  ordinal: number;
}
/**
 * A row of the answer to `session/list`.
 */
export interface SessionSummary {
  /**
   * When a message last named it, in milliseconds since the Unix epoch.
   */
  lastActive: number;
  /**
   * How many tokens are open, over all its scopes.
   */
  openTokens: number;
  /**
   * Its workspace directory, if it has one.
   */
  root: string | null;
  /**
   * The session's id.
   */
  session: string;
  /**
   * Whether it is in memory.
   */
  state: SessionLife;
  /**
   * The root's open turn.
   */
  turn: string | null;
}
/**
 * `$/setTrace`, as in LSP; taken and ignored.
 */
export interface SetTraceParams {
  /**
   * `off`, `messages` or `verbose`.
   */
  value: string;
}
/**
 * `skill/attach`: a skill is part of the conversation now.
 */
export interface SkillAttachParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * What the model reads.
   */
  body: string;
  /**
   * Its name.
   */
  name: string;
  /**
   * The skills that it needs, which are told first.
   */
  requires?: AttachedSkill[] | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `skill/offer`: skills that lie dormant until a matching path is touched.
 */
export interface SkillOfferParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The skills.
   */
  skills: OfferedSkill[];
}
/**
 * `reminder/stage`: one entry for the next WAIT of this turn.
 */
export interface StageParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * What the model reads.
   */
  body: string;
  /**
   * The member that it is about.
   */
  key?: string | null;
  /**
   * The short name shown in a row; the type when absent.
   */
  label?: string | null;
  /**
   * Its place in the message: `mention`, `skill`, `compaction` or `steering`.
   */
  lane?: Lane | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The entry's type, as the client names it.
   */
  type: string;
}
/**
 * `reminderd/surroundings`: what a recording gives a deterministic daemon that plays it, in place of
 * its machine. Each member holds from the next message on. Their insides are the recording build's
 * own, and no client's business.
 */
export interface SurroundingsParams {
  /**
   * The number of a client that is gone.
   */
  closed?: number | null;
  /**
   * What stands in configuration files; sessions take it over at once.
   */
  configuration?: unknown;
  /**
   * The client that the messages from here on come from: its number and what it said of itself
   * in `initialize`.
   */
  connection?: unknown;
  /**
   * What was kept of the session before the recording began.
   */
  ledger?: unknown;
  /**
   * The randomness of the next WAIT: its token and the id of its record.
   */
  random?: unknown;
  /**
   * What looks at files find.
   */
  seen?: unknown[] | null;
  /**
   * Whether the next request is not answered before it is cancelled.
   */
  unanswered?: boolean | null;
}
/**
 * `task/put`: write one task.
 */
export interface TaskPutParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The task, whole.
   */
  task: Task;
}
/**
 * `task/remove`: take one task away.
 */
export interface TaskRemoveParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The task's id.
   */
  id: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `task/replace`: write the whole list.
 */
export interface TaskReplaceParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The tasks; an empty or equal list is a write as well.
   */
  tasks: Task[];
}
/**
 * `tool/begin`: a tool call starts.
 */
export interface ToolBeginParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The call's id: the client's own string.
   */
  call: string;
  /**
   * What the model passed: any JSON.
   */
  input?: unknown;
  /**
   * The tool's name.
   */
  name: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `tool/end`: a tool call is over.
 */
export interface ToolEndParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The call's id.
   */
  call: string;
  /**
   * The tool's name.
   */
  name: string;
  /**
   * Whether it succeeded.
   */
  ok: boolean;
  /**
   * What came back: any JSON.
   */
  output?: unknown;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}
/**
 * `turn/begin`: a user-level exchange begins.
 */
export interface TurnBeginParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The user's message, for rules that look at it.
   */
  prompt?: string | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The turn's id: the client's own string, used once on the scope.
   */
  turn: string;
}
/**
 * `turn/end`: the exchange is over.
 */
export interface TurnEndParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * How it ended.
   */
  outcome: TurnOutcome;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The turn's id.
   */
  turn: string;
}
/**
 * `usage/report`: how full the context is.
 */
export interface UsageReportParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The tokens in use at which compaction starts; present says that it can run.
   */
  compactsAt?: number | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * Tokens that can be used.
   */
  usable: number;
  /**
   * Tokens in use.
   */
  used: number;
}
/**
 * `verifier/started`: the accepted plan is being verified.
 */
export interface VerifierStartedParams {
  /**
   * The session's id.
   */
  session: string;
}
/**
 * The records that a payload holds.
 */
export interface WaitHistory {
  /**
   * Exactly these are in the payload.
   */
  records: string[];
}
/**
 * `reminder/wait`: what should the model be told before the request that is being prepared?
 */
export interface WaitParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * Whether the reply is committed at once, for clients that have no later moment.
   */
  autoCommit?: boolean | null;
  /**
   * The time for slow parts, in milliseconds; 2000 when absent.
   */
  deadlineMs?: number | null;
  /**
   * Which records the payload holds, when the client knows it.
   */
  history?: WaitHistory | null;
  /**
   * How large the message may be; of this and the host's the smaller holds.
   */
  limit?: Limit | null;
  /**
   * The client's own id of the request, for logs.
   */
  request?: string | null;
  /**
   * Where the message will stand.
   */
  seam?: Seam | null;
  /**
   * The session's id: the client's own string.
   */
  session: string;
  /**
   * The turn that the client believes to be open; another one is refused.
   */
  turn?: string | null;
}
/**
 * `reminder/withdraw`: take back what was observed or staged under a key.
 */
export interface WithdrawParams {
  /**
   * The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
   */
  agent?: string | null;
  /**
   * The key.
   */
  key: string;
  /**
   * The session's id: the client's own string.
   */
  session: string;
}

/** What a client asks. */
export interface Requests {
  "edit/settle": { params: EditSettleParams; result: EditSettleResult };
  initialize: { params: InitializeParams; result: InitializeResult };
  "reminder/commit": { params: CommitParams; result: CommitResult };
  "reminder/explain": { params: Scope; result: ExplainResult };
  "reminder/history": { params: HistoryParams; result: HistoryResult };
  "reminder/release": { params: ReleaseParams; result: ReleaseResult };
  "reminder/wait": { params: WaitParams; result: Delivery };
  "reminderd/clock": { params: ClockParams; result: ClockResult };
  "reminderd/surroundings": { params: SurroundingsParams; result: null };
  "roster/list": { params: Scope; result: RosterRow[] };
  "session/close": { params: SessionCloseParams; result: null };
  "session/fork": { params: SessionForkParams; result: SessionOpenResult };
  "session/list": { params: NoParams; result: SessionSummary[] };
  "session/open": { params: SessionOpenParams; result: SessionOpenResult };
  "session/state": { params: Scope; result: SessionState };
  shutdown: { params: NoParams; result: null };
  "task/list": { params: Scope; result: Task[] };
}

/** What a client reports, as a notification or as a request. */
export interface Events {
  "agent/settle": { params: AgentSettleParams; result: null };
  "agent/spawn": { params: AgentSpawnParams; result: null };
  "date/set": { params: DateSetParams; result: null };
  "diagnostic/publish": { params: DiagnosticPublishParams; result: null };
  "edit/begin": { params: EditBeginParams; result: null };
  "edit/end": { params: EditEndParams; result: null };
  "fact/set": { params: FactSetParams; result: null };
  "file/forget": { params: FileForgetParams; result: null };
  "file/read": { params: FileReadParams; result: null };
  "file/wrote": { params: FileWroteParams; result: null };
  "goal/charge": { params: GoalChargeParams; result: null };
  "goal/set": { params: GoalSetParams; result: null };
  "history/cleared": { params: Scope; result: null };
  "history/compacted": { params: HistoryCompactedParams; result: null };
  "history/reported": { params: HistoryReportedParams; result: null };
  "history/rewound": { params: HistoryRewoundParams; result: null };
  "hook/context": { params: HookContextParams; result: null };
  "hook/outcome": { params: HookOutcomeParams; result: null };
  "job/ended": { params: JobEndedParams; result: null };
  "mention/add": { params: MentionAddParams; result: null };
  "mode/set": { params: ModeSetParams; result: null };
  "patch/revised": { params: PatchRevisedParams; result: null };
  "plan/set": { params: PlanSetParams; result: null };
  "pool/set": { params: PoolSetParams; result: null };
  "reminder/acknowledge": { params: AcknowledgeParams; result: null };
  "reminder/enqueue": { params: EnqueueParams; result: null };
  "reminder/observe": { params: ObserveParams; result: null };
  "reminder/stage": { params: StageParams; result: null };
  "reminder/withdraw": { params: WithdrawParams; result: null };
  "roster/configure": { params: RosterConfigureParams; result: null };
  "roster/register": { params: RosterRegisterParams; result: null };
  "roster/remove": { params: RosterRemoveParams; result: RosterRemoveResult };
  "roster/reset": { params: Scope; result: null };
  "section/set": { params: SectionSetParams; result: null };
  "skill/attach": { params: SkillAttachParams; result: null };
  "skill/offer": { params: SkillOfferParams; result: null };
  "task/put": { params: TaskPutParams; result: null };
  "task/remove": { params: TaskRemoveParams; result: null };
  "task/replace": { params: TaskReplaceParams; result: null };
  "textDocument/didChange": { params: DidChangeParams; result: null };
  "textDocument/didClose": { params: DidCloseParams; result: null };
  "textDocument/didOpen": { params: DidOpenParams; result: null };
  "textDocument/didSave": { params: DidSaveParams; result: null };
  "textDocument/publishDiagnostics": { params: PublishDiagnosticsParams; result: null };
  "tool/begin": { params: ToolBeginParams; result: null };
  "tool/end": { params: ToolEndParams; result: null };
  "turn/begin": { params: TurnBeginParams; result: null };
  "turn/end": { params: TurnEndParams; result: null };
  "usage/report": { params: UsageReportParams; result: null };
  "verifier/started": { params: VerifierStartedParams; result: null };
  "workspace/didChangeWatchedFiles": { params: DidChangeWatchedFilesParams; result: null };
}

/** What a client says and is never answered. */
export interface Notifications {
  "$/cancelRequest": { params: CancelParams };
  "$/setTrace": { params: SetTraceParams };
  exit: { params: NoParams };
  initialized: { params: NoParams };
}

/** What the daemon asks. */
export interface ServerRequests {
  "reminder/compute": { params: ComputeParams; result: ComputeResult };
}

/** What the daemon tells unasked. */
export interface ServerNotifications {
  "file/changed": { params: FileChangedParams };
  "reminderd/problem": { params: ProblemParams };
}
