import { spawn, type ChildProcess } from 'node:child_process'
import type { Writable } from 'node:stream'

/** Remembers the last line of its input, and kills the processes that it names when the input ends. */
const GUARD = 'pids=; while read -r line; do pids=$line; done; [ -z "$pids" ] || kill -9 $pids'

const children = new Set<ChildProcess>()
let guard: Writable | undefined

/** Starts the guard. Its input ends with this process, however that ends: a process that is killed cannot clean up. */
function startGuard(): Writable {
  // In a session of its own, so that Ctrl-C does not reach it.
  const child = spawn('sh', ['-c', GUARD], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  child.unref()
  const { stdin } = child
  // Somebody has killed the guard.
  stdin.on('error', () => undefined)
  // This process need not wait for the guard. It is a socket, which the types do not know.
  if ('unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
  return stdin
}

function tellGuard(): void {
  guard ??= startGuard()
  guard.write(`${[...children].map(({ pid }) => pid).join(' ')}\n`)
}

/** Kills a child as soon as this process has ended by itself, or was killed. */
export function endWithProcess(child: ChildProcess): void {
  // It could not be started.
  if (child.pid === undefined) return
  children.add(child)
  tellGuard()
  child.once('exit', () => {
    children.delete(child)
    tellGuard()
  })
}
