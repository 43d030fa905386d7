// Bundles the extension into dist/, or with --tests the tests into build/, where a stand-in takes the
// place of the editor.
import { build } from "esbuild";
import { copyFileSync } from "node:fs";

const common = { bundle: true, platform: "node", target: "node18", sourcemap: false };

if (process.argv.includes("--tests")) {
  await build({
    ...common,
    entryPoints: ["tests/*.test.ts"],
    outdir: "build",
    outbase: "tests",
    outExtension: { ".js": ".mjs" },
    format: "esm",
    alias: { vscode: "./tests/vscode.ts" },
    // What is bundled and loads modules of Node.js at run time needs the function that modules lack.
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
  });
} else {
  await build({
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    format: "cjs",
    external: ["vscode"],
    minify: true,
  });
  for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    copyFileSync(`../../${licence}`, licence);
  }
}
