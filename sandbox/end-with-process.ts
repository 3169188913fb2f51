import type { ChildProcess } from 'node:child_process'

const children = new Set<ChildProcess>()

function killAll(): void {
  for (const child of children) child.kill('SIGKILL')
}

/** The runner of tests sends this to a file that takes too long, which then gets no chance to clean up. */
function onAlarm(): void {
  killAll()
  // Node's own reaction to this signal, or that of other listeners, still has to follow.
  process.kill(process.pid, 'SIGALRM')
}

/** Kills a child as soon as this process ends by itself, or because its test took too long. */
export function endWithProcess(child: ChildProcess): void {
  if (children.size === 0) process.on('exit', killAll).once('SIGALRM', onAlarm)
  children.add(child)
  child.once('exit', () => {
    children.delete(child)
    if (children.size === 0) process.off('exit', killAll).off('SIGALRM', onAlarm)
  })
}
