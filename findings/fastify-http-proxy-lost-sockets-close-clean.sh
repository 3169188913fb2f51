#!/bin/sh
# @fastify/http-proxy 11.6.3 with `websocket: true`: a guess says that a WebSocket whose upstream dies without a close frame ends for
# the browser as a loss does, with 1006, or with 1011 or 1014 for a fault behind a proxy, and that a browser's plain close() is a close
# without a code for upstream too. Yet the proxy adds 3000 to the codes that no frame may carry: the loss is 4006, and `wasClean` is
# true; the plain close is 4005 at upstream, and a browser that is gone 4006. Codes from 4000 on are those of applications, which
# clients take as a decision of the server (RFC 6455, section 7.4.2). A page that connects again after 1006, or unless a close was
# clean, stays without prices; a server that counts closes by code counts every user who leaves in order as a fault.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts fastify@5.12.8 @fastify/http-proxy@11.6.3 ws@8.23.0
cat >see.mjs <<'JS'
import { once } from 'node:events'
import proxy from '@fastify/http-proxy'
import fastify from 'fastify'
import { WebSocket, WebSocketServer } from 'ws'

const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
await once(server, 'listening')
const direct = server.address().port
const app = fastify().register(proxy, { upstream: `http://127.0.0.1:${direct}`, websocket: true })
await app.listen({ port: 0, host: '127.0.0.1' })
const ends = {
  'upstream dies': (browser, upstream) => upstream.terminate(),
  'upstream closes with 1012': (browser, upstream) => upstream.close(1012),
  'the browser closes': (browser) => browser.close(),
  'the browser is gone': (browser) => browser.terminate(),
}
const closed = (socket) => new Promise((resolve) => socket.addEventListener('close', ({ code, wasClean }) => resolve({ code, wasClean })))
for (const [what, end] of Object.entries(ends)) {
  const seen = []
  for (const port of [direct, app.server.address().port]) {
    const browser = new WebSocket(`ws://127.0.0.1:${port}/`)
    const [[upstream]] = await Promise.all([once(server, 'connection'), once(browser, 'open')])
    const both = Promise.all([closed(browser), closed(upstream)])
    end(browser, upstream)
    const [atBrowser, atUpstream] = await both
    seen.push(what.startsWith('upstream') ? `${atBrowser.code}${atBrowser.wasClean ? ' clean' : ''}` : atUpstream.code)
  }
  console.log(`${what}: the other end sees ${seen[0]}, through the proxy ${seen[1]}`)
}
process.exit()
JS
seen=$(node see.mjs)
echo "$seen"
[ "$seen" = 'upstream dies: the other end sees 1006, through the proxy 4006 clean
upstream closes with 1012: the other end sees 1012 clean, through the proxy 1012 clean
the browser closes: the other end sees 1005, through the proxy 4005
the browser is gone: the other end sees 1006, through the proxy 4006' ]
