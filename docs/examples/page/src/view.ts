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

/** Draws prices as a line that fills the element. */
export function drawChart(id: string, prices: readonly number[]): void {
  const low = Math.min(...prices)
  const range = Math.max(...prices) - low || 1
  const points = prices.map(
    (price, index) => `${(index / (prices.length - 1)) * 300},${100 - ((price - low) / range) * 100}`,
  )
  byId(id).setAttribute('points', points.join(' '))
}
