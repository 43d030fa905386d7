/** What OpenCode loads. It takes every export for a plugin, so that there is one. */
import { plugin } from "./plugin.js";

export const Reminderd = plugin();
