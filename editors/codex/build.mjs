// Bundles the program into dist/, or with --tests the tests into build/.
import { build } from "esbuild";
import { chmodSync, copyFileSync } from "node:fs";

const common = {
  bundle: true,
  platform: "node",
  target: "node18",
  format: "esm",
  sourcemap: false,
  // What is bundled and loads modules of Node.js at run time needs the function that modules lack.
  banner: {
    js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
  },
};

if (process.argv.includes("--tests")) {
  await build({
    ...common,
    entryPoints: ["tests/*.ts"],
    outdir: "build",
    outbase: "tests",
    outExtension: { ".js": ".mjs" },
  });
} else {
  await build({ ...common, entryPoints: ["src/main.ts"], outfile: "dist/main.js" });
  chmodSync("dist/main.js", 0o755);
  for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    copyFileSync(`../../${licence}`, licence);
  }
}
