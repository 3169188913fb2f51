import { freePort } from '../sandbox/listening.ts'
import type { Entry } from './contender.ts'
import { BARE, entries, THIS_SERVER, thisServer } from './contenders.ts'
import { BROWSER_HEADERS } from './load/request-texts.ts'
import type { Program } from './program.ts'
import { ACCOUNTS_PATH } from './upstream-routes.ts'
import { startWorld, type World, type WorldOptions } from './world.ts'
import { wrk } from './wrk.ts'

export const CONNECTIONS = 32

/** A contender with the address and the Cookie headers of its load. */
export interface Running {
  readonly name: string
  readonly program: Program
  readonly url: string
  readonly cookies: readonly string[]
}

/** The contenders of a run, as the command line selects them. */
export interface Choice {
  /** Parts of the names of the contenders beside this server; all contenders by default. */
  readonly with?: readonly string[]
  /** The root folder of another checkout of this server, which takes part as `before`. */
  readonly before?: string
  /** Whether to measure no more than the goals need: fewer contenders, and fewer or shorter rounds. */
  readonly short?: boolean
}

/** The figures of one contender in one round. */
export interface RestRound {
  readonly requestsPerSecond: number
  readonly cpuMicrosPerRequest: number
  readonly redisMicrosPerRequest: number
  readonly redisCommandsPerRequest: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly rssMib: number
}

/** A world, the contenders in it, and a note for each contender that could not be started. */
interface Started {
  readonly world: World
  readonly contenders: Running[]
  readonly missing: string[]
}

/**
 * Starts the world and the contenders that the command line selects.
 * @param more take part in any case
 * @throws Error if this server cannot be started
 */
export async function startSelected(
  { with: parts, before, short = false }: Choice,
  more: readonly Entry[] = [],
): Promise<Started> {
  const wanted = entries.filter(({ name }) =>
    short ? name === BARE : (parts?.some((part) => name.includes(part)) ?? true),
  )
  const started = await start([
    thisServer(),
    ...(before === undefined ? [] : [thisServer('before', { root: before })]),
    ...more,
    ...wanted,
  ])
  const { contenders, missing } = started
  if (contenders[0]?.name !== THIS_SERVER) throw new Error(missing[0])
  return started
}

/** Starts a world and contenders in it. @throws Error if one of them cannot be started */
export async function startServers(wanted: readonly Entry[], options: WorldOptions = {}): Promise<Started> {
  const started = await start(wanted, options)
  if (started.missing.length > 0) throw new Error(started.missing.join(', '))
  return started
}

async function start(wanted: readonly Entry[], options?: WorldOptions): Promise<Started> {
  const ports = await Promise.all(wanted.map(() => freePort()))
  const portOf = (index: number): number => ports[index] ?? 0
  const redirectUris = wanted.flatMap(({ redirectUri }, index) => redirectUri?.(portOf(index)) ?? [])
  const world = await startWorld(redirectUris, options)
  const contenders: Running[] = []
  const missing: string[] = []
  for (const [index, entry] of wanted.entries()) {
    try {
      const { program, cookies: own } = await entry.start(world, portOf(index))
      // Contenders without sessions get the cookies of this server, so that all requests are equally large.
      const cookies = own ?? contenders[0]?.cookies ?? []
      const url = apiUrl(portOf(index))
      await checkResponses(url, cookies)
      contenders.push({ name: entry.name, program, url, cookies })
    } catch (error) {
      missing.push(`**Missing: ${entry.name}**: ${(error as Error).message.trim().replaceAll(/\s+/g, ' ')}`)
    }
  }
  return { world, contenders, missing }
}

/** The address of the 1.1 KB response on this port. */
function apiUrl(port: number): string {
  return `http://127.0.0.1:${port}/api${ACCOUNTS_PATH}`
}

/** @throws Error unless each session gets the response of upstream */
async function checkResponses(url: string, cookies: readonly string[]): Promise<void> {
  for (const cookie of cookies) {
    const response = await fetch(url, { headers: { ...BROWSER_HEADERS, cookie }, redirect: 'manual' })
    const body = await response.text()
    if (response.status !== 200 || !body.startsWith('{"data":[')) {
      throw new Error(`responds ${response.status} ${body.slice(0, 200)}`)
    }
  }
}

/** Loads one contender. @throws Error if a request fails or does not reach upstream */
export async function measure(
  world: World,
  contender: Running,
  seconds: number,
  connections = CONNECTIONS,
): Promise<RestRound> {
  const [round] = await measureTogether(world, [contender], seconds, connections)
  return round as RestRound
}

/**
 * Loads several contenders at the same moment. The figures of Redis are those of all together.
 * @throws Error if a request fails or does not reach upstream
 */
export async function measureTogether(
  { redis, upstream }: World,
  contenders: readonly Running[],
  seconds: number,
  connections = CONNECTIONS,
): Promise<RestRound[]> {
  const before = { requests: await upstream.requests(), commands: await redis.commands() }
  const redisBefore = redis.program.cpuMs()
  const loaded = await Promise.all(
    contenders.map(async ({ program, url, cookies, name }) => {
      const cpuBefore = program.cpuMs()
      const result = await wrk({ url, seconds, connections, headers: BROWSER_HEADERS, cookies })
      const cpuMs = program.cpuMs() - cpuBefore
      if (result.errors > 0) throw new Error(`${name}: ${result.errors} errors: ${program.logTail()}`)
      return { program, result, cpuMs }
    }),
  )
  const requests = loaded.reduce((sum, { result }) => sum + result.requests, 0)
  const redisMs = redis.program.cpuMs() - redisBefore
  const arrived = (await upstream.requests()) - before.requests
  if (arrived < requests) {
    const names = contenders.map(({ name }) => name).join(', ')
    throw new Error(`${names}: ${arrived} of ${requests} requests reached upstream`)
  }
  const commands = (await redis.commands()) - before.commands
  return loaded.map(({ program, result, cpuMs }) => ({
    requestsPerSecond: result.requests / result.seconds,
    cpuMicrosPerRequest: (cpuMs * 1000) / result.requests,
    redisMicrosPerRequest: (redisMs * 1000) / requests,
    redisCommandsPerRequest: commands / requests,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    rssMib: program.rssBytes() / 1024 ** 2,
  }))
}
