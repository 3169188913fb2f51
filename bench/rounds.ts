/** A figure of several rounds: the middle one, and how far they lie apart. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/**
 * Measures everybody once a round, in an order that moves on by one from round to round, so that whatever else the
 * machine does falls on all alike.
 * @returns for each name the results of its rounds
 */
export async function rounds<Contender extends { readonly name: string }, Result>(
  contenders: readonly Contender[],
  count: number,
  measure: (contender: Contender) => Promise<Result>,
): Promise<Map<string, Result[]>> {
  const results = new Map<string, Result[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 0; round < count; round++) {
    const start = round % contenders.length
    for (const contender of [...contenders.slice(start), ...contenders.slice(0, start)]) {
      results.get(contender.name)?.push(await measure(contender))
    }
  }
  return results
}

/** @param values at least one */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other)
  const at = (index: number): number => sorted[index] ?? Number.NaN
  const middle = (sorted.length - 1) / 2
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    min: at(0),
    max: at(sorted.length - 1),
  }
}

/** How many times as much one has as the other, round by round. */
export function ratio(ones: readonly number[], others: readonly number[]): Spread {
  return spread(ones.map((one, round) => one / (others[round] ?? Number.NaN)))
}
