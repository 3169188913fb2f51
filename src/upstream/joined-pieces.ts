/**
 * A body that arrives in pieces. They are copied into one buffer: a browser chooses how small they are, and each takes
 * hundreds of bytes for as long as it is kept.
 */
export class JoinedPieces {
  #buffer: Buffer = Buffer.alloc(0)
  #length = 0

  /** How many bytes have arrived. */
  get length(): number {
    return this.#length
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length
    // Most bodies come in one piece, which is not copied.
    if (this.#length === 0) this.#buffer = piece
    else {
      if (length > this.#buffer.length) this.#grow(length)
      piece.copy(this.#buffer, this.#length)
    }
    this.#length = length
  }

  /** All bytes that have arrived. */
  joined(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  #grow(length: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#buffer.length))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}
