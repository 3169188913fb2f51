import { globSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

/** What became of the test files of one column. */
export interface Outcome {
  readonly passed: number
  readonly skipped: number
  /** Names of tests that failed, after the name of their file. */
  readonly failed: readonly string[]
  /** Files that failed, and passed when they were run again alone. */
  readonly again: readonly string[]
  readonly seconds: number
}

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
/** Stands for a test where a file has ended without one. */
const WHOLE = 'the whole file'
/**
 * In a network of its own, so that no port is taken, and nothing reaches another machine. It has an interface that leads nowhere,
 * since Chromium says that it is offline where there is only the loopback, and for WebKit, which wants more, a route as well.
 */
const NETWORK = `
ip link set lo up
ip link add nowhere type bridge
ip address add 192.0.2.1/24 dev nowhere
ip link set nowhere up
[ -z "\${ROUTE-}" ] || ip route add default via "$ROUTE" dev nowhere
exec "$@"`
const ALONE = ['--net', 'sh', '-euc', NETWORK, 'sh']

/**
 * Runs test files with more variables. Those that fail are run again, one after the other.
 * @param patterns of their names
 * @param only the names of the tests that count
 */
export async function runSuite(
  patterns: readonly string[],
  environment: Record<string, string>,
  only = /^/,
): Promise<Outcome> {
  const startedAt = performance.now()
  const files = globSync(patterns, { cwd: REPOSITORY }).filter((file) => !file.endsWith('.long.test.ts'))
  const seen = async (...run: Parameters<typeof tap>): Promise<ReturnType<typeof tests>> =>
    tests(await tap(...run)).filter(({ name, is }) => only.test(name) || (is === 'failed' && name === WHOLE))
  const first = await seen(files, 2, environment)
  const failing = [...new Set(first.filter(({ is }) => is === 'failed').map(({ file }) => file))]
  const second = failing.length === 0 ? [] : await seen(failing, 1, environment)
  const all = [...first.filter(({ file }) => !failing.includes(file)), ...second]
  const failed = second.filter(({ is }) => is === 'failed')
  return {
    passed: all.filter(({ is }) => is === 'passed').length,
    skipped: all.filter(({ is }) => is === 'skipped').length,
    failed: failed.map(({ file, name }) => `${file}: ${name}`),
    again: failing.filter((file) => failed.every((each) => each.file !== file)),
    seconds: Math.round((performance.now() - startedAt) / 1000),
  }
}

async function tap(files: readonly string[], jobs: number, environment: Record<string, string>): Promise<string> {
  const hooks = `--test-env=NODE_OPTIONS=--import=${REPOSITORY}test/support/time/without-hooks.ts`
  const words = ['--disable-coverage', '--reporter=tap', `--jobs=${jobs}`, '--timeout=400', hooks, ...files]
  const child = spawn('unshare', [...ALONE, 'tap', ...words], {
    cwd: REPOSITORY,
    env: {
      ...process.env,
      UV_THREADPOOL_SIZE: '16',
      NODE_COMPILE_CACHE: `${REPOSITORY}node_modules/.cache/compiled`,
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  return output
}

/** The tests of each file in the output of tap: those on its first level, or the file itself if it has ended without them. */
export function tests(output: string): { file: string; name: string; is: 'passed' | 'failed' | 'skipped' }[] {
  const found: ReturnType<typeof tests> = []
  let own: Omit<(typeof found)[number], 'file'>[] = []
  for (const line of output.split('\n')) {
    const [, depth, not, name = '', skip] =
      /^( {4})?(not )?ok \d+ - (.*?)(?: # time=\S+)?(?: # ((?:SKIP|TODO).*))?(?: \{)?$/.exec(line) ?? []
    if (name === '') continue
    const is = skip !== undefined ? 'skipped' : not === undefined ? 'passed' : 'failed'
    if (depth !== undefined) {
      own.push({ name, is })
      continue
    }
    const isExplained = own.some((each) => each.is === 'failed')
    if (is === 'skipped' || (is === 'failed' && !isExplained)) own.push({ name: WHOLE, is })
    for (const each of own) found.push({ file: name, name: each.name, is: each.is })
    own = []
  }
  return found
}
