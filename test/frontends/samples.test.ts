import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { compile } from '../../client/build.ts'
import { freePort } from '../../sandbox/listening.ts'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { DOCUMENTED_SAMPLES, documentedSample } from '../support/browser/documented-samples.ts'
import { bundled, EXAMPLE_PAGE, examplePage } from '../support/browser/example-page.ts'
import type { RawUpstream } from '../support/upstream/raw-upstream.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'
import { startWorld, API } from '../support/world.ts'

/** The types of React that app.tsx needs. */
const REACT = `declare namespace JSX {
  interface IntrinsicElements {
    main: { children?: unknown }
    p: { children?: unknown }
    a: { href: string; children?: unknown }
    button: { onClick: () => unknown; children?: unknown }
  }
}`
const html = (script: string): string =>
  `<!doctype html><title>page</title><div id="root"></div><script type="module" src="/${script}"></script>`

/** A copy of the example page with samples beside its trading.ts, bundled. `main` uses them. @returns STATIC_DIR */
async function pageWith(t: Test, names: readonly string[], main: string): Promise<string> {
  const samples = names.map((name) => [`src/${name}`, documentedSample(name)] as const)
  return bundled(
    await examplePage(t, { 'index.html': html('src/main.ts'), 'src/main.ts': main, ...Object.fromEntries(samples) }),
  )
}

await test('every sample of docs/frontends.md has a file name, and the TypeScript among them compiles', async (t) => {
  const files: Record<string, string> = { 'src/react.d.ts': REACT }
  for (const { language, name, code } of DOCUMENTED_SAMPLES) {
    if (language === 'bash' || language === 'json') continue
    t.ok(name, `the sample starting with ${code.slice(0, 40)}`)
    if (/^tsx?$/.test(language) && name !== 'vite.config.ts') files[`src/${name}`] = code
  }
  t.equal(Object.keys(files).length, 11)
  const dir = await examplePage(t, files)
  // The types of others may need those of React.
  await t.resolves(compile(['-p', dir, '--jsx', 'preserve', '--skipLibCheck'], dir))
})

await test('vite.config.ts in docs/frontends.md is that of the example page', async (t) => {
  t.equal(documentedSample('vite.config.ts'), await readFile(join(EXAMPLE_PAGE, 'vite.config.ts'), 'utf8'))
})

await test('index.html and price.js of docs/frontends.md show a live price without a bundler', async (t) => {
  const names = ['index.html', 'price.js']
  const STATIC_DIR = t.testdir(Object.fromEntries(names.map((name) => [name, documentedSample(name)])))
  const { server } = await startWorld(t, { settings: { STATIC_DIR } })
  const page = await (await testChromium(t)).newPage()
  await page.goto(server.url)
  await page.locator('output', { hasText: /^\d+\.\d+$/ }).waitFor()
})

await test('app.tsx of docs/frontends.md: a user logs in, sees a live price, and logs out', async (t) => {
  const main = `import { createElement } from 'react'
    import { createRoot } from 'react-dom/client'
    import { App } from './app.tsx'
    createRoot(document.querySelector('#root')).render(createElement(App))`
  const { server } = await startWorld(t, { settings: { STATIC_DIR: await pageWith(t, ['app.tsx'], main) } })
  const page = await (await testChromium(t)).newPage()
  await page.goto(`${server.url}/chart?symbol=R_100`)
  await page.locator('p', { hasText: /^R_100 \d+\.\d+ \(open\)$/ }).waitFor()
  await page.click('text=Log in')
  await sendForm(page)
  await page.click('text=Log out')
  await page.locator('a', { hasText: 'Log in' }).waitFor()
  t.equal(page.url(), `${server.url}/chart?symbol=R_100`)
})

/** Lets the trading service respond with this status line. */
function respondWith(line: string): RawUpstream['answer'] {
  return (_request, socket) => void socket.write(`HTTP/1.1 ${line}\r\nContent-Length: 2\r\n\r\n{}`)
}

