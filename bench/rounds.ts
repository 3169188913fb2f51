/** The median and the range of a figure over several rounds. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/**
 * Measures every contender once per round. Each round starts with another contender, so that disturbances of the machine
 * affect all contenders alike.
 * @returns the results of the rounds by name
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

/** The rounds of two contenders that were measured together. */
export interface Pair<Result> {
  readonly base: readonly Result[]
  readonly other: readonly Result[]
}

/**
 * Measures the CPU time of each other contender together with the base: both run at the same moment on one processor, which goes
 * from one to the other every few milliseconds. What slows the machine down for longer befalls both alike, so their ratio varies
 * much less from round to round than with {@link rounds}. Their latencies mean nothing.
 * @param measure measures two at once, and returns their results in the same order
 * @returns the pairs by the name of the other contender
 */
export async function pairs<Contender extends { readonly name: string }, Result>(
  base: Contender,
  others: readonly Contender[],
  count: number,
  measure: (two: readonly Contender[]) => Promise<readonly Result[]>,
): Promise<Map<string, Pair<Result>>> {
  const results = new Map<string, Pair<Result>>()
  for (const other of others) {
    const pair = { base: [] as Result[], other: [] as Result[] }
    for (let round = 0; round < count; round++) {
      // The one that starts later has the processor to itself for a moment at its end.
      const isReversed = round % 2 === 1
      const measured = await measure(isReversed ? [other, base] : [base, other])
      const [ofBase, ofOther] = (isReversed ? measured.toReversed() : measured) as [Result, Result]
      pair.base.push(ofBase)
      pair.other.push(ofOther)
    }
    results.set(other.name, pair)
  }
  return results
}

/** A figure of rounds, in their order; nothing of a contender that did not take part. */
export function figures<Figure extends string>(
  rounds: readonly Readonly<Record<Figure, number>>[] | undefined,
  figure: Figure,
): number[] {
  return rounds?.map((round) => round[figure]) ?? []
}

/** The spread of the quotients of a figure of the other contender and that of the base, round by round. */
export function ratioToBase<Figure extends string>(
  pair: Pair<Readonly<Record<Figure, number>>> | undefined,
  figure: Figure,
): Spread {
  return ratio(figures(pair?.other, figure), figures(pair?.base, figure))
}

/** @returns a function that returns a figure of a contender, round by round; nothing of one that did not take part */
export function figuresOf<Result>(
  results: ReadonlyMap<string, readonly Result[]>,
): <Figure extends keyof Result>(name: string, figure: Figure) => Result[Figure][] {
  return (name, figure) => results.get(name)?.map((result) => result[figure]) ?? []
}

/** The spread of at least one value. With an even number of values the median is the mean of the middle two. */
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

/** The spread of the quotients of the figures of two contenders, round by round. */
export function ratio(ones: readonly number[], others: readonly number[]): Spread {
  return spread(ones.map((one, round) => one / (others[round] ?? Number.NaN)))
}

/** The value that this share of the values does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
