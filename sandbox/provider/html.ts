/** Escaped markup. Only {@link html} creates it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A template tag that escapes all values except {@link Html}. The items of a list are concatenated. */
export function html(parts: TemplateStringsArray, ...values: readonly (string | Html | readonly Html[])[]): Html {
  return new Html(parts.map((part, index) => part + render(values[index] ?? '')).join(''))
}

function render(value: string | Html | readonly Html[]): string {
  if (typeof value === 'string') return value.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
  return value instanceof Html ? value.text : value.map((item) => item.text).join('')
}
