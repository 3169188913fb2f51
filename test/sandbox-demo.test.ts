import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { freePort } from '../sandbox/listening.ts'
import { runCommand } from './support/sandbox/command.ts'
import { COMPILED } from './support/server/settings.ts'
import { until, within } from './support/time/until.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

await test('npm run demo builds its page, passes DEV_INSECURE_COOKIES on for Safari, and leaves nothing behind', async (t) => {
  const ports = { PORT: '', OPS_PORT: '', PROVIDER_PORT: '', UPSTREAM_PORT: '' }
  for (const name of Object.keys(ports)) Object.assign(ports, { [name]: String(await freePort()) })
  const { PATH = '', HOME = '' } = process.env
  const TMPDIR = t.testdir({})
  const env = { ...COMPILED, PATH, HOME, TMPDIR, DEV_INSECURE_COOKIES: 'true', ...ports }
  const demo = runCommand(t, ['npm', 'run', '--silent', 'demo'], { cwd: ROOT, env })
  await until(() => demo.output.stdout.includes('Open http') || demo.output.stderr !== '')
  t.equal(demo.output.stderr, '')
  const url = `http://localhost:${ports.PORT}`
  for (const file of ['/', '/app.js', '/style.css', '/client.js']) t.equal((await fetch(url + file)).status, 200, file)
  const started = await fetch(`${url}/auth/login`, { redirect: 'manual' })
  const [cookie = ''] = started.headers.getSetCookie()
  t.match(cookie, /^login-/, 'Safari takes no __Host- cookie here')
  t.notMatch(cookie, /secure/i)
  demo.signal('SIGINT')
  await within(demo.exited, 'npm run demo stops')
  t.same(
    (await readdir(TMPDIR)).filter((name) => name.startsWith('demo-page-')),
    [],
  )
})
