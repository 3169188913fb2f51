#!/bin/sh
# Firefox 153: a guess says that `new WebSocket()` connects when the page asks for it, so that the page's own backoff decides how soon it is
# back after an outage, as in Chromium 156. Yet each failed attempt makes Firefox hold the next one to that host and port back by itself,
# half as long again each time and a minute at most, in every tab. The socket is CONNECTING meanwhile, and no packet is sent. With the
# server back after eight failures, the ninth attempt opened after 4 to 7 s in Firefox, and so did one of another tab; in Chromium
# both opened at once. A fetch is not held back, and a socket that is closed while it is held back does not count as a failure. A page that
# gives a connection less time than that, and a monitor that measures it, take a server for dead that is well.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund puppeteer-core@25.16.0 ws@8.23.0
cat >measure.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { launch } from 'puppeteer-core'
import { WebSocketServer } from 'ws'

const FAILURES = 8
const BROWSERS = [
  { browser: 'chrome', executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] },
  { browser: 'firefox', executablePath: '/usr/bin/firefox-esr' },
]

const pages = createServer((request, response) => {
  response.setHeader('content-type', 'text/html').end('<!doctype html><title>page</title>')
})
await once(pages.listen(0, '127.0.0.1'), 'listening')

/** How an attempt to connect ends, and after how many milliseconds. */
const attempt = (page, port) =>
  page.evaluate(async (port) => {
    const startedAt = performance.now()
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`)
    const event = await new Promise((resolve) => (socket.onopen = socket.onerror = resolve))
    socket.close()
    return { type: event.type, ms: Math.round(performance.now() - startedAt) }
  }, port)

for (const options of BROWSERS) {
  const reserved = createServer()
  await once(reserved.listen(0, '127.0.0.1'), 'listening')
  const { port } = reserved.address()
  await new Promise((resolve) => reserved.close(resolve))

  const browser = await launch({ headless: true, ...options })
  const url = `http://127.0.0.1:${pages.address().port}/`
  const [page, other] = [await browser.newPage(), await browser.newPage()]
  for (const tab of [page, other]) await tab.goto(url)
  const failed = []
  for (let count = 0; count < FAILURES; count++) failed.push(await attempt(page, port))
  const server = createServer()
  new WebSocketServer({ server })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  const [opened, elsewhere] = await Promise.all([attempt(page, port), attempt(other, port)])
  console.log(
    `${await browser.version()}: failed after ${failed.map(({ ms }) => ms).join(', ')} ms;`,
    `with the server back ${opened.type} after ${opened.ms}, in another tab ${elsewhere.type} after ${elsewhere.ms}`,
  )
  await browser.close()
  server.close()
  const isHeld = [opened, elsewhere].every(({ type, ms }) => type === 'open' && ms > 3000)
  if (isHeld !== (options.browser === 'firefox')) throw new Error('It is otherwise now.')
}
pages.close()
JS
node measure.mjs
