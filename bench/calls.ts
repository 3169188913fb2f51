import { Pool } from 'undici'
import type { Running } from './rest-load.ts'
import { spread } from './rounds.ts'
import type { World } from './world.ts'

/** What differs between the requests of a load; a GET by default. */
interface Request {
  readonly method?: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** What one of many calls costs. */
export interface CallCost {
  readonly cpuMicros: number
  readonly redisCommands: number
  readonly redisMicros: number
  readonly p50Ms: number
}

/**
 * Makes so many requests to an address, `atOnce` at a time.
 * @param next makes a request from its index
 * @returns how long each took, in ms
 * @throws Error unless every response is a 200
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
      const { statusCode, body } = await pool.request({ method: 'GET', path, ...next(made++) })
      await body.dump()
      if (statusCode !== 200) throw new Error(`a call got ${statusCode}`)
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
  const before = { cpu: program.cpuMs(), redis: redis.program.cpuMs(), commands: await redis.commands() }
  const times = await makeCalls(url, count, atOnce, next)
  return {
    cpuMicros: ((program.cpuMs() - before.cpu) * 1000) / count,
    redisMicros: ((redis.program.cpuMs() - before.redis) * 1000) / count,
    redisCommands: ((await redis.commands()) - before.commands) / count,
    p50Ms: spread(times).median,
  }
}
