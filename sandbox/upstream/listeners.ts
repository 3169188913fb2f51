/** Functions that are told about something until they are taken off the list. */
export class Listeners<Event> {
  readonly #all = new Set<(event: Event) => void>()

  /** Returns the function that ends the listening. */
  add(listener: (event: Event) => void): () => void {
    this.#all.add(listener)
    return () => void this.#all.delete(listener)
  }

  tell(event: Event): void {
    // A listener may take itself, or others, off the list meanwhile: a Set allows for that.
    for (const listener of this.#all) listener(event)
  }
}
