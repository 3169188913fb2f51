import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { answers } from '../../../sandbox/listening.ts'
import type { Arrival, JarBrowser } from '../browser/jar-browser.ts'
import { within } from '../time/until.ts'

/** Where a product listens, and the only redirect address of its client. */
export interface ProductAddress {
  readonly port: number
  readonly redirectUri: string
  /** A folder for its files, which outlives a restart. */
  readonly folder: string
}

/** An OAuth server that somebody else wrote. */
export interface Product {
  readonly name: string
  /** Starts it with one client and one user. @throws Error if it is not installed */
  start(t: Test, address: ProductAddress): Promise<RunningProduct>
  /** The settings that this server needs for it. `gate` stands before its token and revocation endpoints. */
  settings(provider: string, gate: string): Record<string, string>
  /** Settings that name another client, or a wrong secret. */
  readonly wrongClient: Record<string, string>
  /** Logs in and consents, from the first page of the provider to the callback. */
  logIn(browser: JarBrowser, first: Arrival): Promise<Arrival>
  /** Starts a login, and cancels it or denies the consent. Missing if its pages have no way to. */
  deny?(browser: JarBrowser, start: () => Promise<Arrival>): Promise<Arrival>
  /** The error of a login whose consent was denied, if that is another one than `access_denied`. */
  readonly denial?: 'login_failed'
  /** Whether tokens survive a restart of it. */
  readonly isPersistent: boolean
  /** What revocation does: the token is refused from then on, or nothing. */
  readonly revocation: 'works' | 'is accepted' | 'missing'
  /** Whether it knows its codes, so that `--check` can recognise it. */
  readonly isRecognised?: false
}

/** A product that listens. */
export interface RunningProduct {
  /** Ends it at once, as a crash would. */
  stop(): Promise<void>
}

/** Debian's path, whose packages another Python lacks; the variable PYTHON names another one. */
export const PYTHON = process.env['PYTHON'] ?? '/usr/bin/python3'

const START_MS = 30_000
const SERVERS = fileURLToPath(new URL('../../providers/servers/', import.meta.url))

/** Starts a program of test/providers/servers, or of the system, and waits until it listens. It ends with the test. */
export async function productProcess(
  t: Test,
  [command, ...words]: readonly [string, ...string[]],
  { port, redirectUri }: ProductAddress,
  environment: Record<string, string> = {},
): Promise<RunningProduct> {
  const { PATH = '' } = process.env
  const child = spawn(command, words, {
    cwd: SERVERS,
    env: { PATH, PORT: String(port), REDIRECT_URI: redirectUri, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  t.teardown(() => stop(child))
  const failed = new Promise<never>((_resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`${command} ended: ${output}`)))
  })
  failed.catch(() => undefined)
  await within(Promise.race([answers(port), failed]), `${command} listens`, START_MS)
  return { stop: () => stop(child) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

/** The hidden fields of the first form of a page, whatever their values. */
export function hiddenFields({ body }: Arrival): Record<string, string> {
  const inputs = [...body.matchAll(/<input[^>]*type=["']hidden["'][^>]*>/g)].map(([input]) => input)
  return Object.fromEntries(inputs.map((input) => [attribute(input, 'name'), attribute(input, 'value')]))
}

function attribute(input: string, name: string): string {
  return (new RegExp(`\\s${name}=["']([^"']*)["']`).exec(input)?.[1] ?? '')
    .replaceAll('&amp;', '&')
    .replaceAll('&quot;', '"')
    .replaceAll('&#x27;', "'")
}
