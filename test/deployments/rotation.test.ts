import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test, type Test } from 'tap'
import { createClient } from 'redis'
import { parse } from 'yaml'
import { answers, freePort } from '../../sandbox/listening.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server-process.ts'
import { isLoggedIn, logInThere, tokenEndpoint } from '../support/token-endpoint.ts'
import { untilSlow as until } from '../support/until.ts'
import { CLIENT_ID, SECRETS } from '../support/world.ts'

const ROOT = new URL('../..', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8')
const GUIDE = read('docs/operating.md')
const [, ROTATION = ''] = /\n## Rotating secrets\n([^]*?)\n## /.exec(GUIDE) ?? []
/** The three steps as operating.md has them. */
const STEPS = [...ROTATION.matchAll(/```bash\n([^]*?)```/g)].map(([, text = '']) => text)

/** A shell that stays, as an operator's does, in a folder with the secrets of make-secrets.sh. */
class Shell {
  readonly dir: string
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>
  #ended = 0

  constructor(t: Test) {
    this.dir = t.testdir({})
    execFileSync(new URL('deploy/make-secrets.sh', ROOT).pathname, [join(this.dir, 'deploy/secrets')], {
      stdio: 'ignore',
    })
    this.#child = spawn('bash', ['--norc'], { cwd: this.dir, stdio: ['pipe', 'pipe', 'inherit'] })
    const { stdout } = this.#child
    if (stdout === null) throw new Error('a shell has an output')
    this.#lines = createInterface(stdout)[Symbol.asyncIterator]()
    t.teardown(async () => {
      this.#child.kill('SIGKILL')
      await once(this.#child, 'exit')
    })
  }

  /** What the commands print. */
  async run(commands: string): Promise<string[]> {
    const end = `end ${++this.#ended}`
    this.#child.stdin?.write(`${commands}\necho '${end}'\n`)
    const printed: string[] = []
    for (;;) {
      const { value, done } = await this.#lines.next()
      if (done === true) throw new Error('the shell has ended')
      if (value === end) return printed
      printed.push(value)
    }
  }

  secret(name: string): string {
    return readFileSync(join(this.dir, 'deploy/secrets', name), 'utf8').trim()
  }
}

/** A Redis that is started by a command of the documentation, again and again. */
interface DocumentedRedis {
  readonly name: string
  /** Which shell commands start it in the folder of the secrets; the last is redis-server itself. */
  readonly start: (port: number, dir: string) => string
  /** Which commands Redis is to get behind each ACL SETUSER. */
  readonly save?: string
  /** Whether it takes the commands of the rotation about `deploy/secrets/redis-password`. */
  readonly readsFile: boolean
  /** Its own check of its health. */
  readonly healthcheck?: string
}

const BY_HAND = /^redis-server --port 6380[^]*?^CONFIGURATION\n/m.exec(GUIDE)?.[0] ?? ''
const { redis: COMPOSED } = (
  parse(read('docker-compose.yml'), { merge: true }) as {
    services: { redis: { command: string[]; healthcheck: { test: string[] } } }
  }
).services
const ofCompose = (text: string): string =>
  text
    .replaceAll('$$', '$')
    .replaceAll('/run/secrets/', 'deploy/secrets/')
    .replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')

const KINDS: readonly DocumentedRedis[] = [
  {
    name: 'started by hand',
    start: (port) =>
      BY_HAND.replace('6380', String(port))
        .replace(' &\n', '\n')
        .replace('redis-server', 'exec redis-server'),
    readsFile: true,
  },
  {
    name: 'as compose starts it',
    start: (port) =>
      ofCompose(COMPOSED.command[2] ?? '').replace(
        'redis-server',
        `redis-server --port ${port} --bind 127.0.0.1 --dir deploy/secrets`,
      ),
    readsFile: true,
    healthcheck: ofCompose(COMPOSED.healthcheck.test[1] ?? ''),
  },
  ...(['CONFIG REWRITE', 'ACL SAVE'] as const).map((save) => ({
    name: `with a configuration file, and ${save}`,
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

/** Starts it on this port; returns how to stop it as an operator does. */
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
  // Its folder may be gone by then, and a Redis that cannot save refuses to end.
  t.teardown(() => void child.kill('SIGKILL'))
  await answers(port)
  return stop
}

/** Whether a password opens this Redis. */
async function opens(port: number, password: string): Promise<boolean> {
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

await test('operating.md has three steps, which start as the guide does', (t) => {
  t.equal(STEPS.length, 3)
  t.match(BY_HAND, /--appendonly yes/)
  t.match(ROTATION, /`CONFIG REWRITE`[^]*`ACL SAVE`/)
  t.end()
})

for (const kind of KINDS) {
  await test(`the password of a Redis ${kind.name} is rotated as documented: nobody is logged out, whenever it restarts`, async (t) => {
    const shell = new Shell(t)
    const port = await freePort()
    const place = { port, dir: shell.dir }
    let stop = await startDocumented(t, kind, place)
    const restart = async (): Promise<void> => {
      await stop()
      stop = await startDocumented(t, kind, place)
    }
    const follow = async (step: number): Promise<void> => {
      const text = (STEPS[step] ?? '').replaceAll('6380', String(port))
      const own = kind.readsFile ? text : text.replaceAll(/^.*deploy\/secrets\/redis-password$/gm, 'true')
      const said = await shell.run(own.replaceAll(/("ACL SETUSER [^"]*")/g, `$1 '${kind.save ?? 'PING'}'`))
      t.ok(
        said.every((line) => /^(OK|PONG)$/.test(line)),
        said.join(', '),
      )
    }
    const instances = await startTwo(t, `redis://:${shell.secret('redis-password')}@127.0.0.1:${port}`)
    const { browser } = instances
    t.ok(await instances.knows(browser))
    const old = shell.secret('redis-password')

    await follow(0)
    await restart()
    await instances.know(browser, 'after a restart between 1 and 2')
    await follow(1)
    const [url = ''] = await shell.run('echo "$REDIS_URL"')
    if (kind.healthcheck !== undefined) {
      t.equal(shell.secret('redis-url').replace('redis:6379', `127.0.0.1:${port}`), url)
    }
    await instances.roll(0, url)
    await restart()
    await instances.know(browser, 'after a restart in the middle of the roll')
    await instances.roll(1, url)
    t.ok(await opens(port, old))
    await follow(2)
    t.notOk(await opens(port, old), 'the old one is refused')
    await restart()
    t.notOk(await opens(port, old), 'also after a restart')
    await instances.know(browser, 'after a restart at the end')
    t.ok(await instances.knows(await instances.logIn()), 'and others can log in')
    if (kind.healthcheck !== undefined) {
      const check = kind.healthcheck.replace('redis-cli', `redis-cli -p ${port}`)
      t.same(await shell.run(`${check} && echo healthy`), ['healthy'])
    }
  })
}

/** Two instances on this Redis, and somebody who is logged in to both. */
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
  const knows = async (browser: JarBrowser): Promise<boolean> => {
    const answers = servers.map((server) =>
      isLoggedIn(browser, `http://localhost:${server.port}`).catch(() => false),
    )
    return (await Promise.all(answers)).every(Boolean)
  }
  return {
    ...{ logIn, knows },
    browser: await logIn(),
    know: (browser: JarBrowser, when: string): Promise<void> =>
      until(() => knows(browser), `both instances know who is logged in, ${when}`),
    /** Restarts one with another address of Redis. */
    async roll(index: number, url: string): Promise<void> {
      const server = servers[index]
      if (server === undefined) throw new Error('there are two')
      server.child.kill('SIGTERM')
      await server.exited
      servers[index] = await start(server.port, url)
    },
  }
}
