/** How long a process of the suite may take to end once its tests are over. */
const END_MS = 30_000

/**
 * Ends a process of the suite whose tests are over although something keeps it open, and says on stderr what that is. Without this, all
 * of its tests would fail at its time limit, for a timer that one of them has left.
 */
export function endAnyway(): void {
  const timer = setTimeout(() => void say(Object.getPrototypeOf(timer)).finally(() => process.exit()), END_MS).unref()
}

/** Prints what Node counts as open, and each timer that keeps this process alive. */
async function say(timers: unknown): Promise<void> {
  const { Session } = await import('node:inspector/promises')
  Object.assign(globalThis, { timers })
  const session = new Session()
  session.connect()
  const { result } = await session.post('Runtime.evaluate', { expression: 'timers' })
  const { objects } = await session.post('Runtime.queryObjects', { prototypeObjectId: result.objectId ?? '' })
  const { result: alive } = await session.post('Runtime.callFunctionOn', {
    objectId: objects.objectId,
    functionDeclaration: String(aliveAmong),
    returnByValue: true,
  })
  session.disconnect()
  const open = [...process.getActiveResourcesInfo(), ...(alive.value as string[])]
  process.stderr.write(`${process.argv[1]} was kept open by ${open.join(', ')}\n`)
}

/** The timers among these that keep the process alive: their milliseconds, and what they call. */
function aliveAmong(this: (NodeJS.Timeout & Record<string, unknown>)[]): string[] {
  return this.filter((each) => each['_destroyed'] === false && each.hasRef()).map(
    (each) => `${String(each['_idleTimeout'])} ms: ${String(each['_onTimeout'])}`,
  )
}
