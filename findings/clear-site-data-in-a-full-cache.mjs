// Chromium 156: a response with `Clear-Site-Data: "cache"` reaches its page only after the browser has looked at every entry of
// its cache, whichever site stored it. Firefox 153 does not wait. With 10,000 entries of 50 kB, ten POSTs took 325 to 6901 ms in
// Chromium and 5 to 53 ms in Firefox; with 10,000 of 20 kB, which fit into Chromium's default cache, 274 to 680 ms in Chromium;
// with 1,000 of 20 kB 36 to 133 ms and 7 to 25 ms. Without the header a POST takes a few milliseconds in Chromium, and 4 to 38 in
// Firefox. Measured on two busy cores.
//
// Run: node findings/clear-site-data-in-a-full-cache.mjs [entries] [bytes]
// It fills the cache of a new profile with so many responses of two sites, a quarter of them of the site that clears its cache,
// restarts the browser, and prints how long a POST takes with the header and without it.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { launch } from 'puppeteer-core'

const [entries = 10_000, bytes = 50_000] = process.argv.slice(2).map(Number)
const RUNS = 5
const RESTARTS = 2
const BROWSERS = [
  { browser: 'chrome', executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disk-cache-size=2000000000'] },
  {
    browser: 'firefox',
    executablePath: '/usr/bin/firefox-esr',
    extraPrefsFirefox: { 'browser.cache.disk.smart_size.enabled': false, 'browser.cache.disk.capacity': 2_000_000 },
  },
]

const body = randomBytes(bytes)
let served = 0
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost')
  if (pathname.startsWith('/entry/')) {
    served++
    return response.setHeader('cache-control', 'max-age=31536000').end(body)
  }
  if (pathname === '/clear') response.setHeader('clear-site-data', '"cache"')
  if (pathname !== '/') return response.setHeader('cache-control', 'no-store').writeHead(204).end()
  response.setHeader('content-type', 'text/html').end('<!doctype html><title>page</title>')
})
await once(server.listen(0, '127.0.0.1'), 'listening')
const { port } = server.address()
const own = `http://own.localhost:${port}/`
const other = `http://other.localhost:${port}/`

/** Loads entries of the site of the page into the cache. */
async function fill(page, url, from, to) {
  await page.goto(url)
  await page.evaluate(
    async (from, to) => {
      let next = from
      const load = async () => {
        while (next < to) await (await fetch(`/entry/${next++}`)).arrayBuffer()
      }
      await Promise.all(Array.from({ length: 6 }, load))
    },
    from,
    to,
  )
}

/** How long a POST takes, in milliseconds. */
const time = (page, path) =>
  page.evaluate(async (path) => {
    const startedAt = performance.now()
    await fetch(path, { method: 'POST' })
    return Math.round(performance.now() - startedAt)
  }, path)

for (const options of BROWSERS) {
  const userDataDir = await mkdtemp(join(tmpdir(), 'full-cache-'))
  const start = () => launch({ headless: true, userDataDir, protocolTimeout: 1_200_000, ...options })
  let browser = await start()
  const version = await browser.version()
  let page = await browser.newPage()
  for (const [share, url] of [
    [0.25, own],
    [0.75, other],
  ])
    await fill(page, url, 0, Math.round(entries * share))
  await browser.close()
  const size = execFileSync('du', ['-sm', userDataDir], { encoding: 'utf8' }).split('\t')[0]
  process.stdout.write(`${version}: ${entries} entries of ${bytes} bytes, a profile of ${size} MB\n`)
  for (let restart = 0; restart < RESTARTS; restart++) {
    browser = await start()
    page = await browser.newPage()
    await page.goto(own)
    await time(page, '/plain')
    const plain = []
    const clear = []
    for (let run = 0; run < RUNS; run++) {
      plain.push(await time(page, '/plain'))
      clear.push(await time(page, '/clear'))
    }
    process.stdout.write(`  after a start: without the header ${plain.join(', ')} ms; with it ${clear.join(', ')} ms\n`)
    served = 0
    await fill(page, other, 0, 200)
    if (served > 0) throw new Error(`${served} of 200 entries of the other site were not in the cache`)
    await browser.close()
  }
  await rm(userDataDir, { recursive: true })
}
server.close()
