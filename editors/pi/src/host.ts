/** What the extension needs of pi's extension interface, as of pi 1.6. */

/** An entry of a session's file. */
export interface Entry {
  type: string;
  customType?: string;
  details?: unknown;
}

/** A message that goes to the model and is kept in the session. */
export interface CustomMessage {
  customType: string;
  content: string;
  display: boolean;
  details: unknown;
}

/** What pi hands to each handler. */
export interface Context {
  cwd: string;
  hasUI: boolean;
  ui: {
    notify(message: string, type?: "info" | "warning" | "error"): void;
    setStatus(key: string, text: string | undefined): void;
  };
  sessionManager: {
    getSessionId(): string;
    /** The entries that the model sees: of this branch, and behind the last compaction. */
    buildContextEntries(): Entry[];
  };
  signal?: AbortSignal | undefined;
}

/** The events that are listened to. */
export interface HostEvents {
  session_start: object;
  session_compact: object;
  session_tree: object;
  session_shutdown: object;
  before_agent_start: { messageType: "user" | "custom"; prompt?: string };
  turn_end: {
    toolResults: unknown[];
    outcome: "completed" | "aborted" | "error";
    entries: unknown[];
  };
  agent_settled: { aborted: boolean };
  before_provider_request: { payload: unknown };
  tool_execution_start: { toolCallId: string; toolName: string; args: unknown };
  tool_call: { toolCallId: string; toolName: string; input: unknown };
  tool_execution_end: { toolCallId: string; toolName: string; isError: boolean };
}

/** pi, as an extension sees it. */
export interface Host {
  on<E extends keyof HostEvents>(
    event: E,
    handler: (event: HostEvents[E], context: Context) => unknown,
  ): unknown;
  events: {
    emit(channel: string, data: unknown): void;
    on(channel: string, handler: (data: unknown) => void): unknown;
  };
}
