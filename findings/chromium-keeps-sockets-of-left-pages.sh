#!/bin/sh
# Chromium 156: a guess says that a page with an open WebSocket either leaves the back/forward cache or loses its socket as soon as the user
# goes to another page, so that a server sees it close. Yet the page is kept with its socket: its scripts stand still, but pings of the
# server are answered as if somebody looked at it, so the socket counts among those of the user, and no heartbeat finds out. When the user
# comes back, readyState is OPEN, and what the page sends in `pageshow` reaches the server; then the socket ends with 1006, and the answer
# to that message never arrives. A page that sends an order there is not told what became of it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund puppeteer-core@25.16.0 ws@8.23.0
cat >leave.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { launch } from 'puppeteer-core'
import { WebSocketServer } from 'ws'

const PAGE = `<!doctype html><title>page</title><script>
  events = []
  socket = new WebSocket('ws://' + location.host)
  socket.onopen = () => events.push('open')
  socket.onmessage = ({ data }) => events.push(data)
  socket.onclose = ({ code }) => events.push('close ' + code)
  addEventListener('pageshow', ({ persisted }) => {
    if (!persisted) return
    events.push('back, readyState ' + socket.readyState)
    socket.send('order')
  })
</script>`
const pages = createServer((request, response) => {
  response.setHeader('content-type', 'text/html').end(request.url === '/page' ? PAGE : '<!doctype html><title>other</title>')
})
await once(pages.listen(0, '127.0.0.1'), 'listening')
const server = new WebSocketServer({ server: pages })
const connected = once(server, 'connection')
const until = async (holds, what) => {
  for (let tries = 0; !(await holds()); tries++) {
    if (tries === 600) throw new Error(`still waiting for ${what}`)
    await delay(50)
  }
}
const browser = await launch({ browser: 'chrome', executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
const page = await browser.newPage()
const origin = `http://127.0.0.1:${pages.address().port}`
const read = (expression) => page.evaluate(expression).catch(() => undefined)
await page.goto(`${origin}/page`)
const [socket] = await connected
const seen = []
socket.on('message', (data) => {
  seen.push(`message: ${data}`)
  socket.send('executed')
})
socket.on('close', () => seen.push('close'))
await until(() => read(`events.includes('open')`), 'the socket')
await read(`void (location.href = '/other')`)
await until(async () => (await read('location.pathname')) === '/other', 'the other page')
await delay(2000)
const pong = once(socket, 'pong').then(() => 'answered', () => 'no answer')
socket.ping()
console.log(`2 s after the page was left: ping ${await Promise.race([pong, delay(10_000, 'not answered')])}, server saw ${seen.join(', ') || 'nothing'}`)
await read('history.back()')
await until(() => read(`globalThis.events?.some((each) => each.startsWith('close'))`), 'the end of the socket')
await until(() => seen.some((each) => each === 'close'), 'the end at the server')
console.log(`page: ${(await read('events')).join(', ')}`)
console.log(`server: ${seen.join(', ')}`)
await browser.close()
process.exit()
JS
seen=$(node leave.mjs)
echo "$seen"
[ "$seen" = '2 s after the page was left: ping answered, server saw nothing
page: open, back, readyState 1, close 1006
server: message: order, close' ]
