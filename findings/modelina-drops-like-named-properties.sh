#!/bin/sh
# Modelina 5.10.1 (the generator of AsyncAPI): a guess says that a class keeps every property of its schema, and that of two names which
# become one in camel case, such as account_id and accountId, one is marked, as Modelina does with the words that a language reserves.
# Yet there is one property, of the type of the later one, and the other is lost without a word, in TypeScript and in Java. An
# interface of TypeScript loses it as well. openapi-typescript 7.13.0 has both.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @asyncapi/modelina@5.10.1 openapi-typescript@7.13.0 typescript@5.9.3
cat >make.mjs <<'JS'
import { JavaGenerator, TypeScriptGenerator } from '@asyncapi/modelina'
import openapi, { astToString } from 'openapi-typescript'
const order = { type: 'object', additionalProperties: false, properties: { account_id: { type: 'string' }, accountId: { type: 'integer' } } }
const schema = { $schema: 'http://json-schema.org/draft-07/schema#', $id: 'Order', ...order }
const found = (text, pattern) => [...text.matchAll(pattern)].map(([line]) => line).join(' and ')
for (const [name, generator, pattern] of [
  ['class of TypeScript', new TypeScriptGenerator(), /private \w+\?: \w+/g],
  ['interface of TypeScript', new TypeScriptGenerator({ modelType: 'interface' }), /\w+\?: \w+/g],
  ['class of Java', new JavaGenerator(), /private \w+ \w+/g],
]) {
  const [model] = await generator.generate(schema)
  console.log(`${name}: ${found(model.result, pattern)}`)
}
const types = astToString(
  await openapi({ openapi: '3.1.0', info: { title: 'a', version: '1' }, paths: {}, components: { schemas: { Order: order } } }),
)
console.log(`openapi-typescript: ${found(types, /account\w+\?: \w+/g)}`)
JS
seen=$(node make.mjs)
echo "$seen"
[ "$seen" = 'class of TypeScript: private _accountId?: number
interface of TypeScript: accountId?: number
class of Java: private Integer accountId
openapi-typescript: account_id?: string and accountId?: number' ]
