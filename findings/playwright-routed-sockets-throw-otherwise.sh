#!/bin/sh
# Playwright 1.65.1, Chromium 156: a guess says that a page cannot tell a WebSocket that page.routeWebSocket() passes on to its server,
# and nothing more, from one without a route. Yet its class is another one: what a browser refuses with the name of a fault
# (InvalidAccessError, InvalidStateError) it refuses with a plain Error, an address with "#" or ftp: it does not refuse at all, and what
# waits to be sent is always 0 bytes. A test of a page that looks at those, or that sends only while little waits, tests something else.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts playwright-core@1.65.1 ws@8.23.0
cat >see.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { chromium } from 'playwright-core'
import { WebSocketServer } from 'ws'

const server = createServer((request, response) => {
  response.setHeader('content-type', 'text/html').end('<!doctype html><title>page</title>')
})
new WebSocketServer({ server })
await once(server.listen(0, '127.0.0.1'), 'listening')
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
for (const isRouted of [false, true]) {
  const page = await browser.newPage()
  if (isRouted) await page.routeWebSocket('**/socket', (route) => void route.connectToServer())
  await page.goto(`http://localhost:${server.address().port}/`)
  const seen = await page.evaluate(async () => {
    const fault = (attempt) => {
      try {
        attempt()
        return 'nothing'
      } catch ({ name }) {
        return name
      }
    }
    const url = `ws://${location.host}/socket`
    const socket = new WebSocket(url)
    const early = fault(() => socket.send('early'))
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    socket.send('x'.repeat(1000))
    const waiting = socket.bufferedAmount
    const [code, fragment, scheme] = [() => socket.close(1012), () => new WebSocket(`${url}#a`), () => new WebSocket('ftp://a.test/')].map(fault)
    return `early send ${early}, close(1012) ${code}, "#" ${fragment}, ftp: ${scheme}, bufferedAmount ${waiting}`
  })
  console.log(`${isRouted ? 'routed' : 'plain'}: ${seen}`)
}
await browser.close()
process.exit()
JS
seen=$(node see.mjs)
echo "$seen"
[ "$seen" = 'plain: early send InvalidStateError, close(1012) InvalidAccessError, "#" SyntaxError, ftp: SyntaxError, bufferedAmount 1000
routed: early send Error, close(1012) Error, "#" nothing, ftp: nothing, bufferedAmount 0' ]
