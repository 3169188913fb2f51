/** A place in the code, of the parser that Stryker uses. */
interface Place {
  readonly node: { readonly argument: object }
  isAwaitExpression(): boolean
}

/** A kind of slips, as Stryker has them. */
interface Mutator {
  readonly name: string
  mutate(place: Place): Iterable<object>
}

/** Not a part of what Stryker offers, so its version is fixed. */
const MUTATORS = new URL('node_modules/@stryker-mutator/instrumenter/dist/src/mutators/mutate.js', import.meta.url).href

/** A promise that nobody waits for any more: whatever follows is early, and its rejection is handled by nobody. */
const droppedAwait: Mutator = {
  name: 'DroppedAwait',
  *mutate(place) {
    if (place.isAwaitExpression()) yield structuredClone(place.node.argument)
  },
}

/** Has Stryker drop every `await`, too. @param isAlone if it is to make no other slips */
export async function dropAwaits(isAlone: boolean): Promise<void> {
  const { allMutators } = (await import(MUTATORS)) as { readonly allMutators: Mutator[] }
  if (isAlone) allMutators.length = 0
  allMutators.push(droppedAwait)
}
