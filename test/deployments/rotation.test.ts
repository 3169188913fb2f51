import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test, type Test } from 'tap'
import { createClient } from 'redis'
import { parse } from 'yaml'
import { answers, freePort } from '../../sandbox/listening.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { isLoggedIn, logInThere, tokenEndpoint } from '../support/login/token-endpoint.ts'
import { untilSlow as until } from '../support/time/until.ts'
import { CLIENT_ID, testRedis } from '../support/server/world.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'

const ROOT = new URL('../..', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8')
const [, ROTATION = ''] = /\n## Rotating secrets\n([^]*?)\n## /.exec(OPERATING_GUIDE) ?? []
/** The shell commands in docs/operating/: one that shows what processes have, three steps of a list, and three of a password. */
const [SHOW = '', ...COMMANDS] = [...ROTATION.matchAll(/```bash\n([^]*?)```/g)].map(([, text = '']) => dedented(text))
const [LIST_STEPS, STEPS] = [COMMANDS.slice(0, 3), COMMANDS.slice(3)]

function dedented(text: string): string {
  return text.replaceAll(/^ {3}/gm, '')
}

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

await test('docs/operating/ describes twice three steps and the commands that this test needs', (t) => {
  t.match(SHOW, /bff_secret_processes/)
  t.equal(LIST_STEPS.length, 3)
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
    await shell.run(`chmod u+w deploy/secrets/* && sed -i 's/redis:6379/127.0.0.1:${port}/' deploy/secrets/redis-url`)
    const instances = await startTwo(t, shell)
    const { browser } = instances
    t.ok(await instances.isLoggedInToBoth(browser))
    const old = shell.secret('redis-password')

    await follow(0)
    await restart()
    await instances.untilLoggedIn(browser, 'after a restart between steps 1 and 2')
    const present = await instances.untilAlike('REDIS_URL', '1')
    await follow(1)
    await instances.untilAlike('REDIS_URL', '1', present)
    await restart()
    await instances.untilLoggedIn(browser, 'after a restart between steps 2 and 3')
    t.ok(await accepts(port, old))
    await follow(2)
    t.notOk(await accepts(port, old), 'Redis refuses the old password')
    await restart()
    t.notOk(await accepts(port, old), 'Redis refuses the old password after a restart')
    await instances.untilLoggedIn(browser, 'after a restart at the end')
    t.ok(await instances.isLoggedInToBoth(await instances.logIn()), 'other users can log in')
    t.same(instances.closes, [], 'no socket was closed')
    if (kind.healthcheck !== undefined) {
      const check = kind.healthcheck.replace('redis-cli', `redis-cli -p ${port}`)
      t.same(await shell.run(`${check} && echo healthy`), ['healthy'])
    }
  })
}

await test('The documented rotation of SESSION_SECRETS logs no user out and closes no socket', async (t) => {
  const shell = new Shell(t)
  const redis = await testRedis(t)
  await shell.run(`chmod u+w deploy/secrets/* && echo ${redis.url} >deploy/secrets/redis-url`)
  const instances = await startTwo(t, shell)
  const { browser } = instances
  const old = await instances.untilAlike('SESSION_SECRETS', '1')
  await shell.run(LIST_STEPS[0] ?? '')
  const fresh = await instances.untilAlike('SESSION_SECRETS', '2')
  await shell.run(LIST_STEPS[1] ?? '')
  t.equal(await instances.untilAlike('SESSION_SECRETS', '1', old), fresh)
  const later = await instances.logIn()
  t.ok(await instances.isLoggedInToBoth(browser))
  t.same(instances.closes, [], 'no socket was closed')
  await shell.run(LIST_STEPS[2] ?? '')
  await until(async () => (await instances.placesOf('SESSION_SECRETS')).join() === '1,1', 'one secret is left')
  t.ok(await instances.isLoggedInToBoth(later))
  t.notOk(await instances.isLoggedInToBoth(browser), 'what the old secret has signed is worth nothing')
})

/** Two instances with the secrets of this shell, sockets at both, and a browser that is logged in. */
async function startTwo(t: Test, shell: Shell) {
  const endpoint = await tokenEndpoint(t)
  const port = await freePort()
  const settings = {
    PUBLIC_URL: `http://localhost:${port}`,
    AUTH_URL: endpoint.url,
    API_URL: 'http://127.0.0.1:9',
    WS_URL: 'ws://127.0.0.1:9',
    SESSION_SECRETS_FILE: join(shell.dir, 'deploy/secrets/session-secrets'),
    REDIS_URL_FILE: join(shell.dir, 'deploy/secrets/redis-url'),
    CLIENT_ID,
  }
  const start = async (ownPort: number): Promise<ServerProcess> => {
    const server = await serverProcess(t, { ...settings, PORT: String(ownPort) })
    t.ok(await ready(server), 'an instance has started')
    return server
  }
  const servers = [await start(port), await start(await freePort())]
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
  const browser = await logIn()
  const origin = settings.PUBLIC_URL
  const cookie = browser.cookieHeader(new URL(origin), new URL(origin))
  const closes: number[] = []
  for (const server of servers) {
    const { socket } = await new BrowserSocket(`ws://localhost:${server.port}/ws/session`, { origin, cookie }).opened()
    socket.on('close', (code) => closes.push(code))
    t.teardown(() => socket.terminate())
  }
  /** What the documented command shows of a setting: the fingerprint at each place, of each instance. */
  const shown = async (setting: string): Promise<Map<string, string>[]> => {
    const all: Map<string, string>[] = []
    for (const { opsPort } of servers) {
      const lines = await shell.run(SHOW.replace('9461', String(opsPort)))
      const found = lines.map((line) => /setting="(\w+)",place="(\d)",fingerprint="(\w{8})"} 1$/.exec(line))
      all.push(
        new Map(found.flatMap((each) => (each?.[1] === setting ? [[each[2] ?? '', each[3] ?? ''] as const] : []))),
      )
    }
    return all
  }
  return {
    logIn,
    isLoggedInToBoth,
    browser,
    closes,
    placesOf: async (setting: string) => (await shown(setting)).flatMap((each) => [...each.keys()]),
    /** Waits until both instances show the same fingerprint, another one than before. */
    async untilAlike(setting: string, place: string, before?: string): Promise<string> {
      let print: string | undefined
      await until(async () => {
        const [one, other] = (await shown(setting)).map((each) => each.get(place))
        print = one === other ? one : undefined
        return print !== undefined && print !== before
      }, `both instances have the same fingerprint of ${setting} at ${place}`)
      return print ?? ''
    },
    untilLoggedIn: (browser: JarBrowser, when: string): Promise<void> =>
      until(() => isLoggedInToBoth(browser), `the browser is logged in to both instances ${when}`),
  }
}
