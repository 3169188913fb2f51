import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test, type Test } from 'tap'
import { createClient } from 'redis'
import { parse } from 'yaml'
import { answers, freePort } from '../../sandbox/listening.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { isLoggedIn, logInThere, tokenEndpoint } from '../support/login/token-endpoint.ts'
import { untilSlow as until } from '../support/time/until.ts'
import { CLIENT_ID, SECRETS } from '../support/server/world.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'

const ROOT = new URL('../..', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8')
const [, ROTATION = ''] = /\n## Rotating secrets\n([^]*?)\n## /.exec(OPERATING_GUIDE) ?? []
/** The shell commands of the three steps in docs/operating/. */
const STEPS = [...ROTATION.matchAll(/```bash\n([^]*?)```/g)].map(([, text = '']) => text)

/** A shell that keeps its state between commands, in a folder with the secrets of make-secrets.sh. */
class Shell {
  readonly dir: string
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>
  #runs = 0

  constructor(t: Test) {
    this.dir = t.testdir({})
    execFileSync(new URL('deploy/make-secrets.sh', ROOT).pathname, [join(this.dir, 'deploy/secrets')], {
      stdio: 'ignore',
    })
    this.#child = spawn('bash', ['--norc'], { cwd: this.dir, stdio: ['pipe', 'pipe', 'inherit'] })
    const { stdout } = this.#child
    if (stdout === null) throw new Error('the shell has no stdout')
    this.#lines = createInterface(stdout)[Symbol.asyncIterator]()
    t.teardown(async () => {
      this.#child.kill('SIGKILL')
      await once(this.#child, 'exit')
    })
  }

  /** Runs these commands. @returns the lines that they print */
  async run(commands: string): Promise<string[]> {
    const end = `end ${++this.#runs}`
    this.#child.stdin?.write(`${commands}\necho '${end}'\n`)
    const printed: string[] = []
    for (;;) {
      const { value, done } = await this.#lines.next()
      if (done === true) throw new Error('the shell has exited')
      if (value === end) return printed
      printed.push(value)
    }
  }

  secret(name: string): string {
    return readFileSync(join(this.dir, 'deploy/secrets', name), 'utf8').trim()
  }
}

/** A Redis that a documented command starts and restarts. */
interface DocumentedRedis {
  readonly name: string
  /** The shell commands that start it in the folder of the secrets. The last one is redis-server. */
  readonly start: (port: number, dir: string) => string
  /** The command that follows each ACL SETUSER. */
  readonly save?: string
  /** Whether it reads its password from `deploy/secrets/redis-password`. */
  readonly readsFile: boolean
  /** The shell command of its health check. */
  readonly healthcheck?: string
}

const BY_HAND = /^redis-server --port 6380[^]*?^CONFIGURATION\n/m.exec(OPERATING_GUIDE)?.[0] ?? ''
const { redis: COMPOSED } = (
  parse(read('docker-compose.yml'), { merge: true }) as {
    services: { redis: { command: string[]; healthcheck: { test: string[] } } }
  }
).services
/** Resolves the variables and paths of the compose file. */
const resolveCompose = (text: string): string =>
  text
    .replaceAll('$$', '$')
    .replaceAll('/run/secrets/', 'deploy/secrets/')
    .replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')

const KINDS: readonly DocumentedRedis[] = [
  {
    name: 'that is started without Docker',
    start: (port) =>
      BY_HAND.replace('6380', String(port)).replace(' &\n', '\n').replace('redis-server', 'exec redis-server'),
    readsFile: true,
  },
  {
    name: 'that docker-compose.yml starts',
    start: (port) =>
      resolveCompose(COMPOSED.command[2] ?? '').replace(
        'redis-server',
        `redis-server --port ${port} --bind 127.0.0.1 --dir deploy/secrets`,
      ),
    readsFile: true,
    healthcheck: resolveCompose(COMPOSED.healthcheck.test[1] ?? ''),
  },
  ...(['CONFIG REWRITE', 'ACL SAVE'] as const).map((save) => ({
    name: `with a configuration file and ${save}`,
    start: (port: number, dir: string) => {
      const [file, acl] = [join(dir, 'redis.conf'), join(dir, 'users.acl')]
      const [password = ''] = readFileSync(join(dir, 'deploy/secrets/redis-password'), 'utf8').split('\n')
      if (!existsSync(file)) {
        const isAcl = save === 'ACL SAVE'
        const own = isAcl ? `aclfile ${acl}` : `requirepass ${password}`
        writeFileSync(file, `port ${port}\nbind 127.0.0.1\ndir ${dir}\nappendonly yes\n${own}\n`)
        if (isAcl) writeFileSync(acl, `user default on ~* &* +@all >${password}\n`)
      }
      return `exec redis-server ${file}`
    },
    save,
    readsFile: false,
  })),
]

/** Starts a Redis on this port. @returns a function that stops it as an operator does */
async function startDocumented(
  t: Test,
  { start }: DocumentedRedis,
  { port, dir }: { port: number; dir: string },
): Promise<() => Promise<void>> {
  const child = spawn('bash', ['-c', start(port, dir)], { cwd: dir, stdio: 'ignore' })
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
  }
  // The folder may be gone by then, and a Redis that cannot save ignores SIGTERM.
  t.teardown(() => void child.kill('SIGKILL'))
  await answers(port)
  return stop
}

/** Whether Redis accepts this password. */
async function accepts(port: number, password: string): Promise<boolean> {
  const url = `redis://:${password}@127.0.0.1:${port}`
  const client = createClient({ url, socket: { reconnectStrategy: false } }).on('error', () => undefined)
  try {
    await client.connect()
    return (await client.ping()) === 'PONG'
  } catch {
    return false
  } finally {
    if (client.isOpen) client.destroy()
  }
}

await test('docs/operating/ describes three steps and the commands that this test needs', (t) => {
  t.equal(STEPS.length, 3)
  t.match(BY_HAND, /--appendonly yes/)
  t.match(ROTATION, /`CONFIG REWRITE`[^]*`ACL SAVE`/)
  t.end()
})

for (const kind of KINDS) {
  await test(`The documented rotation of the password of a Redis ${kind.name} logs no user out, even if Redis restarts`, async (t) => {
    const shell = new Shell(t)
    const port = await freePort()
    const location = { port, dir: shell.dir }
    let stop = await startDocumented(t, kind, location)
    const restart = async (): Promise<void> => {
      await stop()
      stop = await startDocumented(t, kind, location)
    }
    const follow = async (step: number): Promise<void> => {
      const text = (STEPS[step] ?? '').replaceAll('6380', String(port))
      const own = kind.readsFile ? text : text.replaceAll(/^.*deploy\/secrets\/redis-password$/gm, 'true')
      const replies = await shell.run(own.replaceAll(/("ACL SETUSER [^"]*")/g, `$1 '${kind.save ?? 'PING'}'`))
      t.ok(
        replies.every((line) => /^(OK|PONG)$/.test(line)),
        replies.join(', '),
      )
    }
    const instances = await startTwo(t, `redis://:${shell.secret('redis-password')}@127.0.0.1:${port}`)
    const { browser } = instances
    t.ok(await instances.isLoggedInToBoth(browser))
    const old = shell.secret('redis-password')

    await follow(0)
    await restart()
    await instances.untilLoggedIn(browser, 'after a restart between steps 1 and 2')
    await follow(1)
    const [url = ''] = await shell.run('echo "$REDIS_URL"')
    if (kind.healthcheck !== undefined) {
      t.equal(shell.secret('redis-url').replace('redis:6379', `127.0.0.1:${port}`), url)
    }
    await instances.roll(0, url)
    await restart()
    await instances.untilLoggedIn(browser, 'after a restart in the middle of the roll')
    await instances.roll(1, url)
    t.ok(await accepts(port, old))
    await follow(2)
    t.notOk(await accepts(port, old), 'Redis refuses the old password')
    await restart()
    t.notOk(await accepts(port, old), 'Redis refuses the old password after a restart')
    await instances.untilLoggedIn(browser, 'after a restart at the end')
    t.ok(await instances.isLoggedInToBoth(await instances.logIn()), 'other users can log in')
    if (kind.healthcheck !== undefined) {
      const check = kind.healthcheck.replace('redis-cli', `redis-cli -p ${port}`)
      t.same(await shell.run(`${check} && echo healthy`), ['healthy'])
    }
  })
}

/** Two instances on this Redis, and a browser that is logged in. */
async function startTwo(t: Test, redisUrl: string) {
  const endpoint = await tokenEndpoint(t)
  const port = await freePort()
  const settings = {
    PUBLIC_URL: `http://localhost:${port}`,
    AUTH_URL: endpoint.url,
    API_URL: 'http://127.0.0.1:9',
    WS_URL: 'ws://127.0.0.1:9',
    SESSION_SECRETS: SECRETS,
    CLIENT_ID,
  }
  const start = async (ownPort: number, url: string): Promise<ServerProcess> => {
    const server = await serverProcess(t, { ...settings, PORT: String(ownPort), REDIS_URL: url })
    t.ok(await ready(server), 'an instance has started')
    return server
  }
  const servers = [await start(port, redisUrl), await start(await freePort(), redisUrl)]
  const logIn = async (): Promise<JarBrowser> => {
    const browser = new JarBrowser()
    await logInThere({ browser, server: { url: settings.PUBLIC_URL } as never })
    return browser
  }
  /** Whether both instances regard the browser as logged in. */
  const isLoggedInToBoth = async (browser: JarBrowser): Promise<boolean> => {
    const results = servers.map((server) => isLoggedIn(browser, `http://localhost:${server.port}`).catch(() => false))
    return (await Promise.all(results)).every(Boolean)
  }
  return {
    logIn,
    isLoggedInToBoth,
    browser: await logIn(),
    untilLoggedIn: (browser: JarBrowser, when: string): Promise<void> =>
      until(() => isLoggedInToBoth(browser), `the browser is logged in to both instances ${when}`),
    /** Restarts an instance with another address of Redis. */
    async roll(index: number, url: string): Promise<void> {
      const server = servers[index]
      if (server === undefined) throw new Error(`there is no instance ${index}`)
      server.child.kill('SIGTERM')
      await server.exited
      servers[index] = await start(server.port, url)
    },
  }
}
