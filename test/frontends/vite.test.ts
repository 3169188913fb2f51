import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { answers, freePort } from '../../sandbox/listening.ts'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { EXAMPLE_PAGE } from '../support/browser/example-page.ts'
import { testServer, testWorld } from '../support/server/world.ts'

const run = promisify(execFile)
const PACKAGE = new URL('../../client', import.meta.url).pathname
/** Vite comes from the npm registry, which a run of all tests must not need. */
const skip = process.env['VITE'] === undefined && 'set VITE=1 to download Vite and run this'
/** Options of `env` that run npm without the NODE_OPTIONS that the test runner sets for every process. */
function npm(...options: readonly string[]): string[] {
  return ['-u', 'NODE_OPTIONS', 'npm', ...options]
}

await test('the example page runs and builds with Vite as docs/frontends.md describes', { skip }, async (t) => {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const { server, settings } = await testWorld(t, { settings: { PUBLIC_URL: url } })
  const dir = t.testdir()
  await cp(EXAMPLE_PAGE, dir, { recursive: true })
  const config = await readFile(join(dir, 'vite.config.ts'), 'utf8')
  await writeFile(
    join(dir, 'vite.config.ts'),
    config.replace('5173', String(port)).replace('http://localhost:3000', server.url),
  )
  const { stdout } = await run('env', npm('pack', PACKAGE, '--silent'), { cwd: dir })
  await run('env', npm('install', `./${stdout.trim()}`), { cwd: dir })

  const vite = spawn('env', npm('run', 'dev'), { cwd: dir, stdio: 'ignore', detached: true })
  const exited = once(vite, 'exit')
  t.teardown(async () => {
    process.kill(-(vite.pid ?? 0), 'SIGKILL')
    await exited
  })
  await answers(port)

  const page = await (await testChromium(t)).newPage()
  await page.goto(`${url}/authors/one`)
  await page.locator('#R_100', { hasText: /^\d/ }).waitFor()
  await page.click('#login')
  await sendForm(page)
  await page.locator('#connection', { hasText: 'open' }).waitFor()
  t.equal(page.url(), `${url}/authors/one`)
  const parts = ['/client/orders.js', '/client/series.js']
  for (const path of ['/openapi.json', '/asyncapi.json', '/client.js', ...parts, '/problems/not_found']) {
    const response = await page.request.get(url + path)
    t.ok(response.headers()['x-request-id'], `${path} comes from the server`)
  }

  await run('env', npm('run', 'build'), { cwd: dir })
  const { PUBLIC_URL: _, ...others } = settings
  const built = await testServer(t, { ...others, STATIC_DIR: join(dir, 'dist') })
  await page.goto(`${built.url}/authors/one`)
  await page.locator('#R_100', { hasText: /^\d/ }).waitFor()
})
