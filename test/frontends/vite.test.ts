import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { answers, freePort } from '../../sandbox/listening.ts'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { packed, run } from '../support/client/packed.ts'
import { EXAMPLE_PAGE } from '../support/browser/example-page.ts'
import { runNpm } from '../support/sandbox/command.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

/** What a package.json says of the tools of a project. */
interface Tools {
  devDependencies?: Record<string, string>
}

await test('the example page has the versions of Vite and TypeScript that the tests have', async (t) => {
  const [page, own] = (await Promise.all(
    [EXAMPLE_PAGE, '.'].map(async (dir) => JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')) as Tools),
  )) as [Tools, Tools]
  t.match(own.devDependencies, page.devDependencies ?? {})
})

await test('the example page runs and builds with Vite as docs/frontends.md describes', async (t) => {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const ports: Record<string, string> = {}
  for (const name of ['PORT', 'OPS_PORT', 'PROVIDER_PORT', 'UPSTREAM_PORT']) ports[name] = String(await freePort())
  const sandbox = runNpm(t, ['sandbox', '--', '--page', url], ports)
  await until(() => sandbox.output.stdout.startsWith(`Open ${url}. `) || sandbox.output.stderr !== '')
  const dir = t.testdir()
  await cp(EXAMPLE_PAGE, dir, { recursive: true })
  const config = await readFile(join(dir, 'vite.config.ts'), 'utf8')
  await writeFile(
    join(dir, 'vite.config.ts'),
    config.replace('5173', String(port)).replace('localhost:3000', `localhost:${ports['PORT']}`),
  )
  // Vite and TypeScript are those of the repository, of which the folder is a part, so that no registry is needed.
  const { devDependencies: _tools, ...project } = JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')) as Tools
  await writeFile(join(dir, 'package.json'), JSON.stringify(project))
  await run(dir, 'npm', 'install', '--offline', '--no-audit', '--no-fund', (await packed()).tarball)

  const vite = spawn('env', ['-u', 'NODE_OPTIONS', 'npm', 'run', 'dev'], { cwd: dir, stdio: 'ignore', detached: true })
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

  const misnamed = await (await testChromium(t)).newPage()
  await misnamed.goto(`http://127.0.0.1:${port}/authors/one`)
  await until(() => sandbox.output.stdout.includes(`"open":"${url}"`), 'the log tells the right address')
  await misnamed.click('#login')
  await sendForm(misnamed)
  await misnamed.locator('#connection', { hasText: 'open' }).waitFor()
  t.equal(misnamed.url(), `${url}/authors/one`, 'a login leads to the right address')

  await run(dir, 'npm', 'run', 'build')
  const { server } = await startWorld(t, { settings: { STATIC_DIR: join(dir, 'dist') } })
  await page.goto(`${server.url}/authors/one`)
  await page.locator('#R_100', { hasText: /^\d/ }).waitFor()
})
