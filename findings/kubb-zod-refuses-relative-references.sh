#!/bin/sh
# Kubb 4.39.3 with its plugin for zod: a guess says that it leaves a format that zod does not know, such as uri-reference
# (RFC 3986, section 4.1: an address with or without an origin), as a plain text. Yet it makes z.string().url() of it, as of
# uri, so that its schema refuses every reference without an origin, such as the relative `type` of a problem, which RFC 9457,
# section 3.1.1, allows. An unknown format such as iri-reference does stay a plain text.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export DO_NOT_TRACK=1
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts zod@4.6.7 esbuild@0.28.2 \
  @kubb/cli@4.39.3 @kubb/core@4.39.3 @kubb/plugin-oas@4.39.3 @kubb/plugin-zod@4.39.3
cat >api.json <<'JSON'
{
  "openapi": "3.1.0", "info": { "title": "a", "version": "1" }, "paths": {},
  "components": { "schemas": {
    "Reference": { "type": "string", "format": "uri-reference" },
    "OtherReference": { "type": "string", "format": "iri-reference" }
  } }
}
JSON
cat >kubb.config.js <<'JS'
import { defineConfig } from '@kubb/core'
import { pluginOas } from '@kubb/plugin-oas'
import { pluginZod } from '@kubb/plugin-zod'
export default defineConfig({ root: '.', input: { path: './api.json' }, output: { path: './made' }, plugins: [pluginOas(), pluginZod()] })
JS
node node_modules/@kubb/cli/bin/kubb.cjs generate >/dev/null
cat >page.ts <<'TS'
import { otherReferenceSchema, referenceSchema } from './made/index.ts'
const is = (schema: typeof referenceSchema, text: string) => schema.safeParse(text).success
console.log(is(referenceSchema, 'https://a.test/problems/b'), is(referenceSchema, '/problems/b'), is(otherReferenceSchema, '/problems/b'))
TS
node_modules/.bin/esbuild page.ts --bundle --format=esm --outfile=page.mjs --log-level=error
seen=$(node page.mjs)
echo "uri-reference with an origin, without one, iri-reference without one: $seen"
[ "$seen" = "true false true" ]
