import { test } from 'tap'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'

const FILES = {
  'index.html': '<!doctype html><title>home</title><h1>home</h1><script src="/app.js"></script>',
  'app.js': `navigator.serviceWorker.register('/worker.js')
    navigator.serviceWorker.addEventListener('controllerchange', () => document.body.dataset.controlled = '')`,
  'worker.js': `addEventListener('install', () => skipWaiting())
    addEventListener('activate', (event) => event.waitUntil(clients.claim()))
    addEventListener('fetch', (event) => event.respondWith(fetch(event.request)))`,
}

for (const name of browsersOr('chrome')) {
  await test(`GET /deep/link: ${name} gets the index page through a service worker that forwards requests`, async (t) => {
    const { url } = await testServer(t, { ...ALONE, STATIC_DIR: t.testdir(FILES) })
    const page = await (await testWindow(t, name)).newPage()
    await page.goto(url)
    await page.waitForSelector('body[data-controlled]')
    await page.goto(`${url}/deep/link`)
    t.equal(await page.evaluate('navigator.serviceWorker.controller !== null'), true)
    t.equal(await page.evaluate('document.body.innerText.trim()'), 'home')
  })
}
