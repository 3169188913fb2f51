/** The most arrivals within any window of this length. */
export function mostWithin(windowMs: number, arrivals: readonly { readonly at: number }[]): number {
  let most = 0
  let from = 0
  for (const [to, { at }] of arrivals.entries()) {
    while ((arrivals[from]?.at ?? at) <= at - windowMs) from++
    most = Math.max(most, to - from + 1)
  }
  return most
}
