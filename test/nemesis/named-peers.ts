/**
 * Loaded by `--import`: takes the place of the system's resolver for names that end with `.test`. All of them are this machine, and
 * nothing is answered about a name for as long as the folder that the address of this module names has a file of that name. One of
 * them may have a second address, at which nobody listens.
 */
import dns, { type LookupOneOptions } from 'node:dns'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

type Answer = (error: Error | null, address: unknown, family?: number) => void

const ENDING = '.test'
const AGAIN_MS = 50
const { searchParams } = new URL(import.meta.url)
const folder = searchParams.get('silent') ?? ''
const OWN = { address: '127.0.0.1', family: 4 }
const NOBODY = { address: '127.0.0.2', family: 4 }
const { lookup } = dns

dns.lookup = ((name: string, options: { readonly all?: boolean }, answer: Answer) => {
  if (!name.endsWith(ENDING)) return lookup(name, options as LookupOneOptions, answer)
  const ask = (): void => {
    if (existsSync(join(folder, name))) setTimeout(ask, AGAIN_MS).unref()
    else if (options.all === true) answer(null, name === searchParams.get('two') ? [OWN, NOBODY] : [OWN])
    else answer(null, OWN.address, OWN.family)
  }
  setImmediate(ask)
}) as typeof lookup
