/** The reason why a WebSocket request fails, which becomes the `error` of the response. */
export class Refusal extends Error {
  readonly code: string
  readonly details: Record<string, unknown> | undefined
  constructor(code: string, message: string, details?: Record<string, unknown>) {
    super(message)
    this.name = 'Refusal'
    this.code = code
    this.details = details
  }
}
