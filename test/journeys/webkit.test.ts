import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:tls'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { OTHER } from '../support/browser/account-page.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { documentedSample } from '../support/browser/documented-samples.ts'
import { WebKitWindow } from '../support/browser/webkit.ts'
import { testCa } from '../support/redis/tls.ts'
import { nextEvent } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const IS_LOGGED_IN = `document.querySelector('[data-testid=session-state]')?.dataset.state === 'authenticated'`
const IS_LOGGED_OUT = `document.querySelector('[data-testid=session-state]')?.dataset.state === 'anonymous'`
const WATCH_RETURN = `addEventListener('pageshow', ({ persisted }) => { sessionStorage.isRestored = persisted })`
const LOG_OUT = `fetch('/auth/logout', { method: 'POST', headers: { 'X-CSRF': '1' } })
  .then(({ status }) => { document.title = 'logout ' + status })`

/** A server behind TLS, without which WebKit refuses its cookies, and a window of WebKit. */
async function secureWorld(t: Test, STATIC_DIR: string) {
  const pem = await readFile((await testCa(t)).pemFile)
  const [port, securePort] = [await freePort(), await freePort()]
  const url = `https://localhost:${securePort}`
  const terminator = createServer({ key: pem, cert: pem }, (secure) => {
    const plain = connect(port, '127.0.0.1')
    for (const each of [secure, plain]) each.on('error', () => undefined)
    secure.pipe(plain).pipe(secure)
  }).listen(securePort, '127.0.0.1')
  await nextEvent(terminator, 'listening')
  t.teardown(() => terminator.close())
  const world = await startWorld(t, { port, settings: { STATIC_DIR, PUBLIC_URL: url } })
  return { ...world, url, window: await WebKitWindow.start(t) }
}

async function allow(window: WebKitWindow): Promise<void> {
  await window.is(`Boolean(document.querySelector('[data-action=continue]'))`)
  await window.run(`
    document.querySelector('input[name=email]').value = 'demo@example.test'
    document.querySelector('input[name=password]').value = 'any'
    document.querySelector('[data-action=continue]').click()`)
}

await test('webkit: a login, a price, calls, and a logout of which the other tab learns', async (t) => {
  const { url, window, metric } = await secureWorld(t, DEMO_PAGE)
  await window.goto(`${url}/`)
  await window.is(IS_LOGGED_OUT)
  await window.click('[data-testid=login]')
  await allow(window)
  await window.is(IS_LOGGED_IN)
  await window.is(`document.querySelectorAll('[data-testid=accounts] > *').length > 0`)
  await window.is(`/\\d/.test(document.querySelector('[data-testid=price]').innerText)`)
  t.ok((await metric('bff_relays')).size > 0, 'a socket is open')
  const first = await window.tab()
  await window.newTab()
  await window.goto(`${url}/`)
  await window.is(IS_LOGGED_IN)
  await window.click('[data-testid=logout]')
  await window.is(IS_LOGGED_OUT)
  await window.choose(first)
  await window.is(IS_LOGGED_OUT)
  await window.is(`document.querySelectorAll('[data-testid=accounts] > *').length === 0`)
})

await test('webkit: the user stays logged in after going back and forward in the history', async (t) => {
  const { url, provider, window } = await secureWorld(t, DEMO_PAGE)
  await window.goto(`${url}/`)
  await window.click('[data-testid=login]')
  await allow(window)
  await window.is(IS_LOGGED_IN)
  await window.run('history.back()')
  await window.is(`location.origin === '${provider.url}'`)
  await window.run('history.forward()')
  await window.is(IS_LOGGED_IN)
})

for (const [which, path] of [
  ['the demo page', '/'],
  ['account.js of docs/frontends.md', '/account.html'],
] as const) {
  await test(`webkit: Back after a logout shows the login on ${which}`, async (t) => {
    const folder = path === '/' ? DEMO_PAGE : t.testdir({})
    await writeFile(join(folder, 'other.html'), OTHER)
    if (path !== '/') {
      for (const file of ['account.html', 'account.js']) await writeFile(join(folder, file), documentedSample(file))
    }
    const { url, window, quiet } = await secureWorld(t, folder)
    await window.goto(`${url}/auth/login?return_to=${path}`)
    await allow(window)
    const [account, login] =
      path === '/'
        ? [IS_LOGGED_IN, IS_LOGGED_OUT]
        : [`/: \\d/.test(document.body.innerText)`, `document.body.innerText.includes('Log in')`]
    await window.is(account)
    await window.run(WATCH_RETURN)
    await window.run(`location.href = '/other.html'`)
    await window.is(`location.pathname === '/other.html'`)
    await quiet()
    await window.run(LOG_OUT)
    await window.is(`document.title === 'logout 204'`)
    await window.run('history.back()')
    await window.is(`location.pathname === '${path}'`)
    await window.is(login)
    t.comment(`kept by the browser: ${String(await window.evaluate('sessionStorage.isRestored'))}`)
  })
}
