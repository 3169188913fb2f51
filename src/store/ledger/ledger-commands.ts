import { readFileSync } from 'node:fs'
import type { Commands } from '../command.ts'
import { budgetKey } from '../keys.ts'
import { runScript } from '../scripts.ts'
import { LEDGER, type Ledger, type LedgerReply, type LedgerTerms } from './ledger.ts'
import type { MemoryLedger } from './memory-ledger.ts'

/** The script that settles a report. It runs also where Redis is full. */
export const SETTLE = readFileSync(new URL('settle.lua', import.meta.url), 'utf8')

/** The terms as the script takes them. */
export function scriptTerms({ windows, leaseMs, marginMs, bucketMs }: LedgerTerms): string {
  return JSON.stringify({ windows, leaseMs, marginMs, bucketMs, quietMs: leaseMs + LEDGER.leaseSkewMs, ...LEDGER })
}

/** The ledger of all that use the same name. In memory that is one process, which begins it anew. */
export function ledgerCommands(name: string, terms: LedgerTerms): Commands<MemoryLedger, Ledger> {
  const key = budgetKey('budget', name)
  const agreed = scriptTerms(terms)
  return {
    settle: {
      // The script writes the key after it has read it, so that the server does not watch it.
      send: (redis, _skewMs, report) => runScript(redis, SETTLE, [key], [agreed, JSON.stringify(report)]),
      reply: (text: string) => JSON.parse(text) as LedgerReply,
      memory: (ledger, report) => ledger.settle(terms, report, performance.now()),
    },
  }
}
