import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../sandbox/listening.ts'
import type { Entry } from './contender.ts'
import { logInMany } from './login.ts'
import { modAuthOpenidc } from './peers/mod-auth-openidc.ts'
import { npmStack } from './peers/npm-stacks.ts'
import { Program, workDir, type Processors } from './program.ts'
import { CLIENT_ID, listening, nginx, type World } from './world.ts'

export const THIS_SERVER = 'this server'
export const BARE = 'bare node proxy'
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SECRETS = 'bench-secret-of-thirty-two-bytes-or-more'
/** How many sessions each contender has that has any. */
export const SESSIONS = 20

/** The origin in PUBLIC_URL: https as in production, but on localhost, so that AUTH_URL and API_URL need no TLS. */
export const publicOrigin = (port: number): string => `https://localhost:${port}`

/** Settings as in production, with addresses of this machine. */
export function settingsOf(world: World, port: number): Record<string, string> {
  return {
    NODE_ENV: 'production',
    PUBLIC_URL: publicOrigin(port),
    AUTH_URL: world.provider.url,
    API_URL: world.upstream.url,
    WS_URL: world.wsUrl,
    CLIENT_ID,
    SESSION_SECRETS: SECRETS,
    REDIS_URL: world.redis.url,
    TRUST_PROXY: '1',
    // All logins of the bench come from one address.
    AUTH_STARTS_PER_MINUTE: '0',
    HOST: '127.0.0.1',
    PORT: String(port),
    LOG_LEVEL: 'info',
  }
}

/** The Node.js options and the program in `npm start` of a checkout. @throws Error if there is no program */
export function programOf(root = ROOT): string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: { start: string }
  }
  const [, options = '', program] = / node (.* )?(\S+)$/.exec(scripts.start) ?? []
  if (program === undefined) throw new Error(`npm start of ${root} does not end with a program for Node.js`)
  return [...options.split(' ').filter((option) => option !== ''), join(resolve(root), program)]
}

/** Deviations from the usual start of this server. */
interface StartOptions {
  /** Additional Node.js options. */
  readonly flags?: readonly string[]
  /** The root folder of the checkout; this one by default. */
  readonly root?: string | undefined
  readonly on?: Processors
}

/** `npm start` and the image set these, too. */
const CACHE = {
  NODE_COMPILE_CACHE: join(workDir, 'compiled'),
  NODE_PRESERVE_SYMLINKS: '1',
  UV_THREADPOOL_SIZE: '16',
}
const warmedUp = new Set<string>()

/** The Node.js that `npm ci` has installed in a checkout. */
function nodeOf(root: string): string {
  const own = join(root, 'node_modules/.bin/node')
  return existsSync(own) ? own : process.execPath
}

/** Fills the compile cache, as a build of the image does. Without it, Node.js loads a compiler of TypeScript. */
function warmUp(root: string): void {
  if (warmedUp.has(root)) return
  warmedUp.add(root)
  execFileSync(nodeOf(root), [...programOf(root), '--warm-up'], { env: { ...process.env, ...CACHE } })
}

/** Starts this server as `npm start` does and waits until it listens. */
export async function startThisServer(
  settings: Record<string, string>,
  { flags = [], root = ROOT, on = 'measured' }: StartOptions = {},
): Promise<Program> {
  const { OPS_PORT = String(await freePort()) } = settings
  warmUp(root)
  const program = new Program(THIS_SERVER, nodeOf(root), [...flags, ...programOf(root)], {
    env: { ...settings, ...CACHE, OPS_PORT },
    on,
  })
  await listening(program, Number(OPS_PORT))
  await listening(program, Number(settings['PORT']))
  return program
}

/** A variant of this server, which by default is as in production and the current checkout. */
interface Variant extends StartOptions {
  /** Added to the settings of production. */
  readonly settings?: Readonly<Record<string, string>>
  /** The port in its PUBLIC_URL, if a proxy is in front. */
  readonly publicPort?: number
}

/** This server, logged in to. */
export const thisServer = (name = THIS_SERVER, { settings, publicPort, ...options }: Variant = {}): Entry => {
  const originOf = (port: number): string => publicOrigin(publicPort ?? port)
  return {
    name,
    redirectUri: (port) => `${originOf(port)}/auth/callback`,
    async start(world, port) {
      const all = { ...settingsOf(world, port), PUBLIC_URL: originOf(port), ...settings }
      const program = await startThisServer(all, options)
      const login = { url: `http://127.0.0.1:${port}/auth/login`, publicOrigin: originOf(port) }
      return { program, cookies: await logInMany(login, SESSIONS) }
    },
  }
}

/** How the bare proxy differs from what it is by default. */
interface BareVariant {
  /** `silent` leaves out its log. */
  readonly logLevel?: string
  readonly on?: Processors
  /** The program in bench/bare, if it is more than the proxy, and the settings of what it is besides. */
  readonly file?: string
  readonly settings?: Readonly<Record<string, string>>
}

/** The bare proxy. */
export const bareProxy = (
  name: string,
  { logLevel = 'info', on = 'measured', file: fileName = 'rest-proxy.ts', settings }: BareVariant = {},
): Entry => ({
  name,
  async start(world, port) {
    const file = fileURLToPath(new URL(`bare/${fileName}`, import.meta.url))
    const env = {
      NODE_ENV: 'production',
      PORT: String(port),
      API_URL: world.upstream.url,
      LOG_LEVEL: logLevel,
      ...settings,
    }
    const program = new Program(name, process.execPath, [file], { env, on })
    await listening(program, port)
    return { program }
  },
})

const nginxProxy: Entry = {
  name: 'nginx proxy_pass',
  async start(world, port) {
    const program = nginx(
      this.name,
      'measured',
      `access_log ${this.name.replaceAll(' ', '-')}.access;
      upstream trading { server ${new URL(world.upstream.url).host}; keepalive 64; keepalive_requests 1000000000; }
      server {
        listen 127.0.0.1:${port} backlog=4096;
        location /api/ {
          proxy_pass http://trading/;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_set_header Cookie "";
          proxy_set_header Authorization "Bearer fixed";
        }
      }`,
    )
    await listening(program, port)
    return { program }
  },
}

/** The contenders of the REST load besides this server. */
export const entries: readonly Entry[] = [
  bareProxy(BARE),
  bareProxy(`${BARE}, no log`, { logLevel: 'silent' }),
  nginxProxy,
  npmStack('Fastify + @fastify/http-proxy', 'fastify-http-proxy.js', SESSIONS),
  npmStack('Express stack', 'express-stack.js', SESSIONS),
  modAuthOpenidc(SESSIONS),
]
