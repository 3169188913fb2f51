/** Options of Node.js with which the clock of its machine is wrong by as much as a test says. */
export function wrongBy(seconds: number): readonly string[] {
  const code = `const now = Date.now.bind(Date); Date.now = () => now() + ${seconds * 1000}`
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`]
}
