#!/bin/sh
# Caddy 2.6.2 (Debian 12 and 13): a guess says that `caddy reload` ends a WebSocket for both ends alike, with a close frame 1001. The
# browser gets that. Yet the server behind Caddy gets a frame that is not masked, as if a server had sent it, which RFC 6455 §5.1
# forbids: a protocol error, so that it sees 1006 and an exception where a client has left in order. Caddy 2.11.4 masks the frame.
# A server that logs protocol errors as attacks, or counts them against an address, blames its users for a reload.
set -eu
caddy version | grep -q '^v\{0,1\}2\.6\.2' || { echo 'It needs Caddy 2.6.2 on the PATH.'; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts ws@8.23.0
cat >see.mjs <<'JS'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket, WebSocketServer } from 'ws'

const server = new WebSocketServer({ port: 9300, host: '127.0.0.1' })
const configuration = (version) =>
  writeFileSync('Caddyfile', `{
  admin 127.0.0.1:2019
}
http://localhost:9080 {
  header x-version ${version}
  reverse_proxy 127.0.0.1:9300
}`)
const words = ['--adapter', 'caddyfile', '--config', 'Caddyfile']
const env = { ...process.env, HOME: process.cwd() }
configuration(1)
const caddy = spawn('caddy', ['run', ...words], { stdio: 'ignore', env })
process.on('exit', () => caddy.kill())
for (let tries = 0; !(await fetch('http://localhost:9080/').catch(() => undefined)); tries++) {
  if (tries === 100) throw new Error('caddy does not listen')
  await delay(100)
}
const browser = new WebSocket('ws://localhost:9080/')
const [socket] = await once(server, 'connection')
await once(browser, 'open')
let error = 'none'
socket.on('error', ({ message }) => (error = message))
// Not once(), which rejects at the error.
const closes = [browser, socket].map((end) => new Promise((resolve) => end.on('close', resolve)))
configuration(2)
execFileSync('caddy', ['reload', ...words], { stdio: 'ignore', env })
const [atBrowser, atServer] = await Promise.all(closes)
console.log(`${atBrowser}, ${atServer}, ${error}`)
server.close()
process.exit()
JS
seen=$(node see.mjs)
echo "close at the browser, at the server, and the error there: $seen"
[ "$seen" = '1001, 1006, Invalid WebSocket frame: MASK must be set' ]
