import type { Test } from 'tap'
import { ALONE } from '../server/settings.ts'
import { scrape, type Scenario } from './scrapes.ts'
import { testServer } from '../server/test-server.ts'

const RAISES = ['BffTrafficGone']

/** Requests in a minute: many, less than half as many, and so few that their end says nothing. */
const MANY = 30
const FEWER = 10
const FEW = 6

/** Traffic that ends, or becomes less, after an hour. */
export async function trafficScenarios(t: Test): Promise<Scenario[]> {
  const server = await testServer(t, ALONE)
  const fresh = await scrape(server)
  const after = async (requests: number): Promise<string> => {
    for (let count = 0; count < requests; count++) await fetch(`${server.url}/auth/session`)
    return scrape(server)
  }
  const few = await after(FEW)
  const many = await after(MANY)
  const fewer = await after(FEWER)
  return [
    { name: 'no traffic arrives any more', raises: RAISES, scrapes: { a: { before: few, after: many, later: many } } },
    {
      name: 'no traffic arrives any more, and all instances are restarted',
      raises: RAISES,
      scrapes: { a: { before: few, after: many, later: fresh } },
    },
    {
      name: 'the last visitor of a quiet night leaves',
      raises: [],
      scrapes: { a: { before: fresh, after: few, later: few } },
    },
    {
      name: 'two thirds of the visitors leave',
      raises: [],
      scrapes: { a: { before: few, after: many, later: fewer } },
    },
  ]
}
