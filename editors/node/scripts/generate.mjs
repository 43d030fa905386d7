// Writes src/protocol.ts from the protocol's JSON Schema. With --check it writes nothing and fails
// when the file is not what it would write.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { compile } from "json-schema-to-typescript";
import { format } from "prettier";

const SCHEMA = new URL("../../../protocol/schema/reminderd.schema.json", import.meta.url);
const OUTPUT = new URL("../src/protocol.ts", import.meta.url);

/** Each sort of method, with the name of its table and what the table says of itself. */
const TABLES = [
  ["request", "Requests", "What a client asks."],
  ["event", "Events", "What a client reports, as a notification or as a request."],
  ["notification", "Notifications", "What a client says and is never answered."],
  ["serverRequest", "ServerRequests", "What the daemon asks."],
  ["serverNotification", "ServerNotifications", "What the daemon tells unasked."],
];

/**
 * The schema in the form that gives the plainest types: a reference beside other members keeps its
 * name, and a set of words that may grow keeps its words in an editor's completion.
 */
function plain(node) {
  if (Array.isArray(node)) return node.map(plain);
  if (node === null || typeof node !== "object") return node;
  const { $ref, ...rest } = node;
  const copy = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, plain(value)]));
  if ($ref !== undefined) {
    return Object.keys(copy).length === 0 ? { $ref } : { ...copy, allOf: [{ $ref }] };
  }
  // The compiler would spell out every length of a bounded list.
  delete copy.maxItems;
  if (Object.keys(copy).join() === "description") return { ...copy, tsType: "unknown" };
  const isWord = (choice) => choice.const !== undefined || choice.enum !== undefined;
  if (Array.isArray(copy.anyOf) && copy.anyOf.some(isWord)) {
    copy.anyOf = copy.anyOf.map((choice) =>
      choice.type === "string" && !isWord(choice) ? { ...choice, tsType: "(string & {})" } : choice,
    );
  }
  return copy;
}

/** How a method's params or result are written in TypeScript. */
function written(schema) {
  if (schema === undefined) return "undefined";
  if (schema.$ref !== undefined) return schema.$ref.split("/").at(-1);
  if (schema.type === "array") return `${written(schema.items)}[]`;
  if (schema.type === "null") return "null";
  throw new Error(`no type is known for ${JSON.stringify(schema)}`);
}

function table(methods, kind, name, description) {
  const rows = Object.entries(methods)
    .filter(([, method]) => method.kind === kind)
    .map(([method, { params, result }]) => {
      const members = [`params: ${written(params)}`];
      if (result !== undefined) members.push(`result: ${written(result)}`);
      return `  ${JSON.stringify(method)}: { ${members.join("; ")} };`;
    });
  return `/** ${description} */\nexport interface ${name} {\n${rows.join("\n")}\n}\n`;
}

export async function generate() {
  const schema = JSON.parse(readFileSync(SCHEMA, "utf8"));
  const names = Object.keys(schema.$defs);
  // The compiler starts from one root; an object with a member of each type reaches them all.
  const root = {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, { $ref: `#/$defs/${name}` }])),
    required: names,
    $defs: plain(schema.$defs),
  };
  const types = await compile(root, "Everything", {
    additionalProperties: false,
    bannerComment: "",
    format: false,
  });
  const withoutRoot = types.replace(/^export interface Everything \{\n[^]*?^\}\n/m, "");
  const text = [
    "// Generated from protocol/schema/reminderd.schema.json by `npm run generate`. Do not edit.\n",
    `/** The version of the protocol that these types describe. */`,
    `export const PROTOCOL_VERSION = ${schema.protocolVersion};\n`,
    withoutRoot.trim() + "\n",
    ...TABLES.map(([kind, name, description]) => table(schema.methods, kind, name, description)),
  ].join("\n");
  return format(text, { parser: "typescript", printWidth: 100 });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = await generate();
  if (!process.argv.includes("--check")) {
    writeFileSync(OUTPUT, wanted);
  } else if (readFileSync(OUTPUT, "utf8") !== wanted) {
    console.error("src/protocol.ts is not what the schema says: run `npm run generate`");
    process.exit(1);
  }
}
