/**
 * Loaded by `--import`: takes the place of the system's resolver for names that end with `.test`. All of them are this machine, and
 * nothing is answered about a name for as long as the folder that the address of this module names has a file of that name.
 */
import dns, { type LookupOneOptions } from 'node:dns'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

type Answer = (error: Error | null, address: unknown, family?: number) => void

const ENDING = '.test'
const AGAIN_MS = 50
const folder = new URL(import.meta.url).searchParams.get('silent') ?? ''
const { lookup } = dns

dns.lookup = ((name: string, options: { readonly all?: boolean }, answer: Answer) => {
  if (!name.endsWith(ENDING)) return lookup(name, options as LookupOneOptions, answer)
  const ask = (): void => {
    if (existsSync(join(folder, name))) setTimeout(ask, AGAIN_MS).unref()
    else if (options.all === true) answer(null, [{ address: '127.0.0.1', family: 4 }])
    else answer(null, '127.0.0.1', 4)
  }
  setImmediate(ask)
}) as typeof lookup
