#!/bin/sh
# Orval 8.38.0 and 7.13.2 with the client zod: a guess says that the schema of an object with `properties` and
# `additionalProperties: true` keeps members that it does not name, since `true` allows them and the type that the same Orval
# makes for its client fetch has them. Yet both make a plain z.object(), whose parse() drops them without a word: here the id.
# Kubb 4.39.3 makes .catchall() of the same schema, which keeps them.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export DO_NOT_TRACK=1
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts zod@4.6.7 orval@8.38.0 orval-7@npm:orval@7.13.2 esbuild@0.28.2
cat >api.json <<'JSON'
{
  "openapi": "3.1.0", "info": { "title": "a", "version": "1" },
  "paths": { "/a": { "get": { "operationId": "a", "responses": { "200": { "description": "a", "content": {
    "application/json": { "schema": {
      "type": "object", "properties": { "balance": { "type": "number" } }, "additionalProperties": true
    } } } } } } } }
}
JSON
for version in 8 7; do
  echo "module.exports = { a: { input: './api.json', output: { target: './$version.ts', client: 'zod' } } }" >"$version.config.cjs"
done
node node_modules/orval/dist/bin/orval.mjs --config 8.config.cjs >/dev/null
node node_modules/orval-7/dist/bin/orval.js --config 7.config.cjs >/dev/null
for version in 8 7; do
  cat >"page-$version.ts" <<TS
import * as schemas from './$version.ts'
const schema = Object.values(schemas)[0]
console.log(JSON.stringify(schema.parse({ id: 'A1', balance: 2 })))
TS
  node_modules/.bin/esbuild "page-$version.ts" --bundle --format=esm --outfile="page-$version.mjs" --log-level=error
  kept=$(node "page-$version.mjs")
  echo "Orval $version: {\"id\":\"A1\",\"balance\":2} is parsed as $kept"
  [ "$kept" = '{"balance":2}' ]
done
