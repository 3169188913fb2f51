#!/bin/sh
# axios-retry 4.5.0 with axios 1.21.1: a guess says that with the defaults a POST is never sent again, which is how its README is read
# ("a network error or a 5xx error on an idempotent request") and what ky 1.14.0 and got 14.6.0 do. Yet the second half of that
# sentence is about the 5xx alone: any request whose connection breaks is sent again, three times, at once. A connection breaks as well
# after a server has executed an order and before its answer is there, so that one click can make four orders. A 503 to a POST, which
# tests try first, is not repeated. `retryCondition: isIdempotentRequestError` sends no POST twice.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts axios@1.21.1 axios-retry@4.5.0 ky@1.14.0 got@14.6.0
cat >order.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import axios from 'axios'
import axiosRetry, { isIdempotentRequestError } from 'axios-retry'
import got from 'got'
import ky from 'ky'

let executed = 0
const server = createServer(async (request, response) => {
  for await (const _ of request);
  executed++
  if (request.url === '/lost') request.socket.destroy()
  else response.writeHead(503).end()
})
await once(server.listen(0, '127.0.0.1'), 'listening')
const withRetry = (options) => {
  const client = axios.create({ baseURL: `http://127.0.0.1:${server.address().port}`, ...options })
  axiosRetry(client, options)
  return (path) => client.post(path, { amount: 1 })
}
const clients = {
  'axios-retry': withRetry({}),
  'axios-retry with fetch': withRetry({ adapter: 'fetch' }),
  'axios-retry, idempotent requests alone': withRetry({ retryCondition: isIdempotentRequestError }),
  ky: (path) => ky.post(path, { json: { amount: 1 }, prefixUrl: `http://127.0.0.1:${server.address().port}` }),
  got: (path) => got.post(path, { json: { amount: 1 }, prefixUrl: `http://127.0.0.1:${server.address().port}` }),
}
for (const [name, post] of Object.entries(clients)) {
  const counts = []
  for (const path of ['lost', '503']) {
    executed = 0
    await post(path).catch(() => {})
    counts.push(executed)
  }
  console.log(`${name}: ${counts[0]} with a connection that breaks, ${counts[1]} with a 503`)
}
process.exit()
JS
seen=$(node order.mjs)
echo "$seen"
[ "$seen" = 'axios-retry: 4 with a connection that breaks, 1 with a 503
axios-retry with fetch: 4 with a connection that breaks, 1 with a 503
axios-retry, idempotent requests alone: 1 with a connection that breaks, 1 with a 503
ky: 1 with a connection that breaks, 1 with a 503
got: 1 with a connection that breaks, 1 with a 503' ]
