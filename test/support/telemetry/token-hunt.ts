/** Something a page could read. */
export interface Place {
  readonly where: string
  readonly text: string
}

/** A secret that stands where a page could read it. The secret itself is not repeated. */
export interface Find {
  readonly where: string
  readonly as: string
}

/** Looks for every secret in every place, also in the encodings it may hide in. */
export function huntTokens(places: readonly Place[], secrets: Iterable<string>): Find[] {
  const disguises = [...secrets].flatMap((secret) => [
    { as: 'plain', text: secret },
    { as: 'base64', text: Buffer.from(secret).toString('base64').replace(/=+$/, '') },
    { as: 'base64url', text: Buffer.from(secret).toString('base64url') },
    { as: 'hex', text: Buffer.from(secret).toString('hex') },
    { as: 'URL-encoded', text: encodeURIComponent(secret) },
  ])
  return places.flatMap(({ where, text }) => {
    const found = disguises.find((disguise) => text.includes(disguise.text))
    return found === undefined ? [] : [{ where: where.replaceAll(found.text, '…'), as: found.as }]
  })
}
