/** A set of functions that are called with each event. */
export class Listeners<Event> {
  readonly #all = new Set<(event: Event) => void>()

  /** Adds a listener. @returns a function that removes it */
  add(listener: (event: Event) => void): () => void {
    this.#all.add(listener)
    return () => void this.#all.delete(listener)
  }

  notify(event: Event): void {
    // A listener may remove itself or others meanwhile, which the iteration of a Set allows.
    for (const listener of this.#all) listener(event)
  }
}
