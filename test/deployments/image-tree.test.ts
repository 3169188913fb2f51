import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { projectFile } from '../support/deployment/files.ts'
import { ALONE } from '../support/server/settings.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const [, STAGE = ''] = /^FROM .* AS modules\n([^]*?)^FROM /m.exec(projectFile('Dockerfile')) ?? []
/** The commands with which the Dockerfile installs the packages, and then removes what is not needed. */
const [INSTALL = '', PRUNE = ''] = [...STAGE.matchAll(/^RUN ((?:.*\\\n)*.*)$/gm)].map(([, command = '']) => command)

/** Whether each package in a folder can be loaded, by name. */
function loadedIn(dir: string): string {
  const code = `
    import { readdirSync } from 'node:fs'
    import { createRequire } from 'node:module'
    const { resolve } = createRequire(process.cwd() + '/here.js')
    const folders = readdirSync('node_modules').filter((name) => !name.startsWith('.'))
    const scoped = (name) => readdirSync('node_modules/' + name).map((inner) => name + '/' + inner)
    for (const name of folders.flatMap((each) => (each.startsWith('@') ? scoped(each) : [each]))) {
      console.log(name, await import(resolve(name)).then(() => 'loaded', ({ code, message }) => code ?? message))
    }`
  return execFileSync(process.execPath, ['--input-type=module', '--eval', code], { cwd: dir, encoding: 'utf8' })
}

/** Composes the folder /app of the image with the commands of the Dockerfile. */
function imageTree(t: Test) {
  const dir = t.testdir({})
  for (const name of ['package.json', 'package-lock.json', 'src', 'client/dist']) {
    cpSync(join(ROOT, name), join(dir, name), { recursive: true })
  }
  const run = (command: string): void => void execFileSync('sh', ['-euc', command], { cwd: dir, stdio: 'ignore' })
  run(INSTALL)
  const before = loadedIn(dir)
  run(PRUNE)
  return { dir, before }
}

await test('The image has no tests, source maps or types of its packages, and each of them loads as before', async (t) => {
  const { dir, before } = imageTree(t)
  t.match(before, /^fastify loaded$/m)
  t.equal(loadedIn(dir), before)
  const names = globSync('node_modules/**/*', { cwd: dir }).filter((name) => !/licen[cs]e[^/]*$/i.test(name))
  t.ok(names.length > 1000)
  t.same(
    names.filter((name) => /\.(?:map|ts|mts|cts|md)$|\/(?:tests?|examples?|benchmarks?)\//.test(name)),
    [],
  )
  t.same(
    names.filter((name) => /\.(?:node|so|dylib|dll|exe)$/.test(name)),
    [],
    'one tree serves each platform',
  )
  const licensed = readdirSync(join(dir, 'node_modules')).filter((name) => /^(?:fastify|ws|undici|jose)$/.test(name))
  for (const name of licensed) t.match(readdirSync(join(dir, 'node_modules', name)).join(), /licen[cs]e/i, name)

  mkdirSync(join(dir, 'site'))
  cpSync(join(dir, 'client/dist/client.js'), join(dir, 'site/index.html'))
  const settings = { ...ALONE, STATIC_DIR: join(dir, 'site'), PUBLIC_FEED: 'shared' }
  const server = await serverProcess(t, settings, { main: join(dir, 'src/main.ts') })
  t.ok(await ready(server))
  const page = await fetch(`http://localhost:${server.port}/`, { headers: { 'accept-encoding': 'gzip' } })
  t.match([page.status, page.headers.get('content-encoding')], [200, 'gzip'])
  t.equal(await page.text(), readFileSync(join(dir, 'client/dist/client.js'), 'utf8'))
  const socket = new BrowserSocket(`ws://localhost:${server.port}/ws/public`, {
    origin: ALONE.PUBLIC_URL,
  })
  await socket.opened()
  socket.socket.terminate()
  t.match(await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text(), /^bff_ready 1$/m)
})
