#!/bin/sh
# react-use-websocket 4.13.0 and VueUse 14.4.0 (useWebSocket): a guess says that a message which was sent before a socket opened
# belongs to the address of that socket, and is dropped when the page changes the address. Yet both keep it in a list of the hook,
# and send it as soon as the socket of the next address opens. A page whose address names a trading account, and whose user changes
# the account while the first socket is still opening, sends the order for one account to the other. Seen in both: "/B: order for
# A". `sendMessage(message, false)` and `send(message, false)` keep nothing.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts ws@8.23.0 jsdom@26.1.0 react@19.3.1 react-dom@19.3.1 \
  react-use-websocket@4.13.0 vue@3.5.45 @vueuse/core@14.4.0
cat >account.mjs <<'JS'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { JSDOM } from 'jsdom'
import { WebSocketServer } from 'ws'

const { window } = new JSDOM('<div id="page"></div>', { url: 'http://localhost' })
const { document, WebSocket, SVGElement } = window
Object.assign(globalThis, { window, document, WebSocket, SVGElement })
globalThis.navigator ??= window.navigator

const seen = []
// The handshake of A takes for ever.
const verifyClient = ({ req }, done) => void (req.url === '/B' && done(true))
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', verifyClient })
server.on('connection', (socket, { url }) => socket.on('message', (message) => seen.push(`${url}: ${message}`)))
await once(server, 'listening')
const address = (account) => `ws://127.0.0.1:${server.address().port}/${account}`

async function react() {
  const { createElement } = await import('react')
  const { createRoot } = await import('react-dom/client')
  const { default: hooks } = await import('react-use-websocket')
  let send
  const Page = ({ account }) => {
    send = hooks.default(address(account)).sendMessage
    return null
  }
  const root = createRoot(document.querySelector('#page'))
  root.render(createElement(Page, { account: 'A' }))
  await sleep(500)
  send('order for A')
  root.render(createElement(Page, { account: 'B' }))
}

async function vue() {
  const { effectScope, ref } = await import('vue')
  const { useWebSocket } = await import('@vueuse/core')
  const url = ref(address('A'))
  const { send } = effectScope().run(() => useWebSocket(url))
  await sleep(500)
  send('order for A')
  url.value = address('B')
}

for (const page of [react, vue]) {
  await page()
  await sleep(1000)
}
console.log(seen.join(', '))
process.exit()
JS
seen=$(node account.mjs)
echo "$seen"
[ "$seen" = '/B: order for A, /B: order for A' ]
