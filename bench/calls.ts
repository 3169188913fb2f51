import { Pool } from 'undici'
import type { Program } from './program.ts'
import type { Running } from './rest-load.ts'
import { spread } from './rounds.ts'
import type { World } from './world.ts'

/** What differs between the requests of a load; a GET by default. */
interface Request {
  readonly method?: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** The status of the right response; 200 by default. */
  readonly status?: number
  /** The body of the right response, if it matters. */
  readonly expected?: string
}

/** What one of many actions costs. */
export interface Cost {
  readonly cpuMicros: number
  readonly redisCommands: number
  readonly redisMicros: number
}

/** What one of many calls costs. */
export interface CallCost extends Cost {
  readonly p50Ms: number
}

/**
 * Makes so many requests to an address, `atOnce` at a time.
 * @param next makes a request from its index
 * @returns how long each took, in ms
 * @throws Error unless every response is right
 */
export async function makeCalls(
  address: string,
  count: number,
  atOnce: number,
  next: (index: number) => Request,
): Promise<number[]> {
  const { origin, pathname: path } = new URL(address)
  const pool = new Pool(origin, { connections: atOnce })
  const times: number[] = []
  let made = 0
  const call = async (): Promise<void> => {
    while (made < count) {
      const startedAt = performance.now()
      const { status = 200, expected, ...request } = next(made++)
      const { statusCode, body } = await pool.request({ method: 'GET', path, ...request })
      const text = await body.text()
      if (statusCode !== status || text !== (expected ?? text)) {
        throw new Error(`a call to ${address} got ${statusCode} with ${text.length} bytes: ${text.slice(0, 100)}`)
      }
      times.push(performance.now() - startedAt)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, call))
  await pool.close()
  return times
}

/** Makes calls like {@link makeCalls}, and divides what they cost by their number. */
export async function costOfCalls(
  redis: World['redis'],
  { program, url }: Pick<Running, 'program' | 'url'>,
  count: number,
  atOnce: number,
  next: (index: number) => Request,
): Promise<CallCost> {
  const { cost, result: times } = await costOf(redis, program, count, () => makeCalls(url, count, atOnce, next))
  return { ...cost, p50Ms: spread(times).median }
}

/** Executes so many actions, and divides what they cost a contender and Redis by their number. */
export async function costOf<Result>(
  redis: World['redis'],
  program: Program,
  count: number,
  execute: () => Promise<Result>,
): Promise<{ readonly cost: Cost; readonly result: Result }> {
  const before = { cpu: program.cpuMs(), redis: redis.program.cpuMs(), commands: await redis.commands() }
  const result = await execute()
  const cost = {
    cpuMicros: ((program.cpuMs() - before.cpu) * 1000) / count,
    redisMicros: ((redis.program.cpuMs() - before.redis) * 1000) / count,
    redisCommands: ((await redis.commands()) - before.commands) / count,
  }
  return { cost, result }
}
