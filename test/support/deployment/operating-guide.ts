import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const PAGES = fileURLToPath(new URL('../../../docs/operating/', import.meta.url))

/** All pages of docs/operating/, in the order of their names. */
export const OPERATING_GUIDE = globSync('*.md', { cwd: PAGES })
  .toSorted()
  .map((name) => readFileSync(PAGES + name, 'utf8'))
  .join('\n')
