#!/bin/sh
# openapi-to-postmanv2 6.3.3 (what Postman imports OpenAPI documents with): a guess says that a call which needs a session cookie and
# a header (`{ session: [], csrf: [] }`, so both) is imported with a `Cookie` header and with that header. Yet of the two only the
# first stays, and a key `in: cookie` becomes a header of the cookie's name, so that a server takes each call for an anonymous one.
# After an import both have to be put right by hand.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts openapi-to-postmanv2@6.3.3
cat >import.mjs <<'JS'
import converter from 'openapi-to-postmanv2'

const key = (where, name) => ({ type: 'apiKey', in: where, name })
const document = {
  openapi: '3.1.0',
  info: { title: 'orders', version: '1' },
  components: { securitySchemes: { session: key('cookie', 'session'), csrf: key('header', 'X-CSRF') } },
  paths: {
    '/orders': { post: { security: [{ session: [], csrf: [] }], responses: { 204: { description: 'Done.' } } } },
  },
}
const collection = await new Promise((resolve, reject) => {
  converter.convertV2({ type: 'json', data: document }, {}, (error, { output, reason }) =>
    output ? resolve(output[0].data) : reject(error ?? reason),
  )
})
const [{ item: [{ request }] }] = collection.item
const { auth, header = [] } = request
const [name, , place] = auth.apikey.map(({ value }) => value)
console.log(`keys: ${name} in ${place}; headers: ${header.map(({ key }) => key).join() || 'none'}`)
JS
seen=$(node import.mjs)
echo "$seen"
[ "$seen" = 'keys: session in header; headers: none' ]
