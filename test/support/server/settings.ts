import { Changeable } from '../../../src/config/changing.ts'
import type { RepositoryOptions } from '../../../src/sessions/repository.ts'

/** Settings of a server without a provider and an upstream. */
export const ALONE = {
  PUBLIC_URL: 'http://localhost:3000',
  AUTH_URL: 'http://127.0.0.1:1',
  API_URL: 'http://127.0.0.1:1',
  WS_URL: 'ws://127.0.0.1:1',
  CLIENT_ID: 'client',
}

/** The same of one under an address that is no loopback one; it needs a Redis, too. */
export const IN_PRODUCTION = {
  ...ALONE,
  PUBLIC_URL: 'https://bff.example',
  AUTH_URL: 'https://127.0.0.1:1',
  API_URL: 'https://127.0.0.1:1',
  WS_URL: 'wss://127.0.0.1:1',
  TRUST_PROXY: 'none',
}

const { NODE_COMPILE_CACHE, _TAPJS_PROCESSINFO_COVERAGE_: coverage } = process.env

/** The environment of every Node.js process that a test starts, with the compile cache of `npm test`. */
export const COMPILED: Readonly<Record<string, string>> = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }

/**
 * The command that starts Node.js, without its arguments. tap has every child load the source maps of all packages,
 * which takes as long as half a start of the server; only a run with coverage needs that.
 * @param options what the child gets as NODE_OPTIONS
 */
export function nodeCommand(options = ''): readonly [string, ...string[]] {
  return coverage === '0' ? ['/usr/bin/env', `NODE_OPTIONS=${options}`, process.execPath] : [process.execPath]
}

/** How sessions and subjects are named in the log of a repository that a test makes itself. */
export const logNames = (tagSecret: string): RepositoryOptions => ({
  secrets: new Changeable([tagSecret]),
  logsPlainSubjects: false,
})
