import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { ALONE, COMPILED, nodeCommand } from './settings.ts'
import { startParts } from '../world.ts'
import { nextEvent } from '../time/until.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
/** A folder without `.env`. */
const HERE = fileURLToPath(new URL('.', import.meta.url))
/** A check waits for each address for seconds. */
const RUN_MS = 60_000

/** What a run of the program has printed. */
export interface CheckRun {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
  /** The printed check results. */
  readonly lines: readonly (readonly [result: string, setting: string, detail: string])[]
}

/** Runs the server's program with these arguments until it exits. */
export async function runProgram(
  settings: Record<string, string>,
  args: readonly string[] = ['--check'],
): Promise<CheckRun> {
  const [command, ...words] = nodeCommand()
  const child = spawn(command, [...words, MAIN, ...args], {
    env: { ...COMPILED, ...settings },
    cwd: HERE,
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = nextEvent(child, 'close', RUN_MS).finally(() => child.kill('SIGKILL'))
  const [exitCode] = (await ended) as [number | null]
  const lines = [...stdout.matchAll(/^(ok|warning|failed) +(\S+) +(.*)$/gm)].map(
    ([, result = '', setting = '', detail = '']) => [result, setting, detail] as const,
  )
  return { exitCode, stdout, stderr, lines }
}

/** Settings with a sandbox provider and a sandbox upstream, which run until the test ends. */
export async function reachableSettings(t: Test): Promise<Record<string, string>> {
  const { CLIENT_ID, PUBLIC_URL } = ALONE
  const settings = { CLIENT_ID, PUBLIC_URL, SESSION_SECRETS: '' }
  const parts = await startParts(t, { settings, provider: { clientId: CLIENT_ID } })
  return { ...parts.settings, PARTNER_OVERVIEW_PATH: '', REVOCATION_URL: `${parts.provider.url}/oauth2/revoke` }
}

/** Results of the lines about this setting. */
export const resultsOf = ({ lines }: CheckRun, setting: string): string[] =>
  lines.filter(([, name]) => name === setting).map(([result, , detail]) => `${result}: ${detail}`)
