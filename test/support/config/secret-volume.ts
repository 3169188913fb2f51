import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Files of secrets in a folder that changes as a volume of Kubernetes does: as a whole, by one rename. */
export class SecretVolume {
  readonly #dir: string
  #texts: Record<string, string>
  #changes = 0

  /** @param dir an empty folder @param texts by the name of the setting */
  constructor(dir: string, texts: Record<string, string>) {
    this.#dir = dir
    this.#texts = {}
    this.change(texts)
    for (const name of Object.keys(texts)) symlinkSync(join('..data', name), join(dir, name))
  }

  /** The settings that name the files. */
  get settings(): Record<string, string> {
    return Object.fromEntries(Object.keys(this.#texts).map((name) => [`${name}_FILE`, join(this.#dir, name)]))
  }

  change(texts: Record<string, string>): void {
    this.#texts = { ...this.#texts, ...texts }
    const folder = `..${++this.#changes}`
    mkdirSync(join(this.#dir, folder))
    for (const [name, text] of Object.entries(this.#texts)) writeFileSync(join(this.#dir, folder, name), text)
    symlinkSync(folder, join(this.#dir, '..data_tmp'))
    renameSync(join(this.#dir, '..data_tmp'), join(this.#dir, '..data'))
  }
}
