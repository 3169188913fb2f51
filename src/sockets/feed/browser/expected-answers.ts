/**
 * What an answer counts whose size is not known yet: a long history has as much. The shared connection cannot be paused for one
 * browser, so everything that the browser has asked for arrives, whether it reads or not.
 */
const ANSWER_BYTES = 131_072
/** An upstream that is slower sends no flood. Other messages of the browser, its pings above all, must not wait for it. */
const LONGEST_MS = 3000

/**
 * Counts an answer that will come as bytes that wait for a browser, so that it is read no further while many are on their way.
 * @returns a function that ends this. After three seconds it ends by itself
 */
export function expectAnswer(member: { awaits(bytes: number): void; awaitsNoMore(bytes: number): void }): () => void {
  member.awaits(ANSWER_BYTES)
  let isExpected = true
  const end = (): void => {
    if (!isExpected) return
    isExpected = false
    clearTimeout(timer)
    member.awaitsNoMore(ANSWER_BYTES)
  }
  const timer = setTimeout(end, LONGEST_MS).unref()
  return end
}
