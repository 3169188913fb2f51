/** Creates an element with attributes and children. What the page has sent or received becomes text, and never markup. */
export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value)
  node.append(...children)
  return node
}

/** Changes a text only if it differs, so that what somebody has selected or hears stays. */
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text
}

/** Keeps the terms and texts of a list of descriptions, one below the other. */
export function drawFacts(list: HTMLElement, facts: readonly (readonly [term: string, text: string])[]): void {
  while (list.children.length > facts.length) list.lastElementChild?.remove()
  while (list.children.length < facts.length) list.append(el('div', {}, el('dt'), el('dd')))
  for (const [index, [term, text]] of facts.entries()) {
    const [dt, dd] = list.children[index]?.children ?? []
    if (dt) setText(dt, term)
    if (dd) setText(dd, text)
  }
}

/** Keeps a row for each entry, in the order of the list. Rows of entries that are still there stay what they are. */
export class Rows<Entry extends { readonly id: number }> {
  readonly #body: HTMLElement
  readonly #make: (entry: Entry) => HTMLElement
  readonly #update: ((row: HTMLElement, entry: Entry) => void) | undefined
  readonly #rows = new Map<number, HTMLElement>()

  constructor(
    body: HTMLElement,
    make: (entry: Entry) => HTMLElement,
    update?: (row: HTMLElement, entry: Entry) => void,
  ) {
    this.#body = body
    this.#make = make
    this.#update = update
  }

  draw(entries: readonly Entry[]): void {
    const left = new Set(this.#rows.keys())
    let before: Element | null = null
    for (const entry of entries) {
      left.delete(entry.id)
      const row = this.#rows.get(entry.id) ?? this.#make(entry)
      this.#rows.set(entry.id, row)
      this.#update?.(row, entry)
      const next: Element | null = before ? before.nextElementSibling : this.#body.firstElementChild
      if (next !== row) this.#body.insertBefore(row, next)
      before = row
    }
    for (const id of left) {
      this.#rows.get(id)?.remove()
      this.#rows.delete(id)
    }
  }
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

/** 09:05:07 */
export const clock = (ms: number): string => CLOCK.format(ms)

/** 7 h 59 min, 29 min 5 s, 7 s */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`
}

/** 1 stream, 2 streams */
export const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`
