import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient } from 'redis'
import { answers, freePort } from '../sandbox/listening.ts'
import { startProvider, type SandboxProvider } from '../sandbox/provider.ts'
import { atEnd, Program, workDir, type Processors } from './program.ts'
import { routes } from './upstream-routes.ts'

/** The services that every contender uses: a provider, a fast upstream and a Redis. */
export interface World {
  readonly provider: SandboxProvider
  readonly upstream: Upstream
  readonly redis: Redis
  /** Where upstream's sockets are. */
  readonly wsUrl: string
}

/** An upstream that is much faster than any contender. */
interface Upstream {
  readonly url: string
  readonly program: Program
  /** The number of requests it has served, without those of this method. */
  requests(): Promise<number>
}

/** The session store of the contenders that have sessions. */
interface Redis {
  readonly url: string
  readonly port: number
  readonly program: Program
  /** The number of commands it has executed, without those for connecting and monitoring. */
  commands(): Promise<number>
  usedBytes(): Promise<number>
}

export const CLIENT_ID = 'bench'
/** How often a replica is asked whether it has what its master has. */
const SYNC_POLL_MS = 50
/** Nothing listens there. */
const NO_SOCKETS = 'ws://127.0.0.1:9'

/** How a world differs from the usual one. */
export interface WorldOptions {
  /** Where one-time URLs lead; nowhere by default. */
  readonly wsUrl?: string
  /** How long access tokens live. With this, logins also yield refresh tokens. */
  readonly accessTokenSeconds?: number
}

/** Starts the services. @param redirectUris those of all contenders that log users in */
export async function startWorld(
  redirectUris: readonly string[],
  { wsUrl = NO_SOCKETS, accessTokenSeconds }: WorldOptions = {},
): Promise<World> {
  const tokens = accessTokenSeconds === undefined ? {} : { accessTokenSeconds, refreshTokens: true }
  const provider = await startProvider({ clientId: CLIENT_ID, redirectUris: [...redirectUris], ...tokens })
  atEnd(() => provider.close())
  return { provider, upstream: await startUpstream(wsUrl), redis: await startRedis(), wsUrl }
}

/** Starts Debian's nginx with one worker, which responds from memory and writes no log. */
async function startUpstream(wsUrl: string): Promise<Upstream> {
  const port = await freePort()
  const program = nginx('upstream', 'others', routes(port, await freePort(), wsUrl))
  await listening(program, port)
  const url = `http://127.0.0.1:${port}`
  let ownRequests = 0
  return {
    url,
    program,
    async requests() {
      const text = await (await fetch(`${url}/requests`)).text()
      ownRequests++
      const total = Number(/^ \d+ \d+ (\d+)/m.exec(text)?.[1])
      return total - ownRequests
    },
  }
}

/** Starts Debian's nginx with one worker and these lines in its `http` block. */
export function nginx(name: string, on: Processors, http: string): Program {
  const dir = join(workDir, `nginx-${name.replaceAll(/\W+/g, '-')}`)
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${dir}-${kind};`)
  writeFileSync(
    `${dir}.conf`,
    `daemon off; worker_processes 1; pid ${dir}.pid; error_log ${dir}.errors;
    ${process.getuid?.() === 0 ? 'user root;' : ''}

    events { worker_connections 16384; }
    http {
      ${temp.join(' ')}
      keepalive_requests 1000000000;
      ${http}
    }`,
  )
  const args = ['-p', workDir, '-c', `${dir}.conf`, '-e', `${dir}.errors`]
  return new Program(name, 'nginx', args, { stopSignal: 'SIGQUIT', on })
}

/** Resolves when a program accepts connections. @throws Error with the end of its log if it exits instead */
export async function listening(program: Program, port: number): Promise<void> {
  const exited = new Promise<never>((_resolve, reject) => {
    program.child.once('error', reject)
    program.child.once('exit', () => {
      reject(new Error(`${program.name} exited: ${program.logTail()}`))
    })
  })
  exited.catch(() => undefined)
  await Promise.race([answers(port), exited])
}

/** Starts a Redis without any data, which writes no file. */
export async function startRedis(): Promise<Redis> {
  const { port, program } = await redisServer([])
  const url = `redis://127.0.0.1:${port}`
  const client = await createClient({ url }).connect()
  atEnd(async () => client.destroy())
  // At the end Redis exits before its client is closed.
  client.on('error', () => undefined)
  return {
    url,
    port,
    program,
    async usedBytes() {
      return Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
    },
    async commands() {
      const stats = await client.info('commandstats')
      const lines = [...stats.matchAll(/^cmdstat_(\S+):calls=(\d+)/gm)]
      const ignored = /^(info|ping|hello|client\||auth$)/
      return lines.reduce((sum, [, name = '', calls]) => (ignored.test(name) ? sum : sum + Number(calls)), 0)
    },
  }
}

/** Starts a replica, and resolves when it has what its master has. */
export async function startReplicaOf({ port }: Redis): Promise<void> {
  const replica = await redisServer(['--replicaof', '127.0.0.1', String(port), '--repl-diskless-sync-delay', '0'])
  const client = await createClient({ url: `redis://127.0.0.1:${replica.port}` }).connect()
  while (!(await client.info('replication')).includes('master_link_status:up')) await pause(SYNC_POLL_MS)
  client.destroy()
}

async function redisServer(more: readonly string[]): Promise<{ port: number; program: Program }> {
  const port = await freePort()
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...more]
  const program = new Program('redis', 'redis-server', [...options, '--dir', workDir], { on: 'others' })
  await listening(program, port)
  return { port, program }
}
