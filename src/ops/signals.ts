/** The signals that ask the process to end. */
export const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
type EndingSignal = (typeof SIGNALS)[number]

let current: ((signal: EndingSignal) => void) | undefined

/**
 * From now on this function gets each SIGTERM, SIGINT and SIGHUP, in place of the one before it. The process is never
 * without a handler in between. Without any, such a signal ends the process, and is lost if that is PID 1.
 */
export function handleSignals(handle: (signal: EndingSignal) => void): void {
  if (current === undefined) for (const signal of SIGNALS) process.on(signal, () => current?.(signal))
  current = handle
}
