/** What the plugin needs of OpenCode's plugin interface, as of OpenCode 1.18. */

/** A part of a message. */
export interface Part {
  id: string;
  sessionID: string;
  messageID: string;
  type: string;
  text?: string;
  synthetic?: boolean;
  metadata?: Record<string, unknown>;
}

/** A message with its parts. */
export interface Message {
  info: { id: string; role: string; sessionID: string };
  parts: Part[];
}

/** OpenCode's own client. */
export interface HostClient {
  session: {
    get(request: { path: { id: string } }): Promise<{ data?: { parentID?: string } | undefined }>;
    messages(request: { path: { id: string } }): Promise<{ data?: Message[] | undefined }>;
    prompt(request: {
      path: { id: string };
      body: {
        noReply: boolean;
        parts: {
          type: "text";
          text: string;
          synthetic: boolean;
          metadata: Record<string, unknown>;
        }[];
      };
    }): Promise<unknown>;
  };
}

/** What OpenCode hands to a plugin. */
export interface Host {
  client: HostClient;
  directory: string;
}

/** Something that happened. */
export interface HostEvent {
  type: string;
  properties: {
    sessionID?: string;
    info?: { id?: string };
    error?: { name?: string };
    todos?: { id?: string; content: string; status: string }[];
  };
}

/** What a plugin listens to. */
export interface Hooks {
  event(input: { event: HostEvent }): Promise<void>;
  "chat.message"(
    input: { sessionID: string; agent?: string },
    output: { message: { id: string }; parts: Part[] },
  ): Promise<void>;
  "tool.execute.before"(
    input: { tool: string; sessionID: string; callID: string },
    output: { args: unknown },
  ): Promise<void>;
  "tool.execute.after"(
    input: { tool: string; sessionID: string; callID: string },
    output: { output?: string } | undefined,
  ): Promise<void>;
  "experimental.chat.messages.transform"(
    input: object,
    output: { messages: Message[] },
  ): Promise<void>;
}
