import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { PUBLIC_URL } from '../support/deployment/deployed-balancer.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { COMPILED } from '../support/server/settings.ts'
import { untilSlow as until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'

const skip = enterNamespaces()

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The parts of the repository that the commands use, beside deploy/. */
const USED = ['src', 'sandbox', 'node_modules', 'package.json']

const isOk = async (url: string): Promise<boolean> => (await fetch(url).catch(() => undefined))?.ok === true

await test(
  'The commands of docs/operating/ start three instances without Docker, and a user can log in',
  { skip },
  async (t) => {
    const [, script = ''] = /\*\*Without Docker\*\*[^]*?```bash\n([^]*?)```/.exec(OPERATING_GUIDE) ?? []
    const dir = join(t.testdir({}), 'clone')
    await mkdir(dir)
    for (const name of USED) await symlink(join(ROOT, name), join(dir, name))
    const isSecret = (path: string): boolean => path.startsWith(join(ROOT, 'deploy/secrets'))
    await cp(join(ROOT, 'deploy'), join(dir, 'deploy'), {
      recursive: true,
      filter: (path) => !isSecret(path),
    })
    t.match(script, /^npm ci && /)
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', `${script.replace('npm ci && ', '')}\nwait`], {
      cwd: dir,
      env: { PATH: process.env['PATH'], ...COMPILED },
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    })
    let stderr = ''
    shell.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    t.teardown(async () => {
      if (!t.passing()) t.comment(stderr)
      process.kill(-(shell.pid ?? 0), 'SIGKILL')
      await once(shell, 'exit')
    })

    const certificate = join(dir, 'deploy/secrets/certificate.pem')
    await until(async () => (await readFile(certificate, 'utf8').catch(() => '')).includes('END CERTIFICATE'))
    setDefaultCACertificates([...getCACertificates('default'), await readFile(certificate, 'utf8')])
    for (const port of [9461, 9462, 9463]) await until(() => isOk(`http://127.0.0.1:${port}/readyz`))
    await until(() => isOk(`${PUBLIC_URL}/auth/session`))
    const browser = new JarBrowser()
    await logIn(browser, PUBLIC_URL)
    t.match(await (await browser.fetch('/auth/session')).json(), { authenticated: true })
  },
)
