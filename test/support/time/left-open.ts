/** How long before its time limit a test file that has not ended says what keeps it open. */
const EARLY_MS = 5000

const timer = setTimeout(() => void say(), Number(process.env['TAP_TIMEOUT'] ?? 30) * 1000 - EARLY_MS).unref()

/** Prints what Node counts as open, and each timer that keeps this process alive. */
async function say(): Promise<void> {
  const { Session } = await import('node:inspector/promises')
  Object.assign(globalThis, { timers: Object.getPrototypeOf(timer) as unknown })
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
  process.stderr.write(`${process.argv[1]} is kept open by ${open.join(', ')}\n`)
}

/** The timers among these that keep the process alive: their milliseconds, and what they call. */
function aliveAmong(this: (NodeJS.Timeout & Record<string, unknown>)[]): string[] {
  return this.filter((each) => each['_destroyed'] === false && each.hasRef()).map(
    (each) => `${String(each['_idleTimeout'])} ms: ${String(each['_onTimeout'])}`,
  )
}
