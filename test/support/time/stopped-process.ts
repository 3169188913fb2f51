import { readdir, readFile } from 'node:fs/promises'

/** The process and all of its descendants. */
async function family(pid: number): Promise<number[]> {
  const parents = new Map<number, number>()
  for (const name of await readdir('/proc')) {
    // A process may end meanwhile. The second field, a name in parentheses, may contain anything.
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
    const parent = /^\d+ \(.*\) \S (\d+)/s.exec(stat)?.[1]
    if (parent !== undefined) parents.set(Number(name), Number(parent))
  }
  const members = [pid]
  // The list grows while it is read.
  for (const each of members) for (const [child, parent] of parents) if (parent === each) members.push(child)
  return members
}

/** Stops a process and its descendants for a while, as a machine that sleeps does: nothing runs, and the clock goes on. */
export async function asleep<Value>(pid: number, during: () => Promise<Value>): Promise<Value> {
  const members = await family(pid)
  signalAll(members, 'SIGSTOP')
  try {
    return await during()
  } finally {
    signalAll(members, 'SIGCONT')
  }
}

/** Sends a signal to those of these processes that have not ended. */
export function signalAll(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch {
      // It has ended.
    }
  }
}
