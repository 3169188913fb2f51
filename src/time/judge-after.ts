/**
 * Judges a peer once its time is over, and once what has arrived from it has been read: when the event loop goes on after a
 * standstill its timers run first, before the answer that has been waiting in the socket.
 * @param ms counted from now; the time may be over already
 * @param keepsAlive whether the process goes on until then
 * @returns ends the wait; more calls have no effect
 */
export function judgeAfter(ms: number, judge: () => void, keepsAlive = true): () => void {
  let reading: NodeJS.Immediate | undefined
  // An immediate runs when the sockets that are ready have been read.
  const timer = setTimeout(() => (reading = setImmediate(judge)), Math.max(0, ms))
  if (!keepsAlive) timer.unref()
  return () => {
    clearTimeout(timer)
    clearImmediate(reading)
  }
}
