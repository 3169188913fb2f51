/** A sample of each step. Without one, the instance was not scraped, or has no such series yet. */
export type Samples = readonly (number | undefined)[]

/**
 * Samples in promtool's notation. Like Prometheus itself, it marks a series as stale at the first scrape that lacks it, so that the
 * last sample does not count for five minutes more.
 */
export function notation(samples: Samples): string {
  const words: string[] = []
  let at = 0
  while (at < samples.length) {
    const [first, second] = [samples[at], samples[at + 1]]
    const isGap = first === undefined
    if (isGap && at > 0) {
      words.push('stale')
      at++
    }
    const step = isGap || second === undefined ? 0 : second - first
    let end = at
    while (end + 1 < samples.length && follows(samples[end], samples[end + 1], step)) end++
    const count = end - at
    if (isGap) {
      // A gap of one step is all said by its mark.
      if (at < samples.length && samples[at] === undefined) words.push(`_x${count + 1}`)
      else continue
    } else {
      const by = step < 0 ? String(step) : `+${step}`
      words.push(count === 0 ? String(first) : `${first}${by}x${count}`)
    }
    at = end + 1
  }
  return words.join(' ')
}

/** Whether a sample continues a run of gaps, or one of numbers that grow by a whole number each. */
function follows(one: number | undefined, next: number | undefined, step: number): boolean {
  if (one === undefined || next === undefined) return one === next
  return next - one === step && (step === 0 || (Number.isInteger(step) && Number.isInteger(one)))
}
