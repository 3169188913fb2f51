import type { Message, PublicSocket, RequestOptions, SocketError, TradingSocket } from '../../../client/dist/client.js'

/** A socket as a page without types uses it. */
interface UntypedSocket {
  request(message: object, options?: RequestOptions): Promise<Message>
  command(message: object, options?: RequestOptions): Promise<Message>
  subscribe(
    message: object,
    listener: (message: Message) => void,
    onError?: (error: SocketError) => void,
  ): ReturnType<PublicSocket['subscribe']>
}

/** The same socket, for messages that are not as their operation is described. */
export function untyped(socket: PublicSocket | TradingSocket): UntypedSocket {
  return socket as unknown as UntypedSocket
}
