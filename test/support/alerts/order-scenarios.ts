import type { Test } from 'tap'
import { around, type Scenario } from './scrapes.ts'
import { startWorld, API } from '../world.ts'
import { ACCOUNTS } from '../user.ts'
/** Calls in a minute. */
const CALLS = 6

const all = (status: number, count = CALLS): number[] => Array<number>(count).fill(status)

/** Upstream responds, and refuses what users ask. */
export async function orderScenarios(t: Test): Promise<Scenario[]> {
  const { upstream, call, server } = await startWorld(t, API)
  const when = async (
    name: string,
    raises: readonly string[],
    calls: { readonly method?: string; readonly statuses: readonly number[]; readonly happensOnce?: boolean },
  ): Promise<Scenario> => {
    const { method = 'POST', statuses, happensOnce = false } = calls
    const rest = [...statuses]
    upstream.answer = (_request, socket) =>
      void socket.write(`HTTP/1.1 ${rest.shift()} Said\r\nContent-Length: 0\r\n\r\n`)
    const scenario = await around(server, name, raises, async () => {
      for (const _ of statuses) await call(method, ACCOUNTS, method === 'GET' ? {} : { body: '{}' })
    })
    return { ...scenario, happensOnce }
  }
  return [
    await when('upstream forbids every order', ['BffOrdersRefused'], { statuses: all(403) }),
    await when('upstream finds a fault in every order', ['BffOrdersRefused'], { statuses: all(400) }),
    await when('upstream redirects every order', ['BffOrdersRefused', 'BffServerErrors'], { statuses: all(302) }),
    await when('upstream answers 429 to every order', ['BffOrdersLimited'], { statuses: all(429) }),
    await when('upstream answers 429 to every third order', ['BffOrdersLimited'], {
      statuses: [429, 201, 201, 429, 201, 201],
    }),
    await when('a few orders of a night are all refused', ['BffOrdersRefused'], {
      statuses: all(403, 10),
      happensOnce: true,
    }),
    await when('single users ask for what they may not', [], { statuses: [400, 201, 422, 201, 201, 201] }),
    await when('one user calls too often for a moment', [], { statuses: all(429, 5), happensOnce: true }),
    await when('one order of a night is refused', [], { statuses: all(403, 3), happensOnce: true }),
    await when('upstream forbids every GET', ['BffReadsRefused'], { method: 'GET', statuses: all(403) }),
    await when('upstream finds nothing for every third GET', [], {
      method: 'GET',
      statuses: [404, 200, 200, 404, 200, 200],
    }),
  ]
}
