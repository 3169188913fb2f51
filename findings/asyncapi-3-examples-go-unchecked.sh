#!/bin/sh
# @asyncapi/parser 3.6.6: a guess says that an example of a message that breaks the schema of its payload is reported for AsyncAPI 3 as
# it is for AsyncAPI 2, where it is an error. Yet the rule exists for version 2 alone: a document of version 3 with the very same
# message has no error, and its examples may lie. Whoever moves a document to version 3 loses the check without a word.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @asyncapi/parser@3.6.6
cat >parse.mjs <<'JS'
import { Parser } from '@asyncapi/parser'
const price = { type: 'object', properties: { price: { type: 'number' } }, required: ['price'] }
const message = { payload: price, examples: [{ payload: { price: 'many' } }] }
const info = { title: 'a', version: '1' }
const documents = [
  { asyncapi: '2.6.0', info, channels: { prices: { subscribe: { message } } } },
  { asyncapi: '3.0.0', info, channels: { prices: { address: 'prices', messages: { price: message } } } },
]
for (const document of documents) {
  const { diagnostics } = await new Parser().parse(document)
  const errors = diagnostics.filter(({ severity }) => severity === 0).map(({ code }) => code)
  console.log(`${document.asyncapi}: ${errors.join() || 'no error'}`)
}
JS
seen=$(node parse.mjs)
echo "$seen"
[ "$seen" = '2.6.0: asyncapi2-message-examples
3.0.0: no error' ]
