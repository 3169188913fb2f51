import type { Test } from 'tap'
import { readConfig } from '../../../src/config/config.ts'
import type { Budget } from '../../../src/upstream/budget/admission.ts'
import { RestClient } from '../../../src/upstream/rest-client.ts'
import { ALONE } from '../server/settings.ts'
import type { RawUpstream } from './raw-upstream.ts'

/** A client of an upstream with so many connections, which ends with the test. */
export function restClient(
  t: Test,
  { url }: RawUpstream,
  connections: number,
  settings: Readonly<Record<string, string>> = {},
  budget?: Budget,
): RestClient {
  const { upstream: config } = readConfig({ ...ALONE, API_URL: url, ...settings })
  const rest = new RestClient(config, { connections }, budget)
  t.teardown(() => rest.close())
  return rest
}
