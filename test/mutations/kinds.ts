/** A place in the code, of the parser that Stryker uses. */
interface Place {
  readonly node: { readonly argument: object; readonly expression: { readonly type: string } }
  isAwaitExpression(): boolean
  isExpressionStatement(): boolean
  isProgram(): boolean
  findParent(is: (parent: Place) => boolean): { readonly node: object } | null
}

/** A kind of slips, as Stryker has them. */
interface Mutator {
  readonly name: string
  mutate(place: Place, options?: unknown): Iterable<object>
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

/** A value that is not set, or not reset. Stryker itself drops whole statements only if they are calls. */
const droppedAssignment: Mutator = {
  name: 'DroppedAssignment',
  *mutate(place) {
    if (place.isExpressionStatement() && place.node.expression.type === 'AssignmentExpression') {
      yield { type: 'EmptyStatement' }
    }
  },
}

/**
 * Has Stryker drop every `await` and every assignment, too.
 * @param only the names of the kinds of slips to make; none: all
 * @param every of so many slips of a kind one is made
 */
export async function chooseKinds(only: readonly string[], every = 1): Promise<void> {
  const { allMutators } = (await import(MUTATORS)) as { readonly allMutators: Mutator[] }
  const kinds = [...allMutators, droppedAwait, droppedAssignment]
  const unknown = only.filter((name) => kinds.every((kind) => kind.name !== name))
  if (unknown.length > 0) {
    throw new Error(`--only: there is no ${unknown.join(', ')}; there are ${kinds.map(({ name }) => name).join(', ')}`)
  }
  const chosen = kinds.filter(({ name }) => only.length === 0 || only.includes(name))
  allMutators.splice(0, Infinity, ...(every === 1 ? chosen : chosen.map((kind) => oneIn(every, kind))))
}

/** A kind of which one slip in so many of a file is made, the same ones each time. */
function oneIn(every: number, kind: Mutator): Mutator {
  const counts = new WeakMap<object, number>()
  return {
    name: kind.name,
    *mutate(place, options) {
      const file = place.findParent((parent) => parent.isProgram())?.node ?? place.node
      for (const slip of kind.mutate(place, options)) {
        const count = counts.get(file) ?? 0
        counts.set(file, count + 1)
        if (count % every === 0) yield slip
      }
    },
  }
}
