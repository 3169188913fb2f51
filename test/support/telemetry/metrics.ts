/** The values of a metric by its labels, e.g. `kind="demo"`; '' for one without. */
export async function samplesOf(opsUrl: string, name: string): Promise<Map<string, number>> {
  return samplesIn(await (await fetch(`${opsUrl}/metrics`)).text(), name)
}

/** The value of a metric without labels; undefined where the metric does not exist. */
export async function valueOf(opsUrl: string, name: string): Promise<number | undefined> {
  return (await samplesOf(opsUrl, name)).get('')
}

/** The same of the text of `/metrics`. */
export function samplesIn(text: string, name: string): Map<string, number> {
  const found = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, metric = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (metric === name) found.set(labels, Number(value))
  }
  return found
}
