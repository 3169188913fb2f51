#!/bin/sh
# @hey-api/openapi-ts 0.99.0 with its plugin @hey-api/transformers: a guess says that an id of `format: int64`, which the plugin types as
# bigint and turns into one by default, has every digit that the server has sent, since that is what a BigInt is for. Yet the client
# reads the answer with JSON.parse() first and makes the BigInt of the number that is left: 9007199254740993 is 9007199254740992n, an
# order of somebody else's, without a word. Nothing tells a right one from a wrong one afterwards, and ids below 2^53, which tests
# have, are right. The client cannot be given a parser of one's own (hey-api/hey-api#4430).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @hey-api/openapi-ts@0.99.0 typescript@5.9.3 esbuild@0.28.2
cat >openapi.json <<'JSON'
{
  "openapi": "3.1.0",
  "info": { "title": "orders", "version": "1" },
  "paths": {
    "/order": {
      "get": {
        "operationId": "readOrder",
        "responses": { "200": { "description": "an order", "content": { "application/json": { "schema": {
          "type": "object", "required": ["id"], "properties": { "id": { "type": "integer", "format": "int64" } } } } } } }
      }
    }
  }
}
JSON
cat >generate.mjs <<'JS'
import { createClient } from '@hey-api/openapi-ts'
const sdk = { name: '@hey-api/sdk', transformer: true }
await createClient({
  input: 'openapi.json',
  output: 'client',
  logs: { level: 'silent' },
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/transformers', sdk],
})
JS
node generate.mjs >log 2>&1 || { cat log; exit 1; }
node_modules/.bin/esbuild client/index.ts --bundle --format=esm --platform=neutral --outfile=client.mjs --log-level=error
cat >read.mjs <<'JS'
import { readOrder } from './client.mjs'
for (const id of ['42', '9007199254740991', '9007199254740993', '1234567890123456789']) {
  const fetch = async () => new Response(`{"id":${id}}`, { headers: { 'content-type': 'application/json' } })
  const { data } = await readOrder({ baseUrl: 'http://localhost', fetch })
  console.log(`${id} is ${typeof data.id} ${data.id}`)
}
JS
grep -o 'id: bigint' client/types.gen.ts
seen=$(node read.mjs)
echo "$seen"
[ "$seen" = '42 is bigint 42
9007199254740991 is bigint 9007199254740991
9007199254740993 is bigint 9007199254740992
1234567890123456789 is bigint 1234567890123456800' ]
