/** A random generator that repeats itself for a seed: that of the variable SEED, else a new one (mulberry32). */
export function seededRandom(seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))) {
  let state = seed
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { seed, random }
}
