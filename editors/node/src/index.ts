/** A client of reminderd for programs that call models. README.md shows its use. */
export * from "./client.js";
export {
  GoneError,
  LateError,
  RefusedError,
  type Askable,
  type Patience,
  type Tellable,
} from "./connection.js";
export { describe } from "./health.js";
export type * from "./protocol.js";
export { PROTOCOL_VERSION } from "./protocol.js";
export { contentOf, rowOf } from "./records.js";
export * from "./session.js";
