import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { parse } from 'yaml'
import { answers, freePort } from '../../sandbox/listening.ts'
import { pause, shown } from '../support/controls/controls-world.ts'
import { createClient } from '../support/redis/client.ts'
import { untilSlow as until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'
import { Shell, startTwo } from '../support/deployment/secrets-shell.ts'

const ROOT = new URL('../..', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8')
const [, ROTATION = ''] = /\n## Rotating secrets\n([^]*?)\n## /.exec(OPERATING_GUIDE) ?? []
/** The shell commands in docs/operating/: one that shows what processes have, three steps of a list, and three of a password. */
const [SHOW = '', ...COMMANDS] = [...ROTATION.matchAll(/```bash\n([^]*?)```/g)].map(([, text = '']) => dedented(text))
const [LIST_STEPS, STEPS] = [COMMANDS.slice(0, 3), COMMANDS.slice(3)]

function dedented(text: string): string {
  return text.replaceAll(/^ {3}/gm, '')
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
    await shell.run(
      `chmod u+w deploy/secrets/redis-url && sed -i 's/redis:6379/127.0.0.1:${port}/' deploy/secrets/redis-url`,
    )
    const instances = await startTwo(t, shell, SHOW)
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

await test('The documented rotation of SESSION_SECRETS logs no user out, closes no socket and keeps a pause', async (t) => {
  const shell = new Shell(t)
  const redis = await testRedis(t)
  await shell.run(`chmod u+w deploy/secrets/redis-url && echo ${redis.url} >deploy/secrets/redis-url`)
  const instances = await startTwo(t, shell, SHOW)
  const { browser } = instances
  const [opsUrl = ''] = instances.opsUrls
  t.match(await pause({ opsUrl }), { status: 200 })
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
  const { opsPort } = await instances.startAnother()
  t.match(
    await shown({ opsUrl: `http://127.0.0.1:${opsPort}` }),
    { orders: { paused: true } },
    'orders are still paused',
  )
  t.ok(await instances.isLoggedInToBoth(later))
  t.notOk(await instances.isLoggedInToBoth(browser), 'what the old secret has signed is worth nothing')
})
