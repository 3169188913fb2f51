/** Options of Node.js with which the clock of its machine is wrong by as much as a test says. */
export function wrongBy(seconds: number): readonly string[] {
  const code = `const now = Date.now.bind(Date); Date.now = () => now() + ${seconds * 1000}`
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`]
}

/** Options of Node.js with which the time of day is wrong by as many milliseconds as a file says, from a moment after it says so. */
export function wrongByFile(path: string): readonly string[] {
  const code = `
import { readFileSync } from 'node:fs'
const now = Date.now.bind(Date)
let wrongMs = 0
Date.now = () => now() + wrongMs
setInterval(() => { try { wrongMs = Number(readFileSync(${JSON.stringify(path)}, 'utf8')) } catch {} }, 50).unref()`
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`]
}
