import { explain } from './trading.ts'

/** An element of index.html. */
export const byId = (id: string): HTMLElement => document.getElementById(id) as HTMLElement

export function show(id: string, text: string): void {
  byId(id).textContent = text
}

export function showError(error: unknown): void {
  show('message', explain(error))
}

/** Adds a line to a list, or changes it. */
export function showLine(list: string, id: string, text: string): void {
  const line = document.getElementById(id) ?? document.createElement('li')
  line.id = id
  line.textContent = text
  if (!line.isConnected) byId(list).append(line)
}