await test('transfer.ts of docs/frontends.md asks whether a transfer was made only if that is unknown', async (t) => {
  const main = `import { transfer } from './transfer.ts'
    globalThis.transfer = (wasMade) =>
      transfer({ data: { to_nickname: 'somebody', amount: '1.00', currency: 'USD' } }, async () => wasMade).then(() => 'made', (error) => error.status)`
  const { upstream, server } = await startWorld(t, {
    ...API,
    settings: { STATIC_DIR: await pageWith(t, ['transfer.ts'], main) },
  })
  const page = await (await testChromium(t)).newPage()
  await page.goto(`${server.url}/auth/login`)
  await sendForm(page)
  await page.waitForURL(`${server.url}/`)
  const transfer = (wasMade: boolean): Promise<unknown> =>
    page.evaluate((made) => (globalThis as unknown as { transfer: (made: boolean) => unknown }).transfer(made), wasMade)
  const transfers = (): number => upstream.requests.filter(({ method }) => method === 'POST').length

  upstream.answer = respondWith('200 OK')
  t.equal(await transfer(false), 'made')
  upstream.answer = (_request, socket) => socket.resetAndDestroy()
  t.same([await transfer(true), await transfer(false)], ['made', 502])
  upstream.answer = respondWith('503 Service Unavailable')
  t.equal(await transfer(true), 'made')
  upstream.answer = respondWith('422 Unprocessable Content')
  t.equal(await transfer(true), 422)
  t.equal(transfers(), 5, 'each transfer was sent once')
})

await test('other-origin.ts of docs/frontends.md: a login returns to the other origin, which learns of it', async (t) => {
  const port = await freePort()
  const origin = `http://localhost:${port}`
  const world = await startWorld(t, { settings: { FRONTEND_URL: origin } })
  const server = world.server.url
  const main = `import { client } from './other-origin.ts'
    globalThis.client = client
    const show = () => (document.querySelector('#root').textContent = client.session.get().status)
    client.session.subscribe(show)`
  const code = documentedSample('other-origin.ts').replace('https://bff.example.com', server)
  const files = { 'index.html': html('src/main.ts'), 'src/main.ts': main, 'src/other-origin.ts': code }
  const STATIC_DIR = await bundled(await examplePage(t, files))
  const STATIC_CSP = `default-src 'self'; connect-src ${server} ${server.replace('http', 'ws')}; script-src 'self' ${server}`
  await testServer(t, { ...ALONE, PORT: String(port), STATIC_DIR, STATIC_CSP })

  const page = await (await testChromium(t)).newPage()
  await page.goto(`${origin}/here`)
  await page.locator('#root', { hasText: 'anonymous' }).waitFor()
  type Window = { readonly client: import('../../client/dist/client.js').Client }
  await page.evaluate(() => (globalThis as unknown as Window).client.login())
  await sendForm(page)
  await page.waitForURL(`${origin}/here`)
  await page.locator('#root', { hasText: 'active' }).waitFor()
  const status = await page.evaluate(async () => {
    const { client } = globalThis as unknown as Window
    return (await client.api('/trading/v1/options/accounts')).status
  })
  t.equal(status, 200)
  const loaded = page.evaluate(
    (url) => import(url).then((loaded: object) => Object.keys(loaded)),
    `${server}/client.js`,
  )
  t.ok((await loaded).includes('createClient'), 'client.js can be imported from the server')
})

await test('service-worker.js of docs/frontends.md leaves logins alone', async (t) => {
  const worker = documentedSample('service-worker.js').replace('// …', 'event.respondWith(fetch(event.request)) //')
  const STATIC_DIR = t.testdir({
    'index.html': html('page.js'),
    'page.js': `await navigator.serviceWorker.register('/service-worker.js')
      await navigator.serviceWorker.ready
      document.querySelector('#root').textContent = navigator.serviceWorker.controller ? 'controlled' : 'ready'`,
    'service-worker.js': worker,
  })
  const { server } = await startWorld(t, { settings: { STATIC_DIR } })
  const context = await testChromium(t)
  const page = await context.newPage()
  await page.goto(server.url)
  await page.locator('#root', { hasText: 'ready' }).waitFor()
  await page.reload()
  await page.locator('#root', { hasText: 'controlled' }).waitFor()
  await page.goto(`${server.url}/auth/login`)
  await sendForm(page)
  await page.waitForURL(`${server.url}/`)
  const cookies = (await context.cookies(server.url)).map(({ name }) => name)
  t.ok(cookies.includes('__Host-session'))
})
