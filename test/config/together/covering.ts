/** Which option each dimension has; -1 where none is chosen yet. */
export type Row = readonly number[]

/** How many rows are tried for each that is taken. */
const TRIES = 10

/**
 * Rows in which each two options of different dimensions occur together at least once, unless no valid row has both. Few, not the
 * fewest.
 * @param sizes how many options each dimension has
 * @param isValid whether no choice of a row contradicts another
 */
export function coveringRows(sizes: readonly number[], isValid: (row: Row) => boolean, random: () => number): Row[] {
  const missing = pairsOf(sizes)
  const rows: Row[] = []
  for (;;) {
    const next = missing.keys().next()
    if (next.done === true) return rows
    const [one, first, other, second] = next.value.split(' ').map(Number) as [number, number, number, number]
    let best: Row = []
    let most = 0
    for (let tries = 0; tries < TRIES; tries++) {
      const row: number[] = sizes.map(() => -1)
      row[one] = first
      row[other] = second
      for (const at of shuffled([...sizes.keys()], random)) if (row[at] === -1) choose(row, at)
      const count = row.includes(-1) || !isValid(row) ? 0 : pairsIn(row).filter((pair) => missing.has(pair)).length
      if (count > most) [best, most] = [row, count]
    }
    missing.delete(next.value)
    if (most === 0) continue
    rows.push(best)
    for (const pair of pairsIn(best)) missing.delete(pair)
  }

  /** Takes the option that makes most new pairs with what a row has. */
  function choose(row: number[], at: number): void {
    const news = (option: number): number =>
      row.filter((chosen, with_) => chosen !== -1 && missing.has(pairOf(at, option, with_, chosen))).length
    const options = shuffled([...Array(sizes[at]).keys()], random).map((option) => ({ option, news: news(option) }))
    for (const { option } of options.toSorted((a, b) => b.news - a.news)) {
      row[at] = option
      if (isValid(row)) return
    }
    row[at] = -1
  }
}

const pairOf = (at: number, option: number, other: number, chosen: number): string =>
  at < other ? `${at} ${option} ${other} ${chosen}` : `${other} ${chosen} ${at} ${option}`

function pairsIn(row: Row): string[] {
  return row.flatMap((option, at) => row.slice(at + 1).map((chosen, more) => pairOf(at, option, at + 1 + more, chosen)))
}

function pairsOf(sizes: readonly number[]): Set<string> {
  const options = sizes.flatMap((size, at) => [...Array(size).keys()].map((option) => [at, option] as const))
  return new Set(
    options.flatMap(([at, option]) =>
      options.filter(([other]) => at < other).map(([other, chosen]) => pairOf(at, option, other, chosen)),
    ),
  )
}

function shuffled<Value>(list: readonly Value[], random: () => number): Value[] {
  const placed = list.map((value) => ({ value, place: random() }))
  return placed.toSorted((one, other) => one.place - other.place).map(({ value }) => value)
}
