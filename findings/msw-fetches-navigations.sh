#!/bin/sh
# MSW 3.0.5, Chromium 156: a guess says that its service worker leaves alone what has no handler, and navigations above all, as that
# of MSW 2.9.0 does. Yet since it can answer navigations (mswjs/msw#2721) it passes each on with a fetch of its own, and a server
# sees `Sec-Fetch-Dest: empty` where a user has followed a link (w3c/ServiceWorker#1803). A server that wants `document` for a
# login refuses every login of a page that runs MSW. With a listener before MSW's that stops the event it is "document" again.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts msw-2@npm:msw@2.9.0 msw-3@npm:msw@3.0.5 esbuild@0.28.2 puppeteer-core@25.16.0
mkdir site
for version in 2 3; do
  echo "import { setupWorker } from 'msw-$version/browser'
    globalThis.start = (url) => setupWorker().start({ serviceWorker: { url }, quiet: true }).then(() => undefined)" >"page-$version.js"
  node_modules/.bin/esbuild "page-$version.js" --bundle --format=esm --outfile="site/page-$version.js" --log-level=error
  cp "node_modules/msw-$version/lib/mockServiceWorker.js" "site/worker-$version.js"
done
cat >site/stopped.js <<'JS'
addEventListener('fetch', (event) => event.request.mode === 'navigate' && event.stopImmediatePropagation())
importScripts('/worker-3.js')
JS
cat >see.mjs <<'JS'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { launch } from 'puppeteer-core'

const seen = []
const server = createServer((request, response) => {
  if (request.url === '/login') seen.push(request.headers['sec-fetch-dest'])
  const file = `site${request.url}`
  if (request.url.endsWith('.js') && existsSync(file)) {
    return response.setHeader('content-type', 'text/javascript').end(readFileSync(file))
  }
  response.setHeader('content-type', 'text/html').end('<!doctype html><title>page</title>')
})
await once(server.listen(0, '127.0.0.1'), 'listening')
for (const [version, worker] of [[2, 'worker-2'], [3, 'worker-3'], [3, 'stopped']]) {
  const browser = await launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  const page = await browser.newPage()
  await page.goto(`http://localhost:${server.address().port}/`)
  await page.evaluate(`import('/page-${version}.js').then(() => start('/${worker}.js'))`)
  await Promise.all([page.waitForNavigation(), page.evaluate(`location.assign('/login')`)])
  await browser.close()
}
console.log(seen.join(', '))
server.close()
JS
seen=$(node see.mjs)
echo "Sec-Fetch-Dest of a navigation with MSW 2, with MSW 3, and with MSW 3 behind a listener that stops it: $seen"
[ "$seen" = 'document, empty, document' ]
