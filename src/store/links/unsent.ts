/** A command was not sent, so it has done nothing. The cause tells why not. */
export class Unsent extends Error {
  constructor(cause: unknown) {
    super('nothing was sent', { cause })
    this.name = 'Unsent'
  }
}
