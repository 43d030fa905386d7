// Bundles the plugin into dist/, or with --tests the tests into build/.
import { build } from "esbuild";
import { copyFileSync } from "node:fs";

const common = {
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  // What is bundled and loads modules of Node.js at run time needs the function that modules lack.
  banner: {
    js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
  },
};

if (process.argv.includes("--tests")) {
  await build({
    ...common,
    entryPoints: ["tests/*.test.ts"],
    outdir: "build",
    outExtension: { ".js": ".mjs" },
  });
} else {
  await build({ ...common, entryPoints: ["src/index.ts"], outfile: "dist/index.js" });
  for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    copyFileSync(`../../${licence}`, licence);
  }
}
